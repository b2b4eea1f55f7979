"""Traces, tags and weights of the reference, in floating point and in whole ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Array, Bits, Ints
from neuro_eqprop.backends.learning import Events
from neuro_eqprop.spiking.counter_rng import chances
from neuro_eqprop.spiking.ir import Graded, Projection
from neuro_eqprop.spiking.plasticity import (
    LEAST,
    IntegerArithmetic,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)


class Cells(Protocol):
    """Where graded units tell what they have sent."""

    def sent(self, name: str) -> Array:
        """What each unit of a graded population has sent in sum, in floating point."""
        ...


class Weights(Protocol):
    """A projection with the weights it has now."""

    projection: Projection
    weight: Array


class Tags(ABC):
    """Traces, tags and weights of one course of samples."""

    def __init__(
        self, plastic: PlasticNetwork, passings: Sequence[Weights], lessons: TrainingSamples
    ) -> None:
        self.plastic, self.rule, self.lessons = plastic, plastic.rule, lessons
        self.populations = plastic.network.populations
        self.columns = {p.name: k for k, p in enumerate(self.populations)}
        self.traces = {p.name: np.zeros(p.size) for p in self.populations}
        chosen = [w for w in passings if w.projection.gain.value == "one"]
        self.held = {w.projection.name: w for w in chosen if w.projection.name in plastic.learns}
        self.place = {w.projection.name: j for j, w in enumerate(passings) if w in chosen}
        self.tags = {p.name: np.zeros(self.held[p.name].weight.shape) for p in plastic.plastic}
        self.kept = dict(self.tags)
        self.clipped = 0

    def trace(
        self, cells: Cells | None, messages: Mapping[str, Array], step: int, counts: Ints
    ) -> None:
        """Let traces follow what was sent; without cells, in a commit, graded ones stay."""
        start = 0
        for k, population in enumerate(self.populations):
            name, units = population.name, slice(start, start + population.size)
            start += population.size
            if isinstance(population.neuron, Graded):
                if cells is None:
                    continue
                new = self.follow(cells.sent(name), step, units)
            else:
                new = self.decay(self.traces[name], messages[name] != 0, step, units)
            counts[k] += int(np.count_nonzero(new != self.traces[name]))
            self.traces[name] = new

    def forget(self) -> None:
        """Graded units are at rest again, and so are their traces."""
        for population in self.populations:
            if isinstance(population.neuron, Graded):
                self.traces[population.name] = np.zeros(population.size)

    @abstractmethod
    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The trace of spiking units, which are at these places among all units."""

    @abstractmethod
    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """The trace of graded units."""

    def gather(self, gate: float, step: int, sample: int, counts: Ints) -> None:
        """Let tags grow in a step of a window: where the gate is open."""
        if gate == 0.0:
            return
        for part in self.plastic.plastic:
            projection = self.held[part.name].projection
            pre, post = self.traces[projection.source], self.traces[projection.target]
            grown = (gate * pre)[None, :] * post[:, None]
            self.tags[part.name] = self.tags[part.name] + grown
            self.count(part, int(np.count_nonzero(grown)), counts)

    def count(self, part: Plastic, events: int, counts: Ints) -> None:
        """Record events on the target, and those of the mirror on the source."""
        projection = self.held[part.name].projection
        counts[self.columns[projection.target]] += events
        if part.mirror is not None:
            counts[self.columns[projection.source]] += events

    def commit(self, sample: int, step: int, done: int, events: Events) -> None:
        """Change the weights by what `done` samples left in the tags."""
        self.kept = dict(self.tags)
        for part in self.plastic.plastic:
            held, eta = self.held[part.name], self.eta(part, sample, done)
            new = self.change(part, held.weight, eta, sample)
            self.count(part, int(np.count_nonzero(new != held.weight)), events.weights[-1])
            held.weight = new
            if part.mirror is not None:
                self.held[part.mirror].weight = part.mirrored * new.T
            self.tags[part.name] = np.zeros_like(new)

    def eta(self, part: Plastic, sample: int, done: int) -> float:
        """What a tag counts in this commit."""
        return self.plastic.eta(part, float(self.lessons.rates[sample]), done)

    @abstractmethod
    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """The new weights."""

    def cut(self, wanted: Array, low: float, high: float) -> Array:
        """Weights within their limits; those cut off are counted."""
        new = np.minimum(np.maximum(wanted, low), high)
        self.clipped += int(np.count_nonzero(new != wanted))
        return np.asarray(new)

    def synapse_values(
        self, name: str, target: int, source: int
    ) -> tuple[float, float, float, float]:
        """Both traces, tag and weight of a synapse."""
        held = self.held[name]
        pre, post = self.traces[held.projection.source], self.traces[held.projection.target]
        owner = next(p for p in self.plastic.plastic if name in (p.name, p.mirror))
        tags = self.tags[owner.name] if name == owner.name else self.tags[owner.name].T
        weight = self.size(owner) * held.weight[target, source]
        return pre[source], post[target], tags[target, source], weight

    def size(self, part: Plastic) -> float:
        """What a weight of one stands for."""
        return 1.0 if self.rule.numbers is None else part.scale

    def weights(self) -> dict[str, Array]:
        """All weights that learn, in floating point."""
        found = {}
        for part in self.plastic.plastic:
            for name in (part.name, part.mirror):
                if name is not None:
                    found[name] = self.size(part) * self.held[name].weight
        return found

    def last(self) -> dict[str, Array]:
        """The tags of the last commit."""
        return dict(self.kept)

    def saturated(self) -> dict[str, int]:
        """How many weights stand at a limit."""
        found = {}
        for part in self.plastic.plastic:
            low, high = self.limits(part)
            weight = self.held[part.name].weight
            found[part.name] = int(np.count_nonzero((weight <= low) | (weight >= high)))
            if part.mirror is not None:
                found[part.mirror] = found[part.name]
        return found

    def limits(self, part: Plastic) -> tuple[float, float]:
        """The least and the greatest weight."""
        if self.rule.numbers is None:
            return -part.limit, part.limit
        low, high = self.rule.numbers.range
        return float(low), float(high)


