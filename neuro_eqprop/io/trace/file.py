"""Traces to and from HDF5: written sample by sample, readable while they grow and after a crash.

The layout (see `neuro_eqprop.io.trace.schema`) is made first, under another name, and takes its
final name when it can be read; from then on a reader may follow it (SWMR).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.append_buffer import AppendBuffer
from neuro_eqprop.io.trace.read import TraceReader, open_hdf5
from neuro_eqprop.io.trace.schema import Node, TraceError, check_names, create_layout
from neuro_eqprop.synapse_recording import COLUMNS, SynapseLog
from neuro_eqprop.traces import ActivityKind, Counts, Plan, Record, Recording, Trace, spike_train

__all__ = ["TraceError", "Writer", "read", "read_progress", "write"]


def read(path: Path) -> Trace:
    """The whole trace, in memory; of an unfinished one the samples that are whole."""
    with open_hdf5(path) as file:
        return TraceReader(path, file).trace()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a trace that may still grow has come."""

    trace: Trace
    """Its last samples."""
    taken: int
    """How many samples are whole."""
    announced: int
    """How many will be."""
    epochs: int
    """Epochs that its run announced; none if it does not train."""


def read_progress(path: Path, *, last: int) -> Progress:
    """The last samples of a trace that may still grow, and how far it has come."""
    with open_hdf5(path) as file:
        source = TraceReader(path, file)
        trace = source.trace(last)
        taken = source.samples(trace.steps)
        return Progress(trace, taken, source.announced, source.announced_epochs)


def write(path: Path, trace: Trace, *, overwrite: bool) -> None:
    """A trace that is in memory, to a file."""
    sizes = {name: events.size for name, events in trace.spikes.items()}
    sizes |= {name: values.shape[1] for (name, _), values in trace.signals.items()}
    watched = {name: story.synapses for name, story in trace.hebbian.items()}
    record = Record(frozenset(trace.spikes), frozenset(trace.signals), watched)
    after = {n: w.after for n, w in trace.weights.items() if w.after is not None}
    plan = Plan(
        trace.origin,
        trace.schedule,
        {name: trace.kinds[name] for name in trace.kinds if name in sizes},
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
    )
    with Writer(path, plan, overwrite=overwrite) as writer:
        for k in range(len(trace.index)):
            writer.sample(k, trace.recording(k))
        writer.counts({key: counts for key, counts in trace.counts.items() if key[0] in sizes})
        writer.weights(after)
        for row in zip(*trace.epochs.values(), strict=True):
            writer.epoch(dict(zip(trace.epochs, map(float, row), strict=True)))


class Writer:
    """A sink that writes to a file; use it in a `with` block.

    Leaving the block marks the file complete. Leaving it by an error renames what is there to
    `NAME.partial` (still readable), or removes it if no sample was taken.
    """

    def __init__(self, path: Path, plan: Plan, *, overwrite: bool) -> None:
        if path.exists() and not overwrite:
            raise TraceError(f"{path} exists already; name another file or ask to overwrite it")
        check_names(path, plan)
        self.path, self.plan, self.taken = path, plan, 0
        self._file: Node = None
        self._tail = AppendBuffer(None)
        self._events = dict.fromkeys(plan.record.spikes, 0)

    def __enter__(self) -> Writer:
        import h5py

        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self._file = h5py.File(hidden, "w", libver="latest")
            create_layout(self._file, self.plan)
            self._file.swmr_mode = True
            self._tail = AppendBuffer(self._file)
            hidden.replace(self.path)
        except OSError as error:
            raise TraceError(f"{self.path} cannot be written: {error}") from None
        finally:
            hidden.unlink(missing_ok=True)
        return self

    def sample(self, index: int, recording: Recording) -> None:
        """Take the recording of sample `index`; it is on the disk within a second."""
        if index != self.taken:
            raise TraceError(f"{self.path}: sample {index} came in place {self.taken}")
        if index >= len(self.plan.index):
            raise TraceError(f"{self.path}: only {len(self.plan.index)} samples were announced")
        self._tail.add(self._rows(index, recording))
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
                raise TraceError(f"{self.path}: a binary spike of {name!r} brought another value")
            self._events[name] += len(events.step)
            for column in ("step", "unit", "value"):
                rows[f"spikes/{name}/{column}"] = getattr(events, column)
            rows[f"spikes/{name}/stop"] = np.array([self._events[name]])
        for name in self.plan.record.hebbian:
            story = self._story(name, recording)
            rows |= {f"hebbian/{name}/{column}": getattr(story, column) for column in COLUMNS}
        # Last, because a sample counts as whole when these are there.
        rows["samples/start"] = np.array([first])
        rows["samples/stop"] = np.array([first + self.plan.steps])
        return rows

    def counts(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Set the events by population and phase, once they are known."""
        self._tail.write()
        for (population, phase), each in counts.items():
            row = list(self.plan.kinds).index(population)
            self._file[f"counts/{phase}"][row] = astuple(each)
        self._file.flush()

    def weights(self, after: Mapping[str, Array]) -> None:
        """Set the weights that a run which learns has ended in, or has come to by now."""
        for name, weight in after.items():
            before = self.plan.weights.get(name)
            if before is None or not self.plan.learns:
                raise TraceError(f"{self.path}: no change of the weights {name!r} was announced")
            if weight.shape != before.shape or not np.isfinite(weight).all():
                raise TraceError(f"{self.path}: {name!r} ended in weights that cannot be")
        self._tail.put({f"weights/{name}/after": weight for name, weight in after.items()})

    def epoch(self, numbers: Mapping[str, float]) -> None:
        """Add the numbers of an epoch of training that is done."""
        if set(numbers) != set(self.plan.epochs):
            told = f"{sorted(numbers)}, not {sorted(self.plan.epochs)}"
            raise TraceError(f"{self.path}: an epoch brought {told}")
        self._tail.add({f"epochs/{name}": np.array([value]) for name, value in numbers.items()})

    def _story(self, name: str, recording: Recording) -> SynapseLog:
        story, synapses = recording.hebbian.get(name), self.plan.record.hebbian[name]
        if story is None or story.synapses != synapses:
            raise TraceError(f"{self.path}: a sample came without the synapses of {name!r}")
        wanted = (self.plan.steps, len(synapses))
        for column in COLUMNS:
            shape = getattr(story, column).shape
            if shape != wanted:
                raise TraceError(f"{self.path}: {column} of {name!r} is {shape}, not {wanted}")
        return story

    def _shaped(self, values: Array, name: str) -> Array:
        wanted = (self.plan.steps, self.plan.sizes[name])
        if values.shape != wanted:
            raise TraceError(f"{self.path}: {name!r} brought {values.shape}, not {wanted}")
        return values

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        whole = kind is None and self.taken == len(self.plan.index)
        try:
            self._tail.write()
            if whole:
                self._file.attrs.modify("complete", np.bool_(True))
        finally:
            self._file.close()
        if whole:
            return
        if self.taken:
            self.path.replace(self.path.with_name(f"{self.path.name}.partial"))
        else:
            self.path.unlink()
        if kind is None:
            raise TraceError(
                f"{self.path}: {self.taken} of {len(self.plan.index)} announced samples were taken"
            )
