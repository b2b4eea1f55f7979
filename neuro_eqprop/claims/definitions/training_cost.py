"""The cost of training by EqProp against backpropagation, BPTT and implicit differentiation."""

from __future__ import annotations

from neuro_eqprop.claims.cell_builders import (
    LAYERED,
    LOOPED,
    meanings,
    over_seeds,
    sample_counts,
    series,
)
from neuro_eqprop.claims.charts import Chart, Mark
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    cell_names,
    values_by_seed,
    verdict,
)
from neuro_eqprop.claims.statistics import Interval, geometric

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 640, "tests": 10, "rounds": 3},
    Budget.FULL: {"seeds": 5, "images": 1280, "tests": 10, "rounds": 3},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Both networks."""
    size = SIZES[budget]
    made: list[Cell] = []
    for name, study in (("layered", LAYERED), ("looped", LOOPED)):
        once = {**study, "cost": "squared", "epochs": 1}
        arguments = {**sample_counts(size, "mnist"), "study": once, "rounds": size["rounds"]}
        made += over_seeds(name, "cost", arguments, size["seeds"])
    return tuple(made)


def ratio(results: CellResults, name: str, other: str) -> Interval:
    """EqProp's time over that of another way."""
    found = values_by_seed(results, name)
    return geometric([found[s]["eqprop"]["seconds"] / found[s][other]["seconds"] for s in found])


def verdict_from(results: CellResults) -> Verdict:
    """EqProp against feed-forward backpropagation of the same shape."""
    summaries, found = [], []
    for name in cell_names(results):
        parts = {way: ratio(results, name, way) for way in ("backprop", "bptt", "implicit")}
        found.append(parts["backprop"])
        summaries.append(f"{name}: " + ", ".join(f"{way} {r}" for way, r in parts.items()))
    cheapest = min(found, key=lambda each: each.value)
    note = f"CPU time of EqProp over that of each way: {'; '.join(summaries)}."
    return verdict(all_of([above(each, 1.0) for each in found]), cheapest, note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The ratios."""
    ways = ["backprop", "bptt", "implicit"]
    lines = tuple(
        series(name, ways, [ratio(results, name, way) for way in ways])
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
        "same training loop; {rounds} rounds in turns, median, {seeds} repetitions."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Expect to pay some multiple of backpropagation's time on a CPU, but no tens; the figure "
        "for your network is in the table.",
        "EqProp is no slower at this size.",
    ),
    conflict=(
        "4.8 times was measured in 004, 10 to 50 times feared in 000; both are far from what local "
        "updates need, which is two to three times."
    ),
    chart=chart,
    shown={f"{way}, s": f"{way}.seconds" for way in ("eqprop", "backprop", "bptt", "implicit")},
)
