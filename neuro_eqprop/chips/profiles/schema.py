"""The TOML file of a hardware profile, and its conversion to a checked `Profile`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, TypeAlias

from neuro_eqprop.chips.profile import (
    Basis,
    BatchPoint,
    Calibration,
    Device,
    Entry,
    Fit,
    Included,
    Kind,
    Profile,
    ProfileSource,
    Quantity,
    SupplyScaling,
    Timing,
    Unknown,
)
from neuro_eqprop.chips.quantities import DIMENSIONS, KEYS, REQUIRED
from neuro_eqprop.common.arrays import closest_first
from neuro_eqprop.files.codec import Count, Format, NonNegative, Text, decode
from neuro_eqprop.files.read import FileFormatError

SECTIONS = ("energy", "power", "time", "capacity", "support")
ONE_WORKLOAD = 0.3
"""Least relative range, to both sides, of a cost that was found with one workload."""
ONE_LOAD = 2.0
"""Least range, as a factor to both sides, of active power that was measured at one load.

The power depends on the load: BrainScaleS-2 spans a factor of 4 over its loads, ReckOn of 7."""
EXACT = (Basis.ARCHITECTURAL, Basis.GIVEN)
"""Numbers by design or by the user, whose range is as stated."""
KINDS = {"energy": Kind.MARGINAL, "power": Kind.POWER, "time": Kind.TIME}
"""The kind of the costs of each section; an all-in cost has a key for itself."""
ALL_IN = "energy.synop_all_in"
UNKNOWN_HINT = "an unpublished quantity is written { unknown = true, note = ... }"

EntryTable: TypeAlias = Mapping[str, Any]
"""An entry as a file states it: `Quantity` with its own unit, `Unknown` or `Included`."""


class ProfileError(FileFormatError):
    """A hardware profile has invalid content; the message names file, key and reason."""


@dataclass(frozen=True, slots=True)
class BatchTable:
    """A measured batch size of a dense device, as a file states it."""

    batch: Count
    mac: EntryTable = field(default_factory=dict)
    """Cost of a multiplication."""
    inference: EntryTable = field(default_factory=dict)
    """Cost of an inference of one published network, in place of `mac`."""
    inferences_per_second: NonNegative = 0.0

    def __post_init__(self) -> None:
        if self.batch < 1 or bool(self.mac) == bool(self.inference):
            raise ValueError("it needs a batch of at least one and a cost per MAC or per inference")
        if self.mac and not self.inferences_per_second:
            raise ValueError("inferences_per_second must be above zero")


@dataclass(frozen=True, slots=True)
class ProfileTables:
    """The tables of a profile's file."""

    name: Text
    title: Text
    device: Device
    timing: Timing
    sources: Mapping[str, ProfileSource] = field(default_factory=dict)
    operating_point: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scenario: str = ""
    scale: Mapping[str, NonNegative | Literal["user"]] = field(default_factory=dict)
    """Factors of a scenario by section; "user" for one that the user has to give."""
    unchecked: tuple[str, ...] = ()
    scaling: SupplyScaling | None = None
    calibration: Mapping[Literal["energy", "time"], Calibration] = field(default_factory=dict)
    fit: Fit | None = None
    batch: tuple[BatchTable, ...] = ()
    energy: Mapping[str, EntryTable] = field(default_factory=dict)
    power: Mapping[str, EntryTable] = field(default_factory=dict)
    time: Mapping[str, EntryTable] = field(default_factory=dict)
    capacity: Mapping[str, EntryTable] = field(default_factory=dict)
    support: Mapping[str, EntryTable] = field(default_factory=dict)


