"""Whether beta 0.2, damping 0.8 and a learning rate of 0.002 are the best of 27."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    named,
    names,
    verdict,
)
from neuro_eqprop.claims.design import LOOPED, meanings, over_seeds, points, sample
from neuro_eqprop.claims.intervals import hedges_g, paired

BEST = (0.8, 0.2, 0.002)
SIZES = {
    Budget.SMALL: {"seeds": 2, "images": 320, "tests": 300, "epochs": 3},
    Budget.FULL: {"seeds": 3, "images": 640, "tests": 500, "epochs": 3},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """A cell for each damping and seed, with nine settings each."""
    size = SIZES[budget]
    made: list[Cell] = []
    for damping in (0.5, 0.8, 1.0):
        told = {
            **sample(size, "mnist"),
            **{"damping": damping, "betas": [0.1, 0.2, 0.3], "rates": [0.001, 0.002, 0.005]},
            "study": {**LOOPED, "epochs": size["epochs"]},
        }
        made += over_seeds(str(damping), "grid", told, size["seeds"])
    return tuple(made)


def table(outcomes: Outcomes) -> dict[tuple[float, float, float], list[float]]:
    """Accuracy by damping, beta and learning rate, for each seed."""
    found: dict[tuple[float, float, float], list[float]] = {}
    for name in names(outcomes):
        by_seed = named(outcomes, name)
        for seed in sorted(by_seed):
            for row in by_seed[seed]["rows"]:
                place = (float(name), row["beta"], row["rate"])
                found.setdefault(place, []).append(row["test_accuracy"])
    return found


def judge(outcomes: Outcomes) -> Verdict:
    """The notes' setting against the best of the others."""
    found = table(outcomes)
    others = {place: values for place, values in found.items() if place != BEST}
    top = max(others, key=lambda place: float(np.mean(others[place])))
    gap = paired(found[BEST], others[top])
    ranked = sorted(found, key=lambda place: -float(np.mean(found[place])))
    note = (
        f"It is number {ranked.index(BEST) + 1} of {len(ranked)}, {points(gap)} from the best "
        f"other (damping {top[0]}, beta {top[1]}, rate {top[2]}: "
        f"{100 * float(np.mean(others[top])):.2f} %)."
    )
    return verdict(above(gap, 0.0), gap, note, effect=hedges_g(found[BEST], others[top]))


CLAIM = Claim(
    id="hyperparameters",
    statement="Beta 0.2, damping 0.8 and a learning rate of 0.002 are the best of 27 settings.",
    source="003: 94.04 % after 3 epochs",
    threshold="accuracy above that of the best other setting",
    method=(
        "The looped network on {images} MNIST images, {epochs} epochs, betas 0.1, 0.2, 0.3, "
        "dampings 0.5, 0.8, 1.0, learning rates 0.001, 0.002, 0.005, {tests} test images, {seeds} "
        "seeds. The best other setting is chosen on the same seeds, which favours it a little."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Start from these settings.",
        "Search the learning rate for your own network; beta and damping hardly matter.",
    ),
)
