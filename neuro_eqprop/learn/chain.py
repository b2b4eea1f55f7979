"""The sweeps of a chain of dense layers, as `Field.sweep` takes them, with each product taken once.

With a_l = b_l + W_l s_{l-1} what layer l hears from below, g_l the feedback, o the output:

    s_l = rho_l(a_l + g_l W_{l+1}^T s_{l+1})
    s_o = rho_o((a_o + beta y) / (1 + beta))

Nothing comes back from layers that are still at rest, a nudged phase begins with the a_l of the
free one, and each array is used again in the next sweep. The numbers are those of
`neuro_eqprop.learn.episode.relax`, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from neuro_eqprop.activations import Activation, Curve
from neuro_eqprop.networks import DENSE, Cost, Network
from neuro_eqprop.ops.base import Ops, Values
from neuro_eqprop.rate.field import Field, State
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, Stop, counted


def is_chain(network: Network) -> bool:
    """Whether dense connections join each layer to the next, both ways beyond the input."""
    between = list(pairwise(layer.name for layer in network.layers))
    return (
        network.cost is Cost.SQUARED
        and network.output.activation.curve is Curve.CLIP
        and network.layers[0] is network.input
        and network.layers[-1] is network.output
        and [(c.source, c.target) for c in network.connections] == between
        and all(c.operator == DENSE for c in network.connections)
        and all(c.symmetric for c in network.connections[1:])
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain at work on a batch; of each layer that moves, by its place.

    A sample is a column here: a product with few rows takes half the time of one with few columns.
    """

    ops: Ops
    rates: tuple[Activation, ...]
    fed: tuple[Values, ...]
    """Bias, and for the first what the input brings."""
    up: tuple[Values, ...]
    """Weights from the layer below; the first is not used."""
    down: tuple[Values, ...]
    """Transposed weights from the layer above; the last layer has none."""
    gains: tuple[float, ...]
    """Of what comes back by them."""

    def hear(self, k: int, s: list[Values], into: Values) -> Values:
        """What layer k hears from below."""
        if k == 0:
            return self.fed[0]
        return self.ops.add_product(self.fed[k], self.up[k], s[k - 1], 1.0, into)

    def rate(self, k: int, below: Values, above: Values, into: Values) -> Values:
        """The rates of layer k, which is not the output or hears nothing from `above`."""
        if above is None:
            u = below + 0.0  # a copy, which the activation may overwrite
        else:
            u = self.ops.add_product(below, self.down[k], above, self.gains[k], into)
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
    """The field of a chain."""
    ops, network, moving = free.ops, free.network, free.network.moving
    weights = [free.params[c.name] for c in network.connections]
    biases = (ops.zeros((k.size, free.batch)) + free.fed[k.name][:, None] for k in moving[1:])
    return Chain(
        ops,
        tuple(layer.activation for layer in moving),
        (free.fed[moving[0].name].T, *biases),
        tuple(weights),
        tuple(weight.T for weight in weights[1:]),
        tuple(network.feedback(c) for c in network.connections[1:]),
    )


def relax_chain(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium]:
    """As `neuro_eqprop.learn.episode.relax`, by sweeps and without a tolerance."""
    at, settled = chain(free), dict[str, Equilibrium]()
    heard: list[Values] = [None] * len(at.rates)
    rest = list(heard)
    for phase in schedule:
        stop = Stop(None, phase.steps, measured)
        free.nudged(target, phase.beta)  # refuses what would not settle
        s: list[Values] = [None] * len(heard)
        now, own, pull = heard, list(s), (target * phase.beta).T
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
        old = free.rest() if before[0] is None and measured else named(free, before)
        settled[phase.name] = counted(free, named(free, s), old, stop)
    return settled


def named(free: Field, s: list[Values]) -> State:
    """Rates by layer, a row for each sample."""
    moving = zip(free.network.moving, s, strict=True)
    return {layer.name: rates.T for layer, rates in moving if rates is not None}
