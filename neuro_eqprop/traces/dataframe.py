"""A variable of a trace as a pandas DataFrame or an xarray DataArray."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.simulators.synapse_recording import COLUMNS, HEBBIAN
from neuro_eqprop.traces.schema import TraceError

Frame: TypeAlias = Any
"""A pandas DataFrame; pandas need not be installed."""
Labelled: TypeAlias = Any
"""An xarray DataArray; xarray need not be installed."""


TIME_UNITS = {"time": "s"}
"""Units of the columns and index levels that have one."""


def to_pandas(trace: TraceData, population: str, variable: str) -> Frame:
    """A recorded variable as a pandas DataFrame."""
    pandas = import_optional("pandas")
    phase = np.repeat([p.name for p in trace.schedule], [p.steps for p in trace.schedule])
    if variable == "spikes":
        train = trace.spikes[population]
        sample, step = np.divmod(train.step, trace.steps)
        columns = {"sample": trace.index[sample], "label": trace.label[sample], "step": step}
        columns |= {"time": trace.time[step], "unit": train.unit, "value": train.value}
        table = pandas.DataFrame(columns)
        table.attrs["units"] = TIME_UNITS
        table.insert(2, "phase", pandas.Categorical(phase[step], [p.name for p in trace.schedule]))
        return table
    if variable == HEBBIAN:
        log = trace.hebbian[population]
        values = np.concatenate([getattr(log, column) for column in COLUMNS], axis=1)
        across = pandas.MultiIndex.from_tuples(
            [(*synapse, column) for column in COLUMNS for synapse in log.synapses],
            names=["target", "source", "value"],
        )
    else:
        values = trace.signals[population, variable]
        across = pandas.RangeIndex(values.shape[1], name="unit")
    count = len(trace.index)
    rows = [
        np.repeat(trace.index, trace.steps),
        np.tile(phase, count),
        np.tile(np.arange(trace.steps), count),
        np.tile(trace.time, count),
    ]
    index = pandas.MultiIndex.from_arrays(rows, names=["sample", "phase", "step", "time"])
    frame = pandas.DataFrame(values, index, across)
    frame.attrs["units"] = TIME_UNITS
    return frame


def to_xarray(trace: TraceData, population: str, variable: str) -> Labelled:
    """A recorded variable as an xarray DataArray."""
    xarray = import_optional("xarray")
    if variable == HEBBIAN:
        return synapses_to_xarray(trace, population)
    if variable == "spikes":
        train = trace.spikes[population]
        values = np.zeros((len(trace.index) * trace.steps, train.size))
        values[train.step, train.unit] = train.value
    else:
        values = trace.signals[population, variable]
    return xarray.DataArray(
        values.reshape(len(trace.index), trace.steps, values.shape[1]),
        dims=("sample", "step", "unit"),
        coords=coordinates(trace),
        name=variable,
        attrs={"population": population} | attributes(trace),
    )


def coordinates(trace: TraceData) -> dict[str, object]:
    """Coordinates along samples and steps."""
    steps = [phase.steps for phase in trace.schedule]
    return {
        "sample": trace.index,
        "label": ("sample", trace.label),
        "time": ("step", trace.time, {"units": "s", "long_name": "time in the sample"}),
        "phase": ("step", np.repeat([p.name for p in trace.schedule], steps)),
        "beta": ("step", np.repeat([p.beta for p in trace.schedule], steps)),
    }


def attributes(trace: TraceData) -> dict[str, object]:
    """Attributes of an array of values without a unit."""
    return {"backend": trace.origin.backend, "step_seconds": trace.step_seconds, "units": "1"}


def synapses_to_xarray(trace: TraceData, connection: str) -> Labelled:
    """Synapse histories as a DataArray (value, sample, step, synapse)."""
    log = trace.hebbian[connection]
    target, source = zip(*log.synapses, strict=True)
    shape = (len(trace.index), trace.steps, len(log.synapses))
    ends = {"target": ("synapse", list(target)), "source": ("synapse", list(source))}
    return import_optional("xarray").DataArray(
        np.stack([getattr(log, column).reshape(shape) for column in COLUMNS]),
        dims=("value", "sample", "step", "synapse"),
        coords={"value": list(COLUMNS), **coordinates(trace), **ends},
        name=HEBBIAN,
        attrs={"connection": connection} | attributes(trace),
    )


def import_optional(name: str) -> ModuleType:
    """Import an optional dependency; the error says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise TraceError(
            f"{name} is needed for this and cannot be imported ({error}): "
            "pip install 'neuro_eqprop[nwb]'"
        ) from None
