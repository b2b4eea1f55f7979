"""The interface of a learner, and what a learning run counts, records and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.recordings import NOTHING, Counts, Record, Recording
from neuro_eqprop.spiking.fixed_point import weights as integer_weights
from neuro_eqprop.spiking.ir import Gain, Projection
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)

ProgressCallback = Callable[[int], None]
"""Called with the number of samples done since the last call."""


def no_progress(_: int) -> None:
    """No-op progress callback."""


@dataclass(frozen=True, slots=True)
class Synapses:
    """Synapses to record: projection names, each with a target and a source unit."""

    chosen: tuple[tuple[str, int, int], ...] = ()
    activity: Record = NOTHING
    """Spikes and signals of populations to record beside them."""


NO_SYNAPSES = Synapses()
SYNAPSE_VARIABLES = ("pre", "post", "tag", "weight")
"""Recorded variables of a synapse at the end of every step: both traces, tag and weight."""


def refuse_margin(name: str, plastic: PlasticNetwork) -> None:
    """Raise BackendError for a rule with a margin, which needs a learner that can skip phases."""
    if plastic.rule.margin:
        raise BackendError(
            f"{name} runs every phase of a sample: learn with margin 0, or on the emulator"
        )


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
    network, found = plastic.network, []
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
        found.append(EffectiveWeights(projection, learns, weight, gain))
    return found


def engine_draws(engine: LoihiEngine, steps: int) -> Array:
    """Random numbers of Lava's learning engine in its first steps (3, steps).

    One number of each kind per step: for presynaptic traces, for postsynaptic traces, and for tags
    and weights. Every second number of the first two streams is used, as in Lava.
    """
    pre = np.random.default_rng(engine.seed).random(2 * steps + 1)[2::2]
    post = np.random.default_rng(engine.seed + 2).random(2 * steps + 1)[2::2]
    own = np.random.default_rng(2).random(steps + 1)[1:]
    return np.stack([pre, post, own])


def empty_history(synapses: Synapses, samples: int, steps: int) -> Array:
    """Zeros of the shape of `Learned.history`, which has no entries if no synapse is recorded."""
    chosen = len(synapses.chosen)
    shape = (samples, steps, chosen) if chosen else (0, 0, 0)
    return np.zeros((*shape, len(SYNAPSE_VARIABLES)))


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
    """By population and phase, the commit included."""
    saturated: Mapping[str, int]
    """By plastic projection, the number of weights at a limit after the last sample."""
    clipped: int
    """How often a commit clipped a weight to its limit."""
    overflows: int = 0
    """In fixed point, how often a current wrapped or a voltage saturated."""
    history: Array = field(default_factory=lambda: empty_history(NO_SYNAPSES, 0, 0))
    """(samples, steps, synapses, SYNAPSE_VARIABLES) of the recorded synapses."""
    activity: tuple[Recording, ...] = ()
    """Of each sample, the recorded spikes and signals in the steps of its phases."""
    nudged: Ints | None = None
    """Of each sample, whether its nudged phases ran (1 or 0); None if all did."""

    @property
    def total(self) -> Counts:
        """Event counts summed over populations and phases."""
        return sum(self.counts.values(), Counts())


class Learner(Protocol):
    """A simulator that runs the rule of `neuro_eqprop.spiking.plasticity`."""

    @property
    def name(self) -> str:
        """Its name, as in `--on`."""
        ...

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error, with the reason, for a network or samples that it cannot learn."""
        ...

    def learn(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        *,
        synapses: Synapses = NO_SYNAPSES,
        progress: ProgressCallback = no_progress,
    ) -> Learned:
        """Learn from all samples in order, from the resting state with all traces at zero."""
        ...


@dataclass(frozen=True, slots=True)
class Events:
    """Event counts: rows are the phases followed by the commit, columns the populations."""

    sent: Mapping[str, Ints]
    """By population, messages of each unit (phases, units)."""
    traces: Ints
    """Trace updates (phases, populations)."""
    tags: Ints
    """Tag updates of the synapses onto each population."""
    weights: Ints
    """Weight updates of the synapses onto each population."""
    nudged: Ints | None = None
    """Of each sample, whether its nudged phases ran (1 or 0); None if all did."""


