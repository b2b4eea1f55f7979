"""Energy estimates as a report sees them, read from JSON with nothing taken for granted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from neuro_eqprop.energy.verdict import sentence
from neuro_eqprop.io.atomic import write_text

Row: TypeAlias = Mapping[str, Any]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Term:
    """Joules with their range."""

    name: str
    joules: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ChipEstimateRecord:
    """The joules of one use (inference or learning) of a network on one chip."""

    profile: str
    title: str
    use: str
    total: Term | None
    terms: tuple[Term, ...]
    unknown: tuple[str, ...]
    boundary: str
    """What the total is drawn around: the chip, the board, the moving parts only."""
    reason: str
    """Why there is no total."""
    facts: Row
    """What the placement says: fits, cores, chips, binding; the seconds of one use; the training.

    The training is all lessons together: presentations, joules, low, high.
    """
    changes: tuple[str, ...] = ()
    """Values of the user's own, or of a scenario, in words."""


@dataclass(frozen=True, slots=True)
class EnergyRecord:
    """All chips, and devices that do the same work densely."""

    chips: tuple[ChipEstimateRecord, ...] = ()
    devices: tuple[tuple[Term, str], ...] = ()
    """Each with the boundary of its measurement."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """By chip: against which devices spikes win."""
    curves: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """By chip: accuracy, joules, low, high, code, steps, front and best of each setting."""
    counted: Row = field(default_factory=dict)
    """What was counted, on how many samples, with the coding of the input."""
    options: tuple[str, ...] = ()
    """The options of the call that made the estimate."""


def write_json(path: Path, content: Row) -> None:
    """Write an energy file."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def number(value: object) -> float | None:
    """A finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def word(value: object) -> str:
    """A text; empty where there is none."""
    return "" if value is None else str(value)


def rows(held: object, name: str) -> list[Row]:
    """The objects in a list that stands under a name; none where there is no such list."""
    listed = held.get(name) if isinstance(held, Mapping) else None
    return (
        [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    )


def read_bills(held: object) -> EnergyRecord:
    """The estimates in what `energy` writes."""
    chips = tuple(
        bill(profile, use)
        for profile in rows(held, "profiles")
        for use in ("inference", "learning")
        if isinstance(profile.get(use), Mapping)
    )
    devices: list[tuple[Term, str]] = []
    for row in rows(held, "reference"):
        found = term(f"{word(row.get('device'))}, batch {word(row.get('batch'))}", row)
        if found is not None:
            devices.append((found, plain(row.get("boundary"))))
    compared: dict[str, list[Row]] = {}
    for row in rows(held, "comparison"):
        compared.setdefault(word(row.get("profile")), []).append(row)
    input_coding, options = (
        held.get(name) if isinstance(held, Mapping) else None
        for name in ("input_coding", "options")
    )
    return EnergyRecord(
        chips,
        tuple(devices),
        {name: sentence(each) for name, each in compared.items()},
        {name: points(each) for name, each in part_of(held, "curve").items()},
        {**part_of(held, "counted"), "input_coding": input_coding},
        tuple(str(each) for each in options) if isinstance(options, list) else (),
    )


def part_of(held: object, name: str) -> Row:
    """The object that stands under a name; an empty one where there is none."""
    found = held.get(name) if isinstance(held, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def points(curve: object) -> tuple[Row, ...]:
    """The settings of a curve whose accuracy and joules are known."""
    return tuple(
        {
            "code": word(row.get("code")),
            "steps": number(row.get("steps")),
            "accuracy": number(row.get("accuracy")),
            **asdict(made),
            **{name: row.get(name) is True for name in ("front", "best", "fits")},
        }
        for row in rows(curve, "points")
        if (made := term("", row)) is not None
        and made.joules > 0
        and number(row.get("accuracy")) is not None
    )


def bill(profile: Row, use: str) -> ChipEstimateRecord:
    """One estimate; terms may be a mapping by name or a list of named terms."""
    part = profile[use]
    listed = part.get("terms")
    if isinstance(listed, Mapping):
        named = [(str(name), each) for name, each in listed.items()]
    else:
        named = [(word(each.get("name")), each) for each in rows(part, "terms")]
    terms = [term(name, each) for name, each in named]
    unknown = part.get("unknown")
    name = word(profile.get("profile"))
    facts = {key: part.get(key, profile.get(key)) for key in ("fits", "cores", "chips", "binding")}
    return ChipEstimateRecord(
        name,
        word(profile.get("title")) or name,
        use,
        term("total", part),
        tuple(sorted((t for t in terms if t), key=lambda t: -t.joules)),
        tuple(str(each) for each in unknown) if isinstance(unknown, list) else (),
        plain(part.get("boundary")),
        word(part.get("reason")),
        facts | {name: part.get(name) for name in ("seconds", "training", "energy_delay_product")},
        changes(profile),
    )


def changes(profile: Row) -> tuple[str, ...]:
    """What a chip stands for if that is not what its profile says."""
    scenario, changed = word(profile.get("scenario")), profile.get("overridden")
    told = [f"scenario: {scenario}"] if scenario else []
    return (*told, *(str(each) for each in changed)) if isinstance(changed, list) else tuple(told)


def plain(value: object) -> str:
    """A word of the program as people write it."""
    return word(value).replace("_", " ")


def term(name: str, held: object) -> Term | None:
    """A term with its range; without one, low and high are the value itself."""
    row = held if isinstance(held, Mapping) else {"joules": held}
    joules = number(row.get("joules"))
    if joules is None:
        return None
    low, high = number(row.get("low")), number(row.get("high"))
    return Term(name, joules, joules if low is None else low, joules if high is None else high)
