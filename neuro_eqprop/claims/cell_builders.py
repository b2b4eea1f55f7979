"""Shared by claim definitions: network settings, cells over seeds, formats of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuro_eqprop.claims.charts import Series
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Finding,
    column,
    values_by_seed,
)
from neuro_eqprop.claims.statistics import Interval, student

LOOPED: Mapping[str, Any] = {
    "model": "looped",
    "hidden": [128],
    "activation": "tanh",
    "output": "linear",
    "cost": "cross_entropy",
    "bound": 0.95,
    "beta": 0.22,
    "learning_rate": 0.005,
    "batch": 64,
    "free_steps": 12,
    "nudged_steps": 5,
}
"""The looped network of the notes with symmetric weights; its output is a readout."""

LAYERED: Mapping[str, Any] = {
    "model": "layered",
    "hidden": [256],
    "activation": "relu",
    "output": "linear",
    "beta": 0.25,
    "learning_rate": 0.001,
    "batch": 64,
    "free_steps": 6,
    "nudged_steps": 3,
}
"""One hidden layer with symmetric connections."""

TRANSFORMER: Mapping[str, Any] = {
    "model": "transformer",
    "hidden": [64],
    "heads": 4,
    "patch": 7,
    "beta": 0.5,
    "learning_rate": 0.004,
    "batch": 64,
    "free_steps": 6,
    "nudged_steps": 3,
}
"""The energy transformer on 16 patches of an image of 28 x 28 pixels."""

RECALL: Mapping[str, Any] = {
    "model": "transformer",
    "hidden": [32],
    "heads": 1,
    "query": True,
    "bound": 0.5,
    "attention_bound": 1.0,
    "attention_scale": 0.5,
    "attention_sharpness": 5.66,
    "beta": 0.25,
    "learning_rate": 0.003,
    "batch": 64,
    "free_steps": 12,
    "nudged_steps": 6,
}
"""A transformer with one head, read at its last token, for associative recall."""

SEEDS: Mapping[Budget, int] = {Budget.SMALL: 3, Budget.FULL: 5}


def over_seeds(
    name: str, function: str, arguments: Mapping[str, Any], seeds: int, *, needed: bool = True
) -> tuple[Cell, ...]:
    """A cell for each of the seeds 0, 1, ..."""
    return tuple(Cell(name, function, arguments, seed, needed) for seed in range(seeds))


def sample_counts(sizes: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """The arguments that select the samples of a cell."""
    return {"dataset": dataset, "images": sizes["images"], "tests": sizes["tests"]}


def meanings(confirmed: str, refuted: str, undecided: str = "") -> Mapping[Finding, str]:
    """The practical meaning of each finding."""
    nothing = "Do not build on it either way until it is decided."
    return {
        Finding.CONFIRMED: confirmed,
        Finding.REFUTED: refuted,
        Finding.UNDECIDED: undecided or nothing,
    }


def points(found: Interval) -> str:
    """An interval of fractions in percentage points."""
    if found.size < 2:
        return f"{100 * found.value:+.2f} points"
    return f"{100 * found.value:+.2f} points [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"


def lost(found: Interval) -> str:
    """As `points`, without the plus sign."""
    return points(found).replace("+", "")


def percent(found: Interval) -> str:
    """An interval of fractions in percent."""
    if found.size < 2:
        return f"{100 * found.value:.2f} %"
    return f"{100 * found.value:.2f} % [{100 * found.low:.2f}, {100 * found.high:.2f}]"


def beside(results: CellResults, name: str, label: str) -> str:
    """A clause with the test accuracy of cells beside a claim; empty if none of them ran."""
    if not values_by_seed(results, name):
        return ""
    return f", {label} {percent(student(column(results, name, 'test_accuracy')))}"


def bars(
    label: str, results: CellResults, cells: Sequence[str], key: str, shown: Sequence[str]
) -> Series:
    """The mean of one number for each of some cells, with its interval."""
    found = [student(column(results, name, key)) for name in cells]
    return series(label, shown, found)


def series(label: str, x: Sequence[float] | Sequence[str], found: Sequence[Interval]) -> Series:
    """Values with their intervals, unless one is unbounded."""
    if any(each.size < 2 for each in found):
        return Series(label, x, [each.value for each in found])
    low, high = [each.low for each in found], [each.high for each in found]
    return Series(label, x, [each.value for each in found], low, high)
