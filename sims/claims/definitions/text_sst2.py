"""Whether EqProp classifies text."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import (
    beside,
    meanings,
    over_seeds,
    percent,
    sample_counts,
)
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    column,
    verdict,
)
from sims.claims.statistics import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 20000, "tests": 872, "epochs": 3},
    Budget.FULL: {"seeds": 5, "images": 67349, "tests": 872, "epochs": 3},
}
STUDY: dict[str, Any] = {"model": "text", "hidden": [64], "learning_rate": 0.002}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Learned word vectors by EqProp; for comparison by BPTT."""
    size = SIZES[budget]
    counts, epochs = sample_counts(size, "sst2"), {"epochs": size["epochs"]}
    made = over_seeds("text", "accuracy", {**counts, "study": STUDY | epochs}, size["seeds"])
    twin = {**counts, "study": STUDY | epochs | {"rule": "bptt"}}
    return made + over_seeds("text, BPTT", "accuracy", twin, 1, needed=False)


def verdict_from(results: CellResults) -> Verdict:
    """The accuracy on the development set."""
    found = student(column(results, "text", "test_accuracy"))
    note = f"The accuracy is {percent(found)}{beside(results, 'text, BPTT', 'by BPTT')}."
    return verdict(above(found, 0.77), found, note)


CLAIM = Claim(
    id="text-sst2",
    statement="EqProp reaches 77 % on SST-2.",
    source="002, 003: 77, 80 %",
    threshold="accuracy on the development set above 77 %",
    method=(
        "Learned word vectors of 64 numbers, summed over a sentence and read by 64 units, on "
        "{images} sentences of SST-2, {epochs} epochs, {seeds} seeds, where the data is present; "
        "for comparison the same by BPTT. Settings were chosen on held-out training sentences."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "EqProp can be trained to classify short texts.",
        "Text needs another model.",
    ),
)
