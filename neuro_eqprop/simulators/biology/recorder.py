"""A run in continuous time, step by step: noise, the beta of each phase, sums and recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.dynamics.schedules import PhaseStep, Schedule, phase_steps
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.biology.equations import recorded_range
from neuro_eqprop.simulators.biology.network import ContinuousNetwork
from neuro_eqprop.simulators.biology.settings import Biology
from neuro_eqprop.simulators.recordings import Record, Recording


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard normal numbers, from a separate stream for each sample and population.

    The noise of a sample therefore does not depend on the other samples of the run.
    """

    streams: Mapping[str, tuple[np.random.Generator, ...]]
    sizes: Mapping[str, int]
    pairs: bool
    """Whether the two halves of a population get the same noise."""

    def draw(self, name: str, ticks: int, *, uniform: bool = False) -> Array:
        """Numbers (ticks, neurons over all samples), normal or uniform in [0, 1)."""
        size = self.sizes[name] // 2 if self.pairs else self.sizes[name]
        drawn = np.stack(
            [
                s.random((ticks, size)) if uniform else s.standard_normal((ticks, size))
                for s in self.streams[name]
            ],
            axis=1,
        )
        return np.tile(drawn, (1, 1, 2) if self.pairs else (1, 1, 1)).reshape(ticks, -1)


def noise(
    biology: Biology, sizes: Mapping[str, int], samples: range, place: tuple[int, ...] = ()
) -> Noise:
    """The noise of these samples; with a `place`, another one."""
    streams = {
        name: tuple(np.random.default_rng((biology.seed, k, sample, *place)) for sample in samples)
        for k, name in enumerate(sizes)
    }
    return Noise(streams, sizes, biology.pairs)


class RunningNeurons(Protocol):
    """The neurons of a simulation while it runs."""

    def read(self, name: str, variable: str) -> Array:
        """A variable of a population (samples, neurons)."""
        ...

    def clear(self, name: str) -> None:
        """Set the counters of spikes and of received drive of a population to zero."""
        ...

    def set_beta(self, beta: float) -> None:
        """Set the strength of the nudge."""
        ...


@dataclass(slots=True)
class IntervalRecorder:
    """Accumulates and records a run; `interval` is called before every interval of recordings."""

    made: ContinuousNetwork
    schedule: Schedule
    result: Result
    """Sums of the samples in this run; initially zeros."""
    record: Record
    first: int
    """The number of the first sample, which sets the noise."""
    substeps: int
    """Recorded intervals in a step of the schedule."""
    neurons: RunningNeurons = field(init=False)
    """Set by the simulator when it has built them."""
    intervals: int = 0
    drawn: dict[str, Array] = field(default_factory=dict)
    """By population, the random numbers of the current step (dt, neurons over all samples)."""
    spikes: dict[str, list[Array]] = field(default_factory=dict)
    signals: dict[tuple[str, str], list[Array]] = field(default_factory=dict)
    last: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Counters of the current step at the last interval of recordings."""
    places: tuple[PhaseStep, ...] = field(init=False)
    poisson: frozenset[str] = field(init=False)
    """The populations that fire as Poisson processes."""
    noise: Noise = field(init=False)

    def __post_init__(self) -> None:
        populations = self.made.network.populations
        self.poisson = frozenset(p.name for p in populations if self.made.is_poisson(p))
        self.places = phase_steps(self.schedule)
        self.noise = self.new_noise()

    @property
    def biology(self) -> Biology:
        """The parameters of the neurons."""
        return self.made.biology

    @property
    def interval_ticks(self) -> int:
        """Steps of integration in an interval."""
        return self.biology.ticks // self.substeps

    def new_noise(self, *place: int) -> Noise:
        """The noise of the samples; with a `place`, another one."""
        sizes = {name: array.shape[-1] for name, array in self.result.messages.items()}
        samples = len(next(iter(self.result.messages.values())))
        return noise(self.biology, sizes, range(self.first, self.first + samples), place)

    @property
    def total(self) -> int:
        """Intervals of the whole run."""
        return len(self.places) * self.substeps

    def interval(self) -> None:
        """Read the interval that has just ended, and prepare the next one."""
        step, within = divmod(self.intervals, self.substeps)
        if self.intervals and self.substeps > 1:
            self.record_substep()
        if within == 0:
            if step > 0:
                self.read(self.places[step - 1])
            if step < len(self.places):
                self.prepare(step)
        self.intervals += 1

    def advanced(self, fired: Mapping[str, Bits]) -> None:
        """Take note of the spikes (dt, samples, neurons) of the steps of integration just done."""

    def beta_at(self, step: int) -> float:
        """Beta in a step."""
        return self.places[step].beta

    def prepare(self, step: int) -> None:
        """Set beta, and draw the random numbers of a step."""
        place = self.places[step]
        self.neurons.set_beta(self.beta_at(step))
        begins = not step or place.phase != self.places[step - 1].phase
        if self.biology.common_noise and begins and place.beta:
            self.noise = self.new_noise(1)
        for name in self.result.messages:
            poisson = name in self.poisson
            if self.biology.noise or poisson:
                ticks = self.biology.ticks
                self.drawn[name] = self.noise.draw(name, ticks, uniform=poisson)

    def read(self, place: PhaseStep) -> None:
        """Add a step to sums and recordings, and reset the counters of the neurons."""
        phase, window = place.phase, self.schedule[place.phase].window
        for name in self.result.messages:
            seen = self.values(name)
            self.neurons.clear(name)
            self.result.messages[name][:, phase] += np.rint(seen["spikes"]).astype(np.int64)
            if place.in_window:
                self.result.firing[name][:, phase] += seen["spikes"] / window
                self.result.drive[name][:, phase] += seen["drive"] / window
            self.last.pop(name, None)
            if self.substeps == 1:
                self.keep(name, seen)

    def values(self, name: str) -> dict[str, Array]:
        """Spikes and drive since the start of the step, and the membrane potential."""
        seen = {
            variable: np.array(self.neurons.read(name, of))
            for variable, of in (("spikes", "sent"), ("drive", "received"))
        }
        if (name, "voltage") in self.record.signals:
            low, high = (0.0, 1.0) if name in self.poisson else recorded_range(self.biology)
            seen["voltage"] = (self.neurons.read(name, "v") - low) / (high - low)
        return seen

    def record_substep(self) -> None:
        """Record an interval shorter than a step."""
        for name in {*self.record.spikes, *(name for name, _ in self.record.signals)}:
            seen = self.values(name)
            before = self.last.get(name, {})
            self.last[name] = dict(seen)
            for variable in ("spikes", "drive"):
                seen[variable] = seen[variable] - before.get(variable, 0.0)
            seen["drive"] = seen["drive"] * self.substeps
            self.keep(name, seen)

    def keep(self, name: str, seen: Mapping[str, Array]) -> None:
        """Append the recorded variables of a population."""
        if name in self.record.spikes:
            self.spikes.setdefault(name, []).append(seen["spikes"])
        for key in self.record.signals:
            if key[0] == name:
                self.signals.setdefault(key, []).append(seen[key[1]])

    def recordings(self, sizes: Mapping[str, int]) -> Iterator[Recording]:
        """The recording of each sample, with the first `sizes` neurons of each population."""
        samples = next(iter(self.result.messages.values())).shape[0]
        for k in range(samples):
            yield Recording(
                {n: np.stack([a[k, : sizes[n]] for a in s]) for n, s in self.spikes.items()},
                {
                    key: np.stack([a[k, : sizes[key[0]]] for a in s])
                    for key, s in self.signals.items()
                },
            )
