"""A chip: its limits and its costs, each number with unit, range and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias


class Kind(Enum):
    """What a number stands for; an all-in cost already holds everything else at one speed."""

    MARGINAL = "marginal"
    ALL_IN = "all_in"
    POWER = "power"
    TIME = "time"
    CAPACITY = "capacity"


class Basis(Enum):
    """How a number came about; `given` is the user's own."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    DERIVED = "derived"
    VENDOR = "vendor"
    ARCHITECTURAL = "architectural"
    GIVEN = "given"


class Evidence(Enum):
    """How far we saw the source, strongest first."""

    READ = "read"
    QUOTED = "quoted"
    SECONDARY = "secondary"
    UNVERIFIED = "unverified"
    GIVEN = "given"


class Boundary(Enum):
    """What a measurement encloses; `dynamic` is above idle, `total` is all that is drawn."""

    CORE_DYNAMIC = "core_dynamic"
    CHIP_DYNAMIC = "chip_dynamic"
    CHIP_TOTAL = "chip_total"
    BOARD_DYNAMIC = "board_dynamic"
    BOARD_TOTAL = "board_total"
    SYSTEM_WALL = "system_wall"

    def holds(self, other: Boundary) -> bool:
        """Whether everything inside `other` is inside this one too."""
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


class BoundaryError(ValueError):
    """Two figures that enclose different things were to be compared."""

    def __init__(self, one: Boundary, other: Boundary) -> None:
        super().__init__(
            f"joules at {one.value} and at {other.value} enclose different things and are not "
            "compared; take both at the same boundary"
        )


class Device(Enum):
    """What kind of machine a profile describes."""

    SPIKING = "spiking"
    DENSE = "dense"
    RATIO = "ratio"


class Timing(Enum):
    """How long a step takes: slowest core and barrier, a fixed tick, a clock, or not known."""

    BARRIER = "barrier"
    TICK = "tick"
    CLOCK = "clock"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Source:
    """Where numbers come from."""

    name: str
    ref: str
    doi: str = ""
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI units, the range it is drawn from, and where it stands."""

    value: float
    low: float
    high: float
    unit: str
    kind: Kind
    basis: Basis
    evidence: Evidence
    source: str
    where: str
    boundary: Boundary | None = None
    note: str = ""
    choices: tuple[float, ...] = ()
    """The values a width can take, where it is not any number up to `value`."""
    at: float | None = None
    """Of an all-in cost: the events per second and chip it was measured at."""
    tolerance: float = 0.0
    """How far from `at`, as a fraction, an all-in cost may still be used."""
    operating_point: str = ""
    """Where it holds, if that is not the profile's operating point."""

    @property
    def spread(self) -> bool:
        """Whether there is a range to draw from."""
        return self.high > self.low


@dataclass(frozen=True, slots=True)
class Unknown:
    """A quantity for which nothing was found published: never zero."""

    note: str


@dataclass(frozen=True, slots=True)
class Included:
    """A cost that is already inside another one, named by its key."""

    within: str
    note: str


Entry: TypeAlias = Quantity | Unknown | Included


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """A dense device measured at one batch size, above idle."""

    batch: int
    joules_per_mac: Quantity
    inferences_per_second: float


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine: quantities by key ("energy.synop"), in SI units."""

    name: str
    title: str
    device: Device
    timing: Timing
    sources: Mapping[str, Source]
    operating_point: Mapping[str, str]
    entries: Mapping[str, Entry]
    file: str
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    """Limits in words that no check here understands."""
    scenario: str = ""
    """For a what-if that stands for no measured chip: what it assumes."""
    missing: tuple[str, ...] = ()
    """Factors a scenario still waits for."""
    batches: tuple[BatchPoint, ...] = ()
    overridden: tuple[str, ...] = ()
    """What was changed against the file or the profile it extends, in words."""

    def entry(self, key: str) -> Entry:
        """What the profile says of a key."""
        return self.entries.get(key, Unknown(f"{self.file} does not speak of it"))

    def known(self, key: str) -> Quantity | None:
        """The quantity, or None where it is unknown or inside another."""
        found = self.entry(key)
        return found if isinstance(found, Quantity) else None

    def limit(self, key: str) -> int | None:
        """A limit as a whole number, or None where it is unknown."""
        found = self.known(f"capacity.{key}")
        return None if found is None else int(found.value)

    def allows(self, key: str) -> bool | None:
        """Whether the chip can do a thing, or None where that is unknown."""
        found = self.known(f"support.{key}")
        return None if found is None else bool(found.value)

    def change(self, key: str, quantity: Quantity, words: str) -> Profile:
        """The same chip with one quantity replaced, which is remembered."""
        entries = {**self.entries, key: quantity}
        return replace(self, entries=entries, overridden=(*self.overridden, words))
