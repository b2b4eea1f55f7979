"""Ranges of an exported network in fixed point: what samples reach, and what weights allow.

The states of Loihi have 24 bits. On a CPU, Lava's own sigma-delta units hold 32, so that they do
not show what wraps on a chip; `stock_ranges` repeats their arithmetic and counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.simulators.lava.native.plan import (
    STATE_BITS,
    Weight,
    biases,
    edge_exponent,
    expanded,
    integers,
    nearest,
    state_exponent,
    unit_count,
)
from neuro_eqprop.simulators.stepped_network import SteppedNetwork
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Population, SpikingNetwork, Stimulus

if TYPE_CHECKING:
    from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

LIMIT = 2**STATE_BITS
"""States hold magnitudes below this."""
DECAY_BITS = 12
"""Bits of a decay."""
FRACTION = 64
"""Steps of a spiking unit's voltage and current in one step of its input."""


class LayerRange(NamedTuple):
    """The states of a layer, in their integer steps, of which 24 bits hold 2^23."""

    layer: str
    largest: int
    """Largest magnitude that these samples reached."""
    worst: int | None
    """Largest magnitude that the weights allow with these samples, whatever the messages are; None
    if a source has no bounds."""
    wraps: int
    """How often a value wrapped around."""
    saturations: int
    """How often a value was saturated."""

    @property
    def fits(self) -> bool:
        """Whether the samples left the layer within 24 bits."""
        return not self.wraps and not self.saturations and self.largest < LIMIT


def exact_ranges(net: ExactNetwork, x: npt.ArrayLike, steps: int) -> tuple[LayerRange, ...]:
    """The ranges of a network of exact neurons, which counts overflows itself."""
    network, plan = net.plan.network, net.plan
    rows = np.atleast_2d(np.asarray(x, dtype=np.float64))
    current = {
        target: np.rint(rows @ weight.T / plan.grid) * plan.grid
        for target, weight in plan.feeds.items()
    }
    stepped = SteppedNetwork(network, Stimulus(len(rows), current, {}))
    largest = dict.fromkeys(stepped.neurons, 0.0)
    for _ in range(steps):
        stepped.step(0.0)
        for name, neurons in stepped.neurons.items():
            shown = max(most(neurons.drive), most(neurons.held))
            largest[name] = max(largest[name], shown)
    return tuple(
        LayerRange(
            each.name,
            int(largest[each.name]),
            exact_worst(network, each, current.get(each.name)),
            *map(int, stepped.neurons[each.name].overflows),
        )
        for each in network.populations
    )


def exact_worst(
    network: SpikingNetwork, population: Population, current: Array | None
) -> int | None:
    """The largest drive of a population, if all its sources send all that they can."""
    assert network.fixed is not None
    unit, neuron = network.fixed.units[population.name], population.neuron
    outside = most(population.bias) + (0.0 if current is None else most(current))
    total = outside / unit
    for projection in network.projections:
        if projection.target == population.name:
            weight = np.abs(integer_synapses(network, projection).dense())
            total += most(weight.sum(axis=1)) * network[projection.source].neuron.sizes.most_sent
    fraction = 1 if neuron.graded else FRACTION
    lost = getattr(neuron, "current_decay", 1.0)
    return whole(fraction * total / max(lost, 1 / 4096))


def whole(value: float) -> int | None:
    """The value as an integer; None for infinity."""
    return int(value) if np.isfinite(value) else None


def stock_ranges(net: StockNetwork, x: npt.ArrayLike, steps: int) -> tuple[LayerRange, ...]:
    """The ranges of a network of Lava's own neurons."""
    states = StockStates(net)
    for _ in states.run(net.encode(x, steps), steps):
        pass
    return tuple(states.ranges())


def most(values: npt.ArrayLike) -> float:
    """The largest magnitude."""
    return float(np.abs(np.asarray(values)).max(initial=0.0))