class FloatTags(Tags):
    """In floats."""

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """r = keep r, then + 1 - keep where s."""
        kept = self.rule.keep * trace
        new = np.where(spike, kept + (1.0 - self.rule.keep), kept)
        return np.asarray(np.where(new < LEAST, 0.0, new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """r = sent."""
        return sent.copy()

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """w + eta m, cut off."""
        return self.cut(weight + eta * self.tags[part.name], -part.limit, part.limit)


class IntegerTags(Tags):
    """In integers, rounded at random."""

    def __init__(
        self,
        plastic: PlasticNetwork,
        passings: Sequence[Weights],
        lessons: TrainingSamples,
        whole: IntegerArithmetic,
    ) -> None:
        super().__init__(plastic, passings, lessons)
        self.whole = whole
        self.units = sum(p.size for p in self.populations)

    def draws(self, step: int, units: slice) -> Array:
        """A number for each of these units in this step."""
        return np.asarray(chances(self.whole.seed, 0, step, (self.units,))[units])

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """Q times the trace in floating point, rounded up or down at random."""
        kept = self.rule.keep * trace
        floor = np.floor(kept)
        new = floor + (self.draws(step, units) < kept - floor)
        return np.asarray(np.where(spike, np.minimum(new + self.rule.impulse, self.whole.top), new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """Q times what was sent, rounded up or down at random."""
        new = np.floor(self.whole.top * sent + self.draws(step, units))
        return np.asarray(np.minimum(np.maximum(new, 0.0), self.whole.top))

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """W plus what the tag asks for, rounded up or down at random."""
        count = eta / (part.scale * self.whole.top**2)
        sources, targets = weight.shape[1], weight.shape[0]
        number = self.lessons.first + sample
        drawn = chances(self.whole.seed, 1 + self.place[part.name], number, (sources, targets))
        asked = np.floor(count * self.tags[part.name] + drawn.T)
        return self.cut(weight + asked, *self.limits(part))
