"""Whether EqProp reaches the accuracy of backpropagation on MNIST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sims.claims.cell_builders import (
    LAYERED,
    LOOPED,
    accuracy_by_seed,
    bars,
    meanings,
    over_seeds,
    percent,
    points,
)
from sims.claims.charts import Chart, Mark
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    cell_names,
    column,
    verdict,
)
from sims.claims.statistics import hedges_g, paired, student

MARGIN = 0.005
COSTS = ["squared", "cross_entropy"]
RATES = [0.001, 0.003, 0.01]
COMMON = {
    **{"images": 10000, "held": 2000, "tests": 10000},
    **{"search": 2, "epochs": 6, "rates": RATES},
}
SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 3, **COMMON},
    Budget.FULL: {"seeds": 5, **COMMON},
}


SHOWN = {"test accuracy": "test_accuracy", "learning rate chosen": "rate"}


def arguments(
    dataset: str, study: Mapping[str, Any], rule: str, size: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a tuned training by one rule."""
    return {
        **{"dataset": dataset, "images": size["images"], "tests": size["tests"]},
        **{"held_out": size["held"], "rule": rule, "rates": size["rates"], "costs": COSTS},
        **{"search": size["search"], "study": {**study, "epochs": size["epochs"]}},
    }


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Two networks, each by EqProp and by backpropagation."""
    size = SIZES[budget]
    made: list[Cell] = []
    for model, study in (("layered", LAYERED), ("looped", LOOPED)):
        for rule in ("eqprop", "backprop"):
            chosen = arguments("mnist", study, rule, size)
            made += over_seeds(f"{model}, {rule}", "contest", chosen, size["seeds"])
    return tuple(made)


def verdict_from(results: CellResults) -> Verdict:
    """EqProp minus backpropagation, for the network where it is lower."""
    parts, sentences, findings = {}, [], []
    for model in dict.fromkeys(name.split(",")[0] for name in cell_names(results)):
        ours, theirs = (
            column(results, f"{model}, {rule}", "test_accuracy") for rule in ("eqprop", "backprop")
        )
        gap = paired(ours, theirs)
        findings.append(above(gap, -MARGIN))
        parts[model] = (gap, hedges_g(ours, theirs))
        scores = f"{percent(student(ours))} against {percent(student(theirs))}"
        sentences.append(f"{model} {scores}, {points(gap)}")
    gap, effect = min(parts.values(), key=lambda each: each[0].value)
    return verdict(all_of(findings), gap, f"{'; '.join(sentences)}.", effect=effect)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Mean accuracy by network and rule, and the accuracy of every seed."""
    models = list(dict.fromkeys(name.split(",")[0] for name in cell_names(results)))
    sides = tuple(
        bars(rule, results, [f"{model}, {rule}" for model in models], "test_accuracy", models)
        for rule in ("eqprop", "backprop")
    )
    lines = accuracy_by_seed(results)
    return (
        Chart("MNIST, mean and interval", "", "test accuracy", sides, Mark.POINTS),
        Chart("MNIST, by seed", "seed", "test accuracy", lines, Mark.POINTS),
    )


CLAIM = Claim(
    id="parity-mlp",
    statement="EqProp reaches the accuracy of backpropagation.",
    source="004: 95.33 and 95.72 against 98.06; 94.37 against 95.14; headline 97.50",
    threshold="EqProp minus backpropagation above -0.5 points, for the layered and the looped net",
    method=(
        "{images} MNIST images, Adam, batch 64, a learning rate that falls along a cosine, {tests} "
        "test images, {seeds} seeds. Both rules have the same search in each seed: two costs "
        "(squared, cross-entropy) times the learning rates {rates}, each for {search} epochs, "
        "selected on {held} held-out images; the best is trained again on all images "
        "for {epochs} epochs and tested once. Layered 784-256-10 (relu; beta 0.25, 6 and 3 "
        "sweeps) and looped 784-128-10 (tanh, bound 0.95; beta 0.22, 12 and 5 sweeps) by EqProp; "
        "feed-forward networks (784-256-10, and 784-128-128-10 for the looped) by backpropagation. "
        "Differences are paired by seed."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "EqProp costs no accuracy on such networks.",
        "EqProp loses accuracy on at least one of the two networks; see the table.",
        "Any gap is at most about half a point.",
    ),
    conflict=(
        "95.72 against 98.06, 94.37 against 95.14, and a headline of 97.50 that matches "
        "backpropagation. The first two are trainings by backpropagation through the unrolled "
        "loop, the third is on 8 x 8 digits; that EqProp can match backpropagation is the "
        "version to test."
    ),
    chart=chart,
    shown=SHOWN,
)
