"""Hardware profiles by name or file, with `extends`, `scale` and overrides applied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.profile import (
    Basis,
    Device,
    Entry,
    Evidence,
    Kind,
    Profile,
    Quantity,
    Source,
    Unknown,
)
from neuro_eqprop.chips.profiles.schema import KINDS, SECTIONS, ProfileError, check_key, to_profile
from neuro_eqprop.chips.quantities import DIMENSIONS, KEYS
from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.files.package_data import data_folder
from neuro_eqprop.files.toml import Table, read_toml

GIVEN = "given"
"""The source of values that a user changed."""
USER_ORIGIN = {"src": GIVEN, "basis": Basis.GIVEN.value, "evidence": Evidence.GIVEN.value}
USER = "user"
"""In the table `scale` of a scenario: a factor that the user has to give."""
SCALED_SECTIONS = ("energy", "power", "time")

Overrides = Mapping[str, str | float]
"""New values by key, in SI units or as text with a unit: {"energy.synop": "30pJ"}."""

MOST_EXTENDED = 16
"""Profiles that may extend each other in a chain."""


def profile_folder() -> Path:
    """The folder of the profiles that ship with the package."""
    return data_folder("hardware_profiles")


def profile_names() -> list[str]:
    """The names of the profiles that ship with the package.

    Examples
    --------
    >>> from neuro_eqprop.chips.profiles.load import profile_names
    >>> "loihi1" in profile_names()
    True

    """
    return sorted(path.stem for path in profile_folder().glob("*.toml"))


def spiking_chips() -> list[str]:
    """The names of the spiking chips that ship with the package, without scenarios."""
    profiles = (load_profile(name) for name in profile_names())
    return [each.name for each in profiles if each.device is Device.SPIKING and not each.scenario]


def load_profile(profile: str | Path | Profile, overrides: Overrides | None = None) -> Profile:
    """A hardware profile by name or by file.

    Parameters
    ----------
    profile
        The name of a profile that ships with the package (see `profile_names`), the path of a
        TOML file (it ends in ``.toml``), or a profile, which is returned with the overrides.
    overrides
        New values by key, in SI units or as text with a unit. Keys are those of the profile's
        file, such as ``"energy.synop"``; ``"scale"`` or ``"scale.energy"`` sets the factors of a
        scenario. An overridden value has no range. What was changed is in `Profile.overridden`.

    Returns
    -------
    Profile
        Limits and costs of a chip, each with unit, range and source.

    Raises
    ------
    UnknownNameError
        No profile has that name; the message lists the known ones, closest first.
    ProfileError
        The file or an override is invalid; the message names file, key and reason.

    Examples
    --------
    >>> from neuro_eqprop import load_profile
    >>> chip = load_profile("loihi1", {"energy.synop": "30pJ"})
    >>> chip.known("energy.synop").value
    3e-11
    >>> chip.overridden
    ('energy.synop: 2.36e-11 J -> 3e-11 J (override)',)

    """
    overrides = dict(overrides or {})
    if isinstance(profile, Profile):
        return apply_overrides(profile, overrides)
    path = find(str(profile))
    tables, changed = resolve(path, seen=())
    top = Table(tables, path.name, error=ProfileError)
    factors = dict(top.table("scale").content)
    for key in [key for key in overrides if key.partition(".")[0] == "scale"]:
        names = [name for name in factors if key in ("scale", f"scale.{name}")]
        if not names:
            top.fail(f"there is no such factor; there are {sorted(factors)}", key=key)
        value = overrides.pop(key)
        factors |= dict.fromkeys(names, to_float(value))
    return apply_overrides(scale(to_profile(top, overridden=changed), factors), overrides)


def load_profiles(
    names: Iterable[str | Path | Profile], overrides: Iterable[str] = ()
) -> list[Profile]:
    """Several profiles; each override names its profile: ``"loihi1.energy.synop=30pJ"``."""
    targets = {name_of(each): each for each in names}
    wanted = overrides_by_profile(targets, overrides)
    return [load_profile(each, wanted[name]) for name, each in targets.items()]


def overrides_by_profile(
    names: Iterable[str], overrides: Iterable[str]
) -> dict[str, dict[str, str | float]]:
    """Overrides such as ``"loihi1.energy.synop=30pJ"``, by name of the profile and key."""
    wanted: dict[str, dict[str, str | float]] = {name: {} for name in names}
    for each in overrides:
        name, _, rest = each.partition(".")
        if name not in wanted or not rest:
            listed = ", ".join(closest_first(name, wanted))
            raise ProfileError(
                f"override {each!r} names no profile of this call ({listed}); "
                "it reads PROFILE.SECTION.KEY=VALUE, as in loihi1.energy.synop=30pJ"
            )
        key, value = parse_override(rest)
        wanted[name][key] = value
    return wanted


def parse_override(text: str) -> tuple[str, str]:
    """Key and value of "energy.synop=30pJ"."""
    key, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise ProfileError(f"override {text!r} has no value; it reads SECTION.KEY=VALUE")
    return key.strip(), value.strip()


@lru_cache(maxsize=64)
def base_name(name: str) -> str:
    """The name of the chip that a shipped profile is a variant of, or its own."""
    path = profile_folder() / f"{name}.toml"
    base = read_toml(path, ProfileError).content.get("extends") if path.is_file() else None
    return name if base is None else base_name(str(base))


def name_of(profile: str | Path | Profile) -> str:
    """The name of a profile as overrides use it."""
    if isinstance(profile, Profile):
        return profile.name
    return Path(profile).stem if str(profile).endswith(".toml") else str(profile)


def find(name: str) -> Path:
    """The file of a profile: a path that ends in .toml, or that of a shipped profile."""
    if name.endswith(".toml"):
        return Path(name)
    if name not in profile_names():
        hint = "a file of your own is named by its path, which ends in .toml"
        raise UnknownNameError("profile", name, profile_names(), hint)
    return profile_folder() / f"{name}.toml"


def resolve(path: Path, *, seen: tuple[Path, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables of a file merged over those of the profile it extends, and what they changed."""
    place = Path(os.path.realpath(path))  # which links that form a loop do not stop
    if place in seen:
        raise ProfileError(f"{path}: extends itself, by way of {seen[-1].name}")
    if len(seen) > MOST_EXTENDED:
        raise ProfileError(f"{path}: more than {MOST_EXTENDED} profiles extend each other")
    own = dict(read_toml(path, ProfileError).content)
    if "extends" not in own:
        return own, ()
    top = Table(own, path.name, error=ProfileError)
    base = str(own.pop("extends"))
    beside = path.parent / f"{base}.toml"
    try:
        parent = beside if beside.is_file() and base not in profile_names() else find(base)
    except UnknownNameError as error:
        top.fail(str(error), key="extends")
    tables, changed = resolve(parent, seen=(*seen, place))
    merged, more = merge(top, tables)
    shipped = place.parent == profile_folder()
    return merged, changed if shipped else (*changed, *more)


