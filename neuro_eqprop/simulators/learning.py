"""The loop of learning: what a learner is, and what a run counts, records and returns.

A learner brings a simulator. It runs the samples of a `LearningLog` in parts, through the steps of
`LearningRule.episode`: step by step as the reference does, or as compiled code or equations that
are proved equal to it. What it counts and records goes to the log, which makes the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.recordings import NOTHING, Counts, Record, Recording
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    IntegerArithmetic,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)

if TYPE_CHECKING:
    from typing_extensions import Self

ProgressCallback = Callable[[int], None]
"""Called with the number of samples done since the last call."""


def no_progress(_: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class LearningRecord:
    """What to record in every step of a learning run."""

    synapses: tuple[tuple[str, int, int], ...] = ()
    """Projection names, each with a target and a source unit."""
    activity: Record = NOTHING
    """Spikes and signals of populations."""


NO_RECORD = LearningRecord()
SYNAPSE_VARIABLES = ("pre", "post", "tag", "weight")
"""Recorded variables of a synapse at the end of every step: both traces, tag and weight."""


class LearningFeature(Enum):
    """A part of the rule that not every learner has."""

    INTEGERS = "integer weights and traces"
    ENGINE = "the rounding of Lava's learning engine"
    MARGIN = "a margin"
    GAINS = "nonidealities of synapses"
    GRADED = "graded messages"
    RUN_ON = "samples that start from the state of the last one"
    RHYTHM = "a nudge that oscillates"
    DECAY = "weights that decay, as those of learned feedback"


def learning_features(plastic: PlasticNetwork) -> list[LearningFeature]:
    """The features that a learner needs for a network."""
    rule = plastic.rule
    needed = {
        LearningFeature.MARGIN: bool(rule.margin),
        LearningFeature.INTEGERS: isinstance(rule.numbers, IntegerArithmetic),
        LearningFeature.ENGINE: isinstance(rule.numbers, LoihiEngine),
        LearningFeature.GRADED: any(p.neuron.graded for p in plastic.network.populations),
        LearningFeature.RUN_ON: not rule.fresh,
        LearningFeature.GAINS: bool(plastic.gains),
        LearningFeature.RHYTHM: rule.rhythm,
        LearningFeature.DECAY: any(part.decay for part in plastic.plastic),
    }
    return [feature for feature, present in needed.items() if present]


@dataclass(frozen=True, slots=True)
class Learned:
    """Result of a learning run: weights, tags, output drive and event counts."""

    weights: Mapping[str, Array]
    """By plastic projection, in floating point."""
    tags: Mapping[str, Array]
    """Tags at the last commit, in its number format; for a mirrored pair, of the forward one."""
    drive: Array
    """Drive of the output in the free phase: mean over the window (samples, units)."""
    counts: Mapping[tuple[str, str], Counts]
    """By population and phase, the commit included; empty if the learner counts no events."""
    saturated: Mapping[str, int]
    """By plastic projection, the number of weights at a limit after the last sample."""
    clipped: int
    """How often a commit clipped a weight to its limit."""
    overflows: int = 0
    """In fixed point, how often a current wrapped or a voltage saturated."""
    history: Array = field(default_factory=lambda: np.zeros((0, 0, 0, len(SYNAPSE_VARIABLES))))
    """(samples, steps, synapses, SYNAPSE_VARIABLES) of the recorded synapses."""
    activity: tuple[Recording, ...] = ()
    """Of each sample, the recorded spikes and signals in the steps of its phases."""
    nudged: Ints | None = None
    """Of each sample, whether its nudged phases ran (1 or 0); None if all did."""

    @property
    def total(self) -> Counts:
        """Event counts summed over populations and phases."""
        return sum(self.counts.values(), Counts())


class LearningLog:
    """A learning run: its network and samples, and what it counts and records.

    Rows of counts are the phases followed by the commit, columns the populations.
    """

    def __init__(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        record: LearningRecord = NO_RECORD,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self.plastic, self.training = plastic, training
        self.record, self.progress = record, progress
        network, rule, samples = plastic.network, plastic.rule, training.stimulus.samples
        self.columns = {p.name: k for k, p in enumerate(network.populations)}
        rows = len(rule.schedule) + 1
        self.sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        """By population, messages of each unit (phases, units)."""
        self.counted = np.zeros((3, rows, len(self.sent)), dtype=np.int64)
        """Updates of traces, and of tags and weights of the synapses onto each population."""
        self.nudged = np.ones(samples, dtype=np.int64)
        """Of each sample, whether its nudged phases ran."""
        self.drives = np.zeros((samples, network[network.output].size))
        """Mean drive of the output in the window of the free phase (samples, units)."""
        shape = (samples, rule.steps) if record.synapses else (0, 0)
        self.history = np.zeros((*shape, len(record.synapses), len(SYNAPSE_VARIABLES)))
        spikes = [(name, "spikes") for name in record.activity.spikes]
        self.activity = {
            key: np.zeros((samples, rule.steps - 1, network[key[0]].size))
            for key in (*spikes, *record.activity.signals)
        }
        """By population and variable, the recorded activity (samples, steps, units)."""
        self.clipped = self.overflows = 0

    def parts(self, size: int) -> Iterator[slice]:
        """The samples, at most `size` at a time; reports each part when it is done."""
        samples = self.training.stimulus.samples
        for start in range(0, samples, size):
            check_deadline()
            stop = min(start + size, samples)
            yield slice(start, stop)
            self.progress(stop - start)

    def count(self, counts: Ints, part: Plastic, events: int) -> None:
        """Count events of a part at its target population, and at its source if mirrored."""
        projection = self.plastic.projection(part.name)
        counts[self.columns[projection.target]] += events
        if part.mirror is not None:
            counts[self.columns[projection.source]] += events

    def record_batch(self, part: slice, history: Array, weights: Array) -> None:
        """Record synapses in samples that ran side by side and ended in one commit.

        `history` (samples, steps, synapses, SYNAPSE_VARIABLES) has no commit, and `weights` are
        those after it. Tags carry on from sample to sample.
        """
        if not self.record.synapses:
            return
        rows = self.history[part]
        rows[:, :-1] = history
        rows[1:, :-1, :, 2] += np.cumsum(history[:, -1, :, 2], axis=0)[:-1, None]
        rows[:, -1] = rows[:, -2]
        rows[-1, -1, :, 3] = weights

    def result(self, weights: Mapping[str, Array], tags: Mapping[str, Array]) -> Learned:
        """The result of the run; `weights` and `tags` of the parts are in their number format."""
        plastic, effective, saturated = self.plastic, dict[str, Array](), dict[str, int]()
        for part in plastic.plastic:
            low, high = plastic.limits(part)
            weight, step = weights[part.name], plastic.weight_step(part)
            saturated[part.name] = int(np.count_nonzero((weight <= low) | (weight >= high)))
            effective[part.name] = step * weight
            if part.mirror is not None:
                saturated[part.mirror] = saturated[part.name]
                effective[part.mirror] = step * (part.mirrored * weight.T)
        return Learned(
            effective,
            tags,
            self.drives,
            self.tally(),
            saturated,
            self.clipped,
            self.overflows,
            self.history,
            self.recordings(),
            self.nudged,
        )

    def recordings(self) -> tuple[Recording, ...]:
        """The recorded activity of each sample; none if nothing is recorded."""
        if not self.activity:
            return ()
        record = self.record.activity
        return tuple(
            Recording(
                {name: self.activity[name, "spikes"][k] for name in record.spikes},
                {key: self.activity[key][k] for key in record.signals},
            )
            for k in range(len(self.drives))
        )

    def tally(self) -> dict[tuple[str, str], Counts]:
        """Event counts by population and phase; a plastic synapse counts even if its weight is 0.

        A phase has steps and updates only in the samples that ran it.
        """
        plastic, counts, samples = self.plastic, {}, len(self.nudged)
        phases = [(phase.name, phase.steps) for phase in plastic.rule.schedule] + [(COMMIT, 1)]
        for column, population in enumerate(plastic.network.populations):
            fan_out = np.zeros(population.size, dtype=np.int64)
            for projection in plastic.network.projections:
                if projection.source == population.name:
                    learns = projection.gain is Gain.ONE and projection.name in plastic.learns
                    fan_out += len(projection.weight) if learns else projection.fan_out
            for row, (phase, length) in enumerate(phases):
                sent = self.sent[population.name][row]
                ran = samples if row == 0 or phase == COMMIT else int(self.nudged.sum())
                steps, total = length * ran, int(sent.sum())
                traces, tags, weights = self.counted[:, row, column].tolist()
                counts[population.name, phase] = Counts(
                    steps=steps,
                    spikes=total,
                    synops=int(sent @ fan_out),
                    updates_active=total,
                    updates_idle=steps * population.size - total,
                    weight_updates=weights,
                    tag_updates=tags,
                    trace_updates=traces,
                )
        return counts


class Learner(ABC):
    """A simulator that runs the rule of `neuro_eqprop.spiking.plasticity`."""

    name: str
    """As in `--on`."""
    cannot: ClassVar[Mapping[LearningFeature, str]] = {}
    """Features that it lacks, each with what it does instead and a remedy."""

    @abstractmethod
    def run(self, log: LearningLog) -> Learned:
        """Learn from the samples of the log in order, from rest with all traces at zero."""

    def with_options(self, options: str) -> Self:
        """The same learner with options of its own, written as on the command line."""
        raise BackendError(f"{self.name} takes no options, such as {options!r}; leave them out")

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error, with the reason, for a network or samples that it cannot learn."""
        training.stimulus.check(plastic.network)
        for feature in learning_features(plastic):
            if feature in self.cannot:
                raise BackendError(f"{self.name} {self.cannot[feature]}")

    def learn(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        *,
        record: LearningRecord = NO_RECORD,
        progress: ProgressCallback = no_progress,
    ) -> Learned:
        """Learn from all samples in order, from the resting state with all traces at zero."""
        self.check(plastic, training)
        return self.run(LearningLog(plastic, training, record, progress))
