"""Profiles on disk: where they lie, how one extends another, how a user changes a value."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuro_eqprop.arrays import UnknownNameError, closest_first
from neuro_eqprop.hardware.profile import (
    Basis,
    Evidence,
    Included,
    Kind,
    Profile,
    Quantity,
    Source,
    Unknown,
)
from neuro_eqprop.hardware.quantities import DIMENSIONS, KEYS
from neuro_eqprop.io.package_data import shipped
from neuro_eqprop.io.profile.schema import SECTIONS, to_profile
from neuro_eqprop.io.toml import ProfileError, complain, known_words, number, part

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GIVEN = "given"
"""The name of the source of what a user changed."""
MINE = {"basis": Basis.GIVEN.value, "evidence": Evidence.GIVEN.value}
USER = "user"
"""In the table `scale` of a scenario: a factor the user has to give."""


def folder() -> Path:
    """Where the shipped profiles lie."""
    return shipped("hardware_profiles")


def names() -> list[str]:
    """The shipped profiles."""
    return sorted(path.stem for path in folder().glob("*.toml"))


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, or an error that says what is wrong with it."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ProfileError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: not readable as TOML: {error}") from error


def find(name: str) -> Path:
    """The file of a profile: a path that ends in .toml, or the name of a shipped one."""
    if name.endswith(".toml"):
        return Path(name)
    if name not in names():
        raise UnknownNameError("profile", name, names())
    return folder() / f"{name}.toml"


def known(name: str, *, file: str) -> Path:
    """The file of the profile that another file extends."""
    try:
        return find(name)
    except UnknownNameError as error:
        complain(file, "extends", str(error))


def load(name: str, overrides: Iterable[str] = ()) -> Profile:
    """A profile by name or file, with the user's changes ("loihi1.energy.synop=30pJ")."""
    path = find(name)
    tables, changed = resolve(path, seen=())
    given = [split(each) for each in overrides]
    scale = part({"scale": tables.pop("scale", {})}, "scale", file=path.name)
    for key, value, _ in given:
        for each in scale:
            if key in ("scale", f"scale.{each}"):
                scale[each] = number({"f": plain(value)}, "f", file=path.name, key=key)
    profile = scaled(to_profile(tables, file=path.name, overridden=changed), scale)
    for key, value, words in given:
        if key.partition(".")[0] != "scale":
            profile = override(profile, key, value, words)
        elif not scale or key not in ("scale", *(f"scale.{name}" for name in scale)):
            complain(path.name, key, f"there is no such factor; there are {sorted(scale)}")
    return profile


def load_all(chosen: Iterable[str], overrides: Iterable[str] = ()) -> list[Profile]:
    """The profiles of these names; an override whose profile is not among them is refused."""
    chosen, overrides = list(chosen), list(overrides)
    targets = {Path(name).stem if name.endswith(".toml") else name: name for name in chosen}
    wanted: dict[str, list[str]] = {name: [] for name in chosen}
    for each in overrides:
        target, _, rest = each.partition(".")
        if target not in targets or not rest:
            listed = ", ".join(closest_first(target, targets))
            raise ProfileError(
                f"override {each!r} names no profile of this call ({listed}); "
                "it reads PROFILE.SECTION.KEY=VALUE, as in loihi1.energy.synop=30pJ"
            )
        wanted[targets[target]].append(rest)
    return [load(name, wanted[name]) for name in chosen]


