"""Whether an autograd-free NumPy kernel is faster than torch."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.claims.charts import Chart
from neuro_eqprop.claims.claim import (
    Budget,
    Cell,
    Claim,
    Outcomes,
    Verdict,
    above,
    named,
    names,
    verdict,
)
from neuro_eqprop.claims.design import LAYERED, meanings, over_seeds, series
from neuro_eqprop.claims.intervals import Interval, geometric

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
        told = {
            **{"dataset": "mnist", "images": 2000, "tests": 10},
            **{"rounds": size["rounds"], "times": size["times"]},
            "study": {**LAYERED, "hidden": [512], "batch": batch},
        }
        made += over_seeds(f"batch {batch}", "kernel", told, size["seeds"], needed=batch == 128)
    return tuple(made)


def gain(outcomes: Outcomes, name: str) -> Interval:
    """How many times the time of NumPy torch takes."""
    found = named(outcomes, name)
    ratios = [found[s]["torch"]["seconds"] / found[s]["numpy"]["seconds"] for s in sorted(found)]
    return geometric(ratios)


def judge(outcomes: Outcomes) -> Verdict:
    """At a batch of 128."""
    found = gain(outcomes, "batch 128")
    told = ", ".join(f"{name} {gain(outcomes, name).value:.2f}" for name in names(outcomes))
    close = all(each.values["close"] for each in outcomes)
    same = "the same updates" if close else "updates that differ by more than a thousandth"
    note = f"Torch takes {found} times the CPU time of NumPy for {same} ({told})."
    return verdict(above(found, 1.0), found, note)


def chart(outcomes: Outcomes) -> Chart:
    """The ratio against the batch."""
    found = [gain(outcomes, name) for name in names(outcomes)]
    batches = [float(name.split()[1]) for name in names(outcomes)]
    lines = (series("torch / NumPy", batches, found),)
    title = "Time of one update, 784-512-10"
    return Chart(title, "batch", "ratio of CPU time", lines, log_x=True, threshold=1.0)


CLAIM = Claim(
    id="kernel-speed",
    statement="An autograd-free NumPy kernel is faster than PyTorch.",
    source="001: 21.4 against 33.9 ms (58 %)",
    threshold="CPU time of torch above that of NumPy, the same equations in both",
    method=(
        "One centered episode and its update, 784-512-10, 6 free and 3 nudged sweeps, float32, one "
        "thread, batches of 64, 128 (judged) and 512; {rounds} rounds of {times}, in turns in one "
        "process, median, {seeds} repetitions; no autograd on either side. Geometric mean."
    ),
    sizes=SIZES,
    cells=cells,
    judge=judge,
    meaning=meanings(
        "On a CPU, NumPy alone trains somewhat faster at this size; the notes' 58 % also held "
        "autograd against no autograd.",
        "Like for like there is no gain: the notes compared code without autograd to code with.",
    ),
    chart=chart,
)
