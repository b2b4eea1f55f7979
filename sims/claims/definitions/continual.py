"""Whether local updates avoid catastrophic forgetting."""

from __future__ import annotations

from sims.claims.cell_builders import (
    LAYERED,
    bars,
    lost,
    meanings,
    over_seeds,
    sample_counts,
)
from sims.claims.charts import Chart, Mark
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
from sims.claims.statistics import hedges_g, student

RULES = ("eqprop", "backprop")
SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 2000, "tests": 1000, "epochs": 3},
    Budget.FULL: {"seeds": 5, "images": 6000, "tests": 3000, "epochs": 3},
}

SHARED = {"cost": "cross_entropy", "learning_rate": 0.003}
"""Settings of both rules."""


def cells(budget: Budget) -> tuple[Cell, ...]:
    """EqProp and backpropagation."""
    size = SIZES[budget]
    made: list[Cell] = []
    for rule in RULES:
        arguments = {**sample_counts(size, "mnist"), "rule": rule}
        arguments["study"] = {**LAYERED, **SHARED, "epochs": size["epochs"]}
        made += over_seeds(rule, "continual", arguments, size["seeds"])
    return tuple(made)


def verdict_from(results: CellResults) -> Verdict:
    """The accuracy lost on the first task by EqProp."""
    ours, theirs = (column(results, rule, "lost") for rule in RULES)
    ours_lost = student(ours)
    note = (
        f"After the second task accuracy on the first is lower by {lost(ours_lost)} with EqProp, "
        f"by {lost(student(theirs))} with backpropagation."
    )
    return verdict(below(ours_lost, 0.1), ours_lost, note, effect=hedges_g(ours, theirs))


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Accuracy on the first task before and after the second, and on the second."""
    lines = tuple(
        bars(when, results, RULES, when, list(RULES)) for when in ("before", "after", "second")
    )
    title = "Accuracy on classes 0-4 before and after learning 5-9, and on these"
    return (Chart(title, "", "test accuracy", lines, Mark.BAR),)


CLAIM = Claim(
    id="continual",
    statement="Local updates avoid catastrophic forgetting.",
    source="004, without figures",
    threshold="less than 10 points of accuracy lost on the first task",
    method=(
        "The layered network 784-256-10 learns the MNIST classes 0 to 4 of {images} images for "
        "{epochs} epochs, then 5 to 9 for as many, with one output layer for all, cross-entropy, "
        "Adam, learning rate 0.003; accuracy on the first before and after, {tests} test images, "
        "{seeds} seeds; a feed-forward network of the same shape by backpropagation likewise."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Tasks can be learned one after the other.",
        "Local updates do not prevent forgetting: replay old samples or protect weights, as with "
        "backpropagation.",
    ),
    chart=chart,
)
