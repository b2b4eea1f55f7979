"""Writing of traces to HDF5, sample by sample; readable while they grow and after a crash.

The layout (see `neuro_eqprop.io.trace.schema`) is created under a temporary name and renamed when
it can be read; from then on readers can follow it (SWMR).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from types import TracebackType

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.append_buffer import AppendBuffer
from neuro_eqprop.io.trace.schema import Node, TraceError, check_names, create_layout
from neuro_eqprop.synapse_recording import COLUMNS, SynapseLog
from neuro_eqprop.traces import (
    ActivityKind,
    Counts,
    Plan,
    Record,
    Recording,
    TraceData,
    spike_train,
)


def write(path: Path, trace: TraceData, *, overwrite: bool) -> None:
    """Write a trace in memory to a file."""
    sizes = trace.sizes
    synapses = {name: log.synapses for name, log in trace.hebbian.items()}
    record = Record(frozenset(trace.spikes), frozenset(trace.signals), synapses)
    after = {n: w.after for n, w in trace.weights.items() if w.after is not None}
    plan = Plan(
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


class Writer:
    """A sink that writes to a file; use it in a `with` block.

    The end of the block marks the file complete. After an error the file is renamed to
    `NAME.partial` (still readable), or removed if it holds no sample.
    """

    def __init__(self, path: Path, plan: Plan, *, overwrite: bool) -> None:
        if path.exists() and not overwrite:
            raise TraceError(f"{path} exists already; choose another file, or overwrite=True")
        check_names(path, plan)
        self.path, self.plan, self.taken = path, plan, 0
        self._file: Node = None
        self._buffer = AppendBuffer(None)
        self._events = dict.fromkeys(plan.record.spikes, 0)

    def __enter__(self) -> Writer:
        import h5py

        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self._file = h5py.File(hidden, "w", libver="latest")
            create_layout(self._file, self.plan)
            self._file.swmr_mode = True
            self._buffer = AppendBuffer(self._file)
            hidden.replace(self.path)
        except OSError as error:
            raise TraceError(f"{self.path} cannot be written: {error}") from None
        finally:
            hidden.unlink(missing_ok=True)
        return self

    def sample(self, index: int, recording: Recording) -> None:
        """Store the recording of sample `index`; it is written within a second."""
        if index != self.taken:
            raise TraceError(f"{self.path}: sample {index} arrived where {self.taken} was expected")
        if index >= len(self.plan.index):
            raise TraceError(f"{self.path}: only {len(self.plan.index)} samples were announced")
        self._buffer.add(self._rows(index, recording))
        self.taken += 1

    def _rows(self, index: int, recording: Recording) -> dict[str, Array | Ints]:
        first = index * self.plan.steps
        rows: dict[str, Array | Ints] = {}
        for name, variable in self.plan.record.signals:
            rows[f"signals/{name}/{variable}"] = self._shaped(
                recording.signals[name, variable], name
            )
        for name in self.plan.record.spikes:
            events = spike_train(self._shaped(recording.spikes[name], name), first)
            if self.plan.kinds[name] is ActivityKind.SPIKES and (events.value != 1.0).any():
                raise TraceError(
                    f"{self.path}: a binary spike of {name!r} has a payload other than 1"
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
        self._buffer.write()
        for (population, phase), each in counts.items():
            row = list(self.plan.kinds).index(population)
            self._file[f"counts/{phase}"][row] = astuple(each)
        self._file.flush()

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
        self._buffer.put({f"weights/{name}/after": weight for name, weight in after.items()})

    def snapshot(self, sample: int, weights: Mapping[str, Array]) -> None:
        """Append the weights of all connections after `sample` learned samples."""
        if set(weights) != set(self.plan.weights) or sample not in self.plan.snapshots:
            raise TraceError(f"{self.path}: the plan declares no snapshot at sample {sample}")
        rows: dict[str, Array | Ints] = {
            f"snapshots/{name}": weight[None] for name, weight in weights.items()
        }
        self._buffer.add(rows | {"snapshots/sample": np.array([sample])})

    def epoch(self, numbers: Mapping[str, float]) -> None:
        """Append the metrics of a training epoch."""
        if set(numbers) != set(self.plan.epochs):
            expected = sorted(self.plan.epochs)
            raise TraceError(f"{self.path}: epoch metrics {sorted(numbers)}, expected {expected}")
        self._buffer.add({f"epochs/{name}": np.array([value]) for name, value in numbers.items()})

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
        complete = kind is None and self.taken == len(self.plan.index)
        try:
            self._buffer.write()
            if complete:
                self._file.attrs.modify("complete", np.bool_(True))
        finally:
            self._file.close()
        if complete:
            return
        if self.taken:
            self.path.replace(self.path.with_name(f"{self.path.name}.partial"))
        else:
            self.path.unlink()
        if kind is None:
            raise TraceError(
                f"{self.path}: {self.taken} of {len(self.plan.index)} announced samples recorded"
            )
