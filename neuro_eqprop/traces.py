"""What was recorded, of rates and of spikes alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.synapse_recording import (
    HEBBIAN,
    Synapse,
    SynapseLog,
    Weights,
    check_synapse,
    concatenate,
    parse_synapses,
)


class ActivityKind(Enum):
    """How a population's rate is read from what was recorded of it."""

    RATE = "rate"
    """The signal `rate` itself; at the end of a phase it is the equilibrium."""
    SPIKES = "spikes"
    """Binary spikes: their mean over the window."""
    GRADED = "graded"
    """Messages of changes: the mean over the window of their running sum."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Events of a population in a phase, over all samples of a run."""

    steps: int = 0
    """Steps run, summed over samples."""
    spikes: int = 0
    """Spikes or graded messages sent."""
    synops: int = 0
    """Synapses (nonzero weights) these arrived at."""
    updates_active: int = 0
    """Neuron updates that ended in a spike or message."""
    updates_idle: int = 0
    """Neuron updates that did not."""
    host_macs: int = 0
    """Multiplications done outside of the network to feed it."""
    weight_updates: int = 0
    """Weights into the population that learning changed."""
    tag_updates: int = 0
    """Tags of such weights that learning changed."""
    trace_updates: int = 0
    """Activity traces that learning changed."""

    def __add__(self, other: Counts) -> Counts:
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return Counts(*sums)


@dataclass(frozen=True, slots=True)
class Record:
    """What to record: populations whose spikes, and (population, variable) pairs whose values.

    Variables: `drive` of any population, `voltage` of a spiking one, `state` of a graded one,
    `rate` of a layer of rates. Of connections, the synapses whose story is told.
    """

    spikes: frozenset[str] = frozenset()
    signals: frozenset[tuple[str, str]] = frozenset()
    hebbian: Mapping[str, tuple[Synapse, ...]] = field(default_factory=dict)


NOTHING = Record()

VARIABLES: Mapping[ActivityKind, tuple[str, ...]] = {
    ActivityKind.RATE: ("rate", "drive"),
    ActivityKind.SPIKES: ("spikes", "voltage", "drive"),
    ActivityKind.GRADED: ("spikes", "state", "drive"),
}
"""What can be recorded of a population; the first is what its rate is read from."""
ALIASES = {"current": "drive"}
"""Other names of variables: the drive is all the current that reaches a unit."""


def parse_record(
    words: Iterable[str],
    kinds: Mapping[str, ActivityKind],
    weights: Mapping[str, Array] | None = None,
) -> Record:
    """What its rate is read from of every population, and what words add to it.

    Words: `population:variable`, and `connection:hebbian` for those whose `weights` are given.
    """
    chosen = {(name, VARIABLES[kind][0]) for name, kind in kinds.items()}
    synapses: dict[str, dict[Synapse, None]] = {}
    for word in words:
        name, _, variable = word.rpartition(":")
        variable = ALIASES.get(variable, variable)
        if "->" in name:
            if variable != HEBBIAN:
                raise UnknownNameError(f"variable of {name!r}", variable, (HEBBIAN,))
            connection, pairs = parse_synapses(name, weights or {})
            synapses.setdefault(connection, {}).update(dict.fromkeys(pairs))
            continue
        if name not in kinds:
            raise UnknownNameError("population to record (population:variable)", word, kinds)
        if variable not in VARIABLES[kinds[name]]:
            raise UnknownNameError(f"variable of {name!r}", variable, VARIABLES[kinds[name]])
        chosen.add((name, variable))
    spikes = frozenset(name for name, variable in chosen if variable == "spikes")
    signals = frozenset(pair for pair in chosen if pair[1] != "spikes")
    return Record(spikes, signals, {name: tuple(pairs) for name, pairs in synapses.items()})


@dataclass(frozen=True, slots=True)
class Recording:
    """One sample: arrays (steps, units). Of spikes the payload: 1 where binary, 0 where silent."""

    spikes: Mapping[str, Array]
    signals: Mapping[tuple[str, str], Array]
    hebbian: Mapping[str, SynapseLog] = field(default_factory=dict)
    """By connection, of the synapses that are watched."""


class Sink(Protocol):
    """Takes the samples of a run in their order, each when it is done."""

    def sample(self, index: int, recording: Recording) -> None:
        """Keep the recording of sample `index`."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySink:
    """A sink that keeps everything in a list."""

    recordings: list[Recording] = field(default_factory=list)

    def sample(self, index: int, recording: Recording) -> None:
        """Append the recording."""
        if index != len(self.recordings):
            raise ValueError(f"sample {index} came in place {len(self.recordings)}")
        self.recordings.append(recording)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace comes from."""

    backend: str
    network_hash: str
    versions: Mapping[str, str]
    seed: int
    created: str
    command: str


