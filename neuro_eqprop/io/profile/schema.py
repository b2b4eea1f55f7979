"""From the tables of a TOML file to a checked profile; every complaint names file and key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuro_eqprop.arrays import closest_first
from neuro_eqprop.hardware.profile import (
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
    Source,
    Timing,
    Unknown,
)
from neuro_eqprop.hardware.quantities import DIMENSIONS, KEYS, REQUIRED
from neuro_eqprop.io.toml import Table, complain, known_words, listed, number, part, text, word

SCHEMA = "neuro_eqprop.profile/1"
SECTIONS = ("energy", "power", "time", "capacity", "support")
TOP = {
    *("schema", "name", "title", "device", "timing", "notes", "scenario", "scale", "extends"),
    *("sources", "operating_point", "batch", "unchecked", *SECTIONS),
}
FIELDS = {
    *("value", "low", "high", "unit", "kind", "basis", "evidence", "src", "where", "boundary"),
    *("note", "choices", "at", "tolerance", "unknown", "within", "operating_point"),
}
KINDS = {"energy": "marginal", "power": "power", "time": "time"}


def factor(table: Table, dimension: str, *, file: str, key: str) -> float:
    """What makes the field `unit` SI."""
    unit = text(table, "unit", file=file, key=key)
    units = DIMENSIONS[dimension]
    if unit not in units:
        closest = ", ".join(closest_first(unit, units))
        complain(file, key, f"unit {unit!r} does not fit; known here: {closest}")
    return units[unit]


def check_range(value: float, low: float, high: float, *, file: str, key: str) -> None:
    """Low, value and high must stand in this order."""
    if not low <= value <= high:
        complain(file, key, f"low {low:g}, value {value:g}, high {high:g} are not in this order")


def costs(table: Table, section: str, *, file: str, key: str) -> dict[str, Any]:
    """The fields only costs have: kind, boundary, and what an all-in cost holds at."""
    kind = word(Kind, table, "kind", file=file, key=key)
    wanted = "all_in" if key == "energy.synop_all_in" else KINDS[section]
    if kind.value != wanted:
        reason = f"kind {kind.value!r} cannot stand here, {wanted!r} can"
        if kind is Kind.ALL_IN:
            reason += "; an all-in cost goes under energy.synop_all_in with the rate it holds `at`"
        complain(file, key, reason)
    point = str(table.get("operating_point", ""))
    found: dict[str, Any] = {"kind": kind, "boundary": None, "operating_point": point}
    if section != "time":
        found["boundary"] = word(Boundary, table, "boundary", file=file, key=key)
    if kind is Kind.ALL_IN:
        found["at"] = number(table, "at", file=file, key=key)
        found["tolerance"] = number(table, "tolerance", file=file, key=key)
    return found


def quantity(table: Table, key: str, *, file: str, sources: Iterable[str]) -> Quantity:
    """A known quantity, in SI units."""
    section = key.split(".", maxsplit=1)[0]
    dimension = KEYS[key].dimension
    source = text(table, "src", file=file, key=key)
    if source not in set(sources):
        known = ", ".join(closest_first(source, sources)) or "none"
        complain(file, key, f"src {source!r} is none of the sources: {known}")
    basis = word(Basis, table, "basis", file=file, key=key)
    evidence = word(Evidence, table, "evidence", file=file, key=key)
    where = text(table, "where", file=file, key=key)
    note = str(table.get("note", ""))
    if dimension == "flag":
        if not isinstance(table.get("value"), bool):
            complain(file, key, "value is true or false here")
        yes = float(table["value"])
        common = (Kind.CAPACITY, basis, evidence, source, where)
        return Quantity(yes, yes, yes, "flag", *common, note=note)
    scale = factor(table, dimension, file=file, key=key)
    if section == "capacity":
        return limit(table, key, scale, file=file, rest=(basis, evidence, source, where), note=note)
    value, low, high = (number(table, f, file=file, key=key) for f in ("value", "low", "high"))
    check_range(value, low, high, file=file, key=key)
    if low <= 0:
        complain(file, key, "a cost of zero is not a cost; what is not known is unknown")
    extra = costs(table, section, file=file, key=key)
    kind = extra.pop("kind")
    numbers = (value * scale, low * scale, high * scale, dimension)
    return Quantity(*numbers, kind, basis, evidence, source, where, note=note, **extra)


def limit(
    table: Table,
    key: str,
    scale: float,
    *,
    file: str,
    rest: tuple[Basis, Evidence, str, str],
    note: str,
) -> Quantity:
    """A limit: one number, or the widths that can be chosen."""
    dimension = KEYS[key].dimension
    choices: tuple[float, ...] = ()
    if "choices" in table:
        given = table["choices"]
        if not isinstance(given, list) or not given:
            complain(file, key, "choices is a list of numbers")
        choices = tuple(sorted(number({"c": c}, "c", file=file, key=key) * scale for c in given))
        value = choices[-1]
    else:
        value = number(table, "value", file=file, key=key) * scale
    if value <= 0:
        complain(file, key, f"a limit of {value:g} leaves nothing; what is not known is unknown")
    return Quantity(
        value, value, value, dimension, Kind.CAPACITY, *rest, note=note, choices=choices
    )


def entry(table: object, key: str, *, file: str, sources: Iterable[str]) -> Entry:
    """A quantity, an unknown one, or one inside another."""
    if not isinstance(table, dict):
        complain(file, key, "a quantity is a table with value, unit, source and so on")
    known_words(table, FIELDS, file=file, key=key)
    if "unknown" in table:
        if table["unknown"] is not True or {"value", "choices"} & set(table):
            complain(file, key, "unknown = true stands without a value")
        return Unknown(text(table, "note", file=file, key=key))
    if "within" in table:
        within = text(table, "within", file=file, key=key)
        known_words([within], KEYS, file=file, key=key)
        return Included(within, text(table, "note", file=file, key=key))
    return quantity(table, key, file=file, sources=sources)


def sections(tables: Table, *, file: str, sources: Iterable[str]) -> dict[str, Entry]:
    """All quantities, by key."""
    entries: dict[str, Entry] = {}
    for section in SECTIONS:
        for name, table in part(tables, section, file=file).items():
            key = f"{section}.{name}"
            known_words([key], KEYS, file=file, key=key)
            entries[key] = entry(table, key, file=file, sources=sources)
    for key, each in entries.items():
        if isinstance(each, Included) and not isinstance(entries.get(each.within), Quantity):
            complain(file, key, f"it is said to be within {each.within}, which has no value")
    return entries


def read_sources(tables: Table, *, file: str) -> dict[str, Source]:
    """The sources, by name."""
    found = {}
    for name in part(tables, "sources", file=file):
        key = f"sources.{name}"
        table = part(tables["sources"], name, file=file, key=key)
        known_words(table, ("ref", "doi", "caveat"), file=file, key=key)
        ref = text(table, "ref", file=file, key=key)
        found[name] = Source(name, ref, str(table.get("doi", "")), str(table.get("caveat", "")))
    return found


def read_batches(tables: Table, *, file: str, sources: Iterable[str]) -> tuple[BatchPoint, ...]:
    """The measured batch sizes of a dense device."""
    points = []
    for place, table in enumerate(listed(tables, "batch", dict, file=file)):
        key = f"batch[{place}]"
        known_words(table, ("batch", "mac", "inferences_per_second"), file=file, key=key)
        batch = number(table, "batch", file=file, key=key)
        speed = number(table, "inferences_per_second", file=file, key=key)
        mac = entry(table.get("mac"), "energy.synop", file=file, sources=sources)
        if not isinstance(mac, Quantity) or batch < 1 or batch != int(batch) or speed <= 0:
            complain(file, key, "it needs a whole batch, a cost per MAC and a speed")
        points.append(BatchPoint(int(batch), mac, speed))
    return tuple(sorted(points, key=lambda point: point.batch))


def to_profile(tables: Table, *, file: str, overridden: tuple[str, ...] = ()) -> Profile:
    """The profile that the tables of a file describe."""
    known_words(tables, TOP, file=file, key="")
    if tables.get("schema") != SCHEMA:
        complain(file, "schema", f"{tables.get('schema')!r} is not {SCHEMA!r}")
    device = word(Device, tables, "device", file=file, key="device")
    sources = read_sources(tables, file=file)
    entries = sections(tables, file=file, sources=sources)
    operating_point = part(tables, "operating_point", file=file)
    if device is Device.SPIKING:
        for key in REQUIRED:
            if key not in entries:
                complain(file, key, "it is missing; write { unknown = true, note = ... } if it is")
        if not operating_point:
            complain(file, "operating_point", "it is missing; say at which voltage or clock")
    return Profile(
        name=text(tables, "name", file=file, key="name"),
        title=text(tables, "title", file=file, key="title"),
        device=device,
        timing=word(Timing, tables, "timing", file=file, key="timing"),
        sources=sources,
        operating_point={k: str(v) for k, v in operating_point.items()},
        entries=entries,
        file=file,
        notes=tuple(listed(tables, "notes", str, file=file)),
        unchecked=tuple(listed(tables, "unchecked", str, file=file)),
        scenario=str(tables.get("scenario", "")),
        batches=read_batches(tables, file=file, sources=sources),
        overridden=overridden,
    )
