"""Callbacks of a Brian2 run in continuous time: set noise and beta, and read each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.brian2.membrane import Biology
from neuro_eqprop.simulators.brian2.setup import Handle
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


def noise(biology: Biology, sizes: Mapping[str, int], samples: range) -> Noise:
    """The noise of these samples."""
    streams = {
        name: tuple(np.random.default_rng((biology.seed, k, sample)) for sample in samples)
        for k, name in enumerate(sizes)
    }
    return Noise(streams, sizes, biology.pairs)


@dataclass(slots=True)
class StepRecorder:
    """Accumulates and records each completed step; `tick` is called before every dt."""

    biology: Biology
    groups: Mapping[str, Handle]
    schedule: Schedule
    result: Result
    """Sums of the samples in this run; initially zeros."""
    record: Record
    noise: Noise
    ticks: int = 0
    drawn: dict[str, Array] = field(default_factory=dict)
    spikes: dict[str, list[Array]] = field(default_factory=dict)
    signals: dict[tuple[str, str], list[Array]] = field(default_factory=dict)

    limits: tuple[float, float] = (0.0, 1.0)
    """Voltages that count as zero and as one."""
    last: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Counters of the current step at the last interval of recordings."""

    places: list[tuple[int, bool]] = field(init=False)
    """The phase of each step, and whether the step lies in the window."""

    def __post_init__(self) -> None:
        self.places = [
            (k, step >= phase.steps - phase.window)
            for k, phase in enumerate(self.schedule)
            for step in range(phase.steps)
        ]

    def tick(self) -> None:
        """Run before each integration step."""
        step, within = divmod(self.ticks, self.biology.ticks)
        if self.ticks and self.biology.substeps > 1 and not within % self.biology.record_ticks:
            self.record_substep()
        if within == 0:
            self.next_step(step)
        for name, values in self.drawn.items():
            variable = "chance" if "chance" in self.groups[name].variables else "eta"
            self.groups[name].variables[variable].set_value(values[within])
        self.ticks += 1

    def next_step(self, step: int) -> None:
        """Read the completed step and prepare the next one."""
        if step > 0:
            self.read(*self.places[step - 1])
        if step < len(self.places):
            for name, group in self.groups.items():
                group.variables["beta"].set_value(self.schedule[self.places[step][0]].beta)
                poisson = "chance" in group.variables
                if self.biology.noise or poisson:
                    ticks = self.biology.ticks
                    self.drawn[name] = self.noise.draw(name, ticks, uniform=poisson)

    def read(self, phase: int, in_window: bool) -> None:
        """Add a step to sums and recordings, and reset the counters of the neurons."""
        window = self.schedule[phase].window
        for name, group in self.groups.items():
            shape = self.result.messages[name][:, phase].shape
            seen = self.values(name, shape)
            group.variables["sent"].set_value(0)
            group.variables["received"].set_value(0)
            self.result.messages[name][:, phase] += np.rint(seen["spikes"]).astype(np.int64)
            if in_window:
                self.result.firing[name][:, phase] += seen["spikes"] / window
                self.result.drive[name][:, phase] += seen["drive"] / window
            self.last.pop(name, None)
            if self.biology.substeps == 1:
                self.keep(name, seen)

    def values(self, name: str, shape: tuple[int, ...]) -> dict[str, Array]:
        """Spikes and drive since the start of the step, and the membrane potential."""
        group = self.groups[name]
        seen = {
            variable: np.array(group.variables[of].get_value()).reshape(shape)
            for variable, of in (("spikes", "sent"), ("drive", "received"))
        }
        if (name, "voltage") in self.record.signals:
            voltage = np.asarray(group.v[:], dtype=np.float64).reshape(shape)
            low, high = self.limits if "chance" not in group.variables else (0.0, 1.0)
            seen["voltage"] = (voltage - low) / (high - low)
        return seen

    def record_substep(self) -> None:
        """Record an interval shorter than a step."""
        for name in {*self.record.spikes, *(name for name, _ in self.record.signals)}:
            seen = self.values(name, self.result.messages[name][:, 0].shape)
            before = self.last.get(name, {})
            self.last[name] = dict(seen)
            for variable in ("spikes", "drive"):
                seen[variable] = seen[variable] - before.get(variable, 0.0)
            seen["drive"] = seen["drive"] * self.biology.substeps
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
