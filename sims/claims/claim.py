"""Claims, the cells that test them, and verdicts.

A cell is the configuration of an experiment. On one machine it always gives the same result, except
for fields named `seconds`. A claim is `confirmed` or `refuted` only if the whole 95 % interval lies
on one side of the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import sha256
from math import isfinite
from typing import Any, TypeAlias

from neuro_eqprop.runs.executors.task import canonical
from sims.claims.charts import Chart
from sims.claims.statistics import Interval

Json: TypeAlias = dict[str, Any]
TIMING = "seconds"
"""Name of the fields that may differ between two runs of a cell."""


class Budget(Enum):
    """The size of the experiments."""

    SMALL = "small"
    FULL = "full"


class Finding(Enum):
    """The conclusion on a claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


class UndecidedError(RuntimeError):
    """A cell cannot run on this machine, because a data set or a model is missing."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The configuration of an experiment; `name` labels it within its claim."""

    name: str
    function: str
    """Name of a function in `sims.claims.registry`."""
    arguments: Mapping[str, Any]
    seed: int
    needed: bool = True
    """Whether the verdict depends on the cell; other cells are shown for comparison."""

    def configuration(self) -> Json:
        """The configuration as JSON."""
        from sims.claims.registry import version

        return {
            "function": self.function,
            "version": version(self.function),
            "arguments": dict(self.arguments),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the configuration; claims with equal cells share a result."""
        return sha256(canonical(self.configuration())).hexdigest()


@dataclass(frozen=True, slots=True)
class CellResult:
    """The values of a cell, or its error."""

    cell: Cell
    values: Json = field(default_factory=dict)
    error: str | None = None
    seconds: float = 0.0
    """CPU time."""


CellResults: TypeAlias = Sequence[CellResult]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding, and the number on which it is based."""

    finding: Finding
    note: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    seeds: int = 0
    effect: float | None = None
    """Hedges' g, where two samples are compared."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the research notes with the experiments that test it."""

    id: str
    statement: str
    source: str
    threshold: str
    method: str
    """A format string; its fields are `sizes` of the budget."""
    sizes: Mapping[Budget, Mapping[str, Any]]
    cells: Callable[[Budget], tuple[Cell, ...]]
    verdict_from: Callable[[CellResults], Verdict]
    meaning: Mapping[Finding, str]
    conflict: str = ""
    """Contradictions within the notes, and which version the results support."""
    chart: Callable[[CellResults], tuple[Chart, ...]] | None = None
    """Returns the charts of the figure."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Columns of the table: title to path in the values of a cell; all scalars if empty."""
    partial: bool = False
    """Whether the claim can be refuted, though not confirmed, while needed cells have failed."""

    def method_text(self, budget: Budget) -> str:
        """The method with the sizes of a budget filled in."""
        return self.method.format_map(dict(self.sizes[budget]))


def timeless(values: Any) -> Any:  # noqa: ANN401
    """The values without `seconds` fields."""
    if isinstance(values, Mapping):
        return {key: timeless(part) for key, part in values.items() if key != TIMING}
    if isinstance(values, list | tuple):
        return [timeless(part) for part in values]
    return values


def values_by_seed(results: CellResults, name: str) -> dict[int, Json]:
    """The values of the cells with that name, by seed."""
    return {each.cell.seed: each.values for each in results if each.cell.name == name}


def values_of(results: CellResults, name: str) -> list[Json]:
    """The values of the cells with that name, in the order of the seeds."""
    found = values_by_seed(results, name)
    return [found[seed] for seed in sorted(found)]


def column(results: CellResults, name: str, key: str) -> list[float]:
    """One number of the cells with that name, in the order of the seeds."""
    found = values_of(results, name)
    if not found:
        raise ValueError(f"no result of a cell {name!r}")
    return [float(values[key]) for values in found]


def cell_names(results: CellResults) -> list[str]:
    """The distinct names of the cells, in order."""
    return list(dict.fromkeys(each.cell.name for each in results))


def above(found: Interval, threshold: float) -> Finding:
    """Confirmed if the interval lies above the threshold, refuted if it lies below."""
    if found.low > threshold:
        return Finding.CONFIRMED
    return Finding.REFUTED if found.high < threshold else Finding.UNDECIDED


def below(found: Interval, threshold: float) -> Finding:
    """Confirmed if the interval lies below the threshold, refuted if it lies above."""
    return above(Interval(-found.value, -found.high, -found.low, found.size), -threshold)


def all_of(findings: Sequence[Finding]) -> Finding:
    """The finding on a conjunction: refuted if any part is, confirmed if all parts are."""
    if Finding.REFUTED in findings:
        return Finding.REFUTED
    return Finding.UNDECIDED if Finding.UNDECIDED in findings else Finding.CONFIRMED


def verdict(
    finding: Finding, found: Interval, note: str, *, effect: float | None = None
) -> Verdict:
    """A verdict with its value and interval; an unbounded interval (one seed) becomes None."""
    known = isfinite(found.low) and isfinite(found.high)
    shown = (found.low, found.high) if known else None
    return Verdict(finding, note, found.value, shown, found.size, effect)


def conclude(claim: Claim, results: CellResults) -> Verdict:
    """The verdict on a claim from the results of all its cells, including failed ones."""
    failed = [each for each in results if each.error is not None]
    missing = [each for each in failed if each.cell.needed]
    succeeded = [each for each in results if each.error is None]
    if missing and (not claim.partial or not succeeded):
        return Verdict(Finding.UNDECIDED, undecided_reason(missing, len(results)))
    try:
        found = claim.verdict_from(succeeded)
    except ValueError as error:  # too few cells for the statistics
        return Verdict(Finding.UNDECIDED, f"undecided: {error}")
    if missing:
        limited = Finding.UNDECIDED if found.finding is Finding.CONFIRMED else found.finding
        return replace(found, finding=limited, note=f"{found.note} {left_out(missing)}")
    return replace(found, note=f"{found.note} {left_out(failed)}") if failed else found


def undecided_reason(missing: CellResults, total: int) -> str:
    """Why a claim is undecided, from its failed cells."""
    causes = list(dict.fromkeys(str(each.error) for each in missing))
    if all(cause.startswith("undecided: ") for cause in causes):
        parts = [cause.removeprefix("undecided: ") for cause in causes]
        return f"undecided: {'; '.join(parts)}"
    return f"undecided: {len(missing)} of {total} cells failed ({causes[0]})"


def left_out(failed: CellResults) -> str:
    """A sentence that names the failed cells and their errors."""
    causes: dict[str, list[str]] = {}
    for each in failed:
        cells = causes.setdefault(str(each.error).removeprefix("undecided: "), [])
        cells += [each.cell.name] if each.cell.name not in cells else []
    parts = [f"{', '.join(which)} ({cause})" for cause, which in causes.items()]
    return f"Left out: {'; '.join(parts)}."
