"""Writing of traces to HDF5, sample by sample; readable while they grow and after a crash.

The layout (see `neuro_eqprop.traces.schema`) is created under a temporary name and renamed when
it can be read; from then on readers can follow it (SWMR).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import Node, create_hdf5, leave_open
from neuro_eqprop.files.lock import FileLock, LockedError
from neuro_eqprop.files.read import one_line
from neuro_eqprop.files.write import (
    WriteError,
    check_space,
    refuse_existing,
    remove,
    rename,
    temporary_name,
)
from neuro_eqprop.simulators.recordings import (
    Counts,
    Record,
    Recording,
    RecordingPlan,
    TraceData,
    spike_train,
)
from neuro_eqprop.simulators.synapse_recording import COLUMNS, SynapseLog
from neuro_eqprop.traces.append_buffer import WRITE_ERRORS, AppendBuffer
from neuro_eqprop.traces.schema import TraceError, check_names, create_layout
from neuro_eqprop.traces.verify import verify_written


def write(path: Path, trace: TraceData, *, overwrite: bool) -> None:
    """Write a trace in memory to a file."""
    sizes = trace.sizes
    synapses = {name: log.synapses for name, log in trace.hebbian.items()}
    record = Record(frozenset(trace.spikes), frozenset(trace.signals), synapses)
    after = {n: w.after for n, w in trace.weights.items() if w.after is not None}
    plan = RecordingPlan(
        trace.origin,
        trace.schedule,
        {name: trace.kinds[name] for name in sizes},
        sizes,
        trace.connections,
        trace.index,
        trace.label,
        trace.inputs,
        record,
        {name: weights.before for name, weights in trace.weights.items()},
        bool(after),
        dict.fromkeys(trace.epochs, "1"),
        len(next(iter(trace.epochs.values()), ())),
        trace.targets,
        tuple(trace.snapshots.sample.tolist()),
        trace.rule,
    )
    with Writer(path, plan, overwrite=overwrite) as writer:
        for k in range(len(trace.index)):
            writer.sample(k, trace.recording(k))
        writer.counts({key: counts for key, counts in trace.counts.items() if key[0] in sizes})
        writer.weights(after)
        for k, sample in enumerate(trace.snapshots.sample.tolist()):
            writer.snapshot(sample, {n: w[k] for n, w in trace.snapshots.weights.items()})
        for row in zip(*trace.epochs.values(), strict=True):
            writer.epoch(dict(zip(trace.epochs, map(float, row), strict=True)))


COUNTED = np.arange(1, 128)
"""Values of binary spikes: how many fell in one step, 1 unless a step is longer than a neuron's
refractory period."""
Replay: TypeAlias = Callable[["Writer"], None]
"""Writes what an earlier part of the run recorded."""


class Writer:
    """A sink that writes to a file; use it in a `with` block.

    The end of the block reads the file again and marks it complete if it holds what was written.
    After an error the file is renamed to `NAME.partial` (still readable), or removed if it holds no
    sample. A file that is overwritten stays as `NAME.before` until the new one is complete, and
    comes back after an error. `earlier` writes what an earlier part of a resumed run recorded; the
    file that it reads is replaced after that.
    """

    def __init__(
        self, path: Path, plan: RecordingPlan, *, overwrite: bool, earlier: Replay | None = None
    ) -> None:
        if path.exists() and not overwrite:
            raise TraceError(f"{path} exists already; choose another file, or overwrite=True")
        refuse_existing(path, force=True)
        check_names(path, plan)
        self.path, self.plan, self.taken, self._earlier = path, plan, 0, earlier
        self._lock = FileLock(path.with_name(f".{path.name}.lock"))
        self._file: Node = None
        self._buffer = AppendBuffer(None, path)
        self._events = dict.fromkeys(plan.record.spikes, 0)

    @property
    def partial(self) -> Path:
        """Where the file is kept after an error."""
        return self.path.with_name(f"{self.path.name}.partial")

    @property
    def before(self) -> Path:
        """Where a file that is overwritten is kept until the new one is complete."""
        return self.path.with_name(f"{self.path.name}.before")

    def __enter__(self) -> Writer:
        hidden = temporary_name(self.path)
        try:
            self._lock.__enter__()
        except LockedError as error:
            raise TraceError(
                f"{self.path} is being written by {error.owner or 'another process'}; wait until "
                f"it has ended, or choose another file"
            ) from None
        except OSError as error:
            raise TraceError(f"{self.path} cannot be written: {error}") from None
        try:
            check_space(self.path, self.plan.fixed_bytes)
            self._file = create_hdf5(hidden, libver="latest")
            create_layout(self._file, self.plan)
            self._file.swmr_mode = True
            self._buffer = AppendBuffer(self._file, hidden)
            if self._earlier is not None:
                self._earlier(self)
                self._buffer.write()
            elif self.path.is_file() and not self.before.exists():
                rename(self.path, self.before)
            rename(hidden, self.path)
            self._buffer.moved(self.path)
        except (OSError, RuntimeError) as error:
            if self._file is not None and not isinstance(error, WriteError):
                leave_open(self._file)
            self._lock.__exit__(None, None, None)
            raise TraceError(f"{self.path} cannot be written: {error}") from None
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        finally:
            remove(hidden)
        return self

    def sample(self, index: int, recording: Recording) -> None:
        """Store the recording of sample `index`; it is written within a second."""
        if index != self.taken:
            raise TraceError(f"{self.path}: sample {index} arrived where {self.taken} was expected")
        if index >= len(self.plan.index):
            raise TraceError(f"{self.path}: only {len(self.plan.index)} samples were announced")
        rows = self._rows(index, recording)
        with self._writing():
            self._buffer.add(rows)
        self.taken += 1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A context in which errors of the disk become a `TraceError` that says what is kept."""
        try:
            yield
        except WRITE_ERRORS as error:
            if isinstance(error, TraceError):
                raise
            kept, wanted = self._buffer.rows.get("samples/stop", 0), len(self.plan.index)
            where = f"{self.partial} keeps the first {kept}" if kept else "nothing is kept"
            raise TraceError(
                f"{self.path} cannot be written: {one_line(error)}; {where} of {wanted} samples"
            ) from error

    def _rows(self, index: int, recording: Recording) -> dict[str, Array | Ints]:
        first = index * self.plan.steps
        rows: dict[str, Array | Ints] = {}
        for name, variable in self.plan.record.signals:
            rows[f"signals/{name}/{variable}"] = self._shaped(
                recording.signals[name, variable], name
            )
        for name in self.plan.record.spikes:
            events = spike_train(self._shaped(recording.spikes[name], name), first)
            if self.plan.kinds[name].binary and not np.isin(events.value, COUNTED).all():
                raise TraceError(
                    f"{self.path}: a binary spike of {name!r} has a payload, not a number of spikes"
                )
            self._events[name] += len(events.step)
            for column in ("step", "unit", "value"):
                rows[f"spikes/{name}/{column}"] = getattr(events, column)
            rows[f"spikes/{name}/stop"] = np.array([self._events[name]])
        for name in self.plan.record.hebbian:
            log = self._log(name, recording)
            rows |= {f"hebbian/{name}/{column}": getattr(log, column) for column in COLUMNS}
        # Last: a sample counts as complete when these are written.
        rows["samples/start"] = np.array([first])
        rows["samples/stop"] = np.array([first + self.plan.steps])
        return rows

    def counts(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Write the event counts by population and phase, once they are known."""
        tables: dict[str, Array | Ints] = {}
        for (population, phase), each in counts.items():
            empty = np.zeros((len(self.plan.kinds), len(astuple(each))), dtype=np.int64)
            table = tables.setdefault(f"counts/{phase}", empty)
            table[list(self.plan.kinds).index(population)] = astuple(each)
        with self._writing():
            self._buffer.put(tables)
            self._buffer.write()

    def weights(self, after: Mapping[str, Array]) -> None:
        """Write the current weights of a run that learns; the last ones are those after the run."""
        for name, weight in after.items():
            before = self.plan.weights.get(name)
            if before is None or not self.plan.learns:
                raise TraceError(
                    f"{self.path}: the plan declares no change of the weights {name!r}"
                )
            if weight.shape != before.shape or not np.isfinite(weight).all():
                raise TraceError(
                    f"{self.path}: the weights {name!r} have another shape or are not finite"
                )
        with self._writing():
            self._buffer.put({f"weights/{name}/after": weight for name, weight in after.items()})

    def flush(self) -> None:
        """Write now what is buffered."""
        with self._writing():
            self._buffer.write()

    def snapshot(self, sample: int, weights: Mapping[str, Array]) -> None:
        """Append the weights of all connections after `sample` learned samples."""
        if set(weights) != set(self.plan.weights) or sample not in self.plan.snapshots:
            raise TraceError(f"{self.path}: the plan declares no snapshot at sample {sample}")
        rows: dict[str, Array | Ints] = {
            f"snapshots/{name}": weight[None] for name, weight in weights.items()
        }
        with self._writing():
            self._buffer.add(rows | {"snapshots/sample": np.array([sample])})

    def epoch(self, numbers: Mapping[str, float]) -> None:
        """Append the metrics of a training epoch."""
        if set(numbers) != set(self.plan.epochs):
            expected = sorted(self.plan.epochs)
            raise TraceError(f"{self.path}: epoch metrics {sorted(numbers)}, expected {expected}")
        with self._writing():
            self._buffer.add({f"epochs/{n}": np.array([value]) for n, value in numbers.items()})

    def _log(self, name: str, recording: Recording) -> SynapseLog:
        log, synapses = recording.hebbian.get(name), self.plan.record.hebbian[name]
        if log is None or log.synapses != synapses:
            raise TraceError(f"{self.path}: a recording lacks the synapses of {name!r}")
        wanted = (self.plan.steps, len(synapses))
        for column in COLUMNS:
            shape = getattr(log, column).shape
            if shape != wanted:
                raise TraceError(
                    f"{self.path}: {column} of {name!r} has shape {shape}, expected {wanted}"
                )
        return log

    def _shaped(self, values: Array, name: str) -> Array:
        wanted = (self.plan.steps, self.plan.sizes[name])
        if values.shape != wanted:
            raise TraceError(f"{self.path}: {name!r} has shape {values.shape}, expected {wanted}")
        return values

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        complete = False
        try:
            taken, wanted = self.taken, len(self.plan.index)
            with self._writing():
                self._finish(complete=kind is None and taken == wanted)
            complete = kind is None and taken == wanted
            if kind is None and not complete:
                raise TraceError(f"{self.path}: {taken} of {wanted} announced samples recorded")
        except TraceError:
            if kind is None:  # else the error that ended the block is raised
                raise
        finally:
            self._close()
            try:
                if complete:
                    remove(self.before)
                else:
                    with suppress(OSError):  # a lost disk
                        self._put_back()
            finally:
                self._lock.__exit__(None, None, None)

    def _finish(self, *, complete: bool) -> None:
        """Write what is buffered; mark the file complete if it reads back as it was written."""
        try:
            self._buffer.write()
        except WRITE_ERRORS:
            self._buffer.drop()
            raise
        if complete:
            verify_written(self.path, self._buffer.rows, self._buffer.contents)
            self._buffer.mark_complete()

    def _close(self) -> None:
        """Close the file, unless HDF5 could not write it."""
        if self._buffer.broken:
            return
        try:
            self._buffer.close()
            self._file.close()
        except (OSError, RuntimeError, ValueError):
            leave_open(self._file)

    def _put_back(self) -> None:
        """Rename the file after an error, and restore the one that it was to replace."""
        if self._buffer.rows.get("samples/stop", 0):
            rename(self.path, self.partial)
        else:
            remove(self.path)
        if self.before.exists():
            rename(self.before, self.path)
