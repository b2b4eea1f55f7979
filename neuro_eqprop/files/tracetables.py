"""A variable of a trace as a table of pandas or a labelled array of xarray."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.files.tracelayout import TraceError
from neuro_eqprop.traces import Trace

Frame: TypeAlias = Any
"""A pandas DataFrame; pandas need not be installed."""
Labelled: TypeAlias = Any
"""An xarray DataArray; xarray need not be installed."""


def frame(trace: Trace, population: str, variable: str) -> Frame:
    """What was recorded of a variable as a pandas table."""
    pandas = package("pandas")
    phase = np.repeat([p.name for p in trace.schedule], [p.steps for p in trace.schedule])
    if variable == "spikes":
        train = trace.spikes[population]
        sample, step = np.divmod(train.step, trace.steps)
        columns = {"sample": trace.index[sample], "label": trace.label[sample], "step": step}
        columns |= {"unit": train.unit, "value": train.value}
        table = pandas.DataFrame(columns)
        table.insert(2, "phase", pandas.Categorical(phase[step], [p.name for p in trace.schedule]))
        return table
    values = trace.signals[population, variable]
    count = len(trace.index)
    rows = [
        np.repeat(trace.index, trace.steps),
        np.tile(phase, count),
        np.tile(np.arange(trace.steps), count),
    ]
    index = pandas.MultiIndex.from_arrays(rows, names=["sample", "phase", "step"])
    return pandas.DataFrame(values, index, pandas.RangeIndex(values.shape[1], name="unit"))


def labelled(trace: Trace, population: str, variable: str) -> Labelled:
    """What was recorded of a variable as an xarray array."""
    xarray = package("xarray")
    if variable == "spikes":
        train = trace.spikes[population]
        values = np.zeros((len(trace.index) * trace.steps, train.size))
        values[train.step, train.unit] = train.value
    else:
        values = trace.signals[population, variable]
    steps = [phase.steps for phase in trace.schedule]
    return xarray.DataArray(
        values.reshape(len(trace.index), trace.steps, values.shape[1]),
        dims=("sample", "step", "unit"),
        coords={
            "sample": trace.index,
            "label": ("sample", trace.label),
            "phase": ("step", np.repeat([p.name for p in trace.schedule], steps)),
            "beta": ("step", np.repeat([p.beta for p in trace.schedule], steps)),
        },
        name=variable,
        attrs={"population": population, "backend": trace.origin.backend},
    )


def package(name: str) -> ModuleType:
    """A package that only some need; the way to get it where it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise TraceError(
            f"{name} is needed for this and cannot be imported ({error}): "
            "pip install 'neuro_eqprop[nwb]'"
        ) from None
