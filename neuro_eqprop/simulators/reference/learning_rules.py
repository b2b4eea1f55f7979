"""Traces, tags and weights of the reference, in floating point or in integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.learning import Events, part_of
from neuro_eqprop.spiking.counter_rng import chances
from neuro_eqprop.spiking.ir import Graded, Projection
from neuro_eqprop.spiking.plasticity import (
    LEAST,
    IntegerArithmetic,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)


class GradedUnits(Protocol):
    """The graded units of a run."""

    def sent(self, name: str) -> Array:
        """The sum of the messages of each unit of a graded population, in floating point."""
        ...


class Weights(Protocol):
    """A projection with its current weights."""

    projection: Projection
    weight: Array


class Tags(ABC):
    """Traces, tags and weights of a learning run."""

    def __init__(
        self, plastic: PlasticNetwork, projections: Sequence[Weights], training: TrainingSamples
    ) -> None:
        self.plastic, self.rule, self.training = plastic, plastic.rule, training
        self.populations = plastic.network.populations
        self.columns = {p.name: k for k, p in enumerate(self.populations)}
        self.traces = {p.name: np.zeros(p.size) for p in self.populations}
        chosen = [w for w in projections if w.projection.gain.value == "one"]
        self.held = {w.projection.name: w for w in chosen if w.projection.name in plastic.learns}
        self.place = {w.projection.name: j for j, w in enumerate(projections) if w in chosen}
        self.tags = {p.name: np.zeros(self.held[p.name].weight.shape) for p in plastic.plastic}
        self.committed = dict(self.tags)
        self.clipped = 0

    def trace(
        self,
        graded_units: GradedUnits | None,
        messages: Mapping[str, Array],
        step: int,
        counts: Ints,
    ) -> None:
        """Update the traces; without `graded_units`, in a commit, graded traces stay unchanged."""
        start = 0
        for k, population in enumerate(self.populations):
            name, units = population.name, slice(start, start + population.size)
            start += population.size
            if isinstance(population.neuron, Graded):
                if graded_units is None:
                    continue
                new = self.follow(graded_units.sent(name), step, units)
            else:
                new = self.decay(self.traces[name], messages[name] != 0, step, units)
            counts[k] += int(np.count_nonzero(new != self.traces[name]))
            self.traces[name] = new

    def reset_graded(self) -> None:
        """Reset the traces of graded units to zero."""
        for population in self.populations:
            if isinstance(population.neuron, Graded):
                self.traces[population.name] = np.zeros(population.size)

    @abstractmethod
    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The new traces of spiking units; `units` is their slice among all units."""

    @abstractmethod
    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """The new traces of graded units."""

    def accumulate(self, gate: float, step: int, sample: int, counts: Ints) -> None:
        """Add (gate r_pre) r_post to the tags; nothing outside a window, where the gate is zero."""
        if gate == 0.0:
            return
        for part in self.plastic.plastic:
            projection = self.held[part.name].projection
            pre, post = self.traces[projection.source], self.traces[projection.target]
            grown = (gate * pre)[None, :] * post[:, None]
            self.tags[part.name] = self.tags[part.name] + grown
            self.count(part, int(np.count_nonzero(grown)), counts)

    def within_margin(self, sample: int) -> bool:
        """Whether the traces of all outputs are within the margin of their targets."""
        if not self.rule.margin:
            return False
        top = 1.0 if self.rule.numbers is None else self.rule.numbers.top
        output = self.plastic.network.output
        apart = self.traces[output] - self.training.stimulus.pull[output][sample] * top
        return bool((np.abs(apart) <= self.rule.margin * top).all())

    def count(self, part: Plastic, events: int, counts: Ints) -> None:
        """Count events at the target population; those of the mirror at the source population."""
        projection = self.held[part.name].projection
        counts[self.columns[projection.target]] += events
        if part.mirror is not None:
            counts[self.columns[projection.source]] += events

    def commit(self, sample: int, step: int, done: int, events: Events) -> None:
        """Update the weights by the tags of the last `done` samples."""
        self.committed = dict(self.tags)
        for part in self.plastic.plastic:
            held, eta = self.held[part.name], self.eta(part, sample, done)
            new = self.change(part, held.weight, eta, sample)
            self.count(part, int(np.count_nonzero(new != held.weight)), events.weights[-1])
            held.weight = new
            if part.mirror is not None:
                self.held[part.mirror].weight = part.mirrored * new.T
            self.tags[part.name] = np.zeros_like(new)

    def eta(self, part: Plastic, sample: int, done: int) -> float:
        """The learning rate of a part in this commit."""
        return self.plastic.eta(part, float(self.training.rates[sample]), done)

    @abstractmethod
    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """The new weights."""

    def clip(self, wanted: Array, low: float, high: float) -> Array:
        """Weights clipped to their limits; counts those that change."""
        new = np.minimum(np.maximum(wanted, low), high)
        self.clipped += int(np.count_nonzero(new != wanted))
        return np.asarray(new)

    def synapse_values(
        self, name: str, target: int, source: int
    ) -> tuple[float, float, float, float]:
        """Both traces, tag and weight of a synapse."""
        held = self.held[name]
        pre, post = self.traces[held.projection.source], self.traces[held.projection.target]
        owner = part_of(self.plastic, name)
        tags = self.tags[owner.name] if name == owner.name else self.tags[owner.name].T
        weight = self.size(owner) * held.weight[target, source]
        return pre[source], post[target], tags[target, source], weight

    def size(self, part: Plastic) -> float:
        """The value of one weight step, in floating point."""
        return 1.0 if self.rule.numbers is None else part.scale

    def weights(self) -> dict[str, Array]:
        """The weights of all plastic projections, in floating point."""
        found = {}
        for part in self.plastic.plastic:
            for name in (part.name, part.mirror):
                if name is not None:
                    found[name] = self.size(part) * self.held[name].weight
        return found

    def last(self) -> dict[str, Array]:
        """The tags of the last commit."""
        return dict(self.committed)

    def saturated(self) -> dict[str, int]:
        """The number of weights at a limit, by projection."""
        found = {}
        for part in self.plastic.plastic:
            low, high = self.limits(part)
            weight = self.held[part.name].weight
            found[part.name] = int(np.count_nonzero((weight <= low) | (weight >= high)))
            if part.mirror is not None:
                found[part.mirror] = found[part.name]
        return found

    def limits(self, part: Plastic) -> tuple[float, float]:
        """The lowest and the highest weight."""
        if self.rule.numbers is None:
            return -part.limit, part.limit
        low, high = self.rule.numbers.range
        return float(low), float(high)


