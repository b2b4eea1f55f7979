"""Arrays of a trace file that are read from the disk when they are indexed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.files.hdf5 import Node
from neuro_eqprop.traces.read import ALL, TraceReader

Index: TypeAlias = Any
"""Index of an array: an integer, a slice, a mask, or a tuple of these."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LazyArray(NDArrayOperatorsMixin):
    """The first rows of a data set; behaves as an array and reads from the disk when used.

    Indexing reads the indexed part, as h5py does; arithmetic and methods read all of it.
    """

    reader: TraceReader = field(repr=False)
    """Keeps the file open while the array is in use."""
    data: Node = field(repr=False)
    length: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows of complete samples, and the shape of a row."""
        with self.reader.guard((OSError, RuntimeError)):
            return (self.length, *self.data.shape[1:])

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: Index) -> Any:  # noqa: ANN401
        first, *rest = key if isinstance(key, tuple) else (key,)
        if first is Ellipsis:
            first, rest = ALL, [Ellipsis, *rest]
        # Relative to `length`: the file may hold part of another sample after it.
        rows = range(self.length)[first] if isinstance(first, (slice, int, np.integer)) else first
        if isinstance(rows, range):
            rows = slice(rows.start, rows.stop, rows.step) if len(rows) else slice(0, 0)
        elif not isinstance(rows, int):
            rows = np.arange(self.length)[rows]
        with self.reader.guard((OSError, RuntimeError)):
            return self.data[tuple([rows, *rest])]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: ANN401
        return np.asarray(self[:], dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:  # noqa: ANN401
        read = (np.asarray(each) if isinstance(each, LazyArray) else each for each in inputs)
        return getattr(ufunc, method)(*read, **options)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def typed(self) -> Array:
        """The array itself, as the NumPy type that type checkers know."""
        return cast("Array", self)


@dataclass(frozen=True)
class LazyMapping(Mapping[str, T], Generic[T]):
    """Values by name, read at each lookup."""

    kind: str
    names: tuple[str, ...]
    read: Callable[[str], T] = field(repr=False)

    def __getitem__(self, name: str) -> T:
        if name not in self.names:
            raise UnknownNameError(self.kind, name, self.names)
        return self.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
