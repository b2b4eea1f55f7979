"""Whether the multi-scale network reaches 50 % on CIFAR-10."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.cell_builders import meanings, over_seeds, percent, sample_counts
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    column,
    verdict,
)
from neuro_eqprop.claims.statistics import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 3000, "tests": 2000, "epochs": 3},
    Budget.FULL: {"seeds": 5, "images": 20000, "tests": 10000, "epochs": 6},
}
STUDY: dict[str, Any] = {
    **{"model": "multiscale", "hidden": [512], "activation": "tanh", "output": "linear"},
    **{"beta": 0.22, "learning_rate": 0.002, "batch": 64, "free_steps": 15, "nudged_steps": 6},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The multi-scale network (512, 256 and 128 units) on CIFAR-10."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, "cifar10"), "study": {**STUDY, "epochs": size["epochs"]}}
    return over_seeds("multi-scale", "accuracy", arguments, size["seeds"])


def verdict_from(results: CellResults) -> Verdict:
    """The test accuracy against the threshold."""
    found = student(column(results, "multi-scale", "test_accuracy"))
    note = f"The test accuracy is {percent(found)}."
    return verdict(above(found, 0.5), found, note)


CLAIM = Claim(
    id="hierarchical-cifar",
    statement="A multi-scale hierarchical EqProp network reaches 50 to 65 % on CIFAR-10.",
    source="001, 002: 50, 60, 65 %",
    threshold="test accuracy above 50 %",
    method=(
        "The multi-scale network (512, 256 and 128 units) on {images} CIFAR-10 images, {epochs} "
        "epochs, {seeds} seeds, where the data is present. Model "
        "and loader are tested on small made data."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Natural images are in reach.",
        "Natural images need another network.",
    ),
)
