"""Whether the predictive variant stays below 94 %."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    below,
    column,
    verdict,
)
from neuro_eqprop.claims.design import meanings, over_seeds, percent, sample
from neuro_eqprop.claims.intervals import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 6000, "tests": 2000, "epochs": 4},
    Budget.FULL: {"seeds": 5, "images": 24000, "tests": 10000, "epochs": 6},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "predictive": {},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "mnist"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "predictive", told, size["seeds"])
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The test accuracy against the threshold."""
    found = student(column(outcomes, "predictive", "test_accuracy"))
    note = f"The test accuracy is {percent(found)}."
    return verdict(below(found, 0.94), found, note)


CLAIM = Claim(
    id="tp-eqprop",
    statement="The predictive single-phase variant (TPEqProp) stays below 94 %.",
    source="004: below 94 %",
    threshold="test accuracy on MNIST below 94 %",
    method="The predictive network on {images} MNIST images, {epochs} epochs, {seeds} seeds.",
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Prefer two phases.",
        "A single phase is enough for this accuracy.",
    ),
)
