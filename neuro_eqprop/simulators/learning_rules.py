"""Traces, tags and weights of a learning run in NumPy, in each number format.

A number format is a subclass that rounds otherwise: floating point, integers with stochastic
rounding, and the fixed point of Lava's learning engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.simulators.learning import Learned, LearningLog
from neuro_eqprop.spiking.counter_rng import chances
from neuro_eqprop.spiking.fixed_point import weights as integer_weights
from neuro_eqprop.spiking.ir import Gain, Projection
from neuro_eqprop.spiking.neurons import Neurons
from neuro_eqprop.spiking.plasticity import (
    LEAST,
    EpisodeStep,
    IntegerArithmetic,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    third_factors,
)

ENGINE_DECAY = float(np.exp(-1.0 / 65535))
"""Decay e that the engine applies to the values sent by a neuron."""
COMMIT_PULSE = 32
"""y3 in a commit."""
ENDS = -(2**15) - 1, 2**15 - 1
"""Lowest and highest value of a 16-bit accumulator."""


@dataclass(slots=True)
class EffectiveWeights:
    """Weights of a projection, which pass on weight * gain; in integers, gain is the step size."""

    projection: Projection
    learns: bool
    weight: Array
    """In weight steps."""
    gain: Array
    """Of each synapse, or one for all."""


def effective_weights(plastic: PlasticNetwork, first: int) -> list[EffectiveWeights]:
    """The weights of all projections before the first sample, of which `first` are learned."""
    network, weights = plastic.network, []
    for projection in network.projections:
        learns = projection.gain is Gain.ONE and projection.name in plastic.learns
        weight, gain = projection.weight, np.ones(())
        if network.fixed is None:
            weight = weight.copy()
            if projection.gain is Gain.ONE:
                gain = plastic.gains.get(projection.name, gain)
        else:
            fixed = integer_weights(network, projection)  # raises an error for weights too large
            if learns:
                theta = network[projection.source].neuron.sizes.payload
                step = plastic.part_of(projection.name).scale
                weight = weight / step
                gain = np.array(step * theta / network.fixed.units[projection.target])
            else:
                weight = fixed.astype(np.float64)
        if learns and isinstance(plastic.rule.numbers, LoihiEngine) and not first:
            weight = 2.0 * np.floor(weight / 2.0)
        weights.append(EffectiveWeights(projection, learns, weight, gain))
    return weights


def engine_draws(engine: LoihiEngine, steps: int) -> Array:
    """Random numbers of Lava's learning engine in its first steps (3, steps).

    One number of each kind per step: for presynaptic traces, for postsynaptic traces, and for tags
    and weights. Every second number of the first two streams is used, as in Lava.
    """
    pre = np.random.default_rng(engine.seed).random(2 * steps + 1)[2::2]
    post = np.random.default_rng(engine.seed + 2).random(2 * steps + 1)[2::2]
    own = np.random.default_rng(2).random(steps + 1)[1:]
    return np.stack([pre, post, own])


def round_stochastic(x: Array, p: Array | float) -> Array:
    """d(x, p): the integer above x if p is below its fraction, else the one below it."""
    floor = np.floor(x)
    return np.asarray(floor + (p < x - floor))


def clip_16_bits(x: Array) -> Array:
    """[x]: x clipped to 16 bits."""
    return np.asarray(np.clip(x, *ENDS))


class FloatRule:
    """Traces, tags and weights of a learning run in float64."""

    def __init__(self, log: LearningLog) -> None:
        self.log, self.plastic, self.rule = log, log.plastic, log.plastic.rule
        self.populations = self.plastic.network.populations
        self.traces = {p.name: np.zeros(p.size) for p in self.populations}
        self.weights = effective_weights(self.plastic, log.training.first)
        self.plastic_weights = {w.projection.name: w for w in self.weights if w.learns}
        self.tags = {
            part.name: np.zeros_like(self.plastic_weights[part.name].weight)
            for part in self.plastic.plastic
        }
        self.committed = dict(self.tags)
        """The tags of the last commit."""
        self.etas = self.plastic.etas(log.training.rates)
        self.keeps = self.plastic.keeps(log.training.rates)
        self.commits = self.rule.commits(log.training.stimulus.samples)

    def result(self) -> Learned:
        """The result of the run."""
        weights = {name: learning.weight for name, learning in self.plastic_weights.items()}
        return self.log.result(weights, self.committed)

    def trace(
        self, messages: Mapping[str, Array], neurons: Mapping[str, Neurons], place: int, phase: int
    ) -> None:
        """Update the traces in step `place` of all steps; a commit has the traces of its end."""
        start, counts = 0, self.log.counted[0, phase]
        for k, population in enumerate(self.populations):
            name, units = population.name, slice(start, start + population.size)
            start += population.size
            if not population.neuron.graded:
                new = self.decay(self.traces[name], messages[name] != 0, place, units)
            elif phase == len(self.rule.schedule):
                continue
            else:
                new = self.follow(neurons[name].firing(), place, units)
            counts[k] += int(np.count_nonzero(new != self.traces[name]))
            self.traces[name] = new

    def decay(self, trace: Array, spike: Bits, place: int, units: slice) -> Array:
        """The new traces of spiking units: r = keep r, then + 1 - keep where s.

        `units` is their slice among all units.
        """
        decayed = self.rule.keep * trace
        new = np.where(spike, decayed + (1.0 - self.rule.keep), decayed)
        return np.asarray(np.where(new < LEAST, 0.0, new))

    def follow(self, sent: Array, place: int, units: slice) -> Array:
        """The new traces of graded units: r = sent."""
        return sent.copy()

    def gather(self, step: EpisodeStep, sample: int, place: int) -> None:
        """Add to the tags of all parts in a step of a window."""
        for part in self.plastic.plastic:
            projection = self.plastic.projection(part.name)
            pre, post = self.traces[projection.source], self.traces[projection.target]
            new, events = self.tagged(self.tags[part.name], step.gate, pre, post, sample, place)
            self.log.count(self.log.counted[1, step.phase], part, events)
            self.tags[part.name] = new

    def tagged(
        self, tag: Array, gate: float, pre: Array, post: Array, sample: int, place: int
    ) -> tuple[Array, int]:
        """The tags m + (gate r_pre) r_post, and how many of them are updated."""
        grown = (gate * pre)[None, :] * post[:, None]
        return tag + grown, int(np.count_nonzero(grown))

    def within_margin(self, sample: int) -> bool:
        """Whether the traces of all outputs are within the margin of their targets."""
        if not self.rule.margin:
            return False
        top, output = self.rule.top, self.plastic.network.output
        apart = self.traces[output] - self.log.training.stimulus.pull[output][sample] * top
        return bool((np.abs(apart) <= self.rule.margin * top).all())

    def commit(self, sample: int, place: int) -> None:
        """Update the weights by the tags at the end of a batch; reset the graded traces."""
        if self.commits[sample]:
            self.committed = dict(self.tags)
            for k, part in enumerate(self.plastic.plastic):
                learning = self.plastic_weights[part.name]
                wanted = self.change(part, self.etas[sample, k], sample, place)
                low, high = self.plastic.limits(part)
                new = np.minimum(np.maximum(wanted, low), high)
                self.log.clipped += int(np.count_nonzero(new != wanted))
                changed = int(np.count_nonzero(new != learning.weight))
                self.log.count(self.log.counted[2, -1], part, changed)
                learning.weight = new
                if part.mirror is not None:
                    self.plastic_weights[part.mirror].weight = part.mirrored * new.T
        if self.rule.fresh:
            for population in self.populations:
                if population.neuron.graded:
                    self.traces[population.name] = np.zeros(population.size)

    def change(self, part: Plastic, eta: float, sample: int, place: int) -> Array:
        """The weights keep w + eta m before they are clipped; resets the tags."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        self.tags[part.name] = np.zeros_like(tag)
        keep = self.keeps[sample, self.plastic.plastic.index(part)]
        return np.asarray(keep * weight + eta * tag)

    def record(self, sample: int, t: int) -> None:
        """Record both traces, tag and weight of the chosen synapses."""
        for k, (name, target, source) in enumerate(self.log.record.synapses):
            learning, part = self.plastic_weights[name], self.plastic.part_of(name)
            projection, tags = learning.projection, self.tags[part.name]
            self.log.history[sample, t, k] = (
                self.traces[projection.source][source],
                self.traces[projection.target][target],
                tags[target, source] if name == part.name else tags[source, target],
                self.plastic.weight_step(part) * learning.weight[target, source],
            )


