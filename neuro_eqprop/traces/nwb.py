"""Export of a trace to Neurodata Without Borders (NWB).

Step k of the trace has the time (k + 1/2) dt seconds; samples follow each other. Binary and graded
spikes are Units and signals are TimeSeries in the acquisition, both separate for each sample, so
that no interval between spikes spans two stimuli. Each phase of each sample is a trial and an
epoch; inputs and targets are in the intervals `samples`; weights and synapse histories are in the
processing module `learning`, and the provenance is in the notes.

Columns `segment`, `block` and `_name` follow Neo's own files: Neo reads each sample as a segment.
Its reader does not support dimensionless units, so values are in percent, and rates in hertz.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import create_hdf5
from neuro_eqprop.files.write import atomic
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.simulators.synapse_recording import COLUMNS, Weights
from neuro_eqprop.traces.dataframe import import_optional
from neuro_eqprop.traces.export import metadata, refuse_existing
from neuro_eqprop.traces.schema import TraceError

Part: TypeAlias = Any
"""An object of pynwb, which has no type hints."""

Bools: TypeAlias = npt.NDArray[np.bool_]

UNKNOWN = datetime(1980, 1, 1, tzinfo=timezone.utc)
"""Start time of a run without a date: the earliest day that validators accept."""


def to_nwb(trace: TraceData, path: Path, *, dt: float | None = None) -> Path:
    """Write a .nwb file; a step takes `dt` seconds, or those of the trace."""
    dt = trace.step_seconds if dt is None else dt
    refuse_existing(path)
    if path.suffix != ".nwb":
        raise TraceError(f"{path} does not end in .nwb, as other programs expect")
    if not 0.0 < dt < np.inf:
        raise TraceError(f"{path}: a step cannot take {dt} seconds")
    if not len(trace.index):
        raise TraceError(f"{path}: the trace holds no complete sample to export")
    pynwb = import_optional("pynwb")
    with (
        atomic(path) as temporary,
        create_hdf5(temporary) as data,  # pynwb would warn of the temporary name's ending
        pynwb.NWBHDF5IO(file=data, mode="w") as file,
    ):
        file.write(build(trace, dt=dt))
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
    for sample in range(len(trace.index)):
        for key in sorted(trace.signals):
            made.add_acquisition(series(trace, key, sample, dt=dt))
    add_phases(made, trace, dt=dt)
    made.add_time_intervals(samples(trace, dt=dt))
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


def segment_name(sample: int) -> str:
    """Name of a sample, by its position in the trace."""
    return f"sample {sample}"


PERCENT = {
    "voltage": "membrane potential in percent of the threshold",
    "state": "state in percent of the rate one",
    "drive": "total input of a step in percent of the threshold",
}
"""Signals without a dimension, and what a hundred percent of them is."""


def series(trace: TraceData, key: tuple[str, str], sample: int, *, dt: float) -> Part:
    """TimeSeries of a signal in a sample: a row per step, a column per unit."""
    population, variable = key
    values = trace.signals[key][sample * trace.steps : (sample + 1) * trace.steps]
    if variable == "rate":
        what, unit, scale = "firing rate", "hertz", 1.0 / (dt * trace.origin.steps_per_spike)
    else:
        what, unit, scale = PERCENT.get(variable, f"{variable} in percent"), "percent", 100.0
    return time_series(
        f"{population}.{variable}.sample{sample}",
        f"{what}, of the units of population {population!r}, a column for each",
        scale * values,
        dt=dt,
        unit=unit,
        first=sample * trace.steps,
        comments=json.dumps({"block": trace.origin.backend, "segment": segment_name(sample)}),
    )


def time_series(
    name: str,
    description: str,
    values: Array,
    *,
    dt: float,
    unit: str = "dimensionless",
    first: int = 0,
    **others: str,
) -> Part:
    """TimeSeries with a row per step, the first of which is number `first`."""
    packed = import_optional("hdmf.backends.hdf5.h5_utils").H5DataIO
    return import_optional("pynwb").TimeSeries(
        name=name,
        description=description,
        data=packed(values, compression="gzip", compression_opts=1, shuffle=True),
        unit=unit,
        starting_time=(first + 0.5) * dt,
        rate=1.0 / dt,
        **others,
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


def add_phases(made: Part, trace: TraceData, *, dt: float) -> None:
    """Add a trial and an epoch for each phase of each sample."""
    for name, description in (
        ("_name", "sample, by its position in the trace; Neo's name of the epochs"),
        ("segment", "sample, by its position in the trace; Neo's segment"),
        ("block", "simulator; Neo's block"),
    ):
        made.add_epoch_column(name, description)
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
            made.add_epoch(
                start_time=start,
                stop_time=stop,
                tags=[phase.name],
                _name=f"phases of {segment_name(k)}",
                segment=segment_name(k),
                block=trace.origin.backend,
            )
            made.add_trial(
                start_time=start,
                stop_time=stop,
                phase=phase.name,
                beta=float(phase.beta),
                window_start_time=window,
                sample=int(sample),
                label=int(label),
            )


def samples(trace: TraceData, *, dt: float) -> Part:
    """Time intervals of the samples, with their inputs and targets."""
    starts = trace.steps * dt * np.arange(len(trace.index), dtype=np.float64)
    columns: dict[str, tuple[str, Array | Ints]] = {
        "start_time": ("start of the sample in seconds", starts),
        "stop_time": ("end of the sample in seconds", starts + trace.steps * dt),
        "sample": ("position of the sample in its data set", trace.index),
        "label": ("class of the sample", trace.label),
        "input": ("input data, constant during the sample", trace.inputs),
    }
    if trace.targets is not None:
        columns["target"] = ("values that a nudged phase pulls the output to", trace.targets)
    common = import_optional("hdmf.common")
    return import_optional("pynwb.epoch").TimeIntervals(
        name="samples",
        description="a row for each sample, with its input and target",
        columns=[
            common.VectorData(name=n, description=d, data=flags(v) if v.ndim > 1 else v)
            for n, (d, v) in columns.items()
        ],
        id=list(range(len(trace.index))),
    )


def flags(values: Array | Ints) -> Array | Ints | Bools:
    """Zeros and ones as booleans, which the inspector recommends."""
    return values.astype(bool) if np.isin(values, (0, 1)).all() else values


def units(trace: TraceData, *, dt: float) -> Part:
    """Units table: a row per sample and unit of each population with recorded spikes."""
    column = import_optional("hdmf.common").VectorData
    places, names, numbers, times, values = (
        list(part) for part in zip(*unit_trains(trace, dt), strict=True)
    )
    extents = [trace.steps * dt * np.array([[k, k + 1.0]]) for k in places]
    named = [f"{name}.{number}" for name, number in zip(names, numbers, strict=True)]
    ran = [trace.origin.backend] * len(names)
    columns = [
        # Neo takes the name of a spike train from this column.
        column(name="_name", description="population and unit", data=named),
        column(name="population", description="name of the population", data=names),
        column(name="unit", description="number of the unit in its population", data=numbers),
        column(name="backend", description="simulator that ran the network", data=ran),
        column(name="sample", description="position of the sample in the trace", data=places),
        column(
            name="segment",
            description="sample, by its position in the trace; Neo's segment",
            data=[segment_name(k) for k in places],
        ),
        column(name="block", description="simulator; Neo's block", data=ran),
        *ragged_column("spike_times", "seconds from the start of the trace", times),
        *ragged_column("obs_intervals", "extent of the sample", extents),
    ]
    if any((each != 1.0).any() for each in values):
        columns += ragged_column(
            "payload", "payload of each graded spike, in the order of spike_times", values
        )
    return import_optional("pynwb.misc").Units(
        name="units",
        description="units of the network, a row per sample; times of binary or graded spikes",
        resolution=dt,
        id=list(range(len(names))),
        columns=columns,
        colnames=[each.name for each in columns if not each.name.endswith("_index")],
    )


def unit_trains(trace: TraceData, dt: float) -> Iterator[tuple[int, str, int, Array, Array]]:
    """Sample, population, unit number, spike times and payloads of every unit in every sample."""
    for sample in range(len(trace.index)):
        for name in trace.spikes:
            for unit, (step, value) in enumerate(unit_spikes(trace, name, sample)):
                yield sample, name, unit, (step.astype(np.float64) + 0.5) * dt, value


def unit_spikes(trace: TraceData, layer: str, sample: int) -> list[tuple[Ints, Array]]:
    """Steps and payloads of the spikes of each unit of a layer in a sample."""
    train = trace.spikes[layer]
    limits = trace.steps * np.array([sample, sample + 1])
    here = slice(*np.searchsorted(train.step, limits))
    step, unit, value = train.step[here], train.unit[here], train.value[here]
    order = np.argsort(unit, kind="stable")
    cuts: Ints = np.searchsorted(unit[order], np.arange(1, train.size))
    steps, values = np.split(step[order], cuts), np.split(value[order], cuts)
    return list(zip(steps, values, strict=True))


def ragged_column(name: str, description: str, lists: list[Array]) -> list[Part]:
    """A column with a list in each row, and its index column."""
    common = import_optional("hdmf.common")
    column = common.VectorData(name=name, description=description, data=np.concatenate(lists))
    stops: Ints = np.cumsum([len(each) for each in lists])
    return [common.VectorIndex(name=f"{name}_index", data=stops, target=column), column]
