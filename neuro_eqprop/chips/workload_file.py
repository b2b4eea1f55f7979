"""Counted events in a JSON file: the sizes of a network and the events of a run.

    {"schema": "neuro_eqprop.counts/1",
     "populations": [{"name": "hidden", "size": 256, "soft_reset": true}, ...],
     "projections": [{"source": "hidden", "target": "output"}, ...],
     "output": "output", "samples": 32, "steps": 64, "input_coding": "current",
     "dense_macs": 203264,
     "counts": [{"population": "hidden", "phase": "free", "steps": 2048, "spikes": ..., ...}]}

A population may also be `graded` or `off_chip` (its spikes arrive from outside). A projection is
dense unless it has `synapses`, with `max_fan_in` and `max_fan_out`, or a `convolution`:
{"source": [1, 28, 28], "target": [16, 24, 24], "kernel": [5, 5], "stride": [1, 1]} with maps as
channels, height and width, and `padding`, `transposed` where needed. It may have `bits` (8) and
`delay` (1). `spikes_by_step`, if given, has for some samples a list of the spikes of each step by
population. Counts are those of `simulators.recordings.Counts`, summed over all samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    ProjectionShape,
    Workload,
    convolution_projection,
    dense_projection,
)
from neuro_eqprop.files.codec import Count, Format, Text
from neuro_eqprop.files.read import FileFormatError
from neuro_eqprop.simulators.recordings import Counts


class CountsError(FileFormatError):
    """A file of counts has invalid content; the message names file, key and reason."""


@dataclass(frozen=True, slots=True)
class ProjectionEntry:
    """A projection as a file states it: with its synapses, a convolution, or dense."""

    source: Text
    target: Text
    synapses: Count | None = None
    max_fan_in: Count = 0
    max_fan_out: Count = 0
    bits: Count = 8
    delay: Count = 1
    convolution: ConvolutionShape | None = None

    def shape(self, populations: Mapping[str, PopulationShape]) -> ProjectionShape:
        """The sizes of the projection."""
        for end in (self.source, self.target):
            if end not in populations:
                raise ValueError(
                    f"projection {self.source}->{self.target}: there is no population {end!r}"
                )
        if self.synapses is not None:
            return ProjectionShape(
                *(self.source, self.target, self.synapses, self.max_fan_in, self.max_fan_out),
                bits=self.bits,
                delay=self.delay,
                convolution=self.convolution,
            )
        if self.convolution is not None:
            shape = convolution_projection(
                self.source, self.target, self.convolution, bits=self.bits
            )
        else:
            ends = populations[self.source], populations[self.target]
            shape = dense_projection(*ends, bits=self.bits)
        return replace(shape, delay=self.delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsEntry(Counts):
    """The events of a population in a phase."""

    population: Text
    phase: Text

    def __post_init__(self) -> None:
        for event in fields(Counts):
            if getattr(self, event.name) < 0:
                raise ValueError(f"{event.name} is negative")


@dataclass(frozen=True, slots=True)
class CountsFile:
    """The content of a file of counts."""

    populations: tuple[PopulationShape, ...]
    projections: tuple[ProjectionEntry, ...]
    output: Text
    samples: Count
    steps: Count
    input_coding: Text
    dense_macs: Count
    counts: tuple[CountsEntry, ...]
    state_bits: Count | None = None
    spikes_by_step: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)

    def workload(self) -> Workload:
        """The workload that the file describes."""
        populations = {each.name: each for each in self.populations}
        if len(populations) != len(self.populations):
            raise ValueError("two populations share a name")
        if len({len(steps) for steps in self.spikes_by_step.values()}) > 1:
            raise ValueError("spikes_by_step: the populations have different numbers of steps")
        projections = tuple(each.shape(populations) for each in self.projections)
        return Workload(
            NetworkShape(self.populations, projections, self.output, self.state_bits),
            {
                (each.population, each.phase): Counts(
                    *(getattr(each, event.name) for event in fields(Counts))
                )
                for each in self.counts
            },
            samples=self.samples,
            steps=self.steps,
            input_coding=self.input_coding,
            dense_macs=self.dense_macs,
            by_step={
                name: np.asarray(steps, dtype=np.int64)[:, None]
                for name, steps in self.spikes_by_step.items()
            },
        )


COUNTS = Format(CountsFile, "neuro_eqprop.counts/1", error=CountsError)


def read_workload(path: Path) -> Workload:
    """The workload in a file of counts."""
    content = COUNTS.read(path)
    try:
        return content.workload()
    except ValueError as error:
        raise CountsError(f"{path}: {error}") from None


def write_workload(path: Path, workload: Workload) -> None:
    """Write a file of counts."""
    shape = workload.shape
    content = CountsFile(
        populations=shape.populations,
        projections=tuple(
            ProjectionEntry(
                *(each.source, each.target, each.synapses, each.max_fan_in, each.max_fan_out),
                *(each.bits, each.delay, each.convolution),
            )
            for each in shape.projections
        ),
        output=shape.output,
        samples=workload.samples,
        steps=workload.steps,
        input_coding=workload.input_coding,
        dense_macs=workload.dense_macs,
        counts=tuple(
            CountsEntry(population=name, phase=phase, **asdict(counts))
            for (name, phase), counts in workload.counts.items()
        ),
        state_bits=shape.state_bits,
        spikes_by_step={
            name: tuple(steps.sum(axis=1).tolist()) for name, steps in workload.by_step.items()
        },
    )
    COUNTS.write(path, content)