@dataclass(frozen=True, slots=True)
class SpikeTrain:
    """Events in the order of their steps; steps run on over samples. `value` is the payload."""

    step: Ints
    unit: Ints
    value: Array
    size: int
    """How many units the population has."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole recorded run. Sample k takes the steps from k T to (k + 1) T, T over all phases."""

    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    connections: tuple[str, ...]
    """Names "source->target"; a source without a kind is the input layer."""
    index: Ints
    """Of each sample, its place in the data set."""
    label: Ints
    inputs: Array
    """The data (samples, features)."""
    spikes: Mapping[str, SpikeTrain]
    signals: Mapping[tuple[str, str], Array]
    """Values (steps over all samples, units) by population and variable."""
    counts: Mapping[tuple[str, str], Counts]
    """By population and phase."""
    complete: bool = True
    """Whether the run came to its end; if not, these are the samples it got to."""
    weights: Mapping[str, Weights] = field(default_factory=dict)
    """By connection, before the run and after it."""
    hebbian: Mapping[str, SynapseLog] = field(default_factory=dict)
    """By connection, of the synapses that were watched (steps over all samples, synapses)."""
    epochs: Mapping[str, Array] = field(default_factory=dict)
    """Of a training, which shows the same few samples after each epoch: its numbers by name."""

    @property
    def steps(self) -> int:
        """Steps of one sample, over all phases."""
        return sum(phase.steps for phase in self.schedule)

    def span(self, phase: str) -> tuple[int, int, int]:
        """Where in a sample a phase starts, where its window starts, and where it stops."""
        start = 0
        for each in self.schedule:
            stop = start + each.steps
            if each.name == phase:
                return start, stop - each.window, stop
            start = stop
        raise KeyError(phase)

    @property
    def readable(self) -> tuple[str, ...]:
        """The populations whose rate can be read from what was recorded."""
        rates = {name for name, variable in self.signals if variable == "rate"}
        return tuple(
            n
            for n, k in self.kinds.items()
            if n in (rates if k is ActivityKind.RATE else self.spikes)
        )

    def course(self, population: str) -> Array:
        """The rate at each step (samples, steps, units): signal, spikes, or sum of messages."""
        kind = self.kinds[population]
        if kind is ActivityKind.RATE:
            if (population, "rate") not in self.signals:
                raise ValueError(f"the rate of {population!r} was not recorded in this trace")
            values = self.signals[population, "rate"]
            return values.reshape(len(self.index), self.steps, values.shape[-1])
        if population not in self.spikes:
            raise ValueError(f"the spikes of {population!r} were not recorded in this trace")
        spike_train = self.spikes[population]
        raster = np.zeros((len(self.index) * self.steps, spike_train.size))
        raster[spike_train.step, spike_train.unit] = spike_train.value
        raster = raster.reshape(len(self.index), self.steps, spike_train.size)
        return raster if kind is ActivityKind.SPIKES else np.cumsum(raster, axis=1)

    def recording(self, sample: int) -> Recording:
        """What was recorded of one sample."""
        first, stop = sample * self.steps, (sample + 1) * self.steps
        spikes: dict[str, Array] = {}
        for name, events in self.spikes.items():
            here = slice(*np.searchsorted(events.step, (first, stop)))
            spikes[name] = np.zeros((self.steps, events.size))
            spikes[name][events.step[here] - first, events.unit[here]] = events.value[here]
        told = {name: story.part(slice(first, stop)) for name, story in self.hebbian.items()}
        return Recording(spikes, {key: v[first:stop] for key, v in self.signals.items()}, told)

    def rate(self, population: str, phase: str) -> Array:
        """The rate in a phase (samples, units), as its kind says."""
        _, window, stop = self.span(phase)
        course = self.course(population)
        if self.kinds[population] is ActivityKind.RATE:
            return np.asarray(course[:, stop - 1])
        return np.asarray(course[:, window:stop].mean(axis=1))

    def running(self, population: str, phase: str) -> Array:
        """At each step of a phase, its rate had the phase ended there (samples, steps, units)."""
        start, window, stop = self.span(phase)
        course = self.course(population)[:, start:stop]
        return running_rate(course, self.kinds[population], stop - window)


