"""Whether the toroidal network is unstable between runs."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    column,
    verdict,
)
from neuro_eqprop.claims.design import meanings, over_seeds, points, sample
from neuro_eqprop.claims.intervals import deviation

SIZES = {
    Budget.SMALL: {"seeds": 5, "images": 1437, "tests": 360, "epochs": 15},
    Budget.FULL: {"seeds": 8, "images": 1437, "tests": 360, "epochs": 30},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "toroidal": {"bound": 0.95},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "digits"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "toroidal", told, size["seeds"])
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The standard deviation between seeds against the threshold."""
    found = deviation(column(outcomes, "toroidal", "test_accuracy"))
    note = f"The standard deviation between seeds is {points(found)}."
    return verdict(above(found, 0.05), found, note)


CLAIM = Claim(
    id="toroidal-variance",
    statement="ToroidalMLP is unstable between runs.",
    source="004: 26.8 points",
    threshold="standard deviation of test accuracy between seeds above 5 points",
    method=(
        "The toroidal network (128 units, three past states) on {images} digits, {epochs} "
        "epochs, {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Avoid the torus, or bound its loop and its memory together.",
        "With a bound the torus is as steady as the looped network.",
    ),
)
