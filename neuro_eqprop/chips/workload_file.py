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

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    ProjectionShape,
    Workload,
    convolution_projection,
)
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.files.toml import FileFormatError, Table, build, read_json
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.recordings import Counts

SCHEMA = "neuro_eqprop.counts/1"
TOP = (
    *("schema", "populations", "projections", "output", "samples", "steps", "input_coding"),
    *("dense_macs", "counts", "state_bits", "spikes_by_step"),
)
ENDS = ("source", "target", "bits", "delay")
COUNTS = tuple(each.name for each in fields(Counts))


class CountsError(FileFormatError):
    """A file of counts has invalid content; the message names file, key and reason."""


def read_projection(table: Table, populations: Mapping[str, PopulationShape]) -> ProjectionShape:
    """A projection of the file; a dense one unless it states its synapses."""
    if "synapses" in table:
        return build(ProjectionShape, table, plastic=False)
    if "convolution" in table:
        table.check_keys((*ENDS, "convolution"))
        convolution = build(ConvolutionShape, table.table("convolution"))
        found = convolution_projection(
            table.text("source"), table.text("target"), convolution, bits=table.integer("bits", 8)
        )
        return replace(found, delay=table.integer("delay", 1))
    table.check_keys((*ENDS, "synapses"))
    ends = [table.text(name) for name in ("source", "target")]
    for end in ends:
        if end not in populations:
            table.fail(f"there is no population {end!r}")
    sizes = [populations[end].size for end in ends]
    numbers: dict[str, Any] = {
        "synapses": sizes[0] * sizes[1],
        "max_fan_in": sizes[0],
        "max_fan_out": sizes[1],
    }
    return build(ProjectionShape, table, plastic=False, **numbers)


def read_counts(table: Table) -> Counts:
    """The counts of one population in one phase."""
    table.check_keys(("population", "phase", *COUNTS))
    return Counts(*(table.integer(name, 0) for name in COUNTS))


def read_workload(path: Path) -> Workload:
    """The workload in a file of counts."""
    top = read_json(path, CountsError)
    top.check_keys(TOP)
    top.check_schema(SCHEMA)
    for name in ("populations", "projections", "counts"):
        if not isinstance(top.content.get(name), list):
            top.fail(f"{name} is missing; it must be a list")
    listed = [build(PopulationShape, each) for each in top.tables("populations")]
    populations = {each.name: each for each in listed}
    if len(populations) != len(listed):
        top.fail("two populations share a name")
    projections = tuple(read_projection(each, populations) for each in top.tables("projections"))
    state_bits = top.integer("state_bits") if "state_bits" in top else None
    counts = {
        (each.text("population"), each.text("phase")): read_counts(each)
        for each in top.tables("counts")
    }
    try:
        return Workload(
            NetworkShape(tuple(populations.values()), projections, top.text("output"), state_bits),
            counts,
            samples=top.integer("samples"),
            steps=top.integer("steps"),
            input_coding=top.text("input_coding"),
            dense_macs=top.integer("dense_macs"),
            by_step=read_steps(top.table("spikes_by_step")),
        )
    except CountsError:
        raise
    except ValueError as error:
        top.fail(str(error))


def read_steps(table: Table) -> dict[str, Ints]:
    """The spikes of each population in each step of a few samples, summed over its neurons."""
    found = {}
    for name, listed in table.content.items():
        if not isinstance(listed, list) or not all(type(n) is int and n >= 0 for n in listed):
            table.fail("it must be a list of integers, the spikes of each step", key=name)
        found[name] = np.asarray(listed, dtype=np.int64)[:, None]
    if len({len(each) for each in found.values()}) > 1:
        table.fail("the populations have different numbers of steps")
    return found


def write_workload(path: Path, workload: Workload) -> None:
    """Write a file of counts."""
    write_text(path, json.dumps(to_json(workload), indent=1, allow_nan=False) + "\n")


def projection_json(projection: ProjectionShape) -> dict[str, Any]:
    """A projection of the file."""
    left_out = ("plastic", "convolution")
    names = (f.name for f in fields(ProjectionShape) if f.name not in left_out)
    content = {name: getattr(projection, name) for name in names}
    if projection.convolution is not None:
        content["convolution"] = asdict(projection.convolution)
    return content


def to_json(workload: Workload) -> dict[str, Any]:
    """The content of a file of counts."""
    shape = workload.shape
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "populations": [
            {f.name: getattr(each, f.name) for f in fields(PopulationShape)}
            for each in shape.populations
        ],
        "projections": [projection_json(each) for each in shape.projections],
        "output": shape.output,
        "samples": workload.samples,
        "steps": workload.steps,
        "input_coding": workload.input_coding,
        "dense_macs": workload.dense_macs,
        "counts": [
            {"population": name, "phase": phase, **{f: getattr(counts, f) for f in COUNTS}}
            for (name, phase), counts in workload.counts.items()
        ],
    }
    if shape.state_bits is not None:
        content["state_bits"] = shape.state_bits
    if workload.by_step:
        content["spikes_by_step"] = {
            name: each.sum(axis=1).tolist() for name, each in workload.by_step.items()
        }
    return content
