"""A claim, the cells that test it, and the verdict over them.

A cell is a pure configuration: the same cell gives the same result bytes on the same machine,
apart from fields named `seconds`. A verdict is `confirmed` or `refuted` only where the whole 95 %
interval lies on one side of the threshold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from math import isfinite
from typing import Any, TypeAlias

from neuro_eqprop.claims.charts import Chart
from neuro_eqprop.claims.statistics import Interval

Json: TypeAlias = dict[str, Any]
TIMING = "seconds"
"""The name of fields that may differ between two runs of a cell."""


class Budget(Enum):
    """How much time a verdict may take."""

    SMALL = "small"
    FULL = "full"


class Finding(Enum):
    """What the measurement says about the claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


class UndecidedError(RuntimeError):
    """A cell cannot be run here, for a reason that is no fault: data or a model is not there."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A named configuration; `name` labels it within its claim, the rest is what is run."""

    name: str
    function: str
    """In `neuro_eqprop.claims.registry`."""
    arguments: Mapping[str, Any]
    seed: int
    needed: bool = True
    """Whether the verdict rests on it; others only illustrate."""

    def configuration(self) -> Json:
        """What is run, as JSON."""
        from neuro_eqprop.claims.registry import version

        return {
            "function": self.function,
            "version": version(self.function),
            "arguments": dict(self.arguments),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """The SHA-256 of the configuration: two claims that need the same cell share it."""
        return sha256(canonical(self.configuration())).hexdigest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell: its values, or the error that it ended with."""

    cell: Cell
    values: Json = field(default_factory=dict)
    error: str | None = None
    seconds: float = 0.0
    """Of the processor."""


Outcomes: TypeAlias = Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding with the number it rests on."""

    finding: Finding
    note: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    seeds: int = 0
    effect: float | None = None
    """Hedges' g, where two things are compared."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the notes, and how it is tested."""

    id: str
    statement: str
    source: str
    threshold: str
    method: str
    """With the sizes of the budget in braces."""
    sizes: Mapping[Budget, Mapping[str, Any]]
    cells: Callable[[Budget], tuple[Cell, ...]]
    judge: Callable[[Outcomes], Verdict]
    meaning: Mapping[Finding, str]
    conflict: str = ""
    """Where the notes contradict each other, and which version holds."""
    chart: Callable[[Outcomes], tuple[Chart, ...]] | None = None
    """The panels of its figure."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """The columns of its table and the path of the number in each; all plain numbers if none."""
    partial: bool = False
    """Whether it can be judged while cells are missing; it is then at most refuted."""

    def told(self, budget: Budget) -> str:
        """The method with its sizes."""
        return self.method.format_map(dict(self.sizes[budget]))


def canonical(values: Mapping[str, Any]) -> bytes:
    """JSON with one spelling, so that equal content is equal bytes."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def timeless(values: Any) -> Any:  # noqa: ANN401
    """The values without fields that may differ between two runs."""
    if isinstance(values, Mapping):
        return {key: timeless(part) for key, part in values.items() if key != TIMING}
    if isinstance(values, list | tuple):
        return [timeless(part) for part in values]
    return values


def named(outcomes: Outcomes, name: str) -> dict[int, Json]:
    """The values of the cells of that name, by seed."""
    return {each.cell.seed: each.values for each in outcomes if each.cell.name == name}


def column(outcomes: Outcomes, name: str, key: str) -> list[float]:
    """One number of each cell of that name, in the order of the seeds."""
    found = named(outcomes, name)
    if not found:
        raise ValueError(f"there is no cell {name!r} to judge by")
    return [float(found[seed][key]) for seed in sorted(found)]


def names(outcomes: Outcomes) -> list[str]:
    """The names of the cells, each once, in their order."""
    return list(dict.fromkeys(each.cell.name for each in outcomes))


def above(found: Interval, threshold: float) -> Finding:
    """Whether the whole interval lies above the threshold (confirmed) or below it (refuted)."""
    if found.low > threshold:
        return Finding.CONFIRMED
    return Finding.REFUTED if found.high < threshold else Finding.UNDECIDED


def below(found: Interval, threshold: float) -> Finding:
    """Whether the whole interval lies below the threshold (confirmed) or above it (refuted)."""
    return above(Interval(-found.value, -found.high, -found.low, found.size), -threshold)


def every(findings: Sequence[Finding]) -> Finding:
    """A claim of several parts: refuted by any, confirmed by all."""
    if Finding.REFUTED in findings:
        return Finding.REFUTED
    return Finding.UNDECIDED if Finding.UNDECIDED in findings else Finding.CONFIRMED


def verdict(
    finding: Finding, found: Interval, note: str, *, effect: float | None = None
) -> Verdict:
    """A verdict on an interval; an interval without end (one seed) is not shown."""
    known = isfinite(found.low) and isfinite(found.high)
    shown = (found.low, found.high) if known else None
    return Verdict(finding, note, found.value, shown, found.size, effect)


def conclude(claim: Claim, outcomes: Outcomes) -> Verdict:
    """The verdict over all cells of a claim, also where some of them failed."""
    failed = [each for each in outcomes if each.error is not None]
    missing = [each for each in failed if each.cell.needed]
    worked = [each for each in outcomes if each.error is None]
    if missing and (not claim.partial or not worked):
        return Verdict(Finding.UNDECIDED, reason(missing, len(outcomes)))
    try:
        found = claim.judge(worked)
    except ValueError as error:  # too few cells for a statistic
        return Verdict(Finding.UNDECIDED, f"undecided: {error}")
    if missing:
        limited = Finding.UNDECIDED if found.finding is Finding.CONFIRMED else found.finding
        return replace(found, finding=limited, note=f"{found.note} {without(missing)}")
    return replace(found, note=f"{found.note} {without(failed)}") if failed else found


def reason(missing: Outcomes, total: int) -> str:
    """Why there is no verdict."""
    causes = list(dict.fromkeys(str(each.error) for each in missing))
    if all(cause.startswith("undecided: ") for cause in causes):
        parts = [cause.removeprefix("undecided: ") for cause in causes]
        return f"undecided: {'; '.join(parts)}"
    return f"undecided: {len(missing)} of {total} cells failed ({causes[0]})"


def without(failed: Outcomes) -> str:
    """Which cells are left out, and why."""
    causes: dict[str, list[str]] = {}
    for each in failed:
        told = causes.setdefault(str(each.error).removeprefix("undecided: "), [])
        told += [each.cell.name] if each.cell.name not in told else []
    parts = [f"{', '.join(which)} ({cause})" for cause, which in causes.items()]
    return f"Left out: {'; '.join(parts)}."
