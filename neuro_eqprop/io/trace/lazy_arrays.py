"""Arrays of a trace file that are read from the disk when they are indexed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.io.trace.read import ALL
from neuro_eqprop.io.trace.schema import Node, TraceError
from neuro_eqprop.synapse_recording import COLUMNS, Synapse, SynapseLog

Index: TypeAlias = Any
"""What stands in the brackets of an array: a number, a slice, or several of these."""


@dataclass(frozen=True, slots=True)
class LazyArray:
    """The first rows of a data set; indexing it reads from the disk, as with h5py."""

    path: Path
    data: Node = field(repr=False)
    length: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows that belong to whole samples, and what each of them holds."""
        with read_errors(self.path, self.data):
            return (self.length, *self.data.shape[1:])

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: Index) -> Any:  # noqa: ANN401
        first, *rest = key if isinstance(key, tuple) else (key,)
        if first is Ellipsis:
            first, rest = ALL, [Ellipsis, *rest]
        # Counted in our length, not in the file's, which may hold part of a sample more.
        rows = range(self.length)[first] if isinstance(first, (slice, int, np.integer)) else first
        if isinstance(rows, range):
            rows = slice(rows.start, rows.stop, rows.step) if len(rows) else slice(0, 0)
        elif not isinstance(rows, int):
            rows = np.arange(self.length)[rows]
        where = (rows, *rest)
        with read_errors(self.path, self.data):
            return self.data[where]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: ANN401
        return np.asarray(self[:], dtype=dtype)


@dataclass(frozen=True, slots=True)
class LazySpikeTrain:
    """The events of a population in the order of their steps; steps run on over samples."""

    step: LazyArray
    unit: LazyArray
    value: LazyArray

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, slots=True)
class LazySynapseLog:
    """What became of chosen synapses of a connection; the fields are those of `SynapseLog`."""

    synapses: tuple[Synapse, ...]
    pre: LazyArray
    post: LazyArray
    product: LazyArray
    tag: LazyArray
    weight: LazyArray

    def part(self, rows: slice) -> SynapseLog:
        """Some of the steps, in memory."""
        read = (np.asarray(getattr(self, c)[rows], dtype=np.float64) for c in COLUMNS)
        return SynapseLog(self.synapses, *read)


@contextmanager
def read_errors(path: Path, node: Node) -> Iterator[None]:
    """Say which file could not be read, and why."""
    if not node:
        raise TraceError(f"{path} was closed; open it again with open_trace")
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise TraceError(f"{path} is damaged: {error}") from error
