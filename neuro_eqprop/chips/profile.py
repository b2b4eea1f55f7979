"""A hardware profile: limits and costs of a chip, each with unit, range and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import exp, sqrt
from typing import TypeAlias

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.quantities import KEYS
from neuro_eqprop.common.arrays import NamedDict, UnknownNameError
from neuro_eqprop.files.codec import Count, NonNegative, Text


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
class ProfileSource:
    """A publication that numbers come from."""

    ref: Text
    doi: str = ""
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI units, with its range and its source."""

    value: NonNegative
    low: NonNegative
    high: NonNegative
    unit: Text
    kind: Kind
    basis: Basis
    evidence: Evidence
    src: Text
    where: Text
    boundary: Boundary | None = None
    note: str = ""
    choices: tuple[NonNegative, ...] = ()
    """Allowed values of a bit width, if restricted; `value` is the largest."""
    at: NonNegative | None = None
    """All-in costs only: events per second and chip in the measurement."""
    tolerance: NonNegative = 0.0
    """All-in costs only: largest relative distance from `at`."""
    operating_point: str = ""
    """Operating point, if it is not that of the profile."""
    workloads: Count = 1
    """Number of workloads that support the range."""

    @property
    def has_range(self) -> bool:
        """Whether low and high differ."""
        return self.high > self.low

    def __mul__(self, factor: float) -> Quantity:
        value, low, high = factor * self.value, factor * self.low, factor * self.high
        choices = tuple(factor * each for each in self.choices)
        return replace(self, value=value, low=low, high=high, choices=choices)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A quantity without a published value; it never counts as zero."""

    note: Text


@dataclass(frozen=True, slots=True)
class Included:
    """A cost that is included in another cost, named by its key."""

    within: Text
    note: Text


class Tier(Enum):
    """How well an estimate on a chip is tested."""

    CALIBRATED = "calibrated"
    """Against at least four well-sourced measurements of that chip."""
    ORDER_OF_MAGNITUDE = "order of magnitude"


FEWEST_POINTS = 4
"""Measurements of a chip without which it is not calibrated."""
ORDER_OF_MAGNITUDE = 10**0.5
"""Least range, as a factor to both sides, of a chip that is not calibrated."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a chip's own measurements lie from their predictions, each left out in turn."""

    points: Count
    """Well-sourced measurements, of certainty A or B."""
    factor: NonNegative
    """Range to both sides, as a factor."""
    inside: Count
    """Points inside that range."""
    least: NonNegative = 1.4
    """Least factor, since the points of one laboratory share their errors."""
    note: str = ""

    def __post_init__(self) -> None:
        if self.points < FEWEST_POINTS or not 1 < self.least <= self.factor:
            raise ValueError(
                f"{self.points} points with a factor of {self.factor:g} are no calibration; it "
                f"takes {FEWEST_POINTS} points and a factor of at least {self.least:g}"
            )


@dataclass(frozen=True, slots=True)
class Fit:
    """How the constants of a profile were fitted to measured runs."""

    keys: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    """Of the logarithms of the constants, in the order of the keys."""
    left_out: Mapping[str, float]
    """By run, the logarithm of measured over predicted with this run left out of the fit."""
    unpriced: tuple[str, ...] = ()
    """Costs of the runs that the profile does not have; others take their joules."""

    def factor(self, joules: Mapping[str, float]) -> float:
        """The range to both sides, as a factor, of a sum with these joules by constant."""
        total = sum(joules.values())
        shares = [joules.get(key, 0.0) / total for key in self.keys] if total else []
        variance = sum(
            a * b * each
            for a, row in zip(shares, self.covariance, strict=False)
            for b, each in zip(shares, row, strict=False)
        )
        return exp(2 * sqrt(max(variance, 0.0)))


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
class SupplyScaling:
    """Scaling with the supply voltage: cost(V) = cost (V / supply)^exponent."""

    supply: NonNegative
    """Supply voltage of the values of the profile."""
    low: NonNegative
    high: NonNegative
    """Range of supply voltages in which the scaling holds."""
    energy: NonNegative
    """Exponent of energies per event."""
    power: NonNegative
    """Exponent of powers."""
    src: Text
    where: Text

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
    sources: Mapping[str, ProfileSource]
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
    scaling: SupplyScaling | None = None
    """Scaling of costs with the supply voltage, if known."""
    calibration: Mapping[str, Calibration] = field(default_factory=dict)
    """By what was predicted, ``"energy"`` or ``"time"``."""
    fit: Fit | None = None
    """How its constants were fitted, where they were."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", NamedDict("source", self.sources))
        object.__setattr__(self, "entries", NamedDict("quantity of a profile", self.entries))

    def __repr__(self) -> str:
        known = sum(isinstance(entry, Quantity) for entry in self.entries.values())
        return f"<Profile {self.name}: {self.title}, {known} known quantities>"

    def tier(self, kind: str = "energy") -> Tier:
        """Whether predictions of energy, or of time, are calibrated."""
        known = kind in self.calibration and self.range_factor(kind) < ORDER_OF_MAGNITUDE
        return Tier.CALIBRATED if known else Tier.ORDER_OF_MAGNITUDE

    def range_factor(self, kind: str = "energy") -> float:
        """The range of a prediction to both sides, as a factor."""
        found = self.calibration.get(kind)
        return ORDER_OF_MAGNITUDE if found is None else found.factor

    def check_chip(self) -> None:
        """Raise ValueError unless this is a spiking chip, and no scenario without its factors."""
        if self.missing:
            each = ", ".join(f"{self.name}.scale.{name}" for name in self.missing)
            raise ValueError(
                f"profile {self.name!r} is a scenario and waits for your factor: override "
                f"{self.name}.scale, or {each}"
            )
        if self.device is not Device.SPIKING:
            raise ValueError(
                f"profile {self.name!r} is no spiking chip; dense devices are always compared"
            )

    def entry(self, key: str) -> Entry:
        """The entry of a key; `Unknown` if the profile has none."""
        if key not in self.entries and key not in KEYS:
            raise UnknownNameError("quantity of a profile", key, KEYS)
        return self.entries.get(key, Unknown(f"not in {self.file}"))

    def known(self, key: str) -> Quantity | None:
        """The quantity of a key; None if it is unknown or included in another."""
        entry = self.entry(key)
        return entry if isinstance(entry, Quantity) else None

    def limit(self, key: str) -> int | None:
        """A limit of the section `capacity`; None if unknown."""
        limit = self.known(f"capacity.{key}")
        return None if limit is None else int(limit.value)

    def allows(self, key: str) -> bool | None:
        """A feature of the section `support`; None if unknown."""
        feature = self.known(f"support.{key}")
        return None if feature is None else bool(feature.value)

    def times(self, factors: Mapping[str, float], *changes: str) -> Profile:
        """The profile with all quantities of some sections multiplied, and how it was changed."""
        entries = {
            key: entry * factors[section]
            if (section := key.partition(".")[0]) in factors and isinstance(entry, Quantity)
            else entry
            for key, entry in self.entries.items()
        }
        return replace(self, entries=entries, overridden=(*self.overridden, *changes))

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
        ratio = volts / law.supply
        return self.times(
            {"energy": ratio**law.energy, "power": ratio**law.power},
            f"supply {law.supply:g} V -> {volts:g} V: energies x (V/{law.supply:g})^{law.energy:g}"
            f", powers ^{law.power:g}, times unchanged ({law.src}: {law.where})",
        )
