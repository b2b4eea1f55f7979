"""Whether a beta of 0.22 is best."""

from __future__ import annotations

from typing import Any

import numpy as np

from sims.claims.cell_builders import (
    LOOPED,
    meanings,
    over_seeds,
    points,
    sample_counts,
    series,
)
from sims.claims.charts import Chart
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    cell_names,
    column,
    verdict,
)
from sims.claims.statistics import hedges_g, paired, student

GAIN = 0.005
BEST = 0.22
SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {
        **{"seeds": 3, "images": 640, "tests": 500, "epochs": 3},
        "betas": [0.05, 0.2, 0.22, 0.26, 0.5],
    },
    Budget.FULL: {
        **{"seeds": 5, "images": 2000, "tests": 2000, "epochs": 4},
        "betas": [0.05, 0.1, 0.15, 0.2, 0.22, 0.26, 0.3, 0.5],
    },
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network at each beta."""
    size = SIZES[budget]
    made: list[Cell] = []
    for beta in size["betas"]:
        study = {**LOOPED, "beta": beta, "epochs": size["epochs"]}
        arguments = {**sample_counts(size, "mnist"), "study": study}
        made += over_seeds(str(beta), "accuracy", arguments, size["seeds"])
    return tuple(made)


def verdict_from(results: CellResults) -> Verdict:
    """Accuracy at beta 0.22 minus the mean accuracy at all other betas, paired by seed."""
    by = {name: column(results, name, "test_accuracy") for name in cell_names(results)}
    others = [values for name, values in by.items() if float(name) != BEST]
    mean = [float(value) for value in np.mean(others, axis=0)]
    gap = paired(by[str(BEST)], mean)
    means = {name: float(np.mean(values)) for name, values in by.items()}
    top, low = (pick(means, key=lambda name: means[name]) for pick in (max, min))
    note = (
        f"Accuracy at 0.22 minus the mean of the others: {points(gap)}; the best mean is at {top} "
        f"({100 * means[top]:.2f} %), the worst at {low} ({100 * means[low]:.2f} %)."
    )
    return verdict(above(gap, GAIN), gap, note, effect=hedges_g(by[str(BEST)], mean))


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Accuracy against beta."""
    betas = cell_names(results)
    found = [student(column(results, name, "test_accuracy")) for name in betas]
    lines = (series("looped, MNIST", [float(name) for name in betas], found),)
    return (Chart("Accuracy against beta", "beta (per sample)", "test accuracy", lines),)


CLAIM = Claim(
    id="beta-optimum",
    statement="A beta of 0.22 is best, and 0.20 to 0.26 are stable.",
    source="003: 92.37 % at 0.22, 91.5 to 92.1 % at the others, one seed each",
    threshold="accuracy at 0.22 more than 0.5 points above the mean of the others (notes: 0.56)",
    method=(
        "The looped network (128 tanh units, bound 0.95, cross-entropy) on {images} MNIST images, "
        "{epochs} epochs, centered nudging, betas {betas}, {tests} test images, {seeds} seeds; "
        "beta is per sample (in the notes it multiplied a batch mean, 128 times weaker)."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Set beta to 0.22.",
        "Do not tune beta finely: with settled states and centered nudging accuracy is flat.",
    ),
    conflict=(
        "002 reports 0.25 as the best and a collapse below 0.23; 003 later 0.22, and no collapse "
        "down to 0.20. Only the last part holds: no beta between 0.05 and 0.5 collapses, and none "
        "is best."
    ),
    chart=chart,
)
