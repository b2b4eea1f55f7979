"""Whether an equilibrium autoencoder can be trained."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.cell_builders import meanings, over_seeds, sample_counts
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Finding,
    Verdict,
    below,
    column,
    verdict,
)
from neuro_eqprop.claims.statistics import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 1437, "tests": 360, "epochs": 5},
    Budget.FULL: {"seeds": 5, "images": 1437, "tests": 360, "epochs": 15},
}
STUDY: dict[str, Any] = {
    **{"hidden": [32], "batch": 32, "beta": 0.2, "learning_rate": 0.003},
    **{"free_steps": 12, "nudged_steps": 6},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The autoencoder on the digits."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, "digits"), "study": {**STUDY, "epochs": size["epochs"]}}
    return over_seeds("autoencoder", "autoencoder", arguments, size["seeds"])


def verdict_from(results: CellResults) -> Verdict:
    """The error of reconstruction: without sampling it can refute the claim, not confirm it."""
    found = student(column(results, "autoencoder", "error"))
    note = (
        f"A plain equilibrium autoencoder leaves {found} of the variance of test digits. Its "
        "variational form, with a prior to draw from, is not implemented, so the claim stays open "
        "where reconstruction works."
    )
    worked = below(found, 0.5)
    finding = Finding.UNDECIDED if worked is Finding.CONFIRMED else worked
    return verdict(finding, found, note)


CLAIM = Claim(
    id="generative",
    statement="An equilibrium variational autoencoder can be trained by EqProp.",
    source="002, without figures; a stretch",
    threshold="reconstruction error of test digits below half of that of their mean",
    method=(
        "The network 64-32-64 (tanh, straight output), the samples their own targets, on {images} "
        "digits, {epochs} epochs, {seeds} seeds; squared error of reconstructed test digits over "
        "that of the mean digit. Sampling from a prior is not implemented."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "EqProp can learn to reconstruct.",
        "EqProp did not learn to reconstruct here.",
        "EqProp can learn to reconstruct; whether it can learn to generate is open: the sampling "
        "step of a variational autoencoder needs the gradient through a random draw, for which "
        "no local rule is implemented.",
    ),
)
