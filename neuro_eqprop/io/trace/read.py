"""Reading a trace file with every claim it makes checked before it is believed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.schema import COLUMNS, FORMAT, SCHEMA, Node, TraceError
from neuro_eqprop.io.trace.synapses import history_lengths, read_all_weights, read_histories
from neuro_eqprop.schedules import Phase, Schedule
from neuro_eqprop.traces import ActivityKind, Counts, Origin, SpikeTrain, Trace

MAX_SIZE = 2**32
"""The most bytes of a data set, and cells (steps x units) of a population, read into memory."""
MAX_COMPRESSION = 1040
"""Deflate packs no more than 1032 bytes into one: a data set that claims more was never written."""
MAX_UNWRITTEN = 2**24
"""Bytes a writer may have announced but not yet written when it was killed."""

ALL = slice(None)
EVENT = ("step", "unit", "value")


@contextmanager
def open_hdf5(path: Path) -> Iterator[Node]:
    """The file, also while it is being written or after its writer was killed."""
    import h5py

    if not path.is_file():
        raise TraceError(f"there is no file {path}; `neuro-eqprop simulate` makes traces")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        if not h5py.is_hdf5(path):
            raise TraceError(f"{path} is no HDF5 file, so no trace") from None
        if "truncated" in str(error):
            raise TraceError(f"{path} is cut short: part of the file is missing") from None
        try:
            # A file being written, or whose writer was killed, opens for following only.
            file = h5py.File(path, "r", swmr=True)
        except OSError as second:
            raise TraceError(f"{path} cannot be opened: {second}") from None
    with file:
        try:
            yield file
        except TraceError:
            raise
        except (OSError, KeyError, ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise TraceError(f"{path} is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class TraceReader:
    """An open trace file; `trace` reads all of it."""

    path: Path
    file: Node

    def __post_init__(self) -> None:
        if self.file.attrs.get("format") != FORMAT:
            raise TraceError(f"{self.path} is an HDF5 file, but not a trace of this program")
        schema = int(self.file.attrs["schema"])
        if schema > SCHEMA:
            raise TraceError(
                f"{self.path} has schema {schema} and this program reads up to {SCHEMA}: update it"
            )

    def refuse(self, reason: str) -> TraceError:
        """The error to raise."""
        return TraceError(f"{self.path} is inconsistent: {reason}")

    @property
    def complete(self) -> bool:
        """Whether its run came to its end."""
        return bool(self.file.attrs["complete"])

    def names(self, group: str) -> list[str]:
        """What a group holds; an absent group holds nothing."""
        return sorted(self.file[group]) if group in self.file else []

    def data(self, name: str, *, kind: str, ndim: int | None) -> Node:
        """A data set, once its type, shape and size are believable; `kind` as in NumPy's dtypes."""
        import h5py

        node = self.file
        for part in name.split("/"):
            if not isinstance(node.get(part, getlink=True), h5py.HardLink):
                raise self.refuse(f"{name} is missing or lies in another place")
            node = node[part]
        if not isinstance(node, h5py.Dataset) or node.is_virtual or node.external:
            raise self.refuse(f"{name} is no plain data set")
        if node.dtype.kind not in kind or ndim not in (None, node.ndim):
            raise self.refuse(f"{name} is {node.dtype} with {node.ndim} dimensions")
        claimed = node.size * node.dtype.itemsize
        if claimed > min(MAX_SIZE, MAX_COMPRESSION * node.id.get_storage_size() + MAX_UNWRITTEN):
            raise self.refuse(f"{name} claims {claimed} bytes that the file does not hold")
        return node

    def ints(self, name: str, stop: int | None = None) -> Ints:
        """A list of whole numbers, up to `stop`."""
        return np.asarray(self.data(name, kind="iu", ndim=1)[:stop], dtype=np.int64)

    def floats(self, name: str, rows: slice = ALL, ndim: int | None = 1) -> Array:
        """Numbers, some rows of them."""
        return np.asarray(self.data(name, kind="f", ndim=ndim)[rows], dtype=np.float64)

    def schedule(self) -> Schedule:
        """The phases, one after the other without a gap."""
        names = self.data("phases/name", kind="S", ndim=1)[:]
        start, stop, window = (self.ints(f"phases/{n}") for n in ("start", "stop", "window"))
        beta = self.floats("phases/beta")
        if not len(names) == len(start) == len(stop) == len(window) == len(beta) > 0:
            raise self.refuse("its phases are lists of different lengths")
        if start[0] != 0 or (start[1:] != stop[:-1]).any():
            raise self.refuse("its phases do not follow each other")
        if not np.isfinite(beta).all():
            raise self.refuse("a beta is not finite")
        return tuple(
            Phase(names[k].decode(), float(beta[k]), int(stop[k] - start[k]), int(window[k]))
            for k in range(len(names))
        )

    def populations(self) -> tuple[dict[str, ActivityKind], dict[str, int]]:
        """The kind and the size of each population."""
        told = self.json(self.file, "populations", dict)
        kinds = {name: ActivityKind(each["kind"]) for name, each in told.items()}
        sizes = {name: int(each["size"]) for name, each in told.items()}
        if any(size < 1 for size in sizes.values()):
            raise self.refuse("a population has no units")
        return kinds, sizes

    def json(self, node: Node, name: str, kind: type) -> Any:  # noqa: ANN401
        """An attribute that holds JSON of that kind."""
        value = json.loads(node.attrs[name])
        if not isinstance(value, kind):
            raise self.refuse(f"its attribute {name} is not a {kind.__name__}")
        return value

    def origin(self) -> Origin:
        """Where the trace comes from."""
        held = self.file["origin"].attrs
        versions = self.json(self.file["origin"], "versions", dict)
        texts = {f.name: str(held[f.name]) for f in fields(Origin) if f.type == "str"}
        return Origin(**texts, versions=versions, seed=int(held["seed"]))

    def samples(self, steps: int) -> int:
        """How many samples are whole in every data set."""
        counts = [len(self.ints(f"samples/{name}")) for name in ("index", "label", "start", "stop")]
        for name in self.names("signals"):
            for variable in self.names(f"signals/{name}"):
                rows = len(self.data(f"signals/{name}/{variable}", kind="f", ndim=2))
                counts.append(rows // steps)
        for name in self.names("spikes"):
            held = min(
                len(self.data(f"spikes/{name}/{column}", kind="iuf", ndim=1)) for column in EVENT
            )
            counts.append(int(np.sum(self.ints(f"spikes/{name}/stop") <= held)))
        counts += [rows // steps for rows in history_lengths(self)]
        if self.complete and len(set(counts)) > 1:
            raise self.refuse("it calls itself complete, but its data sets hold different samples")
        return min(counts)

    def spikes(self, name: str, size: int, *, part: range, steps: int) -> SpikeTrain:
        """The events of a population in some samples; steps count from the first of these."""
        stops = np.concatenate([[0], self.ints(f"spikes/{name}/stop", part.stop)])
        if (np.diff(stops) < 0).any():
            raise self.refuse(f"the spikes of {name!r} end before they start")
        first, last = int(stops[part.start]), int(stops[-1])
        rows = slice(first, last)
        columns = {c: self.data(f"spikes/{name}/{c}", kind="iuf", ndim=1) for c in EVENT}
        step, unit, value = (np.asarray(columns[c][rows]) for c in EVENT)
        if not len(step) == len(unit) == len(value) == last - first:
            raise self.refuse(f"the spikes of {name!r} are lists of different lengths")
        step = step.astype(np.int64) - part.start * steps
        if (np.diff(step) < 0).any() or (len(step) and step[0] < 0):
            raise self.refuse(f"the spikes of {name!r} are out of order")
        ends = np.searchsorted(step, steps * np.arange(1, len(part) + 1))
        if (ends != stops[part.start + 1 :] - first).any():
            raise self.refuse(f"the spikes of {name!r} are not where their samples are")
        if len(unit) and (unit.min() < 0 or unit.max() >= size):
            raise self.refuse(f"the spikes of {name!r} name units beyond its {size}")
        return SpikeTrain(step, unit.astype(np.int64), value.astype(np.float64), size)

    def counts(self, schedule: Schedule, names: Sequence[str]) -> dict[tuple[str, str], Counts]:
        """Events by population and phase; none where the run did not come to tell them."""
        found: dict[tuple[str, str], Counts] = {}
        for phase in schedule:
            table = self.data(f"counts/{phase.name}", kind="iu", ndim=2)
            columns = self.json(table, "columns", list)
            if table.shape != (len(names), len(columns)) or not set(columns) <= set(COLUMNS):
                raise self.refuse(f"its counts of phase {phase.name!r} are of other things")
            # By name, so that a file from before a column was added is still read.
            rows = [dict(zip(columns, map(int, row), strict=True)) for row in table[:]]
            told = [Counts(**row) for row in rows]
            found |= {(n, phase.name): c for n, c in zip(names, told, strict=True) if c.steps}
        return found

    @property
    def announced(self) -> int:
        """How many samples the run set out to record."""
        return len(self.ints("samples/index"))

    @property
    def announced_epochs(self) -> int:
        """How many epochs the run set out to take; none where it did not say."""
        return int(self.file["epochs"].attrs.get("announced", 0)) if "epochs" in self.file else 0

    def trace(self, last: int | None = None) -> Trace:
        """Everything, or the last samples only, in memory."""
        schedule = self.schedule()
        kinds, sizes = self.populations()
        steps = sum(phase.steps for phase in schedule)
        samples = self.samples(steps)
        part = range(0 if last is None else max(0, samples - last), samples)
        spikes: dict[str, SpikeTrain] = {}
        for name in self.names("spikes"):
            size = sizes.get(name, 0)
            if size < 1 or size * len(part) * steps > MAX_SIZE:
                raise self.refuse(f"{name!r} claims {size} units in {len(part)} x {steps} steps")
            spikes[name] = self.spikes(name, size, part=part, steps=steps)
        return Trace(
            origin=self.origin(),
            schedule=schedule,
            kinds=kinds,
            connections=tuple(str(each) for each in self.json(self.file, "connections", list)),
            index=self.ints("samples/index", samples)[part.start :],
            label=self.ints("samples/label", samples)[part.start :],
            inputs=self.floats("samples/input", slice(part.start, samples), ndim=2),
            spikes=spikes,
            signals=self.signals(sizes, slice(part.start * steps, samples * steps)),
            counts=self.counts(schedule, list(kinds)),
            complete=self.complete,
            weights=read_all_weights(self),
            hebbian=read_histories(self, slice(part.start * steps, samples * steps)),
            epochs=self.epochs(),
        )

    def epochs(self) -> dict[str, Array]:
        """The numbers of a training for each epoch, up to the last one that has all of them."""
        held = {name: self.floats(f"epochs/{name}") for name in self.names("epochs")}
        done = min((len(values) for values in held.values()), default=0)
        return {name: values[:done] for name, values in held.items()}

    def signals(self, sizes: Mapping[str, int], rows: slice) -> dict[tuple[str, str], Array]:
        """The recorded values, some steps of them."""
        found: dict[tuple[str, str], Array] = {}
        for name in self.names("signals"):
            for variable in self.names(f"signals/{name}"):
                values = self.floats(f"signals/{name}/{variable}", rows, ndim=2)
                if values.shape[1] != sizes.get(name):
                    raise self.refuse(f"signal {name}/{variable} has {values.shape[1]} columns")
                found[name, variable] = values
        return found
