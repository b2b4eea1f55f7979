"""Whether an equilibrium autoencoder can be trained."""

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
from neuro_eqprop.claims.design import meanings, over_seeds, sample
from neuro_eqprop.claims.intervals import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 1437, "tests": 360, "epochs": 20},
    Budget.FULL: {"seeds": 5, "images": 1437, "tests": 360, "epochs": 60},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "autoencoder": {},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "digits"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "generative", told, size["seeds"])
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The error over variance against the threshold."""
    found = student(column(outcomes, "autoencoder", "error"))
    note = f"The error over variance is {found}."
    return verdict(below(found, 0.5), found, note)


CLAIM = Claim(
    id="generative",
    statement="An equilibrium variational autoencoder can be trained by EqProp.",
    source="002, without figures; a stretch",
    threshold="reconstruction error of test digits below half of that of their mean",
    method=(
        "The equilibrium autoencoder on {images} digits, {epochs} epochs, {seeds} seeds; "
        "squared error of reconstruction over the variance of the pixels."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "EqProp can learn to reconstruct.",
        "EqProp did not learn to reconstruct here.",
    ),
)
