"""A trace file that stays open: arrays read from the disk when they are indexed, tables of parts.

Of a file that is still being written these are the samples that were whole when it was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.io.trace.dataframe import Frame, Labelled, to_pandas, to_xarray
from neuro_eqprop.io.trace.lazy_arrays import LazyArray, LazySpikeTrain, LazySynapseLog, read_errors
from neuro_eqprop.io.trace.read import ALL, EVENT, MAX_SIZE, TraceReader, open_hdf5
from neuro_eqprop.io.trace.synapses import read_all_weights, read_synapses
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.synapse_recording import COLUMNS, HEBBIAN, SynapseLog, Weights
from neuro_eqprop.traces import ActivityKind, Counts, Origin, Record, SpikeTrain, Trace


def open_trace(path: str | Path) -> OpenTrace:
    """Open a trace; nothing but its description is read. Close it, or use it in a `with` block."""
    path = Path(path)
    with ExitStack() as stack:
        source = TraceReader(path, stack.enter_context(open_hdf5(path)))
        schedule = source.schedule()
        kinds, sizes = source.populations()
        steps = sum(phase.steps for phase in schedule)
        samples = source.samples(steps)
        return OpenTrace(
            path=path,
            origin=source.origin(),
            schedule=schedule,
            kinds=kinds,
            sizes=sizes,
            connections=tuple(str(each) for each in source.json(source.file, "connections", list)),
            index=source.ints("samples/index", samples),
            label=source.ints("samples/label", samples),
            inputs=LazyArray(path, source.data("samples/input", kind="f", ndim=2), samples),
            spikes={name: events(source, name, samples) for name in source.names("spikes")},
            signals={
                (name, variable): LazyArray(
                    path,
                    source.data(f"signals/{name}/{variable}", kind="f", ndim=2),
                    samples * steps,
                )
                for name in source.names("signals")
                for variable in source.names(f"signals/{name}")
            },
            counts=source.counts(schedule, list(kinds)),
            complete=source.complete,
            announced=source.announced,
            hebbian={
                name: watched(source, name, samples * steps) for name in source.names(HEBBIAN)
            },
            _source=source,
            _stack=stack.pop_all(),
        )


def events(source: TraceReader, name: str, samples: int) -> LazySpikeTrain:
    """The events of a population up to the end of its last whole sample."""
    stops = source.ints(f"spikes/{name}/stop", samples)
    held = int(stops[-1]) if len(stops) else 0
    step, unit, value = (
        LazyArray(source.path, source.data(f"spikes/{name}/{column}", kind="iuf", ndim=1), held)
        for column in EVENT
    )
    return LazySpikeTrain(step, unit, value)


def watched(source: TraceReader, name: str, rows: int) -> LazySynapseLog:
    """The synapses of a connection that are watched, up to the end of the last whole sample."""
    columns = (source.data(f"{HEBBIAN}/{name}/{c}", kind="f", ndim=2) for c in COLUMNS)
    return LazySynapseLog(
        read_synapses(source, name), *(LazyArray(source.path, c, rows) for c in columns)
    )


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """An open trace; its fields are those of `Trace`, its arrays stay on the disk until indexed."""

    path: Path
    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    sizes: Mapping[str, int]
    connections: tuple[str, ...]
    index: Ints
    label: Ints
    inputs: LazyArray
    spikes: Mapping[str, LazySpikeTrain]
    signals: Mapping[tuple[str, str], LazyArray]
    counts: Mapping[tuple[str, str], Counts]
    complete: bool
    announced: int
    """How many samples the run set out to record."""
    hebbian: Mapping[str, LazySynapseLog]
    _source: TraceReader = field(repr=False)
    _stack: ExitStack = field(repr=False)

    def __enter__(self) -> OpenTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; what was read stays."""
        self._stack.close()

    @property
    def weights(self) -> dict[str, Weights]:
        """By connection, before the run and after it; read each time that they are asked for."""
        with read_errors(self.path, self._source.file):
            return read_all_weights(self._source)

    @property
    def epochs(self) -> dict[str, Array]:
        """Of a training, its numbers after each epoch, by name."""
        with read_errors(self.path, self._source.file):
            return self._source.epochs()

    @property
    def steps(self) -> int:
        """Steps of one sample, over all phases."""
        return sum(phase.steps for phase in self.schedule)

    def load(self, record: Record | None = None, samples: slice = ALL) -> Trace:
        """In memory: everything or what `record` names, of all samples or of some in a row."""
        told = {name: each.synapses for name, each in self.hebbian.items()}
        chosen = record or Record(frozenset(self.spikes), frozenset(self.signals), told)
        part = range(len(self.index))[samples]
        if part.step != 1:
            raise ValueError(f"{self.path}: samples are read in a row, not in steps of {part.step}")
        part = range(part.start, max(part.start, part.stop))
        rows = slice(part.start * self.steps, part.stop * self.steps)
        return Trace(
            origin=self.origin,
            schedule=self.schedule,
            kinds=self.kinds,
            connections=self.connections,
            index=self.index[samples],
            label=self.label[samples],
            inputs=np.asarray(self.inputs[samples], dtype=np.float64),
            spikes={name: self._train(name, part) for name in sorted(chosen.spikes)},
            signals={key: self._values(key, rows) for key in sorted(chosen.signals)},
            counts=self.counts,
            complete=self.complete,
            weights=self.weights,
            hebbian={name: self._story(name, rows) for name in sorted(chosen.hebbian)},
            epochs=self.epochs,
        )

    def _story(self, name: str, rows: slice) -> SynapseLog:
        if name not in self.hebbian:
            raise UnknownNameError(f"watched connection in {self.path}", name, self.hebbian)
        return self.hebbian[name].part(rows)

    def _train(self, name: str, part: range) -> SpikeTrain:
        if name not in self.spikes:
            raise UnknownNameError(f"spikes in {self.path}: population", name, self.spikes)
        size = self.sizes.get(name, 0)
        if size < 1 or size * len(part) * self.steps > MAX_SIZE:
            raise self._source.refuse(f"{name!r} claims {size} units in {len(part)} samples")
        with read_errors(self.path, self._source.file):
            return self._source.spikes(name, size, part=part, steps=self.steps)

    def _values(self, key: tuple[str, str], rows: slice) -> Array:
        if key not in self.signals:
            known = [":".join(each) for each in self.signals]
            raise UnknownNameError(f"signal in {self.path}", ":".join(key), known)
        values = np.asarray(self.signals[key][rows], dtype=np.float64)
        if values.shape[1] != self.sizes.get(key[0]):
            raise self._source.refuse(f"signal {'/'.join(key)} has {values.shape[1]} columns")
        return values

    def rate(self, population: str, phase: str) -> Array:
        """The rate in a phase (samples, units), as the kind of the population says."""
        if population not in self.kinds:
            raise UnknownNameError("population", population, self.kinds)
        names = [each.name for each in self.schedule]
        if phase not in names:
            raise UnknownNameError("phase", phase, names)
        variable = "rate" if self.kinds[population] is ActivityKind.RATE else "spikes"
        return self.load(only(population, variable)).rate(population, phase)

    def pandas(self, population: str, variable: str, samples: slice = ALL) -> Frame:
        """A table: of `spikes` a row for each event, of a signal steps down and units across.

        Of `hebbian` of a connection steps down, and its watched synapses and their values across.
        """
        return to_pandas(self.load(only(population, variable), samples), population, variable)

    def xarray(self, population: str, variable: str, samples: slice = ALL) -> Labelled:
        """An array (sample, step, unit) with labels; of `spikes` 0 where silent."""
        return to_xarray(self.load(only(population, variable), samples), population, variable)


def only(population: str, variable: str) -> Record:
    """That one variable of that one population."""
    if variable == "spikes":
        return Record(frozenset({population}))
    if variable == HEBBIAN:
        return Record(hebbian={population: ()})
    return Record(signals=frozenset({(population, variable)}))
