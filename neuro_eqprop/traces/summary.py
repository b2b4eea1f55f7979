"""Summary of a trace file, for `traces show`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, type_name
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.read import TraceReader
from neuro_eqprop.traces.spike_statistics import spike_statistics
from neuro_eqprop.traces.trace import Trace

PARTS = 40
"""Largest number of points of a summarised time course."""


def trace_summary(path: str | Path) -> dict[str, Any]:
    """Summary of a trace file: data sets, samples, phases, mean rates and spike statistics.

    Parameters
    ----------
    path : str or Path
        A trace file, `.h5`; it may still be written.

    Returns
    -------
    dict
        The fields of `traces show --json`: `data` (name, shape and unit of each data set),
        `samples`, `steps`, `phases`, `populations` (mean rate by phase and over the steps),
        `spike_statistics`, `epochs` of a training, ...

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> _ = model.record(data.test.x[:2], steps=20, out="rates.h5")
    >>> found = ne.trace_summary("rates.h5")
    >>> found["samples"], found["steps"], [each["population"] for each in found["populations"]]
    (2, 20, ['hidden', 'output'])
    """
    if not isinstance(path, str | Path):
        raise TypeError(
            f"trace_summary reads a file, not {type_name(path)}; Trace.save writes a trace to one"
        )
    path = Path(path)
    found = outline(path)
    trace = read(path)
    return found | {
        "complete": trace.complete,
        "samples": len(trace.index),
        "steps": trace.steps,
        "origin": asdict(trace.origin),
        "phases": [asdict(phase) for phase in trace.schedule],
        "connections": list(trace.connections),
        "populations": population_summaries(trace),
        "spike_statistics": [each.to_json() for each in spike_statistics(trace)]
        if len(trace.index)
        else [],
        "step_seconds": trace.step_seconds,
        "max_rate": trace.max_rate,
        "watched": {name: list(log.synapses) for name, log in trace.hebbian.items()},
        "epochs": {name: [finite(v) for v in values] for name, values in trace.epochs.items()},
    }


def outline(path: Path) -> dict[str, Any]:
    """The schema of a file and its data sets: name, shape, unit."""
    found: list[dict[str, Any]] = []

    def add_dataset(name: str, node: object) -> None:
        if isinstance(node, h5py.Dataset):
            unit = str(node.attrs.get("unit", ""))
            found.append({"name": name, "shape": list(node.shape), "unit": unit})

    if path.suffix == ".nwb":
        return {"file": str(path), "schema": "NWB", "data": found}
    with closing(TraceReader.open(path)) as reader, reader.guard():
        reader.file.visititems(add_dataset)
        schema = int(reader.file.attrs.get("schema", 0))
        return {"file": str(path), "schema": schema, "data": found}


def population_summaries(trace: Trace) -> list[dict[str, Any]]:
    """The mean rate of each population by phase and over the steps."""
    found: list[dict[str, Any]] = []
    for name in trace.layers_with_rates if len(trace.index) else ():
        course = trace.time_course(name)
        found.append(
            {
                "population": name,
                "kind": trace.kinds[name].value,
                "units": course.shape[2],
                "events": len(trace.spikes[name].step) if name in trace.spikes else None,
                "rate": {p.name: finite(trace.rate(name, p.name).mean()) for p in trace.schedule},
                "course": [finite(part.mean()) for part in parts(course.mean(axis=(0, 2)))],
            }
        )
    return found


def parts(course: Array) -> list[Array]:
    """The steps split into at most `PARTS` parts."""
    return np.array_split(course, min(PARTS, len(course)))


def finite(value: npt.ArrayLike) -> float | None:
    """A finite number, or None."""
    return float(value) if np.isfinite(value) else None  # type: ignore[arg-type]
