"""Whether harder samples take more iterations, and what an early exit saves."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.claims.cell_builders import meanings, series
from neuro_eqprop.claims.charts import Chart, Mark
from neuro_eqprop.claims.claim import (
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
    values_by_seed,
    verdict,
)
from neuro_eqprop.claims.definitions.settle_steps import SHOWN, SIZES, settled
from neuro_eqprop.claims.statistics import Interval, student


def cells(budget: Budget) -> tuple[Cell, ...]:
    """MNIST and Fashion-MNIST; the first are the cells of settle-steps."""
    return settled(budget, "mnist") + settled(budget, "fashion-mnist")


def verdict_from(results: CellResults) -> Verdict:
    """The rank correlation of steps with margin, and the steps that an early exit saves."""
    summaries, rhos, findings = [], [], []
    for name in cell_names(results):
        rho, last, saved = (
            student(column(results, name, key)) for key in ("rho_steps", "rho_last_change", "saved")
        )
        findings += [below(rho, -0.3), above(saved, 0.3)]
        rhos.append(rho)
        summaries.append(
            f"{name}: rho {rho} (with the step of the last change of the answer {last}), an early "
            f"exit of all samples saves {100 * saved.value:.0f} % of the steps"
        )
    weakest = max(rhos, key=lambda each: each.value)
    return verdict(all_of(findings), weakest, f"{'; '.join(summaries)}.")


def over(results: CellResults, name: str, key: str) -> list[Interval]:
    """The mean over seeds of each number of a list."""
    found = values_by_seed(results, name)
    runs = [found[seed][key] for seed in sorted(found)]
    return [student([run[place] for run in runs]) for place in range(len(runs[0]))]


def leaving(results: CellResults, name: str) -> tuple[list[float], list[Interval]]:
    """Steps saved and accuracy kept, where samples leave one by one."""
    found = values_by_seed(results, name)
    runs = [found[seed] for seed in sorted(found)]
    places = range(len(runs[0]["leaving"]))
    saved = [100 * float(np.mean([run["leaving"][k]["saved"] for run in runs])) for k in places]
    kept = [
        student([100 * (run["leaving"][k]["accuracy"] - run["accuracy"]) for run in runs])
        for k in places
    ]
    return saved, kept


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Steps against margin and class; accuracy where all, or each by itself, leave early."""
    margins, classes, early, single = [], [], [], []
    for name in cell_names(results):
        tenths = over(results, name, "steps_by_margin")
        margins.append(series(name, [float(k + 1) for k in range(len(tenths))], tenths))
        kinds = over(results, name, "steps_by_class")
        classes.append(series(name, [str(k) for k in range(len(kinds))], kinds))
        right = over(results, name, "accuracy_by_step")[:15]
        early.append(series(name, [float(k + 1) for k in range(len(right))], right))
        single.append(series(name, *leaving(results, name)))
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
        "more than 1e-4; the margin is the lead of the first output over the second; {seeds} "
        "seeds. An early exit stops all samples after the fewest steps that keep the accuracy "
        "within a tenth of a point; the figure also lets each sample leave by itself."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Stop each sample by itself: easy ones are done sooner.",
        "Settling steps barely separate hard samples from easy ones; yet the answer is there long "
        "before the equilibrium, so a fixed early exit saves most of the work. The "
        "notes' constant 10 "
        "came from testing a whole batch at once, every fifth step.",
        "Settling steps separate hard samples from easy ones a little at most; the answer is there "
        "long before the equilibrium, so a fixed early exit saves most of the work.",
    ),
    conflict=(
        "002 promises adaptive compute and 30 to 50 % saved, 003 saw every sample take exactly 10 "
        "steps. Neither holds: samples differ, with little relation to their difficulty, and more "
        "than half of the steps can be saved."
    ),
    chart=chart,
    shown={**SHOWN, "steps kept by an early exit": "enough_steps", "steps saved": "saved"},
)
