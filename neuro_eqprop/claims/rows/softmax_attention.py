"""Whether softmax attention needs a hybrid."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart, Mark
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    below,
    column,
    names,
    verdict,
)
from neuro_eqprop.claims.design import bars, meanings, over_seeds, percent, points, sample
from neuro_eqprop.claims.intervals import hedges_g, paired, student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 6000, "tests": 2000, "epochs": 3},
    Budget.FULL: {"seeds": 3, "images": 24000, "tests": 10000, "epochs": 4},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "tokens": 16},
    "linear": {"attention": "linear", "tokens": 16},
    "hybrid": {"attention": "softmax", "tokens": 16, "rule": "hybrid"},
}
NEEDED = (
    "softmax",
    "linear",
)


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "mnist"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "transformer", told, size["seeds"], needed=name in NEEDED)
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The softmax less linear against the threshold."""
    ours, theirs = (column(outcomes, name, "test_accuracy") for name in NEEDED)
    gap = paired(ours, theirs)
    scores = f"{percent(student(ours))} against {percent(student(theirs))}"
    note = f"Softmax less linear: {points(gap)} ({scores})."
    others = [name for name in names(outcomes) if name not in NEEDED]
    beside = (
        f"{name} {percent(student(column(outcomes, name, 'test_accuracy')))}" for name in others
    )
    note += f" Beside it: {'; '.join(beside)}." if others else ""
    return verdict(below(gap, -0.02), gap, note, effect=hedges_g(ours, theirs))


def chart(outcomes: Outcomes) -> Chart:
    """The variants side by side."""
    shown = names(outcomes)
    lines = (bars("softmax less linear", outcomes, shown, "test_accuracy", shown),)
    return Chart("softmax-attention", "", "test accuracy", lines, Mark.BAR)


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
        "The energy transformer on 16 patches of MNIST with softmax, linear and hybrid "
        "attention, {images} images, {epochs} epochs, {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Use linear attention, or a hybrid.",
        "Softmax attention with an energy trains as well as linear attention.",
    ),
    chart=chart,
)
