"""Equality of objects that hold arrays: equal fields, array by array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


class Comparable:
    """A dataclass (`eq=False`) whose objects are equal if all their fields are.

    The hash is that of the type, because the fields may hold arrays and mappings.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return equal(self, other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(type(self))


def equal(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether two values are equal, with their arrays and what is inside.

    >>> import numpy as np
    >>> equal({"w": np.ones(2)}, {"w": np.ones(2)}), equal([np.ones(2)], [np.zeros(2)])
    (True, False)
    """
    if isinstance(one, np.ndarray | float) or isinstance(other, np.ndarray | float):
        return same_arrays(np.asarray(one), np.asarray(other))
    if one is other or type(one) is not type(other):
        return one is other
    if is_dataclass(one) and not isinstance(one, type):
        compared = [f.name for f in fields(one) if f.compare]
        return all(equal(getattr(one, name), getattr(other, name)) for name in compared)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def same_arrays(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether two arrays have the same shape and values; NaN equals NaN."""
    return bool(
        np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")
    )
