"""The sweeps of a chain of layers, as `Field.sweep` takes them, with each product taken once.

With a_l = b_l + W_l s_{l-1} what layer l hears from below, g_l the feedback, o the output:

    s_l = rho_l(a_l + g_l W_{l+1}^T s_{l+1})
    s_o = rho_o((a_o + beta y) / (1 + beta))

Nothing comes back from layers that are still at rest, a nudged phase begins with the a_l of the
free one, and dense layers use each array again in the next sweep. The numbers are those of
`neuro_eqprop.training.relax.relax`, to rounding.
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
    """Whether linear connections join each layer to the next, both ways beyond the input."""
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
    """Whether each weight of a chain is a matrix between layers of one axis."""
    return all(c.operator == DENSE for c in chain.connections)


Way: TypeAlias = Callable[[Values, Values, Values], Values]
"""By a connection: onto + what the rates s bring, in the array `into` if that is not None."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain at work on a batch; of each layer that moves, by its place."""

    ops: Ops
    rates: tuple[Activation, ...]
    fed: tuple[Values, ...]
    """Bias, and for the first what the input brings."""
    up: tuple[Way, ...]
    """From the layer below, of all but the first."""
    down: tuple[Way, ...]
    """From the layer above, of all but the last."""

    def hear(self, k: int, s: list[Values], into: Values) -> Values:
        """What layer k hears from below."""
        return self.up[k - 1](self.fed[k], s[k - 1], into) if k else self.fed[0]

    def rate(self, k: int, below: Values, above: Values, into: Values) -> Values:
        """The rates of layer k, which is not the output or hears nothing from `above`."""
        # Without anything above a copy, which the activation may overwrite.
        u = below + 0.0 if above is None else self.down[k](below, above, into)
        return self.ops.activate(self.rates[k], u)

    def forwards(self, s: list[Values], heard: list[Values]) -> None:
        """A free sweep over rates and what each layer heard from below; at first all are None."""
        above = [*s[1:], None]
        for k in range(len(s)):
            heard[k] = self.hear(k, s, heard[k])
            s[k] = self.rate(k, heard[k], above[k], s[k])

    def backwards(self, s: list[Values], heard: list[Values], pull: Values, beta: float) -> None:
        """A nudged sweep over rates, from what each layer heard before it."""
        u = (heard[-1] + pull) / (1.0 + beta)
        s[-1] = self.ops.activate(self.rates[-1], u)
        for k in reversed(range(len(s) - 1)):
            s[k] = self.rate(k, heard[k], s[k + 1], s[k])


def chain(free: Field) -> Chain:
    """The field of a chain.

    Between dense layers a sample is a column: a product with few rows takes half the time of one
    with few columns.
    """
    network = free.network
    moving, joined = network.moving, network.connections[1:]
    rates, fed = (
        tuple(layer.activation for layer in moving),
        [free.input_drive[k.name] for k in moving],
    )
    if is_dense(network):
        columns = free.ops.zeros((1, free.batch))
        fed = [fed[0].T, *(bias[:, None] + columns for bias in fed[1:])]
        both = [matrix_ways(free, c) for c in joined]
    else:
        both = [operator_ways(free, c) for c in joined]
    return Chain(
        free.ops, rates, tuple(fed), tuple(up for up, _ in both), tuple(down for _, down in both)
    )


def matrix_ways(free: Field, connection: Connection) -> tuple[Way, Way]:
    """Up and down a matrix, for samples in columns."""
    ops, weight = free.ops, free.params[connection.name]
    back, gain = weight.T, free.network.feedback(connection)
    return (
        lambda onto, s, into: ops.addmm(onto, weight, s, 1.0, into),
        lambda onto, s, into: ops.addmm(onto, back, s, gain, into),
    )


def operator_ways(free: Field, connection: Connection) -> tuple[Way, Way]:
    """Up and down any linear operator; each array is a fresh one."""
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
    """As `neuro_eqprop.training.relax.relax`, by sweeps and without a tolerance."""
    at, dense, settled = chain(free), is_dense(free.network), dict[str, Equilibrium]()
    heard: list[Values] = [None] * len(at.rates)
    rest = list(heard)
    for phase in schedule:
        stop = Stop(None, phase.steps, measured)
        free.nudged(target, phase.beta)  # refuses what would not settle
        s: list[Values] = [None] * len(heard)
        now, own, pull = heard, list(s), target * phase.beta
        pull = pull.T if dense else pull
        before = rest
        for step in range(phase.steps):
            if step and step == phase.steps - 1 and measured:
                before = [rates + 0.0 for rates in s]
            if not phase.beta:
                at.forwards(s, heard)
                continue
            if step:
                own = now = [at.hear(k, s, own[k]) for k in range(len(s))]
            at.backwards(s, now, pull, phase.beta)
        rest = rest if settled else s
        old = free.zero_state() if before[0] is None and measured else named(free, before, dense)
        settled[phase.name] = measure_last_step(free, named(free, s, dense), old, stop)
    return settled


def named(free: Field, s: list[Values], columns: bool) -> State:
    """Rates by layer, a row for each sample."""
    moving = zip(free.network.moving, s, strict=True)
    return {
        layer.name: rates.T if columns else rates for layer, rates in moving if rates is not None
    }
