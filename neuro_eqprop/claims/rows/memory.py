"""Whether training memory is constant, and how it compares."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart, Series
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Json,
    Outcomes,
    Verdict,
    below,
    every,
    named,
    verdict,
)
from neuro_eqprop.claims.design import meanings
from neuro_eqprop.claims.intervals import exact

SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"width": 256, "batch": 128, "steps": [5, 10, 30, 60], "depths": [1, 2, 4, 8]},
    Budget.FULL: {
        **{"width": 512, "batch": 256, "steps": [5, 10, 30, 60, 120]},
        "depths": [1, 2, 4, 8, 16],
    },
}
WIDTHS = (128, 512, 2048)


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Over settle steps, over depth, over width."""
    size = SIZES[budget]
    base = {"model": "looped", "width": size["width"], "depth": 1, "batch": size["batch"]}
    made = [Cell(f"steps {t}", "memory", {**base, "steps": t}, 0) for t in size["steps"]]
    for depth in size["depths"]:
        chain = {**base, "model": "layered", "depth": depth, "steps": 10}
        made.append(Cell(f"depth {depth}", "memory", chain, 0))
    for width in WIDTHS:
        wide = {**base, "width": width, "batch": 64, "steps": 30}
        made.append(Cell(f"width {width}", "memory", wide, 0))
    return tuple(made)


def along(outcomes: Outcomes, what: str) -> dict[int, Json]:
    """The cells over steps, depth or width."""
    found = [each.cell.name for each in outcomes if each.cell.name.startswith(what)]
    return {int(name.split()[1]): named(outcomes, name)[0] for name in found}


def judge(outcomes: Outcomes) -> Verdict:
    """Growth with steps, growth with depth, and the ratio to BPTT."""
    steps, depths = along(outcomes, "steps"), along(outcomes, "depth")
    widest = along(outcomes, "width")[max(WIDTHS)]
    few, many, deep = 10, max(steps), max(depths)
    longer = steps[many]["eqprop"] / steps[few]["eqprop"]
    deeper = depths[deep]["eqprop"] / depths[min(depths)]["eqprop"]
    ratio = steps[30]["eqprop"] / steps[30]["bptt"]
    plain = steps[30]["eqprop"] / steps[30]["feedforward"]
    note = (
        f"From {few} to {many} settle steps memory grows {longer:.2f} times (constant), from "
        f"{min(depths)} to {deep} hidden layers {deeper:.1f} times (not constant: states are "
        f"held); against BPTT through 30 steps it is {ratio:.2f} times, against feed-forward "
        f"backpropagation {plain:.1f} times; at width 2048 {widest['eqprop'] / 2**20:.0f} MiB "
        f"against {widest['bptt'] / 2**20:.0f} MiB of BPTT."
    )
    parts = [
        below(exact(longer), 1.1),
        below(exact(deeper), 1.1),
        below(exact(ratio), 0.5),
    ]
    return verdict(every(parts), exact(ratio), note)


def chart(outcomes: Outcomes) -> Chart:
    """Bytes against settle steps."""
    steps = along(outcomes, "steps")
    lines = tuple(
        Series(way, [float(t) for t in steps], [steps[t][way] / 2**20 for t in steps])
        for way in ("eqprop", "bptt", "feedforward")
    )
    title = "Tensors alive in one training step, looped network"
    return Chart(title, "settle steps", "MiB", lines, log_x=True, log_y=True)


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
        "steps {steps}; chains of depth {depths} with 10 steps; widths 128, 512, 2048 with batch "
        "64. Counted, not estimated: no seeds."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "Memory is no obstacle at any depth.",
        "Of the notes' versions this one holds: constant in settle steps and far below BPTT, but "
        "linear in depth, and more than ordinary feed-forward backpropagation needs.",
    ),
    chart=chart,
)
