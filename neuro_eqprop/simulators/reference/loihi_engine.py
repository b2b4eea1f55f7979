"""Traces, tags and weights of the reference in the fixed point of Lava's learning engine."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.learning import LearningLog, engine_draws
from neuro_eqprop.simulators.reference.learning_rules import FloatRule
from neuro_eqprop.spiking.plasticity import (
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
    third_factors,
)

ENGINE_DECAY = float(np.exp(-1.0 / 65535))
"""Decay e that the engine applies to the values sent by a neuron."""
COMMIT_PULSE = 32
"""y3 in a commit."""
ENDS = -(2**15) - 1, 2**15 - 1
"""Lowest and highest value of a 16-bit accumulator."""


def round_stochastic(x: Array, p: float) -> Array:
    """d(x, p): the integer above x if p is below its fraction, else the one below it."""
    return np.asarray(np.floor(x) + (p < x % 1))


def clip_16_bits(x: Array) -> Array:
    """[x]: x clipped to 16 bits."""
    return np.asarray(np.clip(x, *ENDS))


class EngineRule(FloatRule):
    """Traces, tags and weights in the integers of Lava's engine; it takes binary spikes alone."""

    def __init__(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        super().__init__(plastic, training)
        assert isinstance(plastic.rule.numbers, LoihiEngine)
        self.engine = plastic.rule.numbers
        self.factors = third_factors(self.engine, training.rates)
        steps = (training.first + training.stimulus.samples) * self.rule.steps
        self.pre, self.post, self.own = engine_draws(self.engine, steps)

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The presynaptic trace x1; the postsynaptic trace y1 is the same value."""
        new = round_stochastic(self.rule.keep * trace, self.pre[step])
        return np.asarray(np.where(spike, np.minimum(new + self.rule.impulse, 127), new))

    def gather(self, gate: float, step: int, sample: int, log: LearningLog, counts: Ints) -> None:
        """Update the tags in a step of a window."""
        p = float(self.post[step])
        third = round_stochastic(ENGINE_DECAY * np.array(gate * self.factors[sample]), p)
        for part in self.plastic.plastic:
            projection, tag = self.plastic_weights[part.name].projection, self.tags[part.name]
            pre = self.traces[projection.source]
            post = round_stochastic(ENGINE_DECAY * self.traces[projection.target], p)
            grown = clip_16_bits(np.floor(pre[None, :] * post[:, None] * third / 1024))
            new = np.clip(self.from_accumulator(128.0 * tag + grown, step), -257, 255)
            log.count(counts, part, int(np.count_nonzero(new != tag)))
            self.tags[part.name] = np.asarray(new)

    def from_accumulator(self, a: Array, step: int) -> Array:
        """A tag or weight from a 16-bit accumulator."""
        return round_stochastic(clip_16_bits(a) / 128.0, float(self.own[step]))

    def change(self, part: Plastic, eta: float, sample: int, step: int) -> Array:
        """The weights after a commit, before they are clipped; resets the tags, rounded."""
        tag, weight = self.tags[part.name], self.plastic_weights[part.name].weight
        decayed = ENGINE_DECAY * np.array(float(COMMIT_PULSE))
        pulse = round_stochastic(decayed, float(self.post[step]))
        left = clip_16_bits(np.floor(-tag * pulse / 32.0) * 128.0)
        self.tags[part.name] = np.clip(self.from_accumulator(128.0 * tag + left, step), -257, 255)
        update = clip_16_bits(np.floor(tag * pulse / 32.0) * 2.0 ** (7 + self.engine.exponent))
        return self.from_accumulator(128.0 * weight + update, step)
