"""Export of a trace as a NumPy archive or as CSV tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.files.arrays import write_npz
from neuro_eqprop.files.write import atomic, make_folder, new_file
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.simulators.synapse_recording import COLUMNS, SynapseLog, Weights
from neuro_eqprop.traces.schema import TraceError

Table: TypeAlias = tuple[Sequence[str], Iterable[Iterable[object]]]
"""Header and rows."""


def to_npz(trace: TraceData, path: Path) -> Path:
    """Write a .npz file with the names of the HDF5 schema; `about` holds the metadata as JSON."""
    refuse_existing(path)
    arrays: dict[str, npt.ArrayLike] = {
        "about": json.dumps(metadata(trace)),
        "samples/index": trace.index,
        "samples/label": trace.label,
        "samples/input": trace.inputs,
        "time": trace.time,
    }
    if trace.targets is not None:
        arrays["samples/target"] = trace.targets
    for name, events in trace.spikes.items():
        for column in ("step", "unit", "value"):
            arrays[f"spikes/{name}/{column}"] = getattr(events, column)
    for (name, variable), values in trace.signals.items():
        arrays[f"signals/{name}/{variable}"] = values
    for name, weights in trace.weights.items():
        arrays[f"weights/{name}/before"] = weights.before
        if weights.after is not None:
            arrays[f"weights/{name}/after"] = weights.after
    for name, log in trace.hebbian.items():
        ends = np.array(log.synapses)
        arrays |= {f"hebbian/{name}/target": ends[:, 0], f"hebbian/{name}/source": ends[:, 1]}
        arrays |= {f"hebbian/{name}/{column}": getattr(log, column) for column in COLUMNS}
    arrays |= {f"epochs/{name}": values for name, values in trace.epochs.items()}
    if len(trace.snapshots):
        arrays["snapshots/sample"] = trace.snapshots.sample
        arrays |= {f"snapshots/{name}": w for name, w in trace.snapshots.weights.items()}
    write_npz(path, arrays, compressed=True)
    return path


def to_csv(trace: TraceData, folder: Path) -> list[Path]:
    """Write a folder of tables: phases, samples, and one per signal, spike train, connection."""
    refuse_existing(folder)
    with atomic(folder) as temporary:
        make_folder(temporary)
        for name, (header, rows) in tables(trace).items():
            with new_file(temporary / f"{name}.csv") as file:
                text = TextIOWrapper(file, encoding="utf-8", newline="")
                writer = csv.writer(text)
                writer.writerow(header)
                writer.writerows(rows)
                text.detach()  # writes the rest
    return sorted(folder.iterdir())


def tables(trace: TraceData) -> dict[str, Table]:
    """Header and rows of every table, by name."""
    starts = trace.steps * np.arange(len(trace.index))
    spans = [(phase, trace.span(phase.name)) for phase in trace.schedule]
    seconds = trace.step_seconds
    made: dict[str, Table] = {
        "phases": (
            ["name", "beta", "start", "stop", "window", "start_seconds", "stop_seconds"],
            [
                (p.name, p.beta, start, stop, p.window, start * seconds, stop * seconds)
                for p, (start, _, stop) in spans
            ],
        ),
        "samples": (
            ["index", "label", "start", "stop"],
            zip(trace.index, trace.label, starts, starts + trace.steps, strict=True),
        ),
        "inputs": (
            ["index", *(f"feature {k}" for k in range(trace.inputs.shape[1]))],
            ((index, *row) for index, row in zip(trace.index, trace.inputs, strict=True)),
        ),
    }
    if trace.targets is not None:
        made["targets"] = (
            ["index", *(f"class {k}" for k in range(trace.targets.shape[1]))],
            ((index, *row) for index, row in zip(trace.index, trace.targets, strict=True)),
        )
    for name, events in trace.spikes.items():
        columns = (events.step, (events.step + 0.5) * seconds, events.unit, events.value)
        header = ["step", "seconds", "unit", "value"]
        made[f"spikes.{name}"] = (header, zip(*columns, strict=True))
    for (name, variable), values in trace.signals.items():
        header = ["step", "seconds", *(f"unit {k}" for k in range(values.shape[1]))]
        rows = ((k, (k + 0.5) * seconds, *row) for k, row in enumerate(values))
        made[f"{variable}.{name}"] = (header, rows)
    if trace.epochs:
        made["epochs"] = (list(trace.epochs), zip(*trace.epochs.values(), strict=True))
    # Some file systems do not allow an arrow in a file name.
    for name, weights in trace.weights.items():
        made[f"weights.{name.replace('->', '-to-')}"] = weight_table(weights)
    for name, log in trace.hebbian.items():
        made[f"hebbian.{name.replace('->', '-to-')}"] = synapse_table(log)
    return made


def weight_table(weights: Weights) -> Table:
    """A row per weight: its index, its value before the run and, if known, after it."""
    before = weights.before
    place = ["target", "source"] if before.ndim == 2 else [f"axis {k}" for k in range(before.ndim)]
    columns = [before] if weights.after is None else [before, weights.after]
    rows = ((*at, *(each[at] for each in columns)) for at in np.ndindex(*before.shape))
    return [*place, "before", "after"][: before.ndim + len(columns)], rows


def synapse_table(log: SynapseLog) -> Table:
    """A row per step and recorded synapse."""
    columns = [getattr(log, column) for column in COLUMNS]
    rows = (
        (step, *synapse, *(column[step, k] for column in columns))
        for step in range(len(log.pre))
        for k, synapse in enumerate(log.synapses)
    )
    return ["step", "target", "source", *COLUMNS], rows


def metadata(trace: TraceData) -> dict[str, object]:
    """Everything that is not an array."""
    return {
        "origin": asdict(trace.origin),
        "phases": [asdict(phase) for phase in trace.schedule],
        "kinds": {name: kind.value for name, kind in trace.kinds.items()},
        "connections": list(trace.connections),
        "complete": trace.complete,
    }


def refuse_existing(path: Path) -> None:
    """Raise `TraceError` if the path exists."""
    if path.exists():
        raise TraceError(f"{path} exists already; choose another path to export to")
