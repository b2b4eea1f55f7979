"""Names for what crosses borders between modules."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Shape: TypeAlias = tuple[int, ...]


def closest_first(name: str, known: Iterable[str]) -> list[str]:
    """The known names, the one most similar to `name` first."""

    def likeness(other: str) -> float:
        return SequenceMatcher(None, name.lower(), other.lower()).ratio()

    return sorted(sorted(known), key=likeness, reverse=True)


class UnknownNameError(ValueError):
    """An unknown name; the message lists the known ones, closest first."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(closest_first(name, known))}")
