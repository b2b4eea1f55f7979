"""Whether results hold over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.claims.charts import Chart, Mark, Series
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    below,
    column,
    every,
    names,
    verdict,
)
from neuro_eqprop.claims.design import LOOPED, meanings, over_seeds, percent, sample
from neuro_eqprop.claims.intervals import deviation, student

SIZES = {
    Budget.SMALL: {"seeds": 4, "images": 1437, "tests": 360, "epochs": 6, "looped_epochs": 6},
    Budget.FULL: {"seeds": 6, "images": 1437, "tests": 360, "epochs": 10, "looped_epochs": 10},
}


def arguments(model: str, size: Mapping[str, Any]) -> dict[str, Any]:
    """A study on the digits."""
    looped = {**LOOPED, "batch": 32, "epochs": size["looped_epochs"]}
    study = looped if model == "looped" else {"epochs": size["epochs"]}
    return {**sample(size, "digits"), "study": study}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Two networks."""
    size = SIZES[budget]
    made: list[Cell] = []
    for model in ("layered", "looped"):
        made += over_seeds(model, "accuracy", arguments(model, size), size["seeds"])
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The standard deviation between seeds of the network that varies most."""
    spread = {m: deviation(column(outcomes, m, "test_accuracy")) for m in names(outcomes)}
    means = {m: student(column(outcomes, m, "test_accuracy")) for m in names(outcomes)}
    worst = max(spread.values(), key=lambda each: each.value)
    told = "; ".join(
        f"{m} {percent(means[m])}, deviation {100 * spread[m].value:.2f} points" for m in spread
    )
    finding = every([below(each, 0.01) for each in spread.values()])
    return verdict(finding, worst, f"{told}.")


def chart(outcomes: Outcomes) -> Chart:
    """Every seed's accuracy."""
    lines = []
    for name in names(outcomes):
        values = column(outcomes, name, "test_accuracy")
        lines.append(Series(name, [float(seed) for seed in range(len(values))], values))
    return Chart("Digits, by seed", "seed", "test accuracy", tuple(lines), Mark.POINTS)


CLAIM = Claim(
    id="multi-seed",
    statement="Results hold over seeds.",
    source="001: five seeds with confidence intervals",
    threshold="standard deviation of test accuracy between seeds below 1 point, for every network",
    method=(
        "The layered (64-128-10, {epochs} epochs) and the looped network (128 units, "
        "{looped_epochs} epochs) on {images} digits, {tests} test samples, {seeds} seeds; "
        "chi-square interval of the standard deviation."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "A single run tells what to expect, to within a point or two.",
        "Report several seeds: one run tells little.",
    ),
    chart=chart,
)