class LearningLog:
    """What a learning run counts and records."""

    def __init__(
        self, plastic: PlasticNetwork, training: TrainingSamples, synapses: Synapses
    ) -> None:
        self.plastic, self.training, self.synapses = plastic, training, synapses
        network, rule, samples = plastic.network, plastic.rule, training.stimulus.samples
        self.columns = {p.name: k for k, p in enumerate(network.populations)}
        rows = len(rule.schedule) + 1
        sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        self.counted = np.zeros((3, rows, len(sent)), dtype=np.int64)
        self.nudged = np.ones(samples, dtype=np.int64)
        traces, tags, weights = self.counted
        self.events = Events(sent, traces, tags, weights, self.nudged)
        self.drives = np.zeros((samples, network[network.output].size))
        """Drive of the output in the free phase (samples, units)."""
        self.history = empty_history(synapses, samples, rule.steps)
        recorded = [(name, "spikes") for name in synapses.activity.spikes]
        self.activity = {
            key: np.zeros((samples, rule.steps - 1, network[key[0]].size))
            for key in (*recorded, *synapses.activity.signals)
        }
        """By population and variable, the recorded activity (samples, steps, units)."""
        self.clipped = self.overflows = 0

    def count(self, counts: Ints, part: Plastic, events: int) -> None:
        """Count events of a part at its target population, and at its source if mirrored."""
        projection = self.plastic.projection(part.name)
        counts[self.columns[projection.target]] += events
        if part.mirror is not None:
            counts[self.columns[projection.source]] += events

    def result(self, weights: Mapping[str, Array], tags: Mapping[str, Array]) -> Learned:
        """The result of the run; `weights` of the parts and `tags` are in their number format."""
        plastic, found, saturated = self.plastic, dict[str, Array](), dict[str, int]()
        for part in plastic.plastic:
            low, high = plastic.limits(part)
            weight = weights[part.name]
            for name in part.names:
                found[name] = plastic.weight_step(part) * weights[name]
                saturated[name] = int(np.count_nonzero((weight <= low) | (weight >= high)))
        record = self.synapses.activity
        spikes = {name: self.activity[name, "spikes"] for name in record.spikes}
        return Learned(
            found,
            tags,
            self.drives,
            tally_learning(plastic, self.training, self.events),
            saturated,
            self.clipped,
            self.overflows,
            self.history,
            recordings(record, spikes, self.activity),
            self.nudged,
        )


def recordings(
    record: Record, spikes: Mapping[str, Array], signals: Mapping[tuple[str, str], Array]
) -> tuple[Recording, ...]:
    """Recordings of each sample, from arrays (samples, steps, units)."""
    first = next(iter((*spikes.values(), *signals.values())), np.zeros((0, 0, 0)))
    return tuple(
        Recording(
            {name: np.asarray(spikes[name][k], dtype=np.float64) for name in record.spikes},
            {key: np.asarray(signals[key][k], dtype=np.float64) for key in record.signals},
        )
        for k in range(len(first))
    )


def tally_learning(
    plastic: PlasticNetwork, training: TrainingSamples, events: Events
) -> dict[tuple[str, str], Counts]:
    """Event counts by population and phase; a plastic synapse counts even if its weight is zero.

    A phase has steps and updates only in the samples that ran it.
    """
    network, counts, samples = plastic.network, {}, training.stimulus.samples
    nudged = samples if events.nudged is None else int(events.nudged.sum())
    phases = [(phase.name, phase.steps) for phase in plastic.rule.schedule] + [(COMMIT, 1)]
    for column, population in enumerate(network.populations):
        fan_out = np.zeros(population.size, dtype=np.int64)
        for projection in network.projections:
            if projection.source == population.name:
                learns = projection.gain is Gain.ONE and projection.name in plastic.learns
                fan_out += len(projection.weight) if learns else projection.fan_out
        for row, (phase, length) in enumerate(phases):
            sent = events.sent[population.name][row]
            ran = samples if row == 0 or phase == COMMIT else nudged
            steps, total = length * ran, int(sent.sum())
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
