"""What was recorded, of rates and of spikes alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.schedules import Schedule


class Kind(Enum):
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

    def __add__(self, other: Counts) -> Counts:
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return Counts(*sums)


@dataclass(frozen=True, slots=True)
class Record:
    """What to record: populations whose spikes, and (population, variable) pairs whose values.

    Variables: `drive` of any population, `voltage` of a spiking one, `state` of a graded one,
    `rate` of a layer of rates.
    """

    spikes: frozenset[str] = frozenset()
    signals: frozenset[tuple[str, str]] = frozenset()


NOTHING = Record()


@dataclass(frozen=True, slots=True)
class Recording:
    """One sample: arrays (steps, units). Of spikes the payload: 1 where binary, 0 where silent."""

    spikes: Mapping[str, Array]
    signals: Mapping[tuple[str, str], Array]


class Sink(Protocol):
    """Takes the samples of a run in their order, each when it is done."""

    def sample(self, index: int, recording: Recording) -> None:
        """Keep the recording of sample `index`."""
        ...


@dataclass(frozen=True, slots=True)
class Memory:
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
    kinds: Mapping[str, Kind]
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

    def course(self, population: str) -> Array:
        """The rate at each step (samples, steps, units): signal, spikes, or sum of messages."""
        samples = len(self.index)
        kind = self.kinds[population]
        if kind is Kind.RATE:
            return self.signals[population, "rate"].reshape(samples, self.steps, -1)
        train = self.spikes[population]
        raster = np.zeros((samples * self.steps, train.size))
        raster[train.step, train.unit] = train.value
        raster = raster.reshape(samples, self.steps, train.size)
        return raster if kind is Kind.SPIKES else np.cumsum(raster, axis=1)

    def rate(self, population: str, phase: str) -> Array:
        """The rate in a phase (samples, units), as its kind says."""
        _, window, stop = self.span(phase)
        course = self.course(population)
        if self.kinds[population] is Kind.RATE:
            return np.asarray(course[:, stop - 1])
        return np.asarray(course[:, window:stop].mean(axis=1))
