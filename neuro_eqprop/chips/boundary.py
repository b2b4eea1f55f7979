"""Boundaries of energies: the parts of a system that a measurement includes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Boundary(Enum):
    """Scope of a measurement; `dynamic` is above idle, `total` includes idle power."""

    CORE_DYNAMIC = "core_dynamic"
    CHIP_DYNAMIC = "chip_dynamic"
    CHIP_TOTAL = "chip_total"
    BOARD_DYNAMIC = "board_dynamic"
    BOARD_TOTAL = "board_total"
    SYSTEM_WALL = "system_wall"

    def holds(self, other: Boundary) -> bool:
        """Whether this boundary includes all parts of `other`."""
        return other in _INSIDE[self]


_INSIDE: Mapping[Boundary, frozenset[Boundary]] = {
    Boundary.CORE_DYNAMIC: frozenset({Boundary.CORE_DYNAMIC}),
    Boundary.CHIP_DYNAMIC: frozenset({Boundary.CORE_DYNAMIC, Boundary.CHIP_DYNAMIC}),
    Boundary.CHIP_TOTAL: frozenset(
        {Boundary.CORE_DYNAMIC, Boundary.CHIP_DYNAMIC, Boundary.CHIP_TOTAL}
    ),
    Boundary.BOARD_DYNAMIC: frozenset(
        {Boundary.CORE_DYNAMIC, Boundary.CHIP_DYNAMIC, Boundary.BOARD_DYNAMIC}
    ),
    Boundary.BOARD_TOTAL: frozenset(set(Boundary) - {Boundary.SYSTEM_WALL}),
    Boundary.SYSTEM_WALL: frozenset(Boundary),
}
