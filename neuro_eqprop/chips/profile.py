"""A hardware profile: limits and costs of a chip, each with unit, range and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from neuro_eqprop.common.arrays import Named, UnknownNameError


class Kind(Enum):
    """The kind of a quantity; an all-in cost includes all other costs at one event rate."""

    MARGINAL = "marginal"
    ALL_IN = "all_in"
    POWER = "power"
    TIME = "time"
    CAPACITY = "capacity"


class Basis(Enum):
    """How a number was obtained; `GIVEN` is set by the user."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    DERIVED = "derived"
    VENDOR = "vendor"
    ARCHITECTURAL = "architectural"
    GIVEN = "given"


class Evidence(Enum):
    """How directly the source was checked, strongest first."""

    READ = "read"
    QUOTED = "quoted"
    SECONDARY = "secondary"
    UNVERIFIED = "unverified"
    GIVEN = "given"


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


class BoundaryError(ValueError):
    """Two energies at different boundaries cannot be compared."""

    def __init__(self, one: Boundary, other: Boundary) -> None:
        super().__init__(
            f"joules at {one.value} and at {other.value} include different parts and cannot be "
            "compared; use the same boundary for both"
        )


class Device(Enum):
    """The kind of device that a profile describes."""

    SPIKING = "spiking"
    DENSE = "dense"
    RATIO = "ratio"


class Timing(Enum):
    """How the duration of a step is modelled.

    `BARRIER`: slowest core plus barrier; `TICK`: fixed real-time tick; `CLOCK`: synapses
    processed one at a time; `UNKNOWN`: not published.
    """

    BARRIER = "barrier"
    TICK = "tick"
    CLOCK = "clock"
    UNKNOWN = "unknown"


class Overhead(Enum):
    """Which idle power of a chip is counted; the two exclude each other."""

    LOADED_IDLE = "loaded_idle"
    STATIC_AND_HOST = "static_and_host"


@dataclass(frozen=True, slots=True)
class Source:
    """A publication that numbers come from."""

    name: str
    ref: str
    doi: str = ""
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI units, with its range and its source."""

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
    """Allowed values of a bit width, if restricted; `value` is the largest."""
    at: float | None = None
    """All-in costs only: events per second and chip in the measurement."""
    tolerance: float = 0.0
    """All-in costs only: largest relative distance from `at`."""
    operating_point: str = ""
    """Operating point, if it is not that of the profile."""

    @property
    def has_range(self) -> bool:
        """Whether low and high differ."""
        return self.high > self.low


@dataclass(frozen=True, slots=True)
class Unknown:
    """A quantity without a published value; it never counts as zero."""

    note: str


@dataclass(frozen=True, slots=True)
class Included:
    """A cost that is included in another cost, named by its key."""

    within: str
    note: str


Entry: TypeAlias = Quantity | Unknown | Included


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """A dense device measured at one batch size, above idle."""

    batch: int
    joules_per_mac: Quantity
    """Joules per multiplication; if not `per_mac`, per inference of one published network."""
    inferences_per_second: float
    per_mac: bool = True


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaling with the supply voltage: cost(V) = cost (V / supply)^exponent."""

    supply: float
    """Supply voltage of the values of the profile."""
    low: float
    high: float
    """Range of supply voltages in which the scaling holds."""
    energy: float
    """Exponent of energies per event."""
    power: float
    """Exponent of powers."""
    src: str
    where: str

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.supply <= self.high:
            raise ValueError(f"low {self.low}, supply {self.supply}, high {self.high} are no range")


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """A chip or a dense device: quantities by key (``"energy.synop"``), in SI units.

    `load_profile` returns one.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.load_profile("loihi1").known("energy.synop").value
    2.36e-11
    """

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
    """Limits that the placement cannot check, as text."""
    scenario: str = ""
    """The assumption of a what-if profile that describes no measured chip; else empty."""
    missing: tuple[str, ...] = ()
    """Scale factors of a scenario that the user still has to give."""
    batches: tuple[BatchPoint, ...] = ()
    overridden: tuple[str, ...] = ()
    """Changes relative to the file or to the profile it extends, as text."""
    scaling: Scaling | None = None
    """Scaling of costs with the supply voltage, if known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", Named("source", self.sources))
        object.__setattr__(self, "entries", Named("quantity of a profile", self.entries))

    def __repr__(self) -> str:
        known = sum(isinstance(entry, Quantity) for entry in self.entries.values())
        return f"<Profile {self.name}: {self.title}, {known} known quantities>"

    def entry(self, key: str) -> Entry:
        """The entry of a key; `Unknown` if the profile has none."""
        from neuro_eqprop.chips.quantities import KEYS

        if key not in self.entries and key not in KEYS:
            raise UnknownNameError("quantity of a profile", key, KEYS)
        return self.entries.get(key, Unknown(f"not in {self.file}"))

    def known(self, key: str) -> Quantity | None:
        """The quantity of a key; None if it is unknown or included in another."""
        found = self.entry(key)
        return found if isinstance(found, Quantity) else None

    def limit(self, key: str) -> int | None:
        """A limit of the section `capacity`; None if unknown."""
        found = self.known(f"capacity.{key}")
        return None if found is None else int(found.value)

    def allows(self, key: str) -> bool | None:
        """A feature of the section `support`; None if unknown."""
        found = self.known(f"support.{key}")
        return None if found is None else bool(found.value)

    def at_supply(self, volts: float) -> Profile:
        """The profile with energies and powers scaled to another supply; times are unchanged."""
        law = self.scaling
        if law is None:
            raise ValueError(
                f"profile {self.name!r} has no law for another supply; leave supply out for it"
            )
        if not law.low <= volts <= law.high:
            raise ValueError(
                f"profile {self.name!r} is scaled between {law.low:g} and {law.high:g} V, not to "
                f"{volts:g} V"
            )
        entries = dict(self.entries)
        for section, exponent in (("energy", law.energy), ("power", law.power)):
            factor = (volts / law.supply) ** exponent
            for key, each in self.entries.items():
                if key.startswith(f"{section}.") and isinstance(each, Quantity):
                    value, low, high = (factor * x for x in (each.value, each.low, each.high))
                    entries[key] = replace(each, value=value, low=low, high=high)
        change = (
            f"supply {law.supply:g} V -> {volts:g} V: energies x (V/{law.supply:g})^{law.energy:g}"
            f", powers ^{law.power:g}, times unchanged ({law.src}: {law.where})"
        )
        return replace(self, entries=entries, overridden=(*self.overridden, change))

    def with_quantity(self, key: str, quantity: Quantity, change: str) -> Profile:
        """The profile with one quantity replaced; `change` is added to `overridden`."""
        entries = {**self.entries, key: quantity}
        return replace(self, entries=entries, overridden=(*self.overridden, change))
