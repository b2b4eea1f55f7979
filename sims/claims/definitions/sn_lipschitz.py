"""Whether spectral normalisation keeps the map a contraction, and whether it is needed."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import (
    LOOPED,
    UNBOUND,
    curve,
    meanings,
    over_seeds,
    percent,
    sample_counts,
    series,
)
from sims.claims.charts import Chart
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Finding,
    Verdict,
    above,
    all_of,
    below,
    cell_names,
    column,
    values_of,
    verdict,
)
from sims.claims.statistics import hedges_g, student

KEPT, FREE = "bound 0.95", "no bound"
SIZES = {
    Budget.SMALL: {
        **{"seeds": 3, "beside": 1, "images": 1000, "tests": 500, "epochs": 4, "samples": 8}
    },
    Budget.FULL: {
        **{"seeds": 5, "beside": 2, "images": 4000, "tests": 1000, "epochs": 6, "samples": 50}
    },
}
MODELS: dict[str, dict[str, Any]] = {
    "looped": {},
    "toroidal": {"model": "toroidal"},
    "modern": {"model": "modern", "memory": 256},
}
NOTES = "notes' modern"
BESIDE: dict[str, dict[str, Any]] = {
    NOTES: {
        **{"model": "modern", "memory": 256, "symmetric": False, "rule": "vector-field"},
        **{"learning_rate": 0.002, "cost": ""},
    },
}
"""For comparison: the form of the notes. It has no energy, so no rule is exact for it."""


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Three networks with and without a bound; for comparison the form of the notes of one."""
    size = SIZES[budget]
    made: list[Cell] = []
    for model, changes in {**MODELS, **BESIDE}.items():
        for name, bound in ((KEPT, 0.95), (FREE, UNBOUND)):
            study = {**LOOPED, **changes, "bound": bound, "epochs": size["epochs"]}
            arguments = {**sample_counts(size, "mnist"), "study": study, "samples": size["samples"]}
            needed = model in MODELS
            seeds = size["seeds" if needed else "beside"]
            made += over_seeds(f"{model}, {name}", "lipschitz", arguments, seeds, needed=needed)
    return tuple(made)


def largest(results: CellResults, name: str) -> list[float]:
    """The largest L of the loop after any epoch, by seed."""
    return [max(values["loop"]) for values in values_of(results, name)]


def confirms_at_most(found: Finding) -> Finding:
    """Undecided instead of refuted: the largest L can still grow in a longer training."""
    return Finding.UNDECIDED if found is Finding.REFUTED else found


def verdict_from(results: CellResults) -> Verdict:
    """The largest L of every network: below one with the bound, above one without."""
    findings, summaries, sides = [], [], {}
    for model in MODELS:
        one, two = (largest(results, f"{model}, {name}") for name in (KEPT, FREE))
        kept, free = student(one), student(two)
        findings += [below(kept, 1.0), confirms_at_most(above(free, 1.0))]
        right = [
            student(column(results, f"{model}, {name}", "test_accuracy")) for name in (KEPT, FREE)
        ]
        summaries.append(
            f"{model} {kept} with the bound (accuracy {percent(right[0])}) and {free} without "
            f"(accuracy {percent(right[1])})"
        )
        sides[model] = (free, hedges_g(one, two))
    note = f"The largest L during training: {'; '.join(summaries)}."
    if f"{NOTES}, {FREE}" in cell_names(results):
        theirs = [student(largest(results, f"{NOTES}, {name}")) for name in (KEPT, FREE)]
        note += (
            f" In the form of the notes, without an energy, modern: {theirs[0]} and {theirs[1]}."
        )
    least, effect = min(sides.values(), key=lambda each: each[0].value)
    return verdict(all_of(findings), least, note, effect=effect)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """L after each epoch, a chart for each network."""
    made = []
    for model in (*MODELS, *BESIDE):
        lines = []
        for name in (n for n in cell_names(results) if n.startswith(f"{model},")):
            means = curve(results, name, "loop")
            label = name.removeprefix(f"{model}, ")
            lines.append(series(label, [float(epoch) for epoch in range(len(means))], means))
        if lines:
            made.append(Chart(model, "epoch", "L of the loop", tuple(lines), threshold=1.0))
    return tuple(made)


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
    threshold=(
        "largest L during training below 1 with the bound, and above 1 without, in all three "
        "networks (L below 1 without the bound does not refute: it may grow in a longer training)"
    ),
    method=(
        "The looped, the toroidal and the modern network (128 tanh units; 256 of memory, tied) on "
        "{images} MNIST images, {epochs} epochs, Adam, learning rate 0.005, {seeds} seeds, their "
        "loop scaled back to a spectral norm of 0.95 after each update, or not. L is the spectral "
        "norm of the Jacobian of the hidden state once around the loop, the largest over "
        "{samples} test samples at their equilibria, before training and after each epoch. The "
        "value is the smallest L without a bound. For comparison the modern network in the "
        "form of the notes, without an energy, by the vector-field rule, with {beside} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Keep a spectral bound: every sample then settles quickly.",
        "A bound keeps the contraction and costs no accuracy; but training without one does not "
        "always lose the contraction, and does not fail where it does. Keep the bound for its "
        "guarantee, and check the residual of settling where there is none.",
        "A bound of 0.95 keeps the contraction and costs no accuracy; whether a loop without one "
        "loses it depends on the network and the length of the training, and where it does, "
        "accuracy need not suffer. Keep the bound.",
    ),
    conflict=(
        "004 calls the bound essential for all three networks, but its own table has the looped "
        "one at 0.74 after training without it, and 001 expects divergence without it."
    ),
    chart=chart,
    shown={
        "L untrained": "loop[0]",
        "L after the first epoch": "loop[1]",
        "L after the last": f"loop[{SIZES[Budget.FULL]['epochs']}]",
        "test accuracy": "test_accuracy",
    },
)
