"""Whether EqProp classifies text."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.cell_builders import (
    TRANSFORMER,
    meanings,
    over_seeds,
    percent,
    sample_counts,
)
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
    Budget.SMALL: {"seeds": 3, "images": 6000, "tests": 872, "epochs": 3},
    Budget.FULL: {"seeds": 5, "images": 60000, "tests": 872, "epochs": 4},
}
STUDY: dict[str, Any] = {**TRANSFORMER, "attention": "softmax", "learning_rate": 0.002}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The transformer on sentences."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, "sst2"), "study": {**STUDY, "epochs": size["epochs"]}}
    return over_seeds("text", "accuracy", arguments, size["seeds"])


def verdict_from(results: CellResults) -> Verdict:
    """The accuracy against the threshold."""
    found = student(column(results, "text", "test_accuracy"))
    note = f"The accuracy is {percent(found)}."
    return verdict(above(found, 0.77), found, note)


CLAIM = Claim(
    id="text-sst2",
    statement="EqProp reaches 77 % on SST-2.",
    source="002, 003: 77, 80 %",
    threshold="accuracy on the development set above 77 %",
    method=(
        "The energy transformer with softmax attention over words on {images} sentences of "
        "SST-2, {epochs} epochs, {seeds} seeds, where the data is present. Model "
        "and loader are tested on small made data."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Short texts are in reach.",
        "Text needs another model.",
    ),
)
