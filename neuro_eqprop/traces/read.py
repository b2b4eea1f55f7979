"""Validated reading of a trace file: every size, type and index is checked before use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import DT, Phase, Schedule
from neuro_eqprop.files.hdf5 import Node, known_filters, open_hdf5
from neuro_eqprop.files.read import parse_json
from neuro_eqprop.simulators.recordings import FIXED_RULE, RULE, Counts, Origin, SpikeTrain
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.schema import (
    COLUMNS,
    FORMAT,
    OLD_STEP_SECONDS,
    SCHEMA,
    TraceError,
)
from neuro_eqprop.traces.synapses import history_lengths

MAX_SIZE = 2**32
"""Largest data set in bytes, and largest population in steps x units, read into memory."""
MAX_COMPRESSION = 1040
"""Deflate compresses by at most 1032: a data set that claims more is damaged."""
MAX_UNWRITTEN = 2**24
"""Bytes that a killed writer may have declared but not written."""

ALL = slice(None)
EVENT = ("step", "unit", "value")


DAMAGE = (
    *(OSError, KeyError, ValueError, TypeError, RuntimeError, OverflowError, AttributeError),
    *(IndexError, MemoryError),
)
"""Errors that reading a damaged file raises."""


@dataclass(frozen=True, slots=True)
class TraceReader:
    """Validating reader of an open trace file."""

    path: Path
    file: Node

    @classmethod
    def open(cls, path: Path) -> TraceReader:
        """Open a trace file; it is closed by `close` or with the last reference to the reader."""
        if path.is_dir():
            raise TraceError(f"{path} is a folder; name a trace file in it, such as traces.h5")
        if not path.is_file():
            raise TraceError(f"there is no file {path}; `neuro-eqprop simulate` makes traces")
        file = open_hdf5(path, TraceError)
        try:
            return cls(path, file)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @contextmanager
    def guard(self, errors: tuple[type[Exception], ...] = DAMAGE) -> Iterator[None]:
        """Raise `errors` of the block as a `TraceError` that names the file and the reason."""
        if not self.file:
            raise TraceError(f"{self.path} was closed; open it again with open_trace")
        try:
            yield
        except TraceError:
            raise
        except errors as error:
            raise TraceError(f"{self.path} is damaged: {error}") from error

    def __post_init__(self) -> None:
        with self.guard():
            self._check_format()

    def _check_format(self) -> None:
        if self.file.attrs.get("format") != FORMAT:
            raise TraceError(f"{self.path} is an HDF5 file, but not a trace of this program")
        schema = int(self.file.attrs["schema"])
        if schema > SCHEMA:
            raise TraceError(
                f"{self.path} has schema {schema} and this program reads up to {SCHEMA}: update it"
            )

    def refuse(self, reason: str) -> TraceError:
        """A `TraceError` that names the file and the reason."""
        return TraceError(f"{self.path} is inconsistent: {reason}")

    @property
    def complete(self) -> bool:
        """Whether the run ended normally."""
        return bool(self.file.attrs["complete"])

    def names(self, group: str) -> list[str]:
        """Names of the members of a group; none if the group is absent."""
        return sorted(self.group(group)) if self.holds(group) else []

    def holds(self, name: str) -> bool:
        """Whether an object is in this file; links to others are errors, and are not followed."""
        import h5py

        node = self.file
        for part in name.split("/"):
            if not isinstance(node, h5py.Group):
                raise self.refuse(f"{name} lies in data that is no group")
            link = node.get(part, getlink=True)
            if link is None:
                return False
            if not isinstance(link, h5py.HardLink):
                raise self.refuse(f"{name} is missing or lies in another file")
            node = node[part]
        return True

    def group(self, name: str) -> Node:
        """A group of this file."""
        import h5py

        if not self.holds(name) or not isinstance(self.file[name], h5py.Group):
            raise TraceError(f"{self.path} is damaged: {name} is missing or no group")
        return self.file[name]

    def data(self, name: str, *, kind: str, ndim: int | None) -> Node:
        """A data set with its type, shape and size checked; `kind` as in `numpy.dtype.kind`."""
        import h5py

        if not self.holds(name):
            raise self.refuse(f"{name} is missing or lies in another file")
        node = self.file[name]
        if not isinstance(node, h5py.Dataset) or node.is_virtual or node.external:
            raise self.refuse(f"{name} is not stored in this file")
        if node.dtype.kind not in kind or ndim not in (None, node.ndim):
            raise self.refuse(f"{name} is {node.dtype} with {node.ndim} dimensions")
        if not known_filters(node):
            raise self.refuse(f"{name} has a filter that traces do not use")
        claimed = node.size * node.dtype.itemsize
        if claimed > min(MAX_SIZE, MAX_COMPRESSION * node.id.get_storage_size() + MAX_UNWRITTEN):
            raise self.refuse(f"{name} claims {claimed} bytes that the file does not hold")
        return node

    def ints(self, name: str, stop: int | None = None) -> Ints:
        """One-dimensional integer data set, up to `stop`."""
        return np.asarray(self.data(name, kind="iu", ndim=1)[:stop], dtype=np.int64)

    def floats(self, name: str, rows: slice = ALL, ndim: int | None = 1) -> Array:
        """Floating-point data set, restricted to `rows`."""
        return np.asarray(self.data(name, kind="f", ndim=ndim)[rows], dtype=np.float64)

    def schedule(self) -> Schedule:
        """Schedule of phases, checked to be contiguous."""
        names = self.data("phases/name", kind="S", ndim=1)[:]
        start, stop, window = (self.ints(f"phases/{n}") for n in ("start", "stop", "window"))
        beta = self.floats("phases/beta")
        if not len(names) == len(start) == len(stop) == len(window) == len(beta) > 0:
            raise self.refuse("the data sets of /phases have different lengths")
        if start[0] != 0 or (start[1:] != stop[:-1]).any():
            raise self.refuse("its phases are not contiguous")
        if not np.isfinite(beta).all():
            raise self.refuse("a beta is not finite")
        return tuple(
            Phase(names[k].decode(), float(beta[k]), int(stop[k] - start[k]), int(window[k]))
            for k in range(len(names))
        )

    def populations(self) -> tuple[dict[str, ActivityKind], dict[str, int]]:
        """Activity kind and number of units of every population."""
        stored = self.json(self.file, "populations", dict)
        kinds = {name: ActivityKind(each["kind"]) for name, each in stored.items()}
        sizes = {name: int(each["size"]) for name, each in stored.items()}
        if any(size < 1 for size in sizes.values()):
            raise self.refuse("a population has no units")
        return kinds, sizes

    def json(self, node: Node, name: str, kind: type) -> Any:  # noqa: ANN401
        """JSON value of an attribute, checked to be of type `kind`."""
        value = parse_json(str(node.attrs[name]), f"{self.path} is damaged: {name}", TraceError)
        if not isinstance(value, kind):
            raise self.refuse(f"attribute {name} is not a {kind.__name__}")
        return value

    def rule(self, samples: int) -> dict[str, Array]:
        """What the run states of its learning rule, of the complete samples; may be empty."""
        if not self.holds("rule"):
            return {}
        found: dict[str, Array] = {}
        for name in RULE:
            if name in ("eta", "keep"):
                for each in self.names(f"rule/{name}"):
                    found[f"{name}/{each}"] = self.floats(f"rule/{name}/{each}", slice(samples))
            else:
                rows = ALL if name in FIXED_RULE else slice(samples)
                found[name] = self.floats(f"rule/{name}", rows)
        return found

    def origin(self) -> Origin:
        """Provenance of the trace."""
        held = self.group("origin").attrs
        versions = self.json(self.group("origin"), "versions", dict)
        texts = {f.name: str(held[f.name]) for f in fields(Origin) if f.type == "str"}
        old = OLD_STEP_SECONDS.get(texts["backend"], DT)
        return Origin(
            **texts,
            versions=versions,
            seed=int(held["seed"]),
            step_seconds=float(held.get("step_seconds", old)),
            steps_per_spike=float(held.get("steps_per_spike", 1.0)),
            rate_ranges=self.rate_ranges(),
        )

    def rate_ranges(self) -> dict[str, tuple[float, float]]:
        """Rates of layers that do not lie in 0..1; files of version 0.2 have none."""
        group = self.group("origin")
        if "rate_ranges" not in group.attrs:
            return {}
        stored = self.json(group, "rate_ranges", dict)
        ranges = {name: tuple(map(float, ends)) for name, ends in stored.items()}
        if not all(len(ends) == 2 and np.isfinite(ends).all() for ends in ranges.values()):
            raise self.refuse("a range of rates is not two finite numbers")
        return {name: (ends[0], ends[1]) for name, ends in ranges.items()}

    def samples(self, steps: int) -> int:
        """Number of samples that are complete in every data set."""
        counts = [len(self.ints(f"samples/{name}")) for name in ("index", "label", "start", "stop")]
        stop = self.ints("samples/stop")
        right = stop == steps * np.arange(1, len(stop) + 1)
        if self.complete and not right.all():
            raise self.refuse("its samples do not follow one another")
        # A write that was cut off leaves zeros in place of the last rows.
        counts.append(len(stop) if right.all() else int(right.argmin()))
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
            raise self.refuse("it is marked complete, but its data sets hold different samples")
        return min(counts)

    def spikes(self, name: str, size: int, *, part: range, steps: int) -> SpikeTrain:
        """Spikes of a population in the samples `part`; steps count from the first of them."""
        stops = np.concatenate([[0], self.ints(f"spikes/{name}/stop", part.stop)])
        if (np.diff(stops) < 0).any():
            raise self.refuse(f"the spike counts of {name!r} decrease")
        first, last = int(stops[part.start]), int(stops[-1])
        rows = slice(first, last)
        columns = {c: self.data(f"spikes/{name}/{c}", kind="iuf", ndim=1) for c in EVENT}
        step, unit, value = (np.asarray(columns[c][rows]) for c in EVENT)
        if not len(step) == len(unit) == len(value) == last - first:
            raise self.refuse(f"the spike columns of {name!r} have different lengths")
        step = step.astype(np.int64) - part.start * steps
        if (np.diff(step) < 0).any() or (len(step) and step[0] < 0):
            raise self.refuse(f"the spikes of {name!r} are out of order")
        ends = np.searchsorted(step, steps * np.arange(1, len(part) + 1))
        if (ends != stops[part.start + 1 :] - first).any():
            raise self.refuse(f"the spikes of {name!r} lie outside their samples")
        if len(unit) and (unit.min() < 0 or unit.max() >= size):
            raise self.refuse(f"the spikes of {name!r} name units beyond its {size}")
        return SpikeTrain(step, unit.astype(np.int64), value.astype(np.float64), size)

    def counts(self, schedule: Schedule, names: Sequence[str]) -> dict[tuple[str, str], Counts]:
        """Event counts by population and phase; absent until the run has written them."""
        found: dict[tuple[str, str], Counts] = {}
        for phase in schedule:
            table = self.data(f"counts/{phase.name}", kind="iu", ndim=2)
            columns = self.json(table, "columns", list)
            if table.shape != (len(names), len(columns)) or not set(columns) <= set(COLUMNS):
                raise self.refuse(f"the counts of phase {phase.name!r} have unexpected columns")
            # By name, so that older files with fewer columns can be read.
            rows = [dict(zip(columns, map(int, row), strict=True)) for row in table[:]]
            counted = [Counts(**row) for row in rows]
            found |= {(n, phase.name): c for n, c in zip(names, counted, strict=True) if c.steps}
        return found

    @property
    def announced(self) -> int:
        """Number of samples that the run will record."""
        return len(self.ints("samples/index"))

    @property
    def announced_epochs(self) -> int:
        """Number of epochs that the run will train; 0 if it does not train."""
        return int(self.group("epochs").attrs.get("announced", 0)) if self.holds("epochs") else 0

    def epochs(self) -> dict[str, Array]:
        """Metrics of a training run by name, up to the last complete epoch."""
        held = {name: self.floats(f"epochs/{name}") for name in self.names("epochs")}
        done = min((len(values) for values in held.values()), default=0)
        numbered = held.get("epoch", np.ones(0))[:done]
        if (numbered < 1).any():  # zeros in place of rows that were cut off
            done = int((numbered < 1).argmax())
        return {name: values[:done] for name, values in held.items()}
