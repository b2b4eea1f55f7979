"""Whether iterations track the structure of algorithmic tasks."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart, Mark
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    column,
    every,
    names,
    verdict,
)
from neuro_eqprop.claims.design import bars, meanings, over_seeds, sample
from neuro_eqprop.claims.intervals import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 2000, "tests": 500, "epochs": 10},
    Budget.FULL: {"seeds": 5, "images": 8000, "tests": 2000, "epochs": 20},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "parity": {"task": "parity"},
    "addition": {"task": "addition"},
    "copying": {"task": "copying"},
    "sorting": {"task": "sorting"},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "parity"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "algorithmic", told, size["seeds"])
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The rank correlation against the threshold."""
    found = {name: student(column(outcomes, name, "rho")) for name in names(outcomes)}
    told = "; ".join(f"{name} {each}" for name, each in found.items())
    weakest = min(found.values(), key=lambda each: each.value)
    finding = every([above(each, 0.3) for each in found.values()])
    return verdict(finding, weakest, f"Rank correlation: {told}.")


def chart(outcomes: Outcomes) -> Chart:
    """The variants side by side."""
    shown = names(outcomes)
    lines = (bars("rank correlation", outcomes, shown, "rho", shown),)
    return Chart("algorithmic", "", "rho", lines, Mark.BAR)


CLAIM = Claim(
    id="algorithmic",
    statement=(
        "On parity, addition, copying and sorting the settle steps track the length of the problem."
    ),
    source="002, without figures",
    threshold="rank correlation of settle steps and length above 0.3 on every task",
    method=(
        "{images} samples of each task with lengths 2 to 8, {epochs} epochs, {seeds} seeds; "
        "rank correlation of the steps to rest with the length over the test samples."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Settle steps are a measure of how long a problem is.",
        "Settle steps do not tell how long a problem is; do not sell them as thinking time.",
    ),
    chart=chart,
)
