"""Whether an autograd-free NumPy kernel is faster than torch."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.cell_builders import LAYERED, meanings, over_seeds, series
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

BATCHES = (64, 128, 512)
SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 3, "rounds": 5, "times": 3},
    Budget.FULL: {"seeds": 5, "rounds": 10, "times": 3},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The same episode at three batch sizes."""
    size = SIZES[budget]
    made: list[Cell] = []
    for batch in BATCHES:
        arguments = {
            **{"dataset": "mnist", "images": 2000, "tests": 10},
            **{"rounds": size["rounds"], "times": size["times"]},
            "study": {**LAYERED, "hidden": [512], "batch": batch},
        }
        made += over_seeds(f"batch {batch}", "kernel", arguments, size["seeds"])
    return tuple(made)


def gain(results: CellResults, name: str, way: str = "torch") -> Interval:
    """How many times the time of NumPy another way takes."""
    found = values_by_seed(results, name)
    ratios = [found[s][way]["seconds"] / found[s]["numpy"]["seconds"] for s in sorted(found)]
    return geometric(ratios)


def verdict_from(results: CellResults) -> Verdict:
    """At every batch size."""
    gains = {name: gain(results, name) for name in cell_names(results)}
    ratios = ", ".join(f"{name} {found}" for name, found in gains.items())
    graph = ", ".join(
        f"{name} {gain(results, name, 'autograd').value:.2f}" for name in cell_names(results)
    )
    close = all(each.values["close"] for each in results)
    same = "the same updates" if close else "updates that differ by more than a thousandth"
    note = (
        f"Torch without autograd takes this multiple of the CPU time of NumPy for {same}: "
        f"{ratios}. "
        f"BPTT by autograd, which the notes' trainer was: {graph}."
    )
    finding = all_of([above(found, 1.0) for found in gains.values()])
    return verdict(finding, min(gains.values(), key=lambda each: each.value), note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The ratio against the batch."""
    labels = [name.replace("batch", "batch of") for name in cell_names(results)]
    lines = tuple(
        series(label, labels, [gain(results, name, way) for name in cell_names(results)])
        for way, label in (("torch", "torch, the same equations"), ("autograd", "torch, BPTT"))
    )
    title = "CPU time of one update over that of NumPy, 784-512-10"
    return (Chart(title, "", "ratio", lines, Mark.POINTS, threshold=1.0),)


CLAIM = Claim(
    id="kernel-speed",
    statement="An autograd-free NumPy kernel is faster than PyTorch.",
    source="001: 21.4 against 33.9 ms (58 %)",
    threshold=(
        "CPU time of torch above that of NumPy, the same equations in both, at every batch size"
    ),
    method=(
        "One centered episode and its update, 784-512-10, 6 free and 3 nudged sweeps, float32, one "
        "thread, batches of 64, 128 and 512; {rounds} rounds of {times}, in turns in one process, "
        "median, {seeds} repetitions; no autograd on either side. Geometric mean. Beside it BPTT "
        "through 6 sweeps of the same network by autograd."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "On a CPU, NumPy alone trains somewhat faster at this size; the notes' 58 % also held "
        "autograd against no autograd.",
        "Like for like NumPy has no advantage, or only with small batches: what the notes measured "
        "is code without autograd against code with.",
        "Like for like NumPy and torch cannot be distinguished at every batch size: choose by what "
        "you need beside speed. What the notes measured is code without autograd against code "
        "with.",
    ),
    chart=chart,
    shown={f"{way}, s": f"{way}.seconds" for way in ("numpy", "torch", "autograd")},
)
