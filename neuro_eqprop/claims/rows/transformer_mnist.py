"""Whether a linear-attention transformer trains by EqProp on MNIST."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart, Mark
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    column,
    names,
    verdict,
)
from neuro_eqprop.claims.design import bars, meanings, over_seeds, percent, sample
from neuro_eqprop.claims.intervals import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 6000, "tests": 2000, "epochs": 3},
    Budget.FULL: {"seeds": 3, "images": 24000, "tests": 10000, "epochs": 4},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "linear, 16 tokens": {"attention": "linear", "tokens": 16},
    "linear, 1 token": {"attention": "linear", "tokens": 1},
    "none, 16 tokens": {"attention": "none", "tokens": 16},
    "linear, 16 tokens, bptt": {"attention": "linear", "tokens": 16, "rule": "bptt"},
}
NEEDED = ("linear, 16 tokens",)


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Each variant."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, variant in VARIANTS.items():
        told = {**sample(size, "mnist"), "epochs": size["epochs"], **variant}
        made += over_seeds(name, "transformer", told, size["seeds"], needed=name in NEEDED)
    return tuple(made)


def judge(outcomes: Outcomes) -> Verdict:
    """The test accuracy against the threshold."""
    found = student(column(outcomes, "linear, 16 tokens", "test_accuracy"))
    note = f"The test accuracy is {percent(found)}."
    others = [name for name in names(outcomes) if name not in NEEDED]
    beside = (
        f"{name} {percent(student(column(outcomes, name, 'test_accuracy')))}" for name in others
    )
    note += f" Beside it: {'; '.join(beside)}." if others else ""
    return verdict(above(found, 0.95), found, note)


def chart(outcomes: Outcomes) -> Chart:
    """The variants side by side."""
    shown = names(outcomes)
    lines = (bars("test accuracy", outcomes, shown, "test_accuracy", shown),)
    return Chart("transformer-mnist", "", "test accuracy", lines, Mark.BAR)


CLAIM = Claim(
    id="transformer-mnist",
    statement="A linear-attention looped transformer trains by EqProp.",
    source="002, 003: 92.11 to 94.04 %; backprop 97.2 %; target 95 %",
    threshold="test accuracy of 16 tokens above 95 %",
    method=(
        "The energy transformer with linear attention on 16 patches of MNIST, {images} images, "
        "{epochs} epochs, {seeds} seeds; beside it one token (as in the notes, where attention "
        "is the identity), no attention at all, and BPTT through the same steps."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "A transformer with an energy can be trained by EqProp on images.",
        "Expect less from EqProp on this transformer; look at what attention adds.",
    ),
    chart=chart,
)
