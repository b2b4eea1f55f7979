"""Whether softmax attention needs a hybrid of EqProp and backpropagation."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import meanings, over_seeds, percent, points
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    below,
    cell_names,
    column,
    verdict,
)
from sims.claims.definitions.transformer_mnist import (
    SIZES,
    arguments,
    panels,
    recall,
    scores,
)
from sims.claims.statistics import hedges_g, paired, student

VARIANTS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax"},
    "linear": {"attention": "linear"},
    "none": {"attention": "none"},
    "hybrid": {"attention": "softmax", "rule": "hybrid"},
}
NEEDED = ("softmax", "linear")


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant on MNIST, some of them cells of transformer-mnist, and associative recall."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        function = "stemmed" if name == "hybrid" else "accuracy"
        values, needed = arguments(variant, size), name in NEEDED
        seeds = size["seeds" if needed else "beside"]
        made += over_seeds(name, function, values, seeds, needed=needed)
    return (*made, *recall(budget, ("softmax", "linear", "none")))


def verdict_from(results: CellResults) -> Verdict:
    """Accuracy with softmax attention minus that with linear attention."""
    ours, theirs = (column(results, name, "test_accuracy") for name in NEEDED)
    gap = paired(ours, theirs)
    values = f"{percent(student(ours))} against {percent(student(theirs))}"
    note = f"Softmax minus linear: {points(gap)} ({values})."
    others = [name for name in cell_names(results) if name not in NEEDED]
    note += f" For comparison: {scores(results, others)}." if others else ""
    return verdict(below(gap, -0.02), gap, note, effect=hedges_g(ours, theirs))


CLAIM = Claim(
    id="softmax-attention",
    statement=(
        "Softmax attention fails under EqProp unless parts are trained by backpropagation; "
        "linear attention works."
    ),
    source="000: pivots A and D",
    threshold=(
        "accuracy with softmax attention by EqProp alone more than 2 points below linear attention"
    ),
    method=(
        "The energy transformer on 16 patches of MNIST with softmax and with linear attention, "
        "{images} images, {epochs} epochs, {seeds} seeds, otherwise as in transformer-mnist; for "
        "comparison no attention, and a hybrid with one more embedding layer that is trained by "
        "backpropagation; and associative recall as in transformer-mnist, also with linear "
        "attention ({lists} lists, {lists_epochs} epochs). Cells for comparison have {beside} "
        "seeds."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Use linear attention, or a hybrid.",
        "Softmax attention with an energy trains by EqProp alone, on images as well as linear "
        "attention. On associative recall linear attention stayed near chance; softmax attention "
        "rose above it in most of these short trainings, but not in all.",
    ),
    chart=panels,
)