class StockStates:
    """Lava's fixed-point `SigmaDelta` or `ATRLIF` and `Dense` in NumPy, samples side by side."""

    def __init__(self, net: StockNetwork) -> None:
        self.net, plan, scale = net, net.plan, net.scale
        self.exponent = state_exponent(plan, scale)
        self.weights: list[tuple[str, str, Weight, int]] = []
        for edge in plan.edges:
            fine = scale.weight_exp[edge.source, edge.target]
            weight = 2 * nearest(expanded(plan, edge), fine)
            shift = edge_exponent(plan, scale, edge) - 1
            self.weights.append((edge.source, edge.target, weight, shift))
        names = [layer.name for layer in plan.layers]
        self.largest, self.wraps, self.saturations = (dict.fromkeys(names, 0) for _ in range(3))
        self.inputs = dict.fromkeys(names, 0.0)

    def run(self, data: Ints, steps: int) -> Iterator[dict[str, Ints]]:
        """The messages (samples, units) of each layer in every step, for the data of `encode`."""
        plan = self.net.plan
        fresh = plan.reset_interval is not None
        courses = data.T.reshape(-1 if fresh else 1, steps if fresh else data.shape[1], len(data))
        shapes = {layer.name: (3, len(courses), unit_count(plan, layer)) for layer in plan.layers}
        self.state = {name: np.zeros(shape, np.int64) for name, shape in shapes.items()}
        due: list[tuple[str, Ints]] = []
        for step in range(courses.shape[1]):
            arriving = {name: np.zeros(shape[1:], np.int64) for name, shape in shapes.items()}
            for target, total in due:
                arriving[target] = arriving[target] + total
            sent = {name: self.advance(name, arriving[name]) for name in self.state}
            due = []
            for source, target, weight, shift in self.weights:
                message = courses[:, step] if source == plan.input else sent[source]
                total = np.asarray((weight @ message.T).T).astype(np.int64)
                total = np.asarray(total << shift if shift > 0 else total >> -shift)
                due.append((target, total))
                if source == plan.input:
                    self.inputs[target] = max(self.inputs[target], most(total))
            yield sent

    def advance(self, name: str, arriving: Ints) -> Ints:
        """One step of a layer; returns its messages."""
        plan, scale, state = self.net.plan, self.net.scale, self.state[name]
        layer = plan[name]
        if not plan.graded:
            half = FRACTION << (scale.drive_exp - 1)
            # Lava keeps a trace of the last current, 1/4096 of it with the other sign.
            old = state[2]
            current = FRACTION * arriving - np.sign(old) * (np.abs(old) >> DECAY_BITS)
            state[2] = current
            self.wraps[name] += int((np.abs(current) >= LIMIT).sum())
            wanted = state[0] + current + FRACTION * integers(layer.bias, scale.drive_exp)
            state[0] = np.clip(wanted, 1 - LIMIT, LIMIT - 1)
            self.saturations[name] += int((state[0] != wanted).sum())
            self.largest[name] = max(self.largest[name], int(most(wanted)))
            spikes = np.asarray(state[0] - state[1] >= half)
            state[1] += 2 * half * spikes
            return spikes.astype(np.int64)
        state[0] = state[0] + arriving
        self.wraps[name] += int((np.abs(state[0]) >= LIMIT).sum())
        self.largest[name] = max(self.largest[name], int(most(state[0])))
        drive = state[0] + integers(biases(plan, layer), self.exponent)
        new = np.maximum(drive, 0) if layer.corners else drive
        change = new - state[1] + state[2]
        threshold = int(plan.threshold * 2.0**self.exponent)
        message = np.where(np.abs(change) >= threshold, change, 0)
        state[1], state[2] = new, change - message
        return np.asarray(message >> scale.state_exp)

    def ranges(self) -> Iterable[LayerRange]:
        """The range of each layer."""
        plan, scale = self.net.plan, self.net.scale
        for layer in plan.layers:
            total = self.inputs[layer.name] + most(integers(biases(plan, layer), self.exponent))
            for source, target, weight, shift in self.weights:
                if target == layer.name and source != plan.input:
                    reach = 1.0
                    if plan.graded:
                        bounds = (plan[source].low, plan[source].high)
                        span = max(abs(b) for b in bounds) if np.isfinite(bounds).all() else np.inf
                        reach = span * 2.0**scale.message_exp
                    largest = most(np.asarray(abs(weight).sum(axis=1)))
                    total += largest * reach * 2.0**shift
            steps = 1 if plan.graded else FRACTION * (plan.reset_interval or 1)
            yield LayerRange(
                layer.name,
                self.largest[layer.name],
                whole(total * steps),
                self.wraps[layer.name],
                self.saturations[layer.name],
            )