class FloatTags(Tags):
    """Traces, tags and weights in float64."""

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """r = keep r, then + 1 - keep where s."""
        committed = self.rule.keep * trace
        new = np.where(spike, committed + (1.0 - self.rule.keep), committed)
        return np.asarray(np.where(new < LEAST, 0.0, new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """r = sent."""
        return sent.copy()

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """w + eta m, clipped to the limit."""
        return self.clip(weight + eta * self.tags[part.name], -part.limit, part.limit)


class IntegerTags(Tags):
    """Integer traces and weights, with stochastic rounding."""

    def __init__(
        self,
        plastic: PlasticNetwork,
        projections: Sequence[Weights],
        training: TrainingSamples,
        numbers: IntegerArithmetic,
    ) -> None:
        super().__init__(plastic, projections, training)
        self.numbers = numbers
        self.units = sum(p.size for p in self.populations)

    def draws(self, step: int, units: slice) -> Array:
        """Uniform random numbers of these units in this step."""
        return np.asarray(chances(self.numbers.seed, 0, step, (self.units,))[units])

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The decayed trace, Q times that of floating point, with stochastic rounding."""
        committed = self.rule.keep * trace
        floor = np.floor(committed)
        new = floor + (self.draws(step, units) < committed - floor)
        return np.asarray(
            np.where(spike, np.minimum(new + self.rule.impulse, self.numbers.top), new)
        )

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """Q times the sum of messages, with stochastic rounding."""
        new = np.floor(self.numbers.top * sent + self.draws(step, units))
        return np.asarray(np.minimum(np.maximum(new, 0.0), self.numbers.top))

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """W + eta m / (scale Q^2), with stochastic rounding, clipped."""
        count = eta / (part.scale * self.numbers.top**2)
        sources, targets = weight.shape[1], weight.shape[0]
        number = self.training.first + sample
        drawn = chances(self.numbers.seed, 1 + self.place[part.name], number, (sources, targets))
        update = np.floor(count * self.tags[part.name] + drawn.T)
        return self.clip(weight + update, *self.limits(part))
