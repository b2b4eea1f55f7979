"""Whether spectral normalisation keeps the map a contraction, and whether it is needed."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    below,
    column,
    every,
    named,
    names,
    verdict,
)
from neuro_eqprop.claims.design import LOOPED, meanings, over_seeds, percent, sample, series
from neuro_eqprop.claims.intervals import hedges_g, student

UNBOUND = 1e6
BOUNDED, FREE = "looped, bound 0.95", "looped, no bound"
SIZES = {
    Budget.SMALL: {
        "seeds": 3,
        "others": 1,
        "images": 1000,
        "tests": 500,
        "epochs": 4,
        "samples": 4,
    },
    Budget.FULL: {
        "seeds": 5,
        "others": 1,
        "images": 4000,
        "tests": 1000,
        "epochs": 6,
        "samples": 8,
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    "toroidal": {"model": "toroidal"},
    "modern": {"model": "modern", "memory": 256},
    "notes' modern": {
        **{"model": "modern", "memory": 256, "symmetric": False, "rule": "vector-field"},
        "learning_rate": 0.002,
    },
}
"""Beside the looped network; the last has no energy, so no rule is exact for it."""


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network with and without a bound; three more networks beside it."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, bound in ((BOUNDED, 0.95), (FREE, UNBOUND)):
        study = {**LOOPED, "bound": bound, "epochs": size["epochs"]}
        told = {**sample(size, "mnist"), "study": study, "samples": size["samples"]}
        made += over_seeds(name, "lipschitz", told, size["seeds"])
        for other, changes in OTHERS.items():
            label = name.replace("looped", other)
            more = {**told, "study": {**study, **changes}}
            made += over_seeds(label, "lipschitz", more, size["others"], needed=False)
    return tuple(made)


def largest(outcomes: Outcomes, name: str) -> list[float]:
    """The largest L of the loop after any epoch, by seed."""
    found = named(outcomes, name)
    return [max(found[seed]["loop"]) for seed in sorted(found)]


def judge(outcomes: Outcomes) -> Verdict:
    """Below one with the bound, above one at the end without."""
    one, two = largest(outcomes, BOUNDED), largest(outcomes, FREE)
    kept, free = student(one), student(two)
    scores = [student(column(outcomes, name, "test_accuracy")) for name in (BOUNDED, FREE)]
    note = (
        f"The largest L through training is {kept} with the bound and {free} without; accuracy "
        f"is {percent(scores[0])} and {percent(scores[1])}."
    )
    beside = [name for name in names(outcomes) if name not in (BOUNDED, FREE)]
    told = (f"{name} {student(largest(outcomes, name)).value:.2f}" for name in beside)
    note += f" Largest L of the others: {'; '.join(told)}." if beside else ""
    finding = every([below(kept, 1.0), above(free, 1.0)])
    return verdict(finding, kept, note, effect=hedges_g(one, two))


def chart(outcomes: Outcomes) -> Chart:
    """L after each epoch."""
    lines = []
    for name in names(outcomes):
        found = named(outcomes, name)
        runs = [found[seed]["loop"] for seed in sorted(found)]
        epochs = list(range(len(runs[0])))
        means = [student([run[epoch] for run in runs]) for epoch in epochs]
        lines.append(series(name, [float(e) for e in epochs], means))
    title = "The Lipschitz constant of the loop through training"
    return Chart(title, "epoch", "L", tuple(lines), threshold=1.0)


CLAIM = Claim(
    id="sn-lipschitz",
    statement=(
        "Spectral normalisation keeps L below 1 through training; without it training destroys "
        "the contraction."
    ),
    source=(
        "004: untrained, trained, with normalisation: looped 0.69, 0.74, 0.55; toroidal 0.70, "
        "1.01, 0.55; modern 0.54, 20.75, 0.54 to 0.58"
    ),
    threshold="largest L through training below 1 with the bound, and above 1 without",
    method=(
        "The looped network (128 tanh units) on {images} MNIST images, {epochs} epochs, {seeds} "
        "seeds, its loop scaled back to a spectral norm of 0.95 after each update, or not. L is "
        "the spectral norm of the loop's Jacobian, the largest over {samples} test samples at "
        "their equilibria, before training and after each epoch. Beside it, with {others} seeds: "
        "the toroidal network, the modern one (256 memory units) with tied weights, and the "
        "notes' form of it without an energy, by the vector-field rule."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Keep a spectral bound: every sample then settles, and quickly.",
        "A bound is not needed for the contraction on such a task, or does not ensure it; watch "
        "the residual of the settling instead.",
        "A bound of 0.95 keeps the contraction; after so short a training a loop without one may "
        "or may not have lost it. Keep the bound.",
    ),
    chart=chart,
)
