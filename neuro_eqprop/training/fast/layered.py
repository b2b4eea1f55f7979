"""Sweeps of a chain of layers, equal to `Field.sweep` but with each product computed once.

With a_l = b_l + W_l s_{l-1} the drive of layer l from below, g_l the feedback, o the output:

    s_l = rho_l(a_l + g_l W_{l+1}^T s_{l+1})
    s_o = rho_o((a_o + beta y) / (1 + beta))

Feedback from layers whose rates are still zero is skipped, a nudged phase starts with the a_l of
the free one, and dense layers reuse their arrays in the next sweep. Results equal those of
`neuro_eqprop.training.relax.relax` up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from neuro_eqprop.activations import Activation, ActivationKind
from neuro_eqprop.networks import DENSE, Connection, Cost, Network
from neuro_eqprop.ops.protocol import Ops, Values
from neuro_eqprop.rate.field import Field, State
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, Stop, measure_last_step


def is_chain(network: Network) -> bool:
    """Whether linear connections join each layer to the next, symmetric beyond the input."""
    between = list(pairwise(layer.name for layer in network.layers))
    return (
        network.cost is Cost.SQUARED
        and network.output.activation.curve is ActivationKind.CLIP
        and network.layers[0] is network.input
        and network.layers[-1] is network.output
        and [(c.source, c.target) for c in network.connections] == between
        and all(c.operator.linear for c in network.connections)
        and all(c.symmetric for c in network.connections[1:])
    )


def is_dense(chain: Network) -> bool:
    """Whether all connections of a chain are dense."""
    return all(c.operator == DENSE for c in chain.connections)


Propagate: TypeAlias = Callable[[Values, Values, Values], Values]
"""(onto, s, into) -> onto + the drive from rates s, written to `into` unless that is None."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of layers on a batch; entries are by position, without the input layer."""

    ops: Ops
    rates: tuple[Activation, ...]
    input_drive: tuple[Values, ...]
    """Bias, plus the drive from the input for the first layer."""
    up: tuple[Propagate, ...]
    """From the layer below, for all layers but the first."""
    down: tuple[Propagate, ...]
    """From the layer above, for all layers but the last."""

    def drive_from_below(self, k: int, s: list[Values], into: Values) -> Values:
        """a_k, the drive of layer k from below."""
        return self.up[k - 1](self.input_drive[k], s[k - 1], into) if k else self.input_drive[0]

    def rate(self, k: int, below: Values, above: Values, into: Values) -> Values:
        """The rates of layer k; `above` are the rates above it, None without feedback."""
        # The activation may overwrite its argument, so it gets a copy where nothing is added.
        u = below + 0.0 if above is None else self.down[k](below, above, into)
        return self.ops.activate(self.rates[k], u)

    def forwards(self, s: list[Values], below: list[Values]) -> None:
        """A free sweep; updates the rates `s` and the drives `below`, all None at first."""
        above = [*s[1:], None]
        for k in range(len(s)):
            below[k] = self.drive_from_below(k, s, below[k])
            s[k] = self.rate(k, below[k], above[k], s[k])

    def backwards(self, s: list[Values], below: list[Values], nudge: Values, beta: float) -> None:
        """A nudged sweep; updates the rates `s` from the drives `below`."""
        u = (below[-1] + nudge) / (1.0 + beta)
        s[-1] = self.ops.activate(self.rates[-1], u)
        for k in reversed(range(len(s) - 1)):
            s[k] = self.rate(k, below[k], s[k + 1], s[k])


def chain(free: Field) -> Chain:
    """The chain of a map.

    With dense layers samples are columns: a product with few rows takes half the time of one with
    few columns.
    """
    network = free.network
    moving, connections = network.moving, network.connections[1:]
    rates = tuple(layer.activation for layer in moving)
    drives = [free.input_drive[layer.name] for layer in moving]
    if is_dense(network):
        columns = free.ops.zeros((1, free.batch))
        drives = [drives[0].T, *(bias[:, None] + columns for bias in drives[1:])]
        both = [dense_propagation(free, c) for c in connections]
    else:
        both = [operator_propagation(free, c) for c in connections]
    return Chain(
        free.ops, rates, tuple(drives), tuple(up for up, _ in both), tuple(down for _, down in both)
    )


def dense_propagation(free: Field, connection: Connection) -> tuple[Propagate, Propagate]:
    """Forward and backward by a matrix, for samples in columns."""
    ops, weight = free.ops, free.params[connection.name]
    back, gain = weight.T, free.network.feedback(connection)
    return (
        lambda onto, s, into: ops.addmm(onto, weight, s, 1.0, into),
        lambda onto, s, into: ops.addmm(onto, back, s, gain, into),
    )


def operator_propagation(free: Field, connection: Connection) -> tuple[Propagate, Propagate]:
    """Forward and backward by any linear operator; results are new arrays."""
    ops, weight, operator = free.ops, free.params[connection.name], connection.operator
    gain = free.network.feedback(connection)
    shape = free.network[connection.source].shape
    return (
        lambda onto, s, into: operator.forward(ops, weight, s, onto),
        lambda onto, s, into: operator.backward(ops, weight, s, onto, gain=gain, shape=shape),
    )


def relax_chain(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium]:
    """As `neuro_eqprop.training.relax.relax`, for plain sweeps without a tolerance."""
    at, dense, settled = chain(free), is_dense(free.network), dict[str, Equilibrium]()
    below: list[Values] = [None] * len(at.rates)
    rest = list(below)
    for phase in schedule:
        stop = Stop(None, phase.steps, measured)
        free.nudged(target, phase.beta)  # checks beta
        s: list[Values] = [None] * len(below)
        drives, own, nudge = below, list(s), target * phase.beta
        nudge = nudge.T if dense else nudge
        before = rest
        for step in range(phase.steps):
            if step and step == phase.steps - 1 and measured:
                before = [rates + 0.0 for rates in s]
            if not phase.beta:
                at.forwards(s, below)
                continue
            if step:
                own = drives = [at.drive_from_below(k, s, own[k]) for k in range(len(s))]
            at.backwards(s, drives, nudge, phase.beta)
        rest = rest if settled else s
        old = free.zero_state() if before[0] is None and measured else state_of(free, before, dense)
        settled[phase.name] = measure_last_step(free, state_of(free, s, dense), old, stop)
    return settled


def state_of(free: Field, s: list[Values], columns: bool) -> State:
    """Rates by layer name, with samples in rows."""
    moving = zip(free.network.moving, s, strict=True)
    return {
        layer.name: rates.T if columns else rates for layer, rates in moving if rates is not None
    }
