"""Traces, tags and weights of the reference in the fixed point of Lava's learning engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.learning import Events, engine_draws
from neuro_eqprop.simulators.reference.learning_rules import FloatTags, IntegerTags, Tags, Weights
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
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


class EngineTags(Tags):
    """Traces, tags and weights in the integers of Lava's engine."""

    def __init__(
        self,
        plastic: PlasticNetwork,
        projections: Sequence[Weights],
        training: TrainingSamples,
        engine: LoihiEngine,
    ) -> None:
        super().__init__(plastic, projections, training)
        self.engine = engine
        self.factors = third_factors(engine, training.rates)
        steps = (training.first + training.stimulus.samples) * self.rule.steps
        self.pre, self.post, self.own = engine_draws(engine, steps)
        if not training.first:
            for held in self.held.values():
                held.weight = 2.0 * np.floor(held.weight / 2.0)

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The presynaptic trace x1; the postsynaptic trace y1 is the same value."""
        new = round_stochastic(self.rule.keep * trace, self.pre[step])
        return np.asarray(np.where(spike, np.minimum(new + self.rule.impulse, 127), new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """Not supported: the engine learns from binary spikes."""
        raise NotImplementedError

    def accumulate(self, gate: float, step: int, sample: int, counts: Ints) -> None:
        """Update the tags in a step of a window."""
        if gate == 0.0:
            return
        p = float(self.post[step])
        third = round_stochastic(ENGINE_DECAY * np.array(gate * self.factors[sample]), p)
        for part in self.plastic.plastic:
            projection = self.held[part.name].projection
            pre = self.traces[projection.source]
            post = round_stochastic(ENGINE_DECAY * self.traces[projection.target], p)
            grown = clip_16_bits(np.floor(pre[None, :] * post[:, None] * third / 1024))
            new = self.from_accumulator(clip_16_bits(128.0 * self.tags[part.name] + grown), step)
            new = np.clip(new, -257, 255)
            self.count(part, int(np.count_nonzero(new != self.tags[part.name])), counts)
            self.tags[part.name] = np.asarray(new)

    def from_accumulator(self, a: Array, step: int) -> Array:
        """A tag or weight from a 16-bit accumulator."""
        return round_stochastic(a / 128.0, float(self.own[step]))

    def commit(self, sample: int, step: int, done: int, events: Events) -> None:
        """Update the weights by the tags."""
        self.committed = dict(self.tags)
        pulse = round_stochastic(
            ENGINE_DECAY * np.array(float(COMMIT_PULSE)), float(self.post[step])
        )
        for part in self.plastic.plastic:
            held, tag = self.held[part.name], self.tags[part.name]
            left = clip_16_bits(np.floor(-tag * pulse / 32.0) * 128.0)
            self.tags[part.name] = np.clip(
                self.from_accumulator(clip_16_bits(128.0 * tag + left), step), -257, 255
            )
            update = clip_16_bits(np.floor(tag * pulse / 32.0) * 2.0 ** (7 + self.engine.exponent))
            new = self.clip(
                self.from_accumulator(clip_16_bits(128.0 * held.weight + update), step), -256, 255
            )
            self.count(part, int(np.count_nonzero(new != held.weight)), events.weights[-1])
            held.weight = new

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """Not used: `commit` updates tags and weights."""
        raise NotImplementedError


def rule_of(
    plastic: PlasticNetwork, projections: Sequence[Weights], training: TrainingSamples
) -> Tags:
    """Tags in the number format of the rule."""
    numbers = plastic.rule.numbers
    if isinstance(numbers, IntegerArithmetic):
        return IntegerTags(plastic, projections, training, numbers)
    if isinstance(numbers, LoihiEngine):
        return EngineTags(plastic, projections, training, numbers)
    return FloatTags(plastic, projections, training)
