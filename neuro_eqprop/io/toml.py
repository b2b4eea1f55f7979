"""Fields of the TOML files of profiles and cases, checked; a complaint names file and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from math import isfinite
from typing import Any, NoReturn, TypeAlias, TypeVar

from neuro_eqprop.arrays import closest_first

Table: TypeAlias = Mapping[str, Any]
Word = TypeVar("Word", bound=Enum)


class ProfileError(ValueError):
    """A profile says something that cannot be; the message names file, key and reason."""


def complain(file: str, key: str, reason: str) -> NoReturn:
    """Raise the error of a key."""
    raise ProfileError(f"{file}: {key}: {reason}")


def word(kind: type[Word], table: Table, field: str, *, file: str, key: str) -> Word:
    """A field that takes one of the words of an enumeration."""
    known = [each.value for each in kind]
    found = table.get(field)
    if found is None:
        complain(file, key, f"{field} is missing; it is one of {', '.join(known)}")
    if found not in known:
        closest = closest_first(str(found), known)
        complain(file, key, f"{field} {found!r} is not known; known: {', '.join(closest)}")
    return kind(found)


def number(table: Table, field: str, *, file: str, key: str) -> float:
    """A field that takes a number that is not negative."""
    found = table.get(field)
    if found is None:
        complain(
            file, key, f"{field} is missing; what is not known is written {{ unknown = true }}"
        )
    if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
        complain(file, key, f"{field} {found!r} is not a finite number")
    if found < 0:
        complain(file, key, f"{field} {found} is negative")
    return float(found)


def text(table: Table, field: str, *, file: str, key: str) -> str:
    """A field that takes words, which must be there."""
    found = table.get(field)
    if not isinstance(found, str) or not found.strip():
        complain(file, key, f"{field} is missing; it takes a text")
    return found


def part(tables: Table, name: str, *, file: str, key: str = "") -> dict[str, Any]:
    """The table that stands under a name; an empty one where there is none."""
    found = tables.get(name, {})
    if not isinstance(found, dict):
        complain(file, key or name, f"{found!r} is not a table; it reads [{key or name}]")
    return found


def listed(tables: Table, name: str, kind: type, *, file: str) -> list[Any]:
    """The list that stands under a name, all of one kind; an empty one where there is none."""
    found = tables.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        what = "sentences" if kind is str else f"tables; each begins with [[{name}]]"
        complain(file, name, f"it is a list of {what}")
    return found


def known_words(given: Iterable[str], allowed: Iterable[str], *, file: str, key: str) -> None:
    """Refuse a word that is none of the allowed, naming the closest."""
    allowed = list(allowed)
    for each in given:
        if each not in allowed:
            closest = closest_first(each, allowed)[0]
            complain(file, key or each, f"{each!r} is not known here; did you mean {closest!r}?")