class IntegerRule(FloatRule):
    """Integer traces and weights, with stochastic rounding."""

    @property
    def numbers(self) -> IntegerArithmetic:
        """The integer arithmetic."""
        assert isinstance(self.rule.numbers, IntegerArithmetic)
        return self.rule.numbers

    def draws(self, place: int, units: slice) -> Array:
        """Uniform random numbers of these units in this step."""
        total = sum(p.size for p in self.populations)
        return np.asarray(chances(self.numbers.seed, 0, place, (total,))[units])

    def decay(self, trace: Array, spike: Bits, place: int, units: slice) -> Array:
        """The decayed trace, Q times that of floating point, with stochastic rounding."""
        new = round_stochastic(self.rule.keep * trace, self.draws(place, units))
        return np.asarray(
            np.where(spike, np.minimum(new + self.rule.impulse, self.numbers.top), new)
        )

    def follow(self, sent: Array, place: int, units: slice) -> Array:
        """Q times the sum of messages, with stochastic rounding."""
        new = np.floor(self.numbers.top * sent + self.draws(place, units))
        return np.asarray(np.minimum(np.maximum(new, 0.0), self.numbers.top))

    def change(self, part: Plastic, eta: float, sample: int, place: int) -> Array:
        """The weights W + eta m, with stochastic rounding; resets the tags."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        self.tags[part.name] = np.zeros_like(tag)
        row = [w.projection.name if w.learns else None for w in self.weights].index(part.name)
        number = self.log.training.first + sample
        drawn = chances(self.numbers.seed, 1 + row, number, weight.T.shape)
        return np.asarray(weight + np.floor(eta * tag + drawn.T))


class EngineRule(FloatRule):
    """The integers of Lava's learning engine; it takes binary spikes alone."""

    def __init__(self, log: LearningLog) -> None:
        super().__init__(log)
        assert isinstance(self.rule.numbers, LoihiEngine)
        self.engine, training = self.rule.numbers, log.training
        self.factors = third_factors(self.engine, training.rates)
        steps = (training.first + training.stimulus.samples) * self.rule.steps
        self.pre, self.post, self.own = engine_draws(self.engine, steps)

    def decay(self, trace: Array, spike: Bits, place: int, units: slice) -> Array:
        """The presynaptic trace x1; the postsynaptic trace y1 is the same value."""
        new = round_stochastic(self.rule.keep * trace, self.pre[place])
        return np.asarray(np.where(spike, np.minimum(new + self.rule.impulse, 127), new))

    def tagged(
        self, tag: Array, gate: float, pre: Array, post: Array, sample: int, place: int
    ) -> tuple[Array, int]:
        """The tags after a step of a window, and how many of them changed."""
        y1, y2 = self.sent(post, place), self.sent(gate * self.factors[sample], place)
        grown = clip_16_bits(np.floor(pre[None, :] * y1[:, None] * y2 / 1024))
        new = np.clip(self.from_accumulator(128.0 * tag + grown, place), -257, 255)
        return new, int(np.count_nonzero(new != tag))

    def sent(self, value: Array | float, place: int) -> Array:
        """What arrives of a value that a neuron sends to its synapses: y1, y2 or y3."""
        return round_stochastic(ENGINE_DECAY * np.asarray(value), self.post[place])

    def from_accumulator(self, a: Array, place: int) -> Array:
        """A tag or weight from a 16-bit accumulator."""
        return round_stochastic(clip_16_bits(a) / 128.0, self.own[place])

    def change(self, part: Plastic, eta: float, sample: int, place: int) -> Array:
        """The weights after a commit, before they are clipped; resets the tags, rounded."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        pulse = self.sent(float(COMMIT_PULSE), place)
        left = clip_16_bits(np.floor(-tag * pulse / 32.0) * 128.0)
        self.tags[part.name] = np.clip(self.from_accumulator(128.0 * tag + left, place), -257, 255)
        update = clip_16_bits(np.floor(tag * pulse / 32.0) * 2.0 ** (7 + self.engine.exponent))
        return self.from_accumulator(128.0 * weight + update, place)


RULES = {type(None): FloatRule, IntegerArithmetic: IntegerRule, LoihiEngine: EngineRule}
"""The rule in each number format."""
