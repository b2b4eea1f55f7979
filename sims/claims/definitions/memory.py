"""Whether training memory is constant, and how it compares with backpropagation."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import meanings
from sims.claims.charts import Chart, Series
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Json,
    Verdict,
    all_of,
    below,
    values_by_seed,
    verdict,
)
from sims.claims.statistics import exact

SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"width": 256, "batch": 128, "steps": [5, 10, 30, 60], "depths": [1, 2, 4, 8]},
    Budget.FULL: {
        **{"width": 512, "batch": 256, "steps": [5, 10, 30, 60, 120]},
        "depths": [1, 2, 4, 8, 16],
    },
}
WIDTHS = (128, 256, 512, 1024, 2048)
METHODS = {"eqprop": "EqProp", "bptt": "BPTT", "feedforward": "backprop, feed-forward"}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """One update for each number of settle steps, depth and width."""
    size = SIZES[budget]
    base = {"model": "looped", "width": size["width"], "depth": 1, "batch": size["batch"]}
    made = [Cell(f"steps {t}", "memory", {**base, "steps": t}, 0) for t in size["steps"]]
    for depth in size["depths"]:
        chain = {**base, "model": "layered", "depth": depth, "steps": 10}
        made.append(Cell(f"depth {depth}", "memory", chain, 0))
    for width in WIDTHS:
        wide = {**base, "width": width, "steps": 25}
        made.append(Cell(f"width {width}", "memory", wide, 0))
    return tuple(made)


def along(results: CellResults, what: str) -> dict[int, Json]:
    """The values of the cells over steps, depth or width, by that number."""
    found = [each.cell.name for each in results if each.cell.name.startswith(what)]
    return {int(name.split()[1]): values_by_seed(results, name)[0] for name in found}


def verdict_from(results: CellResults) -> Verdict:
    """Growth with steps, growth with depth, and the ratio to BPTT."""
    steps, depths = along(results, "steps"), along(results, "depth")
    widest = along(results, "width")[max(WIDTHS)]
    few, many, deep = 10, max(steps), max(depths)
    longer = steps[many]["eqprop"] / steps[few]["eqprop"]
    deeper = depths[deep]["eqprop"] / depths[min(depths)]["eqprop"]
    ratio = steps[30]["eqprop"] / steps[30]["bptt"]
    plain = steps[30]["eqprop"] / steps[30]["feedforward"]
    note = (
        f"From {few} to {many} settle steps memory grows {longer:.2f} times (constant), from "
        f"{min(depths)} to {deep} hidden layers {deeper:.1f} times (not constant: the states of "
        f"all layers are stored); against BPTT through 30 steps it is {ratio:.2f} times, against "
        f"feed-forward backpropagation of a perceptron {plain:.1f} times; at width 2048 "
        f"{widest['eqprop'] / 2**20:.0f} MiB against {widest['bptt'] / 2**20:.0f} MiB of BPTT and "
        f"{widest['feedforward'] / 2**20:.0f} MiB of a perceptron."
    )
    parts = [
        below(exact(longer), 1.1),
        below(exact(deeper), 1.1),
        below(exact(ratio), 0.5),
    ]
    return verdict(all_of(parts), exact(ratio), note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Peak memory against settle steps, depth and width."""
    made = []
    titles = {
        "steps": ("Looped network: settle steps", "settle steps"),
        "depth": ("Chain, 10 steps: depth", "hidden layers"),
        "width": ("Looped network, 25 steps: width", "hidden units"),
    }
    for what, (title, label) in titles.items():
        found = along(results, what)
        lines = tuple(
            Series(name, [float(n) for n in found], [found[n][method] / 2**20 for n in found])
            for method, name in METHODS.items()
        )
        made.append(Chart(title, label, "MiB alive at once", lines, log_x=True, log_y=True))
    return tuple(made)


CLAIM = Claim(
    id="memory",
    statement=(
        "Training memory does not grow with depth or settle steps and is below half of "
        "backpropagation's."
    ),
    source="002, 003: 1.04 to 1.12 times measured; 004: constant",
    threshold=(
        "growth below 1.1 times over settle steps and over depth; ratio to BPTT through 30 steps "
        "below 0.5"
    ),
    method=(
        "Bytes of torch tensors alive at once in one update, counted after every operation, "
        "parameters and data left out: a looped network of {width} units, batch {batch}, settle "
        "steps {steps}; chains of depth {depths} with 10 steps; widths 128 to 2048 with 25 steps. "
        "Counted, not estimated: no seeds. In the perceptron a second hidden layer takes the "
        "place of the loop."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Memory does not limit the depth.",
        "Of the versions in the notes this one holds: constant in settle steps and far below "
        "BPTT, but linear in depth, and more than ordinary feed-forward backpropagation needs.",
    ),
    conflict=(
        "004 states that memory is constant in depth; 003 measured 1.04 to 1.12 times the memory "
        "of backpropagation, with code that still kept the graph of autograd. Measured here: "
        "constant in settle steps, not in depth."
    ),
    shown={f"{name}, bytes": method for method, name in METHODS.items()},
    chart=chart,
)
