"""What a simulator that learns must do, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.plasticity import COMMIT, PlasticNetwork, TrainingSamples
from neuro_eqprop.traces import Counts

Watch = Callable[[int], None]
"""Called with the number of further samples are done."""


def nobody(_: int) -> None:
    """Watches nothing."""


@dataclass(frozen=True, slots=True)
class Synapses:
    """Of which synapses to tell the history: projection names with a target and a source unit."""

    chosen: tuple[tuple[str, int, int], ...] = ()


NO_SYNAPSES = Synapses()
SYNAPSE_VARIABLES = ("pre", "post", "tag", "weight")
"""What is told of a synapse at the end of every step: both traces, tag and weight."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What samples left behind, and what they cost."""

    weights: Mapping[str, Array]
    """By projection that learns, in floating point."""
    tags: Mapping[str, Array]
    """As they stood at the last commit, in its numbers; of a pair, of the one that goes forward."""
    drive: Array
    """Of the output in the free phase: its mean over the window (samples, units)."""
    counts: Mapping[tuple[str, str], Counts]
    """By population and phase, the commit included."""
    saturated: Mapping[str, int]
    """By projection that learns, how many weights stand at a limit in the end."""
    clipped: int
    """How often a commit cut a weight off at its limit."""
    overflows: int = 0
    """In integers, how often a current wrapped or a voltage was cut off."""
    story: Array = field(default_factory=lambda: np.zeros((0, 0, 0, len(SYNAPSE_VARIABLES))))
    """(samples, steps, synapses, what) of the synapses that were chosen."""

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
        """Learn from all samples, one after the other, beginning at rest with traces at zero."""
        ...


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
