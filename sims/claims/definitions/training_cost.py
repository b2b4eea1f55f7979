"""The cost of training by EqProp against backpropagation, BPTT and implicit differentiation."""

from __future__ import annotations

from sims.claims.cell_builders import (
    LAYERED,
    LOOPED,
    meanings,
    over_seeds,
    sample_counts,
    series,
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
    values_of,
    verdict,
)
from sims.claims.statistics import Interval, geometric

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 640, "tests": 10, "rounds": 3},
    Budget.FULL: {"seeds": 5, "images": 1280, "tests": 10, "rounds": 3},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The layered and the looped network."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, study in (("layered", LAYERED), ("looped", LOOPED)):
        once = {**study, "cost": "squared", "epochs": 1}
        arguments = {**sample_counts(size, "mnist"), "study": once, "rounds": size["rounds"]}
        made += over_seeds(name, "cost", arguments, size["seeds"])
    return tuple(made)


def ratio(results: CellResults, name: str, other: str) -> Interval:
    """CPU time of EqProp over that of another method."""
    found = values_of(results, name)
    return geometric([values["eqprop"]["seconds"] / values[other]["seconds"] for values in found])


def verdict_from(results: CellResults) -> Verdict:
    """CPU time of EqProp over that of feed-forward backpropagation."""
    summaries, found = [], []
    for name in cell_names(results):
        parts = {
            method: ratio(results, name, method) for method in ("backprop", "bptt", "implicit")
        }
        found.append(parts["backprop"])
        summaries.append(f"{name}: " + ", ".join(f"{method} {r}" for method, r in parts.items()))
    cheapest = min(found, key=lambda each: each.value)
    note = f"CPU time of EqProp over that of each method: {'; '.join(summaries)}."
    return verdict(all_of([above(each, 1.0) for each in found]), cheapest, note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The ratios by method and network."""
    methods = ["backprop", "bptt", "implicit"]
    lines = tuple(
        series(name, methods, [ratio(results, name, method) for method in methods])
        for name in cell_names(results)
    )
    title = "CPU time of EqProp over that of ..."
    return (Chart(title, "", "ratio", lines, Mark.BAR, threshold=1.0),)


CLAIM = Claim(
    id="training-cost",
    statement="EqProp is slower than backpropagation.",
    source="004: 4.8 times; 000 feared 10 to 50 times",
    threshold="CPU time of an epoch above that of feed-forward backpropagation, for both networks",
    method=(
        "An epoch over {images} MNIST images with Adam, batch 64, one thread: layered 784-256-10 "
        "(6 free, 3 nudged sweeps) and looped 784-128-10 (12 and 5) by EqProp, feed-forward "
        "networks of the same shape by backpropagation, and the same networks by BPTT through as "
        "many sweeps and by implicit differentiation with twice as many adjoint steps, all by the "
        "same training loop; {rounds} interleaved rounds, median, {seeds} repetitions."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Expect a small multiple of the time of backpropagation on a CPU, not tens of times; the "
        "times are in the table.",
        "EqProp is no slower at this size.",
    ),
    conflict=(
        "4.8 times was measured in 004, 10 to 50 times feared in 000; both are far from what local "
        "updates need, which is two to three times."
    ),
    chart=chart,
    shown={
        f"{method}, s": f"{method}.seconds" for method in ("eqprop", "backprop", "bptt", "implicit")
    },
)
