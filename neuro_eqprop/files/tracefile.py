"""Traces to and from HDF5: written sample by sample, readable while they grow and after a crash.

The layout (see `neuro_eqprop.files.tracelayout`) is made first, under another name, and takes its
final name when it can be read; from then on a reader may follow it (SWMR).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from types import TracebackType

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.files.tracelayout import Node, TraceError, append, check_names, lay_out
from neuro_eqprop.files.tracereading import Source, opened
from neuro_eqprop.traces import Counts, Plan, Record, Recording, Trace, train

__all__ = ["TraceError", "Writer", "look", "read", "write"]


def read(path: Path) -> Trace:
    """The whole trace, in memory; of an unfinished one the samples that are whole."""
    with opened(path) as file:
        return Source(path, file).trace()


def look(path: Path, *, last: int) -> tuple[Trace, int, int]:
    """The last samples of a trace that may still grow, how many are whole, how many will be."""
    with opened(path) as file:
        source = Source(path, file)
        trace = source.trace(last)
        return trace, source.samples(trace.steps), source.announced


def write(path: Path, trace: Trace, *, overwrite: bool) -> None:
    """A trace that is in memory, to a file."""
    sizes = {name: train.size for name, train in trace.spikes.items()}
    sizes |= {name: values.shape[1] for (name, _), values in trace.signals.items()}
    record = Record(frozenset(trace.spikes), frozenset(trace.signals))
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
    )
    with Writer(path, plan, overwrite=overwrite) as writer:
        for k in range(len(trace.index)):
            writer.sample(k, trace.recording(k))
        writer.counts({key: counts for key, counts in trace.counts.items() if key[0] in sizes})


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

    def __enter__(self) -> Writer:
        import h5py

        hidden = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self._file = h5py.File(hidden, "w", libver="latest")
            lay_out(self._file, self.plan)
            self._file.swmr_mode = True
            hidden.replace(self.path)
        except OSError as error:
            raise TraceError(f"{self.path} cannot be written: {error}") from None
        finally:
            hidden.unlink(missing_ok=True)
        return self

    def sample(self, index: int, recording: Recording) -> None:
        """Append the recording of sample `index` and flush it to the disk."""
        if index != self.taken:
            raise TraceError(f"{self.path}: sample {index} came in place {self.taken}")
        if index >= len(self.plan.index):
            raise TraceError(f"{self.path}: only {len(self.plan.index)} samples were announced")
        first = index * self.plan.steps
        for name, variable in self.plan.record.signals:
            values = self._shaped(recording.signals[name, variable], name)
            append(self._file[f"signals/{name}/{variable}"], values)
        for name in self.plan.record.spikes:
            events = train(self._shaped(recording.spikes[name], name), first)
            group = self._file[f"spikes/{name}"]
            for column in ("step", "unit", "value"):
                append(group[column], getattr(events, column))
            append(group["stop"], np.array([len(group["step"])]))
        append(self._file["samples/start"], np.array([first]))
        append(self._file["samples/stop"], np.array([first + self.plan.steps]))
        self._file.flush()
        self.taken += 1

    def counts(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Set the events by population and phase, once they are known."""
        for (population, phase), each in counts.items():
            row = list(self.plan.kinds).index(population)
            self._file[f"counts/{phase}"][row] = astuple(each)
        self._file.flush()

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
        if whole:
            self._file.attrs.modify("complete", np.bool_(True))
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
