"""Published measurements on disk, as TOML: those that ship with the profiles, and a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuro_eqprop.hardware.profile import Boundary
from neuro_eqprop.hardware.published import Case, Line, Measure, Role
from neuro_eqprop.hardware.quantities import KEYS
from neuro_eqprop.io.profile.load import folder, read_toml
from neuro_eqprop.io.toml import Table, complain, known_words, number, text, word

SCHEMA = "neuro_eqprop.cases/1"
FIELDS = (
    *("name", "profile", "role", "grade", "measure", "measured", "boundary", "source", "where"),
    "uncertainty",
    *("events", "seconds", "line", "clock_hz", "overhead", "overrides", "tolerance", "in_range"),
    "note",
)
OVERHEADS = ("", "loaded_idle", "static_and_host")


def shipped() -> list[Path]:
    """The files of cases that ship with the profiles."""
    return sorted((folder() / "validation").glob("*.toml"))


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, checked."""
    tables = read_toml(path)
    known_words(tables, ("schema", "case"), file=path.name, key="")
    if tables.get("schema") != SCHEMA:
        complain(path.name, "schema", f"{tables.get('schema')!r} is not {SCHEMA!r}")
    listed = tables.get("case", [])
    if not isinstance(listed, list) or not listed:
        complain(path.name, "case", "there is none; a case is a table [[case]]")
    return [read_case(each, file=path.name, place=k) for k, each in enumerate(listed)]


def read_case(table: Table, *, file: str, place: int) -> Case:
    """One case."""
    key = f"case[{place}] {table.get('name', '')}".strip()
    known_words(table, FIELDS, file=file, key=key)
    events = {
        name: amount(value, file=file, key=f"{key} events.{name}")
        for name, value in table.get("events", {}).items()
    }
    known_words((f"energy.{name}" for name in events), KEYS, file=file, key=key)
    line = table.get("line")
    if not events and line is None:
        complain(file, key, "it has neither events nor a line to predict from")
    if str(table.get("overhead", "")) not in OVERHEADS:
        complain(file, key, f"overhead is one of {', '.join(OVERHEADS[1:])}")
    measured = number(table, "measured", file=file, key=key)
    if measured == 0:
        complain(file, key, "a measurement of zero has no error in parts of it")
    optional = {
        name: number(table, name, file=file, key=key) if name in table else None
        for name in ("clock_hz", "tolerance")
    }
    return Case(
        text(table, "name", file=file, key=key),
        text(table, "profile", file=file, key=key),
        word(Role, table, "role", file=file, key=key),
        text(table, "grade", file=file, key=key),
        word(Measure, table, "measure", file=file, key=key),
        measured,
        number(table, "uncertainty", file=file, key=key),
        word(Boundary, table, "boundary", file=file, key=key),
        text(table, "source", file=file, key=key),
        text(table, "where", file=file, key=key),
        events,
        number(table, "seconds", file=file, key=key) if "seconds" in table else 0.0,
        None if line is None else read_line(line, file=file, key=f"{key} line"),
        optional["clock_hz"],
        str(table.get("overhead", "")),
        tuple(str(each) for each in table.get("overrides", [])),
        optional["tolerance"],
        bool(table.get("in_range", False)),
        str(table.get("note", "")),
    )


def amount(value: Any, *, file: str, key: str) -> tuple[float, float]:  # noqa: ANN401
    """A number of events, or the lowest and highest there can be."""
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2:
        complain(file, key, "it is a number, or the lowest and the highest")
    low, high = (number({"n": each}, "n", file=file, key=key) for each in pair)
    if low > high:
        complain(file, key, f"low {low:g} is above high {high:g}")
    return low, high


def read_line(table: Table, *, file: str, key: str) -> Line:
    """A line by its two ends."""
    known_words(table, ("x", "y", "at", "rounding"), file=file, key=key)
    ends = []
    for axis in ("x", "y"):
        pair = table.get(axis)
        if not isinstance(pair, list) or len(pair) != 2:
            complain(file, key, f"{axis} takes the values of two ends")
        first, last = (number({axis: each}, axis, file=file, key=key) for each in pair)
        ends.append((first, last))
    if ends[0][0] == ends[0][1]:
        complain(file, key, "the two ends lie at the same x")
    at, rounding = (number(table, field, file=file, key=key) for field in ("at", "rounding"))
    return Line(ends[0], ends[1], at, rounding)
