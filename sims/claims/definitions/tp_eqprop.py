"""Whether the predictive variant stays below 94 %."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import meanings, over_seeds, percent, sample_counts
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    below,
    column,
    verdict,
)
from sims.claims.statistics import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 12000, "tests": 3000, "epochs": 6},
    Budget.FULL: {"seeds": 5, "images": 12000, "tests": 3000, "epochs": 6},
}
STUDY: dict[str, Any] = {
    **{"model": "predictive", "hidden": [256], "activation": "relu", "output": "linear"},
    **{"beta": 0.1, "learning_rate": 0.002, "batch": 64, "free_steps": 2, "nudged_steps": 6},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The predictive network on MNIST."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, "mnist"), "study": {**STUDY, "epochs": size["epochs"]}}
    return over_seeds("predictive", "accuracy", arguments, size["seeds"])


def verdict_from(results: CellResults) -> Verdict:
    """The test accuracy of the predictive network."""
    found = student(column(results, "predictive", "test_accuracy"))
    note = f"The test accuracy is {percent(found)}."
    return verdict(below(found, 0.94), found, note)


CLAIM = Claim(
    id="tp-eqprop",
    statement="The predictive single-phase variant (TPEqProp) stays below 94 %.",
    source="004: below 94 %",
    threshold="test accuracy on MNIST below 94 %",
    method=(
        "The predictive network 784-256-10 (relu), one nudged phase compared with the prediction "
        "of each layer, on {images} MNIST images, {epochs} epochs, {tests} test images, {seeds} "
        "seeds. The form of the notes has no energy and no rule that follows a gradient; it is "
        "not tested."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Prefer two phases.",
        "A single phase is enough for this accuracy.",
    ),
)
