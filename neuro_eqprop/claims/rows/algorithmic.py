"""Whether iterations track the structure of algorithmic tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuro_eqprop.claims.charts import Chart, Series
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    column,
    every,
    named,
    names,
    verdict,
)
from neuro_eqprop.claims.design import TRANSFORMER, meanings, over_seeds, sample
from neuro_eqprop.claims.intervals import student

SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 2, "images": 200, "tests": 100, "epochs": 3, "lengths": [2, 4]},
    Budget.FULL: {"seeds": 3, "images": 1000, "tests": 300, "epochs": 6, "lengths": [2, 4, 6]},
}
TASKS: dict[str, dict[str, Any]] = {
    "parity": {},
    "addition": {},
    "copying": {"query": True},
    "sorting": {"query": True},
}
"""Where a last token asks, the answer is read there, and tokens attend to the others."""


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each task."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, changes in TASKS.items():
        study = {**TRANSFORMER, "attention": "softmax", "hidden": [32], "attention_scale": 1.0}
        study |= {"epochs": size["epochs"], "batch": 32, "free_steps": 12, **changes}
        told = {**sample(size, name), "lengths": size["lengths"], "study": study}
        made += over_seeds(name, "algorithmic", told, size["seeds"])
    return tuple(made)


def curve(outcomes: Outcomes, name: str, key: str) -> list[float]:
    """The mean over seeds of a number for each length."""
    found = named(outcomes, name)
    runs = [found[seed][key] for seed in sorted(found)]
    return [float(value) for value in np.mean(runs, axis=0)]


def judge(outcomes: Outcomes) -> Verdict:
    """The rank correlation against the threshold."""
    found = {name: student(column(outcomes, name, "rho")) for name in names(outcomes)}
    told = []
    for name, rho in found.items():
        steps, right = curve(outcomes, name, "steps"), curve(outcomes, name, "accuracy")
        told.append(
            f"{name} rho {rho.value:.2f}, steps {steps[0]:.1f} to {steps[-1]:.1f}, accuracy "
            f"{100 * right[0]:.0f} to {100 * right[-1]:.0f} %"
        )
    weakest = min(found.values(), key=lambda each: each.value)
    finding = every([above(each, 0.3) for each in found.values()])
    return verdict(finding, weakest, f"From the shortest to the longest: {'; '.join(told)}.")


def chart(outcomes: Outcomes) -> Chart:
    """Settle steps against length."""
    lines = tuple(
        Series(name, curve(outcomes, name, "lengths"), curve(outcomes, name, "steps"))
        for name in names(outcomes)
    )
    return Chart("Settle steps of sequences", "length", "sweeps to rest", lines)


CLAIM = Claim(
    id="algorithmic",
    statement=(
        "On parity, addition, copying and sorting the settle steps track the length of the problem."
    ),
    source="002, without figures",
    threshold="rank correlation of settle steps and length above 0.3 on every task",
    method=(
        "A softmax transformer (32 units a token) is trained on {images} sequences of each task "
        "at each of the lengths {lengths}, {epochs} epochs, {seeds} seeds; rank correlation of "
        "the sweeps to rest (1e-4) with the length over {tests} test sequences of each."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Settle steps are a measure of how long a problem is.",
        "Settle steps do not tell how long a problem is; do not sell them as thinking time.",
    ),
    chart=chart,
    partial=True,
)
