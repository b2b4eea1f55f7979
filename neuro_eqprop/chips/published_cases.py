"""Published measurements in TOML files: those that ship with the profiles, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.profiles.load import parse_override, profile_folder
from neuro_eqprop.chips.profiles.schema import check_key
from neuro_eqprop.chips.published import Case, PublishedNetwork
from neuro_eqprop.files.toml import Table, build, read_toml

SCHEMA = "neuro_eqprop.cases/1"


def case_files() -> list[Path]:
    """The files of published measurements that ship with the profiles."""
    return sorted((profile_folder() / "validation").glob("*.toml"))


def read_cases(path: Path) -> list[Case]:
    """The published measurements of a file."""
    top = read_toml(path)
    top.check_keys(("schema", "case", "network"))
    top.check_schema(SCHEMA)
    cases = top.tables("case")
    if not cases:
        top.fail("there is none; a case is a table [[case]]", key="case")
    networks = {each.text("name"): build(PublishedNetwork, each) for each in top.tables("network")}
    return [read_case(each, networks) for each in cases]


def read_case(table: Table, networks: Mapping[str, PublishedNetwork]) -> Case:
    """One published measurement."""
    key = f"{table.key} {table.content.get('name', '')}".strip()
    table = Table(table.content, table.file, key, table.error)
    events = table.table("events")
    for name in events.content:
        check_key(f"energy.{name}", table)
    ranges = {name: read_range(events, name) for name in events.content}
    overrides = dict(map(parse_override, table.texts("overrides")))
    network = None
    if "network" in table:
        name = table.text("network")
        if name not in networks:
            listed = ", ".join(networks) or "none"
            table.fail(f"network {name!r} is not one of the tables [[network]]: {listed}")
        network = networks[name]
    return build(Case, table, events=ranges, overrides=overrides, network=network)


def read_range(events: Table, name: str) -> tuple[float, float]:
    """A number of events, or the lowest and highest there can be."""
    value: Any = events.content[name]
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2:
        events.fail("it must be a number, or the lowest and the highest", key=events.path(name))
    ends = Table({"low": pair[0], "high": pair[1]}, events.file, events.path(name), events.error)
    low, high = ends.number("low"), ends.number("high")
    if low > high:
        ends.fail(f"low {low:g} is above high {high:g}")
    return low, high
