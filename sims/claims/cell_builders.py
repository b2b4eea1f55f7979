"""Helpers of the claim definitions: network settings, cells over seeds, formatted intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sims.claims.charts import Series
from sims.claims.claim import (
    Cell,
    CellResults,
    Finding,
    cell_names,
    column,
    values_by_seed,
    values_of,
)
from sims.claims.statistics import Interval, student

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
"""The looped network of the notes with symmetric weights and a linear readout."""

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
"""The energy transformer on 16 patches of 7 x 7 pixels."""

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
"""A transformer with one head, read out at its last token, for associative recall."""

UNBOUND = 1e6
"""A spectral bound that no weight reaches."""


def over_seeds(
    name: str, function: str, arguments: Mapping[str, Any], seeds: int, *, needed: bool = True
) -> tuple[Cell, ...]:
    """One cell for each of the seeds 0, ..., seeds - 1."""
    return tuple(Cell(name, function, arguments, seed, needed) for seed in range(seeds))


def sample_counts(sizes: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """The arguments that select the samples of a cell."""
    return {"dataset": dataset, "images": sizes["images"], "tests": sizes["tests"]}


def meanings(confirmed: str, refuted: str, undecided: str = "") -> Mapping[Finding, str]:
    """The practical consequence of each finding."""
    default = "Do not build on it either way until it is decided."
    return {
        Finding.CONFIRMED: confirmed,
        Finding.REFUTED: refuted,
        Finding.UNDECIDED: undecided or default,
    }


def points(found: Interval) -> str:
    """An interval of fractions as text, in signed percentage points."""
    if found.size < 2:
        return f"{100 * found.value:+.2f} points"
    return f"{100 * found.value:+.2f} points [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"


def lost(found: Interval) -> str:
    """An interval of fractions as text, in percentage points without a plus sign."""
    return points(found).replace("+", "")


def percent(found: Interval) -> str:
    """An interval of fractions as text, in percent."""
    if found.size < 2:
        return f"{100 * found.value:.2f} %"
    return f"{100 * found.value:.2f} % [{100 * found.low:.2f}, {100 * found.high:.2f}]"


def beside(results: CellResults, name: str, label: str) -> str:
    """A clause with the test accuracy of cells for comparison; empty if none of them ran."""
    if not values_by_seed(results, name):
        return ""
    return f", {label} {percent(student(column(results, name, 'test_accuracy')))}"


def curve(results: CellResults, name: str, key: str) -> list[Interval]:
    """The mean over seeds of each entry of a list, with its interval."""
    runs = [values[key] for values in values_of(results, name)]
    return [student([run[place] for run in runs]) for place in range(len(runs[0]))]


def accuracy_by_seed(results: CellResults) -> tuple[Series, ...]:
    """The test accuracy of every seed, one series for each cell name."""
    found = {name: column(results, name, "test_accuracy") for name in cell_names(results)}
    return tuple(
        Series(name, [float(seed) for seed in range(len(values))], values)
        for name, values in found.items()
    )


def bars(
    label: str, results: CellResults, cells: Sequence[str], key: str, shown: Sequence[str]
) -> Series:
    """The mean of one number over the seeds of each cell, with its interval."""
    found = [student(column(results, name, key)) for name in cells]
    return series(label, shown, found)


def series(label: str, x: Sequence[float] | Sequence[str], found: Sequence[Interval]) -> Series:
    """Values with their intervals; without them if a value has a single seed."""
    if any(each.size < 2 for each in found):
        return Series(label, x, [each.value for each in found])
    low, high = [each.low for each in found], [each.high for each in found]
    return Series(label, x, [each.value for each in found], low, high)
