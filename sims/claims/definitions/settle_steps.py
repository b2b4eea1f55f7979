"""Whether most samples settle within 25 steps, and whether 10 are enough at inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sims.claims.cell_builders import LOOPED, meanings, over_seeds, points, sample_counts
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    column,
    verdict,
)
from sims.claims.statistics import paired, student, wilson

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 1000, "tests": 500, "epochs": 3},
    Budget.FULL: {"seeds": 5, "images": 5000, "tests": 2000, "epochs": 5},
}


SHOWN = {
    "accuracy": "accuracy",
    "accuracy after 10": "accuracy_at_10",
    "settling steps": "mean_steps",
    "standard deviation of the steps": "deviation_of_steps",
    "settled after 10": "within_10",
    "after 25": "within_25",
    "never": "never",
    "rho of steps and margin": "rho_steps",
    "rho of last change and margin": "rho_last_change",
}


def settled(budget: Budget, dataset: str) -> tuple[Cell, ...]:
    """The cells on one data set."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, dataset), "steps": 60, "tolerance": 1e-4}
    arguments["study"] = {**LOOPED, "epochs": size["epochs"]}
    return over_seeds(dataset, "settling", arguments, size["seeds"])


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network on MNIST."""
    return settled(budget, "mnist")


def verdict_from(results: CellResults) -> Verdict:
    """The share of samples settled after 25 steps, and the accuracy after 10."""
    hits, sizes = (column(results, "mnist", key) for key in ("within_25", "samples"))
    share = student(list(np.divide(hits, sizes)))
    if share.low == share.high:  # no variance between seeds: use the interval over samples
        share = wilson(round(sum(hits)), round(sum(sizes)))
    gap = paired(*(column(results, "mnist", key) for key in ("accuracy_at_10", "accuracy")))
    steps = student(column(results, "mnist", "mean_steps"))
    note = (
        f"{100 * share.value:.1f} % have settled (1e-4) after 25 steps, {steps.value:.1f} steps on "
        f"average; accuracy after 10 steps minus that at equilibrium: {points(gap)}."
    )
    found = verdict(all_of([above(share, 0.9), above(gap, -0.002)]), share, note)
    return replace(found, seeds=len(hits))


CLAIM = Claim(
    id="settle-steps",
    statement="Most samples settle within 25 steps, and 10 steps are enough at inference.",
    source="003, 004: 25; 10",
    threshold=(
        "more than 90 % settled after 25 steps, and accuracy after 10 steps less than 0.2 points "
        "below that at equilibrium"
    ),
    method=(
        "The looped network (128 tanh units, bound 0.95, cross-entropy) trained on {images} MNIST "
        "images for {epochs} epochs; {tests} test images settle synchronously; settled when no "
        "rate moves more than 1e-4; {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "With a spectral bound 25 steps are enough for training and 10 for inference.",
        "Allow for more steps, or lower the bound.",
    ),
    shown=SHOWN,
)
