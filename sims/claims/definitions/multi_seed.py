"""Whether results hold over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sims.claims.cell_builders import (
    LAYERED,
    LOOPED,
    accuracy_by_seed,
    lost,
    meanings,
    over_seeds,
    percent,
    sample_counts,
)
from sims.claims.charts import Chart, Mark
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    below,
    cell_names,
    column,
    verdict,
)
from sims.claims.definitions import parity_mlp
from sims.claims.statistics import deviation, student

SIZES = {
    Budget.SMALL: {"seeds": 4, "images": 1437, "tests": 360, "epochs": 6},
    Budget.FULL: {"seeds": 10, "images": 1437, "tests": 360, "epochs": 10},
}
MODELS: dict[str, Mapping[str, Any]] = {
    "layered": {**LAYERED, "hidden": [128], "batch": 32, "learning_rate": 0.002},
    "looped": {**LOOPED, "batch": 32},
}
TARGET = 0.94
"""Accuracy on MNIST over five seeds in the research notes."""


def arguments(model: str, size: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a training on the digits."""
    return {**sample_counts(size, "digits"), "study": {**MODELS[model], "epochs": size["epochs"]}}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Two networks on the digits, and the cells of parity-mlp by EqProp on MNIST."""
    size, large = SIZES[budget], parity_mlp.SIZES[budget]
    made: list[Cell] = []
    for model in MODELS:
        made += over_seeds(f"{model}, digits", "accuracy", arguments(model, size), size["seeds"])
    for model, study in (("layered", LAYERED), ("looped", LOOPED)):
        chosen = parity_mlp.arguments("mnist", study, "eqprop", large)
        made += over_seeds(f"{model}, MNIST", "contest", chosen, large["seeds"])
    return tuple(made)


def verdict_from(results: CellResults) -> Verdict:
    """The largest standard deviation between seeds over networks and data sets."""
    spread = {m: deviation(column(results, m, "test_accuracy")) for m in cell_names(results)}
    means = {m: student(column(results, m, "test_accuracy")) for m in cell_names(results)}
    worst = max(spread.values(), key=lambda each: each.value)
    summary = "; ".join(
        f"{m} {percent(means[m])}, deviation {lost(spread[m])} over {spread[m].size} seeds"
        for m in spread
    )
    parts = [below(each, 0.01) for each in spread.values()]
    parts += [above(means[m], TARGET) for m in means if m.endswith("MNIST")]
    return verdict(all_of(parts), worst, f"{summary}.")


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The accuracy of every seed."""
    lines = accuracy_by_seed(results)
    return (Chart("Every seed", "seed", "test accuracy", lines, Mark.POINTS),)


CLAIM = Claim(
    id="multi-seed",
    statement="Results hold over seeds.",
    source="001: five seeds with confidence intervals, at least 94 % on MNIST",
    threshold=(
        "standard deviation of test accuracy between seeds below 1 point for every network and "
        "data set, and mean accuracy on MNIST above 94 %"
    ),
    method=(
        "The layered (64-128-10, relu) and the looped network (128 tanh units, bound 0.95) on "
        "{images} digits, {epochs} epochs, {tests} test samples, {seeds} seeds; and the two of "
        "parity-mlp on MNIST, over its seeds. Chi-square interval of the standard deviation."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "A single run is representative, to within a point or two.",
        "Report several seeds: a single run is not representative.",
    ),
    chart=chart,
)
