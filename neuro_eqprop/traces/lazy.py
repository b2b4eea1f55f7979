"""Traces in files: opened lazily, read completely, or followed while they are written."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError, type_name
from neuro_eqprop.simulators.recordings import Recording, SpikeTrain, TraceData
from neuro_eqprop.simulators.synapse_recording import COLUMNS, HEBBIAN, SynapseLog, Weights
from neuro_eqprop.traces.dataframe import Frame, Labelled
from neuro_eqprop.traces.lazy_arrays import LazyArray, LazyMapping
from neuro_eqprop.traces.read import ALL, EVENT, MAX_SIZE, TraceReader
from neuro_eqprop.traces.synapses import read_snapshots, read_synapses, read_weights
from neuro_eqprop.traces.trace import Trace, only


def open_trace(path: str | Path) -> FileTrace:
    """Open a trace file; arrays are read when they are indexed.

    Parameters
    ----------
    path : str or Path
        HDF5 file that `neuro-eqprop simulate --traces` or `Trace.save` wrote. While it is still
        being written, the trace holds the samples that were complete when it was opened.

    Returns
    -------
    FileTrace
        A `Trace`. It stays usable until it is closed: by its `close`, at the end of a `with`
        block, or with the last reference to it or to one of its arrays.

    Examples
    --------
    >>> trace = open_trace(example_trace)
    >>> trace.layers
    ('hidden', 'output')
    >>> trace.signals["output", "voltage"][:2, 0].shape
    (2,)
    >>> with open_trace(example_trace) as trace:
    ...     trace.rate("output", "free").shape
    (6, 10)

    """
    path = Path(path)
    reader = TraceReader.open(path)
    try:
        with reader.guard():
            return file_trace(reader)
    except BaseException:
        reader.close()
        raise


def file_trace(reader: TraceReader) -> FileTrace:
    """Trace of an open file, of its complete samples."""
    schedule = reader.schedule()
    kinds, sizes = reader.populations()
    steps = sum(phase.steps for phase in schedule)
    samples = reader.samples(steps)

    def rows(name: str, length: int, *, kind: str = "f", ndim: int = 2) -> Array:
        return LazyArray(reader, reader.data(name, kind=kind, ndim=ndim), length).typed()

    def train(name: str) -> SpikeTrain:
        stops = reader.ints(f"spikes/{name}/stop", samples)
        count = int(stops[-1]) if len(stops) else 0
        step, unit, value = (
            rows(f"spikes/{name}/{column}", count, kind="iuf", ndim=1) for column in EVENT
        )
        return SpikeTrain(cast("Ints", step), cast("Ints", unit), value, sizes.get(name, 0))

    def log(name: str) -> SynapseLog:
        columns = (rows(f"{HEBBIAN}/{name}/{c}", samples * steps) for c in COLUMNS)
        return SynapseLog(read_synapses(reader, name), *columns)

    def weights(name: str) -> Weights:
        with reader.guard():
            return read_weights(reader, name)

    return FileTrace(
        origin=reader.origin(),
        schedule=schedule,
        kinds=kinds,
        connections=tuple(str(each) for each in reader.json(reader.file, "connections", list)),
        index=reader.ints("samples/index", samples),
        label=reader.ints("samples/label", samples),
        inputs=rows("samples/input", samples),
        spikes={name: train(name) for name in reader.names("spikes")},
        signals={
            (name, variable): rows(f"signals/{name}/{variable}", samples * steps)
            for name in reader.names("signals")
            for variable in reader.names(f"signals/{name}")
        },
        counts=reader.counts(schedule, list(kinds)),
        complete=reader.complete,
        weights=LazyMapping(
            "connection with recorded weights", tuple(reader.names("weights")), weights
        ),
        hebbian={name: log(name) for name in reader.names(HEBBIAN)},
        epochs=reader.epochs(),
        targets=rows("samples/target", samples) if reader.holds("samples/target") else None,
        snapshots=read_snapshots(reader),
        rule=reader.rule(samples),
        announced=reader.announced,
        unit_counts=sizes,
        reader=reader,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FileTrace(Trace):
    """A `Trace` in an HDF5 file: its arrays are read from the disk when they are indexed."""

    announced: int
    """Number of samples that the run will record."""
    unit_counts: Mapping[str, int]
    reader: TraceReader = field(repr=False)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.reader.path

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of units of every layer."""
        return self.unit_counts

    def __repr__(self) -> str:
        return f"<Trace {self.path} {self._summary()}>"

    def __enter__(self) -> FileTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; arrays in memory stay usable."""
        self.reader.close()

    def pandas(self, name: str, variable: str, samples: slice = ALL) -> Frame:
        """Former name of `to_pandas`."""
        warnings.warn("Trace.pandas is now Trace.to_pandas", DeprecationWarning, stacklevel=2)
        return self.to_pandas(name, variable, samples)

    def xarray(self, name: str, variable: str, samples: slice = ALL) -> Labelled:
        """Former name of `to_xarray`."""
        warnings.warn("Trace.xarray is now Trace.to_xarray", DeprecationWarning, stacklevel=2)
        return self.to_xarray(name, variable, samples)

    def time_course(self, layer: str) -> Array:
        """Activity of a layer at every step (samples, steps, units), as `Trace.time_course`."""
        variable = self._kind(layer).variables[0]
        return self.load(only(layer, variable)).time_course(layer)

    def recording(self, sample: int) -> Recording:
        """Everything recorded of one sample, by its position in this trace."""
        return self.load(samples=slice(sample, sample + 1)).recording(0)

    def _load_spikes(self, layer: str, part: range) -> SpikeTrain:
        if layer not in self.spikes:
            raise UnknownNameError(f"layer with spikes in {self.path}", layer, self.spikes)
        size = self.sizes.get(layer, 0)
        if size < 1 or size * len(part) * self.steps > MAX_SIZE:
            raise self.reader.refuse(f"{layer!r} claims {size} units in {len(part)} samples")
        with self.reader.guard():
            return self.reader.spikes(layer, size, part=part, steps=self.steps)

    def _load_signal(self, key: tuple[str, str], rows: slice) -> Array:
        values = super()._load_signal(key, rows)
        if values.shape[1] != self.sizes.get(key[0]):
            raise self.reader.refuse(f"signal {'/'.join(key)} has {values.shape[1]} columns")
        return values

    def _load_synapses(self, connection: str, rows: slice) -> SynapseLog:
        log = super()._load_synapses(connection, rows)
        if any(getattr(log, column).shape[1] != len(log.synapses) for column in COLUMNS):
            count = len(log.synapses)
            raise self.reader.refuse(f"{connection!r} has no column for each of {count} synapses")
        return log


def read(path: str | Path) -> Trace:
    """Read a complete trace into memory; of an unfinished one the complete samples.

    Of an NWB file, its spike trains.
    """
    if Path(path).suffix == ".nwb":
        return Trace.from_nwb(path)
    with open_trace(path) as trace:
        return trace.load()


def loaded(source: str | Path | TraceData, caller: str) -> TraceData:
    """Trace in memory, of a trace or its file; `caller` is the function that messages name."""
    if isinstance(source, (str, Path)):
        return read(source)
    if not isinstance(source, TraceData | Trace):
        raise TypeError(f"{caller} takes a trace or its file, not {type_name(source)}")
    return source.load() if isinstance(source, Trace) else source


@dataclass(frozen=True, slots=True)
class TraceProgress:
    """Progress of a run, from the trace that it is writing."""

    trace: Trace
    """The last samples."""
    taken: int
    """Number of complete samples."""
    announced: int
    """Number of samples that the run will record."""
    epochs: int
    """Number of epochs that the run will train; 0 if it does not train."""


def read_progress(path: Path, *, last: int) -> TraceProgress:
    """Last samples of a trace that may still be growing, and the progress of its run."""
    with open_trace(path) as trace:
        recent = trace.load(samples=slice(max(0, trace.samples - last), None))
        return TraceProgress(recent, trace.samples, trace.announced, trace.reader.announced_epochs)
