"""Conversion of the tables of a TOML file to a checked `Profile`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from neuro_eqprop.chips.profile import (
    Basis,
    BatchPoint,
    Boundary,
    Device,
    Entry,
    Evidence,
    Included,
    Kind,
    Profile,
    Quantity,
    Scaling,
    Source,
    Timing,
    Unknown,
)
from neuro_eqprop.chips.quantities import DIMENSIONS, KEYS, REQUIRED
from neuro_eqprop.common.arrays import closest_first
from neuro_eqprop.files.toml import FileFormatError, Table, build

SCHEMA = "neuro_eqprop.profile/1"
SECTIONS = ("energy", "power", "time", "capacity", "support")
TOP = (
    *("schema", "name", "title", "device", "timing", "notes", "scenario", "scale", "extends"),
    *("sources", "operating_point", "batch", "unchecked", "scaling", *SECTIONS),
)
FIELDS = (
    *("value", "low", "high", "unit", "kind", "basis", "evidence", "src", "where", "boundary"),
    *("note", "choices", "at", "tolerance", "unknown", "within", "operating_point", "workloads"),
)
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


class ProfileError(FileFormatError):
    """A hardware profile has invalid content; the message names file, key and reason."""


def check_key(key: str, table: Table) -> None:
    """Reject a quantity that no profile has, and suggest the closest one."""
    if key not in KEYS:
        closest = closest_first(key, KEYS)[0]
        table.fail(f"{key!r} is not a key here; did you mean {closest!r}?")


def unit_factor(table: Table, dimension: str) -> float:
    """The factor from the field `unit` to SI."""
    unit = table.text("unit")
    units = DIMENSIONS[dimension]
    if unit not in units:
        closest = ", ".join(closest_first(unit, units))
        table.fail(f"unit {unit!r} is unknown or has another dimension; known here: {closest}")
    return units[unit]


def cost_fields(table: Table, section: str) -> dict[str, Any]:
    """The fields that only costs have: kind, boundary, and the rate an all-in cost holds at."""
    kind = table.choice(Kind, "kind")
    wanted = Kind.ALL_IN if table.key == ALL_IN else KINDS[section]
    if kind is not wanted:
        reason = f"kind {kind.value!r} is not allowed here; use {wanted.value!r}"
        if kind is Kind.ALL_IN:
            reason += f", or give an all-in cost under {ALL_IN} with the rate it holds `at`"
        table.fail(reason)
    found: dict[str, Any] = {
        "kind": kind,
        "boundary": None if section == "time" else table.choice(Boundary, "boundary"),
        "operating_point": table.text("operating_point", ""),
    }
    if kind is Kind.ALL_IN:
        found |= {"at": table.number("at"), "tolerance": table.number("tolerance")}
    return found


def quantity(table: Table, key: str, *, sources: Collection[str]) -> Quantity:
    """A known quantity, in SI units."""
    section = key.partition(".")[0]
    dimension = KEYS[key].dimension
    source = table.text("src")
    if source not in sources:
        known = ", ".join(closest_first(source, sources)) or "none"
        table.fail(f"src {source!r} is not one of the sources: {known}")
    origin: dict[str, Any] = {
        "basis": table.choice(Basis, "basis"),
        "evidence": table.choice(Evidence, "evidence"),
        "source": source,
        "where": table.text("where"),
        "note": table.text("note", ""),
    }
    if dimension == "flag":
        if not isinstance(table.content.get("value"), bool):
            table.fail("value must be true or false")
        value = float(table.content["value"])
        return Quantity(value, value, value, "flag", Kind.CAPACITY, **origin)
    factor = unit_factor(table, dimension)
    if section == "capacity":
        return limit(table, factor, dimension, origin)
    value, low, high = (known_number(table, field) for field in ("value", "low", "high"))
    if not low <= value <= high:
        table.fail(f"low {low:g}, value {value:g}, high {high:g} are not in this order")
    if low <= 0:
        table.fail(f"a cost must be above zero; {UNKNOWN_HINT}")
    origin |= cost_fields(table, section)
    if table.integer("workloads", 1) < 2 and origin["basis"] not in EXACT:
        low, high = min(low, (1 - ONE_WORKLOAD) * value), max(high, (1 + ONE_WORKLOAD) * value)
        if table.key.endswith("power.active"):
            low, high = min(low, value / ONE_LOAD), max(high, value * ONE_LOAD)
    return Quantity(value * factor, low * factor, high * factor, dimension, **origin)


def known_number(table: Table, field: str) -> float:
    """A number of a quantity that is not marked as unknown."""
    if field not in table:
        table.fail(f"{field} is missing; {UNKNOWN_HINT}")
    return table.number(field)


def limit(table: Table, factor: float, dimension: str, origin: dict[str, Any]) -> Quantity:
    """A limit: one number, or the widths that can be chosen, of which the largest counts."""
    choices: tuple[float, ...] = ()
    if "choices" in table:
        given = table.content["choices"]
        if not isinstance(given, list) or not given:
            table.fail("choices must be a list of numbers")
        content = {str(place): value for place, value in enumerate(given)}
        numbers = Table(content, table.file, f"{table.key}.choices", table.error)
        choices = tuple(sorted(numbers.number(place) * factor for place in content))
    value = choices[-1] if choices else known_number(table, "value") * factor
    if value <= 0:
        table.fail(f"a limit must be above zero; {UNKNOWN_HINT}")
    return Quantity(value, value, value, dimension, Kind.CAPACITY, choices=choices, **origin)


def entry(table: Table, key: str, *, sources: Collection[str]) -> Entry:
    """A quantity, an unknown one, or one included in another."""
    table.check_keys(FIELDS)
    if "unknown" in table:
        if table.content["unknown"] is not True or "value" in table or "choices" in table:
            table.fail("unknown = true cannot have a value")
        return Unknown(table.text("note"))
    if "within" in table:
        within = table.text("within")
        check_key(within, table)
        return Included(within, table.text("note"))
    return quantity(table, key, sources=sources)


def read_entries(top: Table, *, sources: Collection[str]) -> dict[str, Entry]:
    """All quantities of a profile, by key."""
    entries: dict[str, Entry] = {}
    for section in SECTIONS:
        part = top.table(section)
        for name in part.content:
            table = part.table(name)
            check_key(table.key, table)
            entries[table.key] = entry(table, table.key, sources=sources)
    for key, each in entries.items():
        if isinstance(each, Included) and not isinstance(entries.get(each.within), Quantity):
            top.fail(f"it is marked as within {each.within}, which has no value", key=key)
    return entries


def read_sources(top: Table) -> dict[str, Source]:
    """The sources of a profile, by name."""
    sources = top.table("sources")
    return {name: build(Source, sources.table(name), name=name) for name in sources.content}


def read_batches(top: Table, *, sources: Collection[str]) -> tuple[BatchPoint, ...]:
    """The measured batch sizes of a dense device."""
    points = []
    for table in top.tables("batch"):
        table.check_keys(("batch", "mac", "inference", "inferences_per_second"))
        batch, name = table.integer("batch"), "inference" if "inference" in table else "mac"
        speed = table.number("inferences_per_second", 0.0)
        cost = entry(table.table(name), "energy.synop", sources=sources)
        if not isinstance(cost, Quantity) or batch < 1:
            table.fail("it needs a batch of at least one and a cost per MAC or per inference")
        if name == "mac" and speed <= 0:
            table.fail("inferences_per_second must be above zero")
        points.append(BatchPoint(batch, cost, speed, per_mac=name == "mac"))
    return tuple(sorted(points, key=lambda point: point.batch))


def read_scaling(top: Table, *, sources: Collection[str]) -> Scaling | None:
    """How costs change with the supply; None where no law is given."""
    if "scaling" not in top:
        return None
    found = build(Scaling, top.table("scaling"))
    if found.src not in sources:
        top.fail(f"src {found.src!r} is not one of the sources", key="scaling.src")
    return found


def to_profile(top: Table, *, overridden: tuple[str, ...] = ()) -> Profile:
    """The profile that the tables of a file describe."""
    top.check_keys(TOP)
    top.check_schema(SCHEMA)
    device = top.choice(Device, "device")
    sources = read_sources(top)
    entries = read_entries(top, sources=sources)
    operating_point = top.table("operating_point").content
    if device is Device.SPIKING:
        for key in REQUIRED:
            if key not in entries:
                top.fail(f"it is missing; {UNKNOWN_HINT}", key=key)
        if not operating_point:
            top.fail("it is missing; state the voltage or the clock", key="operating_point")
    timing = top.choice(Timing, "timing")
    if timing is Timing.TICK and not isinstance(entries.get("time.tick"), Quantity):
        top.fail("timing is 'tick', which needs a value here", key="time.tick")
    return Profile(
        name=top.text("name"),
        title=top.text("title"),
        device=device,
        timing=timing,
        scaling=read_scaling(top, sources=sources),
        sources=sources,
        operating_point={k: str(v) for k, v in operating_point.items()},
        entries=entries,
        file=top.file,
        notes=top.texts("notes"),
        unchecked=top.texts("unchecked"),
        scenario=top.text("scenario", ""),
        batches=read_batches(top, sources=sources),
        overridden=overridden,
    )
