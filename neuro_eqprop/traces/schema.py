"""Layout of a trace in an HDF5 file.

    /                 attributes: format, schema, complete, populations (JSON), connections (JSON)
    /origin           attributes: backend, network_hash, versions (JSON), seed, created, command,
                      step_seconds, steps_per_spike, rate_ranges (JSON)
    /time             (steps of a sample)                      seconds from the start of a sample
    /phases           name, beta, start, stop, window          steps within a sample
    /samples          index, label, input, target, start, stop start and stop grow with the run
    /signals/P/V      values (steps over all samples, units)
    /spikes/P         step, unit, value of each event; stop: events up to the end of each sample
    /weights/C        before, after                            of connection C; after if it learns
    /hebbian/C        target, source                           of every recorded synapse
                      pre, post, product, tag, weight          (steps over all samples, synapses)
    /snapshots        sample; by connection, the weights after each number of samples
    /epochs           metrics of a training run, by name; attribute: announced
    /counts/PHASE     a row per population, a column per field of `Counts`

Every data set has an attribute `unit`. Schema 2 added the time base and the targets; in files of
schema 1 a step takes `OLD_STEP_SECONDS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import Node
from neuro_eqprop.simulators.recordings import RULE, Counts, RecordingPlan
from neuro_eqprop.simulators.synapse_recording import COLUMNS as SYNAPSE_COLUMNS

Bytes: TypeAlias = npt.NDArray[np.bytes_]

FORMAT = "neuro_eqprop trace"
SCHEMA = 2
OLD_STEP_SECONDS = {"brian2-biology": 1e-2}
"""Seconds of a step by backend in files of schema 1, which do not state them; else 1 ms."""
COLUMNS = tuple(f.name for f in fields(Counts))
EVENTS_PER_CHUNK = 2**14
"""Number of spikes in a chunk."""
BYTES_PER_CHUNK = 2**17
"""Approximate bytes of a signal in a chunk."""


class TraceError(ValueError):
    """A trace that cannot be written or read; the message names the file and the reason."""


def check_names(path: Path, plan: RecordingPlan) -> None:
    """Raise `TraceError` for names that HDF5 would read as paths."""
    names = [*plan.kinds, *(phase.name for phase in plan.schedule), *plan.weights, *plan.epochs]
    for name in [*names, *(variable for _, variable in plan.record.signals)]:
        if not name or "/" in name or name.strip(".") == "" or "\0" in name:
            raise TraceError(f"{path}: {name!r} cannot name a group in a file; rename it")


def create_layout(file: Node, plan: RecordingPlan) -> None:
    """Create all groups and data sets; growing ones start empty."""
    file.attrs["format"], file.attrs["schema"] = FORMAT, SCHEMA
    file.attrs["complete"] = np.bool_(False)
    file.attrs["connections"] = json.dumps(plan.connections)
    file.attrs["populations"] = json.dumps(
        {name: {"kind": kind.value, "size": plan.sizes[name]} for name, kind in plan.kinds.items()}
    )
    origin = file.create_group("origin")
    for name, value in asdict(plan.origin).items():
        origin.attrs[name] = json.dumps(value) if isinstance(value, Mapping) else value
    time = (np.arange(plan.steps, dtype=np.float64) + 0.5) * plan.origin.step_seconds
    create_fixed(file, "time", time, "s")
    create_phases(file.create_group("phases"), plan)
    samples = file.create_group("samples")
    for name, values in (("index", plan.index), ("label", plan.label)):
        create_fixed(samples, name, np.asarray(values, dtype=np.int64), "1")
    create_fixed(samples, "input", np.asarray(plan.inputs, dtype=np.float64), "1")
    if plan.targets is not None:
        create_fixed(samples, "target", np.asarray(plan.targets, dtype=np.float64), "1")
    for name in ("start", "stop"):
        create_growing(samples, name, dtype="i8", unit="step", chunk=(256,))
    for name, variable in sorted(plan.record.signals):
        size = plan.sizes[name]
        rows = max(1, min(plan.steps, BYTES_PER_CHUNK // (8 * size)))
        where = file.require_group(f"signals/{name}")
        create_growing(where, variable, dtype="f8", unit="1", chunk=(rows, size))
        label_steps(where[variable], "unit")
    for name in sorted(plan.record.spikes):
        group, types = file.create_group(f"spikes/{name}"), plan.event_types(name)
        for column, unit in (("step", "step"), ("unit", "neuron"), ("value", "1")):
            create_growing(group, column, dtype=types[column], unit=unit, chunk=(EVENTS_PER_CHUNK,))
        create_growing(group, "stop", dtype="i8", unit="event", chunk=(256,))
    create_synapses(file, plan)
    create_rule(file, plan)
    for name, unit in sorted(plan.epochs.items()):
        create_growing(file.require_group("epochs"), name, dtype="f8", unit=unit, chunk=(64,))
        file["epochs"].attrs["announced"] = plan.n_epochs
    counts = file.create_group("counts")
    for phase in plan.schedule:
        table = np.zeros((len(plan.kinds), len(COLUMNS)), dtype=np.int64)
        create_fixed(counts, phase.name, table, "events").attrs["columns"] = json.dumps(COLUMNS)


def create_rule(file: Node, plan: RecordingPlan) -> None:
    """Create what a learning run states of its rule, and dimension scales."""
    for name, values in plan.rule.items():
        unit, meaning = RULE[name.partition("/")[0]]
        create_fixed(file, f"rule/{name}", values, unit).attrs["description"] = meaning
    add_scales(file)


def add_scales(file: Node) -> None:
    """Make the names of phases and the places of samples dimension scales of what they number."""
    scales = {"phase": file["phases/name"], "sample": file["samples/index"]}
    for name, scale in scales.items():
        scale.make_scale(name)
    data = {f"phases/{name}": "phase" for name in ("beta", "start", "stop", "window")}
    data |= {f"samples/{name}": "sample" for name in ("label", "input", "target")}
    data |= {f"rule/{name}": "sample" for name in ("rate", "commit")} | {"rule/contrast": "phase"}
    data |= {
        f"rule/{name}/{each}": "sample"
        for name in ("eta", "keep")
        if f"rule/{name}" in file
        for each in file[f"rule/{name}"]
    }
    for name, along in data.items():
        if name in file:
            file[name].dims[0].label = along
            file[name].dims[0].attach_scale(scales[along])
    file["time"].make_scale("time from the start of a sample")


def label_steps(data: Node, along: str) -> None:
    """Name the axes of a growing data set: its rows are the steps of all samples."""
    data.dims[0].label, data.dims[1].label = "step", along


def create_synapses(file: Node, plan: RecordingPlan) -> None:
    """Create weights before the run, space for those after it, and synapse histories."""
    for name, weight in sorted(plan.weights.items()):
        group = file.create_group(f"weights/{name}")
        create_fixed(group, "before", weight, "1")
        if plan.learns:
            create_fixed(group, "after", np.full_like(weight, np.nan), "1")
    if plan.snapshots:
        group = file.create_group("snapshots")
        create_growing(group, "sample", dtype="i8", unit="sample", chunk=(64,))
        for name, weight in sorted(plan.weights.items()):
            create_growing(group, name, dtype="f8", unit="1", chunk=(1, *weight.shape))
    for name, synapses in sorted(plan.record.hebbian.items()):
        group = file.create_group(f"hebbian/{name}")
        ends = np.array(synapses, dtype=np.int64).reshape(-1, 2)
        create_fixed(group, "target", ends[:, 0], "neuron")
        create_fixed(group, "source", ends[:, 1], "neuron")
        rows = max(1, min(plan.steps, BYTES_PER_CHUNK // (8 * len(synapses))))
        for column in SYNAPSE_COLUMNS:
            create_growing(group, column, dtype="f8", unit="1", chunk=(rows, len(synapses)))
            label_steps(group[column], "synapse")


def create_phases(group: Node, plan: RecordingPlan) -> None:
    """Create the phases as intervals of the steps of a sample."""
    steps: Ints = np.array([phase.steps for phase in plan.schedule], dtype=np.int64)
    stop = np.cumsum(steps)
    names = [phase.name.encode() for phase in plan.schedule]
    create_fixed(group, "name", np.array(names), "text")
    create_fixed(
        group, "beta", np.array([phase.beta for phase in plan.schedule], dtype=np.float64), "1"
    )
    create_fixed(group, "start", stop - steps, "step")
    create_fixed(group, "stop", stop, "step")
    create_fixed(group, "window", np.array([phase.window for phase in plan.schedule]), "step")


def create_fixed(group: Node, name: str, values: Array | Ints | Bytes, unit: str) -> Node:
    """Create a data set with fixed contents."""
    # HDF5 has checksums only for chunked data, and no chunks for empty data sets.
    sums = {"fletcher32": True} if values.ndim and values.size else {}
    data = group.create_dataset(name, data=values, **sums)
    data.attrs["unit"] = unit
    return data


def create_growing(
    group: Node, name: str, *, dtype: str, unit: str, chunk: tuple[int, ...]
) -> None:
    """Create an empty data set that rows are appended to."""
    data = group.create_dataset(
        name,
        shape=(0, *chunk[1:]),
        maxshape=(None, *chunk[1:]),
        dtype=dtype,
        chunks=chunk,
        compression="gzip",
        compression_opts=1,
        shuffle=True,
        fletcher32=True,
    )
    data.attrs["unit"] = unit


def append(data: Node, rows: npt.NDArray[np.number[Any]]) -> None:
    """Append rows to a growing data set."""
    if len(rows):
        held = data.shape[0]
        data.resize(held + len(rows), axis=0)
        # NumPy converts the type faster than HDF5.
        data[held:] = rows.astype(data.dtype, copy=False)