def running_rate(course: Array, kind: ActivityKind, window: int) -> Array:
    """At each step of a phase, the rate had it ended there (samples, steps, units)."""
    if kind is ActivityKind.RATE:
        return course
    steps = course.shape[1]
    sums = np.concatenate([np.zeros_like(course[:, :1]), np.cumsum(course, axis=1)], axis=1)
    ends = np.arange(1, steps + 1)
    # In whole numbers, so that the last width is the window itself.
    widths = -(-ends * window // steps)
    return np.asarray((sums[:, ends] - sums[:, ends - widths]) / widths[:, None])


LAYOUT_BYTES = 2**17
"""Bytes of a trace file before anything is recorded, at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is going to record, known before its first step; the fields are those of Trace."""

    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    sizes: Mapping[str, int]
    """How many units each population has."""
    connections: tuple[str, ...]
    index: Ints
    label: Ints
    inputs: Array
    record: Record
    weights: Mapping[str, Array] = field(default_factory=dict)
    """By connection, before the run."""
    learns: bool = False
    """Whether the run changes them, so that there will be others after it."""
    epochs: Mapping[str, str] = field(default_factory=dict)
    """Of a training: the names of its numbers for each epoch, and their units."""
    lasts: int = 0
    """The epochs that it is going to take."""

    def __post_init__(self) -> None:
        if set(self.kinds) != set(self.sizes):
            raise ValueError(f"kinds {sorted(self.kinds)} and sizes {sorted(self.sizes)} differ")
        names = [phase.name for phase in self.schedule]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"a trace needs phases, each with its own name, not {names}")
        if self.inputs.ndim != 2 or not len(self.index) == len(self.label) == len(self.inputs):
            raise ValueError("every sample needs an index, a label and a row of inputs")
        for name in {*self.record.spikes, *(name for name, _ in self.record.signals)}:
            if name not in self.kinds:
                raise UnknownNameError("population to record", name, self.kinds)
        for name, synapses in self.record.hebbian.items():
            if name not in self.weights:
                raise UnknownNameError("connection to record", name, self.weights)
            for synapse in synapses:
                check_synapse(name, synapse, self.weights[name])

    @property
    def steps(self) -> int:
        """Steps of one sample, over all phases."""
        return sum(phase.steps for phase in self.schedule)

    def event_types(self, population: str) -> dict[str, str]:
        """The narrowest types that hold its events: packing them takes time by the byte."""
        return {
            "step": "i4" if self.steps * len(self.index) < 2**31 else "i8",
            "unit": "i2" if self.sizes[population] <= 2**15 else "i4",
            "value": "i1" if self.kinds[population] is ActivityKind.SPIKES else "f8",
        }

    @property
    def most_bytes(self) -> int:
        """The size of what is recorded if every unit sent something at every step, unpacked."""
        cells = sum(8 * self.sizes[name] for name, _ in self.record.signals)
        events = sum(
            self.sizes[name] * sum(np.dtype(t).itemsize for t in self.event_types(name).values())
            for name in self.record.spikes
        )
        watched = sum(40 * len(synapses) for synapses in self.record.hebbian.values())
        weights = sum((1 + self.learns) * weight.nbytes for weight in self.weights.values())
        rows = (cells + events + watched) * self.steps * len(self.index)
        return LAYOUT_BYTES + self.inputs.nbytes + weights + rows


def spike_train(payload: Array, first: int) -> SpikeTrain:
    """The events of one sample (steps, units) whose first step is `first`."""
    # Ten times as fast as asking for two coordinates of an array of floats, and short numbers are
    # divided sooner than long ones.
    place, size = np.flatnonzero(payload != 0), payload.shape[1]
    short = place.astype(np.int32) if payload.size < 2**31 else place
    step = short // size
    unit = short - step * size
    return SpikeTrain(step.astype(np.int64) + first, unit, payload.ravel()[place], size)


def gather(
    plan: Plan,
    recordings: Sequence[Recording],
    counts: Mapping[tuple[str, str], Counts],
    after: Mapping[str, Array] | None = None,
) -> Trace:
    """The trace of a run whose recordings were kept in memory; `after`: the weights it ended in."""
    spikes: dict[str, SpikeTrain] = {}
    for name in sorted(plan.record.spikes):
        each = [spike_train(r.spikes[name], k * plan.steps) for k, r in enumerate(recordings)]
        step, unit = (np.concatenate([getattr(t, f) for t in each]) for f in ("step", "unit"))
        value = np.concatenate([t.value for t in each])
        spikes[name] = SpikeTrain(step, unit, value, plan.sizes[name])
    signals = {
        key: np.concatenate([r.signals[key] for r in recordings])
        for key in sorted(plan.record.signals)
    }
    return Trace(
        plan.origin,
        plan.schedule,
        plan.kinds,
        plan.connections,
        plan.index,
        plan.label,
        plan.inputs,
        spikes,
        signals,
        counts,
        weights={n: Weights(w, (after or {}).get(n)) for n, w in plan.weights.items()},
        hebbian={
            name: concatenate([r.hebbian[name] for r in recordings]) for name in plan.record.hebbian
        },
    )


RENAMED = {"Kind": "ActivityKind", "Memory": "MemorySink", "choose": "parse_record"}
"""Names of version 0.1 that its documentation used."""


def __getattr__(name: str) -> object:
    """Return an object under its former name, with a warning."""
    if name not in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now {__name__}.{RENAMED[name]}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    found: object = globals()[RENAMED[name]]
    return found
