"""Whether harder samples take more settling steps, and how many an early exit saves."""

from __future__ import annotations

import numpy as np

from sims.claims.cell_builders import curve, meanings, series
from sims.claims.charts import Chart, Mark
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    below,
    cell_names,
    column,
    values_of,
    verdict,
)
from sims.claims.definitions.settle_steps import SHOWN, SIZES, settled
from sims.claims.statistics import Interval, student


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The cells of settle-steps, on MNIST, and the same on Fashion-MNIST."""
    return settled(budget, "mnist") + settled(budget, "fashion-mnist")


def verdict_from(results: CellResults) -> Verdict:
    """Rank correlation of steps and margin, and the share of steps that an early exit saves."""
    summaries, rhos, findings = [], [], []
    for name in cell_names(results):
        rho, last, saved = (
            student(column(results, name, key)) for key in ("rho_steps", "rho_last_change", "saved")
        )
        findings += [below(rho, -0.3), above(saved, 0.3)]
        rhos.append(rho)
        summaries.append(
            f"{name}: rho {rho} ({last} for the step of the last change of the prediction), an "
            f"early exit of all samples saves {100 * saved.value:.0f} % of the steps"
        )
    weakest = max(rhos, key=lambda each: each.value)
    return verdict(all_of(findings), weakest, f"{'; '.join(summaries)}.")


def individual_exits(results: CellResults, name: str) -> tuple[list[float], list[Interval]]:
    """Steps saved in percent and change of accuracy in points, if each sample stops on its own."""
    runs = values_of(results, name)
    places = range(len(runs[0]["leaving"]))
    saved = [100 * float(np.mean([run["leaving"][k]["saved"] for run in runs])) for k in places]
    kept = [
        student([100 * (run["leaving"][k]["accuracy"] - run["accuracy"]) for run in runs])
        for k in places
    ]
    return saved, kept


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Steps by margin and class; accuracy of a common and of an individual early exit."""
    margins, classes, early, single = [], [], [], []
    for name in cell_names(results):
        tenths = curve(results, name, "steps_by_margin")
        margins.append(series(name, [float(k + 1) for k in range(len(tenths))], tenths))
        kinds = curve(results, name, "steps_by_class")
        classes.append(series(name, [str(k) for k in range(len(kinds))], kinds))
        right = curve(results, name, "accuracy_by_step")[:15]
        early.append(series(name, [float(k + 1) for k in range(len(right))], right))
        single.append(series(name, *individual_exits(results, name)))
    step = "settling steps"
    each = "Each stops once 5, ..., 1 consecutive predictions agree"
    return (
        Chart("Steps against margin", "tenth of the samples, by margin", step, tuple(margins)),
        Chart("Steps by class", "class", step, tuple(classes), Mark.POINTS),
        Chart(
            "All stop after a fixed number of steps", "settle steps", "test accuracy", tuple(early)
        ),
        Chart(each, "steps saved, %", "accuracy minus that at equilibrium, points", tuple(single)),
    )


CLAIM = Claim(
    id="adaptive-compute",
    statement="Harder samples take more iterations, and an early exit saves 30 to 50 %.",
    source="002, 003: every sample took exactly 10 iterations",
    threshold=(
        "rank correlation of steps and margin below -0.3, and more than 30 % of the steps saved "
        "at a loss of at most 0.1 points, on both data sets"
    ),
    method=(
        "The looped network (128 tanh units, bound 0.95, cross-entropy) trained on {images} images "
        "for {epochs} epochs; {tests} test images settle synchronously, each until no rate moves "
        "more than 1e-4; the margin is the largest output minus the second largest; {seeds} "
        "seeds. An early exit stops all samples after the fewest steps that keep the accuracy "
        "within a tenth of a point; the figure also shows samples that stop individually."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Stop each sample individually: easy ones settle sooner.",
        "Settling steps barely separate hard samples from easy ones; but predictions are final "
        "long before equilibrium, so a fixed early exit saves most of the work. The constant 10 "
        "of the notes came from testing a whole batch at once, every fifth step.",
        "Settling steps separate hard samples from easy ones only weakly, if at all; predictions "
        "are final long before equilibrium, so a fixed early exit saves most of the work.",
    ),
    conflict=(
        "002 expects adaptive compute and savings of 30 to 50 %; in 003 every sample took exactly "
        "10 steps. Neither holds: the steps differ between samples, with little relation to "
        "difficulty, and more than half of them can be saved."
    ),
    chart=chart,
    shown={**SHOWN, "steps kept by an early exit": "enough_steps", "steps saved": "saved"},
)
