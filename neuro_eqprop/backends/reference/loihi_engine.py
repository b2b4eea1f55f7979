"""Traces, tags and weights of the reference as Lava's engine has them in fixed point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.arrays import Array, Bits, Ints
from neuro_eqprop.backends.learning import Events
from neuro_eqprop.backends.reference.learning_rules import FloatTags, IntegerTags, Tags, Weights
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
    third_factors,
)

TAIL = float(np.exp(-1.0 / 65535))
"""What Lava's engine leaves of what a neuron tells it about itself: e."""
PULSE = 32
"""Its y3 in a commit."""
ENDS = -(2**15) - 1, 2**15 - 1


def rounded(x: Array, p: float) -> Array:
    """d(x, p): the integer above x if p is below its fraction, else the one below it."""
    return np.asarray(np.floor(x) + (p < x % 1))


def within(x: Array) -> Array:
    """[x]: cut to 16 bits."""
    return np.asarray(np.clip(x, *ENDS))


class EngineTags(Tags):
    """In integers as Lava's engine has them, with one draw of each kind in a step."""

    def __init__(
        self,
        plastic: PlasticNetwork,
        passings: Sequence[Weights],
        lessons: TrainingSamples,
        engine: LoihiEngine,
    ) -> None:
        super().__init__(plastic, passings, lessons)
        self.engine = engine
        self.factors = third_factors(engine, lessons.rates)
        steps = (lessons.first + lessons.stimulus.samples) * self.rule.steps
        self.pre = np.random.default_rng(engine.seed).random(2 * steps + 1)[2::2]
        self.post = np.random.default_rng(engine.seed + 2).random(2 * steps + 1)[2::2]
        self.own = np.random.default_rng(2).random(steps + 1)[1:]
        if not lessons.first:
            for held in self.held.values():
                held.weight = 2.0 * np.floor(held.weight / 2.0)

    def decay(self, trace: Array, spike: Bits, step: int, units: slice) -> Array:
        """The trace that synapses have of their source; a neuron tells the same of itself."""
        new = rounded(self.rule.keep * trace, self.pre[step])
        return np.asarray(np.where(spike, np.minimum(new + self.rule.impulse, 127), new))

    def follow(self, sent: Array, step: int, units: slice) -> Array:
        """There are no graded units here."""
        raise NotImplementedError

    def gather(self, gate: float, step: int, sample: int, counts: Ints) -> None:
        """Let tags grow in a step of a window."""
        if gate == 0.0:
            return
        p = float(self.post[step])
        third = rounded(TAIL * np.array(gate * self.factors[sample]), p)
        for part in self.plastic.plastic:
            projection = self.held[part.name].projection
            pre = self.traces[projection.source]
            post = rounded(TAIL * self.traces[projection.target], p)
            grown = within(np.floor(pre[None, :] * post[:, None] * third / 1024))
            new = self.rounded(within(128.0 * self.tags[part.name] + grown), step)
            new = np.clip(new, -257, 255)
            self.count(part, int(np.count_nonzero(new != self.tags[part.name])), counts)
            self.tags[part.name] = np.asarray(new)

    def rounded(self, a: Array, step: int) -> Array:
        """An accumulator of 16 bits as a tag or weight."""
        return rounded(a / 128.0, float(self.own[step]))

    def commit(self, sample: int, step: int, done: int, events: Events) -> None:
        """Change the weights by the tags."""
        self.kept = dict(self.tags)
        pulse = rounded(TAIL * np.array(float(PULSE)), float(self.post[step]))
        for part in self.plastic.plastic:
            held, tag = self.held[part.name], self.tags[part.name]
            left = within(np.floor(-tag * pulse / 32.0) * 128.0)
            self.tags[part.name] = np.clip(
                self.rounded(within(128.0 * tag + left), step), -257, 255
            )
            asked = within(np.floor(tag * pulse / 32.0) * 2.0 ** (7 + self.engine.exponent))
            new = self.cut(self.rounded(within(128.0 * held.weight + asked), step), -256, 255)
            self.count(part, int(np.count_nonzero(new != held.weight)), events.weights[-1])
            held.weight = new

    def change(self, part: Plastic, weight: Array, eta: float, sample: int) -> Array:
        """All is done in `commit`."""
        raise NotImplementedError


def rule_of(plastic: PlasticNetwork, passings: Sequence[Weights], lessons: TrainingSamples) -> Tags:
    """The tags for the numbers of the rule."""
    numbers = plastic.rule.numbers
    if isinstance(numbers, IntegerArithmetic):
        return IntegerTags(plastic, passings, lessons, numbers)
    if isinstance(numbers, LoihiEngine):
        return EngineTags(plastic, passings, lessons, numbers)
    return FloatTags(plastic, passings, lessons)