PROFILE = Format(ProfileTables, "neuro_eqprop.profile/1", error=ProfileError)


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Reads the entries of a profile; errors name its file and the key."""

    file: str
    sources: Collection[str]

    def fail(self, key: str, reason: str) -> NoReturn:
        """Raise the error of a key."""
        raise ProfileError(f"{self.file}: {key}: {reason}")

    def entry(self, key: str, table: EntryTable, *, path: str = "") -> Entry:
        """A quantity, an unknown one, or one included in another; `path` if it is not the key."""
        path, where = path or key, f"{self.file}: {path or key}"
        check_key(key, self.file)
        if "within" in table:
            included = decode(table, Included, where, error=ProfileError)
            check_key(included.within, where)
            return included
        if "unknown" not in table:
            return self.quantity(key, table, path)
        rest = {name: value for name, value in table.items() if name != "unknown"}
        if table["unknown"] is not True or "value" in rest:
            self.fail(path, "unknown = true cannot have a value")
        return decode(rest, Unknown, where, error=ProfileError)

    def quantity(self, key: str, table: EntryTable, path: str) -> Quantity:
        """A known quantity, in SI units."""
        section, dimension = key.partition(".")[0], KEYS[key].dimension
        table = dict(table)
        if section == "support":
            table |= {"kind": Kind.CAPACITY.value} | self.flag(table, path)
        elif section == "capacity":
            table |= {"kind": Kind.CAPACITY.value} | self.limit(table, path)
        elif missing := [name for name in ("value", "low", "high") if name not in table]:
            self.fail(path, f"{missing[0]} is missing; {UNKNOWN_HINT}")
        stated = decode(table, Quantity, f"{self.file}: {path}", error=ProfileError)
        units = DIMENSIONS[dimension]
        if stated.unit not in units:
            known = ", ".join(closest_first(stated.unit, units))
            self.fail(
                path, f"unit {stated.unit!r} is unknown or has another dimension; known: {known}"
            )
        if stated.src not in self.sources:
            known = ", ".join(closest_first(stated.src, self.sources)) or "none"
            self.fail(path, f"src {stated.src!r} is not one of the sources: {known}")
        if section in KINDS:
            stated = self.cost(key, stated, path)
        elif stated.value <= 0 and section == "capacity":
            self.fail(path, f"a limit must be above zero; {UNKNOWN_HINT}")
        return replace(stated * units[stated.unit], unit=dimension)

    def flag(self, table: EntryTable, path: str) -> dict[str, Any]:
        """The numbers of a feature that a chip has or has not."""
        if not isinstance(table.get("value"), bool):
            self.fail(path, "value must be true or false")
        return {"unit": "flag"} | dict.fromkeys(("value", "low", "high"), float(table["value"]))

    def limit(self, table: EntryTable, path: str) -> dict[str, Any]:
        """The numbers of a limit: one, or those that can be chosen, of which the largest counts."""
        if "choices" not in table:
            if "value" not in table:
                self.fail(path, f"value is missing; {UNKNOWN_HINT}")
            return dict.fromkeys(("low", "high"), table["value"])
        kind, where = tuple[NonNegative, ...], f"{self.file}: {path}.choices"
        choices = sorted(decode(table["choices"], kind, where, error=ProfileError))
        if not choices:
            self.fail(path, "choices must be a list of numbers")
        return {"choices": choices} | dict.fromkeys(("value", "low", "high"), choices[-1])

    def cost(self, key: str, stated: Quantity, path: str) -> Quantity:
        """A cost, checked, with the least range of one workload."""
        value, low, high = stated.value, stated.low, stated.high
        section = key.partition(".")[0]
        if not low <= value <= high:
            self.fail(path, f"low {low:g}, value {value:g}, high {high:g} are not in this order")
        if low <= 0:
            self.fail(path, f"a cost must be above zero; {UNKNOWN_HINT}")
        wanted = Kind.ALL_IN if key == ALL_IN else KINDS[section]
        if stated.kind is not wanted:
            reason = f"kind {stated.kind.value!r} is not allowed here; use {wanted.value!r}"
            if stated.kind is Kind.ALL_IN:
                reason += f", or give an all-in cost under {ALL_IN} with the rate it holds `at`"
            self.fail(path, reason)
        needed = () if section == "time" else ("boundary",)
        pair = ("at", "tolerance") if stated.at or stated.tolerance else ()
        for name in (*needed, *pair):
            if not getattr(stated, name):
                self.fail(path, f"{name} is missing")
        if stated.workloads < 2 and stated.basis not in EXACT:
            low, high = min(low, (1 - ONE_WORKLOAD) * value), max(high, (1 + ONE_WORKLOAD) * value)
            if key == "power.active":
                low, high = min(low, value / ONE_LOAD), max(high, value * ONE_LOAD)
        return replace(stated, low=low, high=high)

    def batch(self, place: int, table: BatchTable) -> BatchPoint:
        """The cost of a dense device at a batch size."""
        name = "mac" if table.mac else "inference"
        path, cost = f"batch[{place}].{name}", table.mac or table.inference
        entry = self.entry("energy.synop", cost, path=path)
        if not isinstance(entry, Quantity):
            self.fail(path, "it needs a value")
        return BatchPoint(table.batch, entry, table.inferences_per_second, per_mac=name == "mac")


def check_key(key: str, where: str) -> None:
    """Reject a quantity that no profile has, and suggest the closest one."""
    if key not in KEYS:
        closest = closest_first(key, KEYS)[0]
        raise ProfileError(f"{where}: {key!r} is not a key here; did you mean {closest!r}?")


def to_profile(tables: ProfileTables, file: str, *, overridden: tuple[str, ...] = ()) -> Profile:
    """The profile that the tables of a file describe."""
    reader = EntryReader(file, tables.sources)
    entries = {
        f"{section}.{name}": reader.entry(f"{section}.{name}", table)
        for section in SECTIONS
        for name, table in getattr(tables, section).items()
    }
    for key, entry in entries.items():
        if isinstance(entry, Included) and not isinstance(entries.get(entry.within), Quantity):
            reader.fail(key, f"it is marked as within {entry.within}, which has no value")
    if tables.device is Device.SPIKING:
        for key in REQUIRED:
            if key not in entries:
                reader.fail(key, f"it is missing; {UNKNOWN_HINT}")
        if not tables.operating_point:
            reader.fail("operating_point", "it is missing; state the voltage or the clock")
    if tables.timing is Timing.TICK and not isinstance(entries.get("time.tick"), Quantity):
        reader.fail("time.tick", "timing is 'tick', which needs a value here")
    if tables.scaling is not None and tables.scaling.src not in tables.sources:
        reader.fail("scaling.src", f"{tables.scaling.src!r} is not one of the sources")
    batches = (reader.batch(place, table) for place, table in enumerate(tables.batch))
    return Profile(
        name=tables.name,
        title=tables.title,
        device=tables.device,
        timing=tables.timing,
        scaling=tables.scaling,
        fit=tables.fit,
        calibration={str(kind): each for kind, each in tables.calibration.items()},
        sources=tables.sources,
        operating_point=tables.operating_point,
        entries=entries,
        file=file,
        notes=tables.notes,
        unchecked=tables.unchecked,
        scenario=tables.scenario,
        batches=tuple(sorted(batches, key=lambda point: point.batch)),
        overridden=overridden,
    )
