"""Traces, tags and weights of the reference, in floating point or in integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.learning import LearningLog, effective_weights
from neuro_eqprop.spiking.counter_rng import chances
from neuro_eqprop.spiking.ir import Graded
from neuro_eqprop.spiking.neurons import Neurons
from neuro_eqprop.spiking.plasticity import (
    LEAST,
    IntegerArithmetic,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)


class FloatRule:
    """Traces, tags and weights of a learning run in float64."""

    def __init__(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        self.plastic, self.rule, self.training = plastic, plastic.rule, training
        self.populations = plastic.network.populations
        self.traces = {p.name: np.zeros(p.size) for p in self.populations}
        self.weights = effective_weights(plastic, training.first)
        self.plastic_weights = {w.projection.name: w for w in self.weights if w.learns}
        self.tags = {
            part.name: np.zeros_like(self.plastic_weights[part.name].weight)
            for part in plastic.plastic
        }
        self.committed = dict(self.tags)
        """The tags of the last commit."""
        self.etas = plastic.etas(training.rates)
        self.commits = plastic.rule.commits(training.stimulus.samples)
        self.clipped = 0

    def trace(
        self,
        messages: Mapping[str, Array],
        neurons: Mapping[str, Neurons] | None,
        step: int,
        counts: Ints,
    ) -> None:
        """Update the traces; without `neurons`, in a commit, graded traces stay unchanged."""
        start = 0
        for k, population in enumerate(self.populations):
            name, units = population.name, slice(start, start + population.size)
            start += population.size
            if not isinstance(population.neuron, Graded):
                new = self.decay(self.traces[name], messages[name] != 0, step, units)
            elif neurons is None:
                continue
            else:
                new = self.follow(neurons[name].firing(), step, units)
            counts[k] += int(np.count_nonzero(new != self.traces[name]))
            self.traces[name] = new

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The new traces of spiking units: r = keep r, then + 1 - keep where s.

        `units` is their slice among all units.
        """
        decayed = self.rule.keep * trace
        new = np.where(spike, decayed + (1.0 - self.rule.keep), decayed)
        return np.asarray(np.where(new < LEAST, 0.0, new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """The new traces of graded units: r = sent."""
        return sent.copy()

    def gather(self, gate: float, step: int, sample: int, log: LearningLog, counts: Ints) -> None:
        """Add (gate r_pre) r_post to the tags, in a step of a window."""
        for part in self.plastic.plastic:
            projection = self.plastic_weights[part.name].projection
            pre, post = self.traces[projection.source], self.traces[projection.target]
            grown = (gate * pre)[None, :] * post[:, None]
            self.tags[part.name] = self.tags[part.name] + grown
            log.count(counts, part, int(np.count_nonzero(grown)))

    def within_margin(self, sample: int) -> bool:
        """Whether the traces of all outputs are within the margin of their targets."""
        if not self.rule.margin:
            return False
        top, output = self.rule.top, self.plastic.network.output
        apart = self.traces[output] - self.training.stimulus.pull[output][sample] * top
        return bool((np.abs(apart) <= self.rule.margin * top).all())

    def commit(self, sample: int, step: int, log: LearningLog) -> None:
        """Update the weights by the tags at the end of a batch; reset the graded traces."""
        if self.commits[sample]:
            self.committed = dict(self.tags)
            for k, part in enumerate(self.plastic.plastic):
                learning = self.plastic_weights[part.name]
                wanted = self.change(part, self.etas[sample, k], sample, step)
                low, high = self.plastic.limits(part)
                new = np.minimum(np.maximum(wanted, low), high)
                self.clipped += int(np.count_nonzero(new != wanted))
                changed = int(np.count_nonzero(new != learning.weight))
                log.count(log.events.weights[-1], part, changed)
                learning.weight = new
                if part.mirror is not None:
                    self.plastic_weights[part.mirror].weight = part.mirrored * new.T
        if self.rule.fresh:
            for population in self.populations:
                if isinstance(population.neuron, Graded):
                    self.traces[population.name] = np.zeros(population.size)

    def change(self, part: Plastic, eta: float, sample: int, step: int) -> Array:
        """The weights w + eta m before they are clipped; resets the tags."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        self.tags[part.name] = np.zeros_like(tag)
        return np.asarray(weight + eta * tag)

    def synapse(self, name: str, target: int, source: int) -> tuple[float, float, float, float]:
        """Both traces, tag and weight of a synapse."""
        learning, part = self.plastic_weights[name], self.plastic.part_of(name)
        projection, tags = learning.projection, self.tags[part.name]
        pre, post = self.traces[projection.source][source], self.traces[projection.target][target]
        tag = tags[target, source] if name == part.name else tags[source, target]
        return pre, post, tag, self.plastic.weight_step(part) * learning.weight[target, source]


class IntegerRule(FloatRule):
    """Integer traces and weights, with stochastic rounding."""

    @property
    def numbers(self) -> IntegerArithmetic:
        """The integer arithmetic."""
        assert isinstance(self.rule.numbers, IntegerArithmetic)
        return self.rule.numbers

    def draws(self, step: int, units: slice) -> Array:
        """Uniform random numbers of these units in this step."""
        total = sum(p.size for p in self.populations)
        return np.asarray(chances(self.numbers.seed, 0, step, (total,))[units])

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The decayed trace, Q times that of floating point, with stochastic rounding."""
        decayed = self.rule.keep * trace
        floor = np.floor(decayed)
        new = floor + (self.draws(step, units) < decayed - floor)
        return np.asarray(
            np.where(spike, np.minimum(new + self.rule.impulse, self.numbers.top), new)
        )

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """Q times the sum of messages, with stochastic rounding."""
        new = np.floor(self.numbers.top * sent + self.draws(step, units))
        return np.asarray(np.minimum(np.maximum(new, 0.0), self.numbers.top))

    def change(self, part: Plastic, eta: float, sample: int, step: int) -> Array:
        """The weights W + eta m, with stochastic rounding; resets the tags."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        self.tags[part.name] = np.zeros_like(tag)
        row = [w.projection.name if w.learns else None for w in self.weights].index(part.name)
        number = self.training.first + sample
        drawn = chances(self.numbers.seed, 1 + row, number, weight.T.shape)
        return np.asarray(weight + np.floor(eta * tag + drawn.T))
