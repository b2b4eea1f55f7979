"""Export of a trace to Neurodata Without Borders (NWB).

Step k of the trace is at k dt seconds. Binary and graded spikes are Units, signals are TimeSeries
in the acquisition, each phase of each sample is a trial, weights and synapse histories are in the
processing module `learning`, and the provenance is in the notes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.dataframe import import_optional
from neuro_eqprop.io.trace.export import metadata, refuse_existing
from neuro_eqprop.io.trace.schema import TraceError
from neuro_eqprop.synapse_recording import COLUMNS, Weights
from neuro_eqprop.traces import TraceData

Part: TypeAlias = Any
"""An object of pynwb, which has no type hints."""

UNKNOWN = datetime(1980, 1, 1, tzinfo=timezone.utc)
"""Start time of a run without a date: the earliest day that validators accept."""


def to_nwb(trace: TraceData, path: Path, *, dt: float) -> Path:
    """Write a .nwb file in which a step takes `dt` seconds."""
    refuse_existing(path)
    if path.suffix != ".nwb":
        raise TraceError(f"{path} does not end in .nwb, as other programs expect")
    if not 0.0 < dt < np.inf:
        raise TraceError(f"{path}: a step cannot take {dt} seconds")
    if not len(trace.index):
        raise TraceError(f"{path}: the trace holds no complete sample to export")
    pynwb = import_optional("pynwb")
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.nwb")
    try:
        with pynwb.NWBHDF5IO(temporary, "w") as file:
            file.write(build(trace, dt=dt))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def build(trace: TraceData, *, dt: float) -> Part:
    """NWB file object with all data."""
    pynwb = import_optional("pynwb")
    notes = json.dumps({"dt": dt, "samples": trace.index.tolist()} | metadata(trace))
    start = start_time(trace)
    state = "" if trace.complete else "; the run did not finish"
    dated = "" if start != UNKNOWN else "; its date is unknown"
    phases = ", ".join(phase.name for phase in trace.schedule)
    made = pynwb.NWBFile(
        session_description=f"{len(trace.index)} samples through the phases {phases}, "
        f"run on {trace.origin.backend}{state}{dated}",
        identifier=hashlib.sha256(notes.encode()).hexdigest(),
        session_start_time=start,
        session_id=trace.origin.network_hash[:16] or None,
        experiment_description="a network trained by equilibrium propagation, simulated",
        notes=notes,
        subject=subject(trace),
    )
    for key in sorted(trace.signals):
        made.add_acquisition(series(trace, key, dt=dt))
    add_trials(made, trace, dt=dt)
    if trace.spikes:
        made.units = units(trace, dt=dt)
    add_learning(made, trace, dt=dt)
    return made


def subject(trace: TraceData) -> Part:
    """Subject, which validators require; it states that there is no animal."""
    return import_optional("pynwb.file").Subject(
        subject_id=f"network-{trace.origin.network_hash[:16] or 'unnamed'}",
        description="a simulated network, not an animal: age and sex have no meaning",
        age="P0D/",
        sex="U",
    )


def start_time(trace: TraceData) -> datetime:
    """Start of the run, in its time zone or else in UTC."""
    try:
        # Python 3.10 does not parse the suffix Z.
        start = datetime.fromisoformat(trace.origin.created.replace("Z", "+00:00"))
    except ValueError:
        return UNKNOWN
    return start if start.tzinfo else start.replace(tzinfo=timezone.utc)


def series(trace: TraceData, key: tuple[str, str], *, dt: float) -> Part:
    """TimeSeries of a signal: a row per step, a column per unit."""
    population, variable = key
    what = f"{variable} of the units of population {population!r}, a column for each"
    return time_series(f"{population}.{variable}", what, trace.signals[key], dt=dt)


def time_series(name: str, description: str, values: Array, *, dt: float) -> Part:
    """TimeSeries of dimensionless values, a row per step."""
    packed = import_optional("hdmf.backends.hdf5.h5_utils").H5DataIO
    return import_optional("pynwb").TimeSeries(
        name=name,
        description=description,
        data=packed(values, compression="gzip", compression_opts=1, shuffle=True),
        unit="dimensionless",
        starting_time=0.0,
        rate=1.0 / dt,
    )


def add_learning(made: Part, trace: TraceData, *, dt: float) -> None:
    """Add weights, synapse histories and epoch metrics as the processing module `learning`."""
    if not (trace.weights or trace.hebbian or trace.epochs):
        return
    what = "weights before and after the run, and histories of recorded synapses"
    module = made.create_processing_module("learning", what)
    for name, weights in trace.weights.items():
        module.add(weight_table(name, weights))
    if trace.epochs:
        columns = {name: (f"{name} of the epoch", values) for name, values in trace.epochs.items()}
        module.add(table("epochs", "a row for each training epoch", columns))
    for name, log in trace.hebbian.items():
        ends: Ints = np.array(log.synapses)
        module.add(table(f"{name}.synapses", f"recorded synapses of {name}", synapse_columns(ends)))
        for column in COLUMNS:
            what = f"{column} of the recorded synapses of {name}, a column for each, in the order"
            what += f" of {name}.synapses"
            module.add(time_series(f"{name}.{column}", what, getattr(log, column), dt=dt))


def weight_table(name: str, weights: Weights) -> Part:
    """Table with a row per weight that is nonzero before or after the run."""
    known = [weights.before] if weights.after is None else [weights.before, weights.after]
    flat = [np.reshape(each, (len(each), -1)) for each in known]
    ends = np.argwhere(np.any(flat, axis=0))
    columns = synapse_columns(ends)
    for when, each in zip(("before", "after"), flat, strict=False):
        columns[f"weight_{when}"] = (f"weight {when} the run", each[ends[:, 0], ends[:, 1]])
    return table(f"{name}.weights", f"weights of {name}; those not listed are zero", columns)


def synapse_columns(ends: Ints) -> dict[str, tuple[str, Array | Ints]]:
    """Target and source units of synapses as table columns."""
    return {
        "target_unit": ("target unit, or row of the weights", ends[:, 0]),
        "source_unit": ("source unit, or index in the row", ends[:, 1]),
    }


def table(name: str, description: str, columns: Mapping[str, tuple[str, Array | Ints]]) -> Part:
    """Table of columns, given with their descriptions."""
    common = import_optional("hdmf.common")
    made = [common.VectorData(name=n, description=d, data=v) for n, (d, v) in columns.items()]
    return common.DynamicTable(
        name=name, description=description, columns=made, id=list(range(len(made[0].data)))
    )


def add_trials(made: Part, trace: TraceData, *, dt: float) -> None:
    """Add a trial for each phase of each sample."""
    for name, description in (
        ("phase", "name of the phase"),
        ("beta", "strength of the nudge in the phase"),
        (
            "window_start_time",
            "rates are measured from here to the end of the phase",
        ),
        ("sample", "position of the sample in its data set"),
        ("label", "class of the sample"),
    ):
        made.add_trial_column(name, description)
    for k, (sample, label) in enumerate(zip(trace.index, trace.label, strict=True)):
        for phase in trace.schedule:
            steps = np.array(trace.span(phase.name)) + k * trace.steps
            start, window, stop = (float(step * dt) for step in steps)
            made.add_trial(
                start_time=start,
                stop_time=stop,
                phase=phase.name,
                beta=float(phase.beta),
                window_start_time=window,
                sample=int(sample),
                label=int(label),
            )


def units(trace: TraceData, *, dt: float) -> Part:
    """Units table: a row per unit of each population with recorded spikes."""
    column = import_optional("hdmf.common").VectorData
    names, numbers, times, values = (
        list(part) for part in zip(*unit_trains(trace, dt), strict=True)
    )
    stop = float(len(trace.index) * trace.steps * dt)
    named = [f"{name}.{number}" for name, number in zip(names, numbers, strict=True)]
    ran = [trace.origin.backend] * len(names)
    columns = [
        # Neo takes the name of a spike train from this column.
        column(name="_name", description="population and unit", data=named),
        column(name="population", description="name of the population", data=names),
        column(name="unit", description="number of the unit in its population", data=numbers),
        column(name="backend", description="simulator that ran the network", data=ran),
        *ragged_column("spike_times", "seconds from the start of the trace", times),
        *ragged_column(
            "obs_intervals", "extent of the trace", [np.array([[0.0, stop]])] * len(names)
        ),
    ]
    if any((each != 1.0).any() for each in values):
        columns += ragged_column(
            "payload", "payload of each graded spike, in the order of spike_times", values
        )
    return import_optional("pynwb.misc").Units(
        name="units",
        description="units of the network; times of binary or graded spikes",
        resolution=dt,
        id=list(range(len(names))),
        columns=columns,
        colnames=[each.name for each in columns if not each.name.endswith("_index")],
    )


def unit_trains(trace: TraceData, dt: float) -> Iterator[tuple[str, int, Array, Array]]:
    """Population, unit number, spike times and payloads of every unit."""
    for name, train in trace.spikes.items():
        order = np.argsort(train.unit, kind="stable")
        cuts: Ints = np.searchsorted(train.unit[order], np.arange(1, train.size))
        times = np.split(train.step[order] * dt, cuts)
        values = np.split(train.value[order], cuts)
        for unit in range(train.size):
            yield name, unit, times[unit], values[unit]


def ragged_column(name: str, description: str, lists: list[Array]) -> list[Part]:
    """A column with a list in each row, and its index column."""
    common = import_optional("hdmf.common")
    column = common.VectorData(name=name, description=description, data=np.concatenate(lists))
    stops: Ints = np.cumsum([len(each) for each in lists])
    return [common.VectorIndex(name=f"{name}_index", data=stops, target=column), column]
