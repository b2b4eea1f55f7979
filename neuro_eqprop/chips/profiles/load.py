"""Hardware profiles by name or file, with `extends`, `scale` and overrides applied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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
    ProfileSource,
    Quantity,
    Unknown,
)
from neuro_eqprop.chips.profiles.schema import (
    ALL_IN,
    KINDS,
    PROFILE,
    SECTIONS,
    ProfileError,
    check_key,
    to_profile,
)
from neuro_eqprop.chips.quantities import KEYS, parse_amount
from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.files.package_data import data_folder
from neuro_eqprop.files.read import Json, read_toml

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
    content, changed = resolve(path, seen=())
    tables = PROFILE.decode(content, path.name)
    factors: dict[str, str | float] = dict(tables.scale)
    for key in [key for key in overrides if key.partition(".")[0] == "scale"]:
        names = [name for name in factors if key in ("scale", f"scale.{name}")]
        if not names:
            raise ProfileError(
                f"{path.name}: {key}: there is no such factor; there are {sorted(factors)}"
            )
        factors |= dict.fromkeys(names, overrides.pop(key))
    scaled = scale(to_profile(tables, path.name, overridden=changed), factors)
    return apply_overrides(scaled, overrides)


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
    base = read_toml(path, ProfileError).get("extends") if path.is_file() else None
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


def check_extension(base: str, out: Path) -> None:
    """Refuse to write a profile over the one that it extends."""
    if out.suffix != ".toml":
        raise ValueError(f"{out}: a profile is a TOML file; let its name end in .toml")
    if os.path.realpath(find(base)) == os.path.realpath(out):
        raise ValueError(f"{out} is the profile that would be extended; give another name")


def resolve(path: Path, *, seen: tuple[Path, ...]) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The content of a file merged over that of the profile it extends, and what it changed."""
    place = Path(os.path.realpath(path))  # which links that form a loop do not stop
    if place in seen:
        raise ProfileError(f"{path}: extends itself, by way of {seen[-1].name}")
    if len(seen) > MOST_EXTENDED:
        raise ProfileError(f"{path}: more than {MOST_EXTENDED} profiles extend each other")
    own = read_toml(path, ProfileError)
    if "extends" not in own:
        return own, ()
    base = str(own.pop("extends"))
    beside = path.parent / f"{base}.toml"
    try:
        parent = beside if beside.is_file() and base not in profile_names() else find(base)
    except UnknownNameError as error:
        raise ProfileError(f"{path.name}: extends: {error}") from None
    content, changed = resolve(parent, seen=(*seen, place))
    merged, more = merge(own, content, path.name)
    shipped = place.parent == profile_folder()
    return merged, changed if shipped else (*changed, *more)


def merge(
    own: Mapping[str, Json], base: Mapping[str, Json], file: str
) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The content of a base profile updated with that of `file`, and the changed quantities."""
    # Notes and calibration are those of the base chip alone.
    merged = {k: value for k, value in base.items() if k not in ("notes", "calibration", "fit")}
    changed = []
    for name, value in own.items():
        if not isinstance(value, dict) or not isinstance(merged.get(name, {}), dict):
            merged[name] = value
            continue
        merged[name] = {**merged.get(name, {}), **value}
        for key, table in value.items() if name in SECTIONS else ():
            before = base.get(name, {}).get(key, {})
            merged[name][key] = after = merge_quantity(table, before, file)
            change = f"{describe_table(before)} -> {describe_table(after)}"
            changed.append(f"{name}.{key}: {change} ({file})")
    given = {GIVEN: {"ref": f"given in {file}"}}
    return {**merged, "sources": {**merged.get("sources", {}), **given}}, tuple(changed)


def merge_quantity(own: Json, base: Mapping[str, Any], file: str) -> Json:
    """One quantity over another: fields not repeated stay; a new value replaces the range."""
    if not isinstance(own, dict) or "unknown" in own or "within" in own:
        return own
    if "value" not in own:
        return {**base, **own}
    kept = {field: base[field] for field in ("unit", "kind", "boundary") if field in base}
    no_range = {"low": own["value"], "high": own["value"]}
    origin = {} if "src" in own else {**USER_ORIGIN, "where": file}
    return {**kept, **no_range, **origin, **own}


def describe_table(table: Json) -> str:
    """A quantity of a file as a short text."""
    if not isinstance(table, dict) or "value" not in table:
        return "unknown" if not table or "unknown" in table else "as noted"
    return f"{table['value']} {table.get('unit', '')}".strip()


def apply_overrides(profile: Profile, overrides: Overrides) -> Profile:
    """The profile with the values of a user, which have no range."""
    for key, value in overrides.items():
        where = f"override: {key}={value}"
        check_key(key, where)
        rule, section = KEYS[key], key.partition(".")[0]
        if key == ALL_IN:
            raise ProfileError(
                f"{where}: an all-in cost needs its operating point; write a TOML file"
            )
        try:
            number = parse_amount(value, rule.dimension)
        except ValueError as error:
            raise ProfileError(f"{where}: {error}; leave what is not known unknown") from None
        before = profile.entry(key)
        boundary = before.boundary if isinstance(before, Quantity) else rule.boundary
        quantity = Quantity(
            *(number, number, number, rule.dimension, KINDS.get(section, Kind.CAPACITY)),
            *(Basis.GIVEN, Evidence.GIVEN, GIVEN, "override"),
            boundary=boundary,
        )
        change = f"{key}: {describe_entry(before)} -> {number:g} {rule.dimension} (override)"
        profile = replace(
            profile,
            sources={**profile.sources, GIVEN: ProfileSource("given by the user")},
            entries={**profile.entries, key: quantity},
            overridden=(*profile.overridden, change),
            calibration=profile.calibration if section not in KINDS else {},
        )
    return profile


def describe_entry(entry: Entry) -> str:
    """An entry of a profile as a short text."""
    if isinstance(entry, Quantity):
        return f"{entry.value:g} {entry.unit}"
    return "unknown" if isinstance(entry, Unknown) else f"within {entry.within}"


def scale(profile: Profile, factors: Mapping[str, str | float]) -> Profile:
    """A scenario: every quantity of a section times the factor given for it."""
    given = {}
    for name, factor in factors.items():
        if name not in SCALED_SECTIONS:
            raise ProfileError(
                f"{profile.file}: scale: {name!r} is not one of {', '.join(SCALED_SECTIONS)}"
            )
        if factor != USER:
            try:
                given[name] = parse_amount(factor, "count")
            except ValueError as error:
                raise ProfileError(f"{profile.file}: scale.{name}: {error}") from None
    changes = (f"{name}: every value x {by:g} (scenario)" for name, by in given.items())
    missing = tuple(sorted(name for name in factors if name not in given))
    return replace(profile.times(given, *changes), missing=missing)
