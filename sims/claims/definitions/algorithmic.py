"""Whether settling steps grow with the length of algorithmic problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sims.claims.cell_builders import (
    LOOPED,
    curve,
    meanings,
    over_seeds,
    sample_counts,
    series,
)
from sims.claims.charts import Chart
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    cell_names,
    column,
    verdict,
)
from sims.claims.statistics import Interval, student

SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 3, "images": 300, "tests": 100, "epochs": 6, "lengths": [2, 4]},
    Budget.FULL: {"seeds": 5, "images": 1000, "tests": 300, "epochs": 10, "lengths": [2, 3, 4]},
}
TASKS = ("parity", "addition", "copying", "sorting")


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network on each task."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name in TASKS:
        study = {**LOOPED, "learning_rate": 0.01, "epochs": size["epochs"]}
        arguments = {**sample_counts(size, name), "lengths": size["lengths"], "study": study}
        made += over_seeds(name, "algorithmic", arguments, size["seeds"])
    return tuple(made)


def correlation(values: list[float]) -> Interval:
    """The mean correlation, with its interval clipped to [-1, 1]."""
    found = student(values)
    return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))


def verdict_from(results: CellResults) -> Verdict:
    """The rank correlation of settling steps and length, for every task."""
    found = {name: correlation(column(results, name, "rho")) for name in cell_names(results)}
    summaries = []
    for name, rho in found.items():
        steps, right = curve(results, name, "steps"), curve(results, name, "accuracy")
        summaries.append(
            f"{name} rho {rho}, steps {steps[0].value:.1f} to {steps[-1].value:.1f}, accuracy "
            f"{100 * right[0].value:.0f} to {100 * right[-1].value:.0f} %"
        )
    weakest = min(found.values(), key=lambda each: each.value)
    finding = all_of([above(each, 0.3) for each in found.values()])
    return verdict(finding, weakest, f"From the shortest to the longest: {'; '.join(summaries)}.")


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Accuracy and settling steps against length."""
    made = []
    for key, label in (("accuracy", "test accuracy"), ("steps", "sweeps to equilibrium")):
        lines = []
        for name in cell_names(results):
            lengths = [each.value for each in curve(results, name, "lengths")]
            lines.append(series(name, lengths, curve(results, name, key)))
        made.append(Chart(label.capitalize(), "length", label, tuple(lines)))
    return tuple(made)


CLAIM = Claim(
    id="algorithmic",
    statement=(
        "On parity, addition, copying and sorting the settle steps track the length of the problem."
    ),
    source="002, without figures",
    threshold="rank correlation of settle steps and length above 0.3 on every task",
    method=(
        "The looped network (128 tanh units, bound 0.95, cross-entropy, learning rate 0.01) is "
        "trained on {images} sequences of each task at each of the lengths {lengths}, {epochs} "
        "epochs, {seeds} seeds; rank correlation of the sweeps to equilibrium (1e-4) with "
        "the length, over {tests} test sequences of each."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "The number of settle steps measures the length of a problem.",
        "Settle steps do not measure problem length; do not present them as thinking time.",
    ),
    chart=chart,
    shown={
        "rho of steps and length": "rho",
        "of correct samples": "rho_right",
        **{
            f"{key}, length {length}": f"{key}[{place}]"
            for key in ("accuracy", "steps")
            for place, length in enumerate(SIZES[Budget.FULL]["lengths"])
        },
    },
    partial=True,
)