def resolve(path: Path, *, seen: tuple[Path, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables of a file laid over those of the profile it extends, and what that changed."""
    if path.resolve() in seen:
        raise ProfileError(f"{path}: extends itself, by way of {seen[-1].name}")
    own = read_toml(path)
    if "extends" not in own:
        return own, ()
    base = str(own.pop("extends"))
    beside = path.parent / f"{base}.toml"
    below = beside if beside.is_file() and base not in names() else known(base, file=path.name)
    tables, changed = resolve(below, seen=(*seen, path.resolve()))
    merged, more = lay(own, tables, file=path.name)
    ours = path.resolve().parent == folder()
    return merged, changed if ours else (*changed, *more)


def lay(
    own: Mapping[str, Any], base: Mapping[str, Any], *, file: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables of a base with one's own laid over, and in words which quantities changed."""
    tables = deepcopy(dict(base))
    changed = []
    for name, value in own.items():
        if name in SECTIONS:
            section = tables.setdefault(name, {})
            for key, table in part(own, name, file=file).items():
                before = section.get(key, {})
                section[key] = merge(table, before, file=file, key=f"{name}.{key}")
                changed.append(f"{name}.{key}: {say(before)} -> {say(section[key])} ({file})")
        elif isinstance(value, dict):
            tables[name] = {**part(tables, name, file=file), **value}
        else:
            tables[name] = value
    tables.setdefault("sources", {})[GIVEN] = {"ref": f"given in {file}"}
    return tables, tuple(changed)


def merge(own: object, base: Mapping[str, Any], *, file: str, key: str) -> dict[str, Any]:
    """One quantity over another: what is not said again stays; a new value brings its range."""
    if not isinstance(own, dict):
        complain(file, key, "a quantity is a table with value, unit, source and so on")
    if "unknown" in own or "within" in own or "value" not in own:
        return dict(own) if "unknown" in own or "within" in own else {**base, **own}
    kept = {field: base[field] for field in ("unit", "kind", "boundary") if field in base}
    range_ = {"low": own["value"], "high": own["value"]}
    origin = {} if "src" in own else {"src": GIVEN, "where": file, **MINE}
    return {**kept, **range_, **origin, **own}


def say(table: Mapping[str, Any]) -> str:
    """A quantity of a file in a few words."""
    if "value" not in table:
        return "unknown" if not table or "unknown" in table else "as noted"
    return f"{table['value']} {table.get('unit', '')}".strip()


def split(text: str) -> tuple[str, str, str]:
    """Key and value of "energy.synop=30pJ", and the text itself."""
    key, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise ProfileError(f"override {text!r} has no value; it reads SECTION.KEY=VALUE")
    return key.strip(), value.strip(), text


def plain(value: str) -> float:
    """A number written as text."""
    try:
        return float(value)
    except ValueError:
        raise ProfileError(f"{value!r} is not a number") from None


def with_unit(value: str, dimension: str) -> float:
    """A number in SI units, or followed by a unit of its dimension."""
    units = DIMENSIONS[dimension]
    for unit in sorted(units, key=len, reverse=True):
        if value.endswith(unit) and value[: -len(unit)].strip()[-1:].isdigit():
            return plain(value[: -len(unit)]) * units[unit]
    return plain(value)


def override(profile: Profile, key: str, value: str, words: str) -> Profile:
    """The profile with one value of the user's own."""
    known_words([key], KEYS, file="override", key=words)
    rule = KEYS[key]
    given = number({"v": with_unit(value, rule.dimension)}, "v", file="override", key=words)
    section = key.split(".", maxsplit=1)[0]
    if key == "energy.synop_all_in":
        complain("override", words, "an all-in cost needs its operating point; write a TOML file")
    if given <= 0 and section != "support":
        complain("override", words, "zero is not a value; leave what is not known unknown")
    before = profile.entry(key)
    kinds = {"energy": Kind.MARGINAL, "power": Kind.POWER, "time": Kind.TIME}
    boundary = before.boundary if isinstance(before, Quantity) else rule.boundary
    quantity = Quantity(
        *(given, given, given, rule.dimension, kinds.get(section, Kind.CAPACITY)),
        *(Basis.GIVEN, Evidence.GIVEN, GIVEN, "--override"),
        boundary=boundary,
    )
    sources = {**profile.sources, GIVEN: Source(GIVEN, "given on the command line")}
    told = f"{key}: {tell(before)} -> {given:g} {rule.dimension} (--override)"
    return replace(profile, sources=sources).change(key, quantity, told)


def tell(entry: Quantity | Unknown | Included) -> str:
    """An entry in a few words."""
    if isinstance(entry, Quantity):
        return f"{entry.value:g} {entry.unit}"
    return "unknown" if isinstance(entry, Unknown) else f"within {entry.within}"


def scaled(profile: Profile, scale: Mapping[str, Any]) -> Profile:
    """A scenario: every quantity of a section times the factor given for it."""
    missing = tuple(sorted(name for name, value in scale.items() if value == USER))
    entries = dict(profile.entries)
    told = []
    for name, value in scale.items():
        known_words([name], ("energy", "power", "time"), file=profile.file, key=f"scale.{name}")
        if value == USER:
            continue
        by = number({"f": value}, "f", file=profile.file, key=f"scale.{name}")
        if by <= 0:
            complain(profile.file, f"scale.{name}", "a factor must be above zero")
        for key, each in profile.entries.items():
            if key.startswith(f"{name}.") and isinstance(each, Quantity):
                entries[key] = replace(
                    each, value=each.value * by, low=each.low * by, high=each.high * by
                )
        told.append(f"{name}: every value x {by:g} (scenario)")
    done = (*profile.overridden, *told)
    return replace(profile, entries=entries, missing=missing, overridden=done)