def merge(own: Table, base: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The tables of a base profile updated with `own` ones, and the quantities that changed."""
    tables = deepcopy(dict(base))
    tables.pop("notes", None)  # they describe the base chip
    changed = []
    for name, value in own.content.items():
        if name in SECTIONS:
            section, part = tables.setdefault(name, {}), own.table(name)
            for key in part.content:
                before = section.get(key, {})
                section[key] = merge_quantity(part.table(key), before)
                change = f"{describe_table(before)} -> {describe_table(section[key])}"
                changed.append(f"{name}.{key}: {change} ({own.file})")
        elif isinstance(value, dict):
            tables[name] = {**own.at(name, tables.get(name, {})).content, **value}
        else:
            tables[name] = value
    tables.setdefault("sources", {})[GIVEN] = {"ref": f"given in {own.file}"}
    return tables, tuple(changed)


def merge_quantity(own: Table, base: Mapping[str, Any]) -> dict[str, Any]:
    """One quantity over another: fields not repeated stay; a new value replaces the range."""
    if "unknown" in own or "within" in own:
        return dict(own.content)
    if "value" not in own:
        return {**base, **own.content}
    kept = {field: base[field] for field in ("unit", "kind", "boundary") if field in base}
    no_range = {"low": own.content["value"], "high": own.content["value"]}
    origin = {} if "src" in own else {**USER_ORIGIN, "where": own.file}
    return {**kept, **no_range, **origin, **own.content}


def describe_table(table: Mapping[str, Any]) -> str:
    """A quantity of a file as a short text."""
    if "value" not in table:
        return "unknown" if not table or "unknown" in table else "as noted"
    return f"{table['value']} {table.get('unit', '')}".strip()


def to_float(value: str | float) -> float:
    """A number, given as such or as text."""
    try:
        return float(value)
    except ValueError:
        raise ProfileError(f"{value!r} is not a number") from None


def to_si(value: str | float, dimension: str) -> float:
    """A number in SI units, given as such or as text with a unit of its dimension."""
    units = DIMENSIONS[dimension]
    if isinstance(value, str):
        for unit in sorted(units, key=len, reverse=True):
            if value.endswith(unit) and value[: -len(unit)].strip()[-1:].isdigit():
                return to_float(value[: -len(unit)]) * units[unit]
    return to_float(value)


def apply_overrides(profile: Profile, overrides: Overrides) -> Profile:
    """The profile with the values of a user, which have no range."""
    for key, value in overrides.items():
        call = Table({}, "override", f"{key}={value}", ProfileError)
        check_key(key, call)
        rule, section = KEYS[key], key.partition(".")[0]
        number = Table({"value": to_si(value, rule.dimension)}, call.file, call.key, call.error)
        given = number.number("value")
        if key == "energy.synop_all_in":
            call.fail("an all-in cost needs its operating point; write a TOML file")
        if given <= 0 and section != "support":
            call.fail("zero is not a value; leave what is not known unknown")
        before = profile.entry(key)
        boundary = before.boundary if isinstance(before, Quantity) else rule.boundary
        quantity = Quantity(
            *(given, given, given, rule.dimension, KINDS.get(section, Kind.CAPACITY)),
            *(Basis.GIVEN, Evidence.GIVEN, GIVEN, "override"),
            boundary=boundary,
        )
        sources = {**profile.sources, GIVEN: Source(GIVEN, "given by the user")}
        change = f"{key}: {describe_entry(before)} -> {given:g} {rule.dimension} (override)"
        profile = replace(profile, sources=sources).with_quantity(key, quantity, change)
    return profile


def describe_entry(entry: Entry) -> str:
    """An entry of a profile as a short text."""
    if isinstance(entry, Quantity):
        return f"{entry.value:g} {entry.unit}"
    return "unknown" if isinstance(entry, Unknown) else f"within {entry.within}"


def scale(profile: Profile, factors: Mapping[str, Any]) -> Profile:
    """A scenario: every quantity of a section times the factor given for it."""
    table = Table(factors, profile.file, "scale", ProfileError)
    table.check_keys(SCALED_SECTIONS)
    missing = tuple(sorted(name for name, value in factors.items() if value == USER))
    entries = dict(profile.entries)
    changes = []
    for name in (name for name in factors if name not in missing):
        factor = table.number(name)
        if factor <= 0:
            table.fail("a factor must be above zero", key=f"scale.{name}")
        for key, each in profile.entries.items():
            if key.startswith(f"{name}.") and isinstance(each, Quantity):
                numbers = (each.value * factor, each.low * factor, each.high * factor)
                value, low, high = numbers
                entries[key] = replace(each, value=value, low=low, high=high)
        changes.append(f"{name}: every value x {factor:g} (scenario)")
    overridden = (*profile.overridden, *changes)
    return replace(profile, entries=entries, missing=missing, overridden=overridden)
