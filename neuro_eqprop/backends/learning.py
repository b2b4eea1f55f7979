"""What a simulator that learns must do, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.backends.base import BackendError
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.plasticity import COMMIT, PlasticNetwork, TrainingSamples
from neuro_eqprop.traces import Counts

Watch = Callable[[int], None]
"""Told how many more lessons are done."""


def nobody(_: int) -> None:
    """Watches nothing."""


@dataclass(frozen=True, slots=True)
class Synapses:
    """Of which synapses to tell the story: projection names with a target and a source unit."""

    chosen: tuple[tuple[str, int, int], ...] = ()


NO_SYNAPSES = Synapses()
STORY = ("pre", "post", "tag", "weight")
"""What is told of a synapse at the end of every step: both traces, tag and weight."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What lessons left behind, and what they cost."""

    weights: Mapping[str, Array]
    """By projection that learns, in real numbers."""
    tags: Mapping[str, Array]
    """As they stood at the last commit, in its numbers; of a pair, of the one that goes forward."""
    drive: Array
    """Of the output in the free phase: its mean over the window (lessons, units)."""
    counts: Mapping[tuple[str, str], Counts]
    """By population and phase, the commit included."""
    saturated: Mapping[str, int]
    """By projection that learns, how many weights stand at a limit in the end."""
    clipped: int
    """How often a commit cut a weight off at its limit."""
    overflows: int = 0
    """In whole numbers, how often a current wrapped or a voltage was cut off."""
    story: Array = field(default_factory=lambda: np.zeros((0, 0, 0, len(STORY))))
    """(lessons, steps, synapses, what) of the synapses that were asked for."""

    @property
    def total(self) -> Counts:
        """All events together."""
        return sum(self.counts.values(), Counts())


class Learner(Protocol):
    """A simulator that runs the rule of `neuro_eqprop.spiking.plasticity`."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    def check(self, plastic: PlasticNetwork, lessons: TrainingSamples) -> None:
        """Refuse, with the reason, what it cannot learn; nothing is begun."""
        ...

    def learn(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, *, synapses: Synapses, watch: Watch
    ) -> Learned:
        """Learn from all lessons, one after the other, beginning at rest with traces at zero."""
        ...


LEARNERS: Mapping[str, tuple[str, str]] = {
    "reference": ("neuro_eqprop.backends.reference.learning", "ReferenceLearner"),
    "emulator": ("neuro_eqprop.backends.emulator.learning", "EmulatorLearner"),
    "lava": ("neuro_eqprop.backends.lava.learning.learner", "LavaLearner"),
    "brian2": ("neuro_eqprop.backends.brian2.learning", "Brian2Learner"),
}
"""A learner is there as soon as its module is."""

CANNOT: Mapping[str, str] = {
    "brian2-biology": "its neurons run in continuous time, and the rule is defined by steps",
    "snntorch": "its neurons have no synapses that change, only weights that torch trains",
    "rate": "rates learn by `neuro-eqprop train`",
}
"""Why one that is not there cannot learn."""


def able() -> list[str]:
    """The simulators that can learn here."""
    return [name for name, (module, _) in LEARNERS.items() if find_spec(module) is not None]


def load_learner(name: str) -> Learner:
    """The learner of that name; one that cannot learn is refused with the reason."""
    known = able()
    if name not in known and name in CANNOT:
        raise BackendError(f"{name} cannot learn: {CANNOT[name]}; use {' or '.join(known)}")
    if name not in known:
        raise UnknownNameError("simulator that learns", name, known)
    module, attribute = LEARNERS[name]
    return cast(Learner, getattr(import_module(module), attribute)())


@dataclass(frozen=True, slots=True)
class Events:
    """What was counted: rows are the phases and then the commit, columns the populations."""

    sent: Mapping[str, Ints]
    """By population, of each unit (phases, units)."""
    traces: Ints
    """(phases, populations): traces that changed."""
    tags: Ints
    """The same of tags of synapses into the population."""
    weights: Ints
    """The same of weights."""


def tally_learning(
    plastic: PlasticNetwork, lessons: TrainingSamples, events: Events
) -> dict[tuple[str, str], Counts]:
    """Events by population and phase. A synapse that learns counts as one at any weight."""
    network, counts = plastic.network, {}
    phases = [(phase.name, phase.steps) for phase in plastic.rule.schedule] + [(COMMIT, 1)]
    for column, population in enumerate(network.populations):
        fan_out = np.zeros(population.size, dtype=np.int64)
        for projection in network.projections:
            if projection.source == population.name:
                learns = projection.gain is Gain.ONE and projection.name in plastic.learns
                fan_out += len(projection.weight) if learns else projection.fan_out
        for row, (phase, length) in enumerate(phases):
            sent = events.sent[population.name][row]
            steps, total = length * lessons.stimulus.samples, int(sent.sum())
            counts[population.name, phase] = Counts(
                steps=steps,
                spikes=total,
                synops=int(sent @ fan_out),
                updates_active=total,
                updates_idle=steps * population.size - total,
                weight_updates=int(events.weights[row, column]),
                tag_updates=int(events.tags[row, column]),
                trace_updates=int(events.traces[row, column]),
            )
    return counts
