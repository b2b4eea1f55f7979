"""Whether harder samples take more iterations, and what an early exit saves."""

from __future__ import annotations

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
from neuro_eqprop.claims.design import meanings, series
from neuro_eqprop.claims.intervals import student
from neuro_eqprop.claims.rows.settle_steps import SIZES, settled


def cells(budget: Budget) -> tuple[Cell, ...]:
    """MNIST and Fashion-MNIST; the first are the cells of settle-steps."""
    return settled(budget, "mnist") + settled(budget, "fashion-mnist")


def judge(outcomes: Outcomes) -> Verdict:
    """The rank correlation of steps with margin, and the steps that an early exit saves."""
    told, rhos, findings = [], [], []
    for name in names(outcomes):
        rho, last, saved = (
            student(column(outcomes, name, key))
            for key in ("rho_steps", "rho_last_change", "saved")
        )
        findings += [below(rho, -0.3), above(saved, 0.3)]
        rhos.append(rho)
        told.append(
            f"{name}: rho {rho.value:.2f} (with the step of the last change of the answer "
            f"{last.value:.2f}), an early exit saves {100 * saved.value:.0f} % of the steps"
        )
    weakest = max(rhos, key=lambda each: each.value)
    return verdict(every(findings), weakest, f"{'; '.join(told)}.")


def chart(outcomes: Outcomes) -> Chart:
    """Accuracy against steps."""
    lines = []
    for name in names(outcomes):
        found = named(outcomes, name)
        runs = [found[seed]["accuracy_by_step"] for seed in sorted(found)]
        steps = range(len(runs[0]))
        means = [student([run[step] for run in runs]) for step in steps]
        lines.append(series(name, [float(step + 1) for step in steps], means))
    return Chart("Leaving early", "settle steps", "test accuracy", tuple(lines))


CLAIM = Claim(
    id="adaptive-compute",
    statement="Harder samples take more iterations, and an early exit saves 30 to 50 %.",
    source="002, 003: every sample took exactly 10 iterations",
    threshold=(
        "rank correlation of steps and margin below -0.3, and more than 30 % of the steps saved "
        "at a loss of at most 0.1 points, on both data sets"
    ),
    method=(
        "The looped network (128 tanh units, bound 0.95) trained on {images} images for {epochs} "
        "epochs; {tests} test images settle synchronously, each until no rate moves more than "
        "1e-4; the margin is the lead of the first output over the second; {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Stop each sample by itself: easy ones are done sooner.",
        "Steps to rest do not tell hard samples from easy ones; but the answer is there long "
        "before the rest, so a fixed early exit saves most of the work. The notes' constant 10 "
        "came from testing a whole batch at once, every fifth step.",
    ),
    chart=chart,
)
