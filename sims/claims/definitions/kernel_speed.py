"""Whether an autograd-free NumPy kernel is faster than torch."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import LAYERED, meanings, over_seeds, series
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

BATCHES = (64, 128, 512)
SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 3, "rounds": 5, "times": 3},
    Budget.FULL: {"seeds": 5, "rounds": 10, "times": 3},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """One update at three batch sizes."""
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


def time_ratio(results: CellResults, name: str, method: str = "torch") -> Interval:
    """CPU time of a method over that of NumPy."""
    found = values_of(results, name)
    return geometric([values[method]["seconds"] / values["numpy"]["seconds"] for values in found])


def verdict_from(results: CellResults) -> Verdict:
    """CPU time of torch over that of NumPy, at every batch size."""
    ratios = {name: time_ratio(results, name) for name in cell_names(results)}
    ratios_text = ", ".join(f"{name} {found}" for name, found in ratios.items())
    graph = ", ".join(
        f"{name} {time_ratio(results, name, 'autograd').value:.2f}" for name in cell_names(results)
    )
    close = all(each.values["close"] for each in results)
    same = "the same updates" if close else "updates that differ by more than a thousandth"
    note = (
        f"CPU time of torch without autograd over that of NumPy, for {same}: {ratios_text}. "
        f"BPTT by autograd, as in the trainer of the notes: {graph}."
    )
    finding = all_of([above(found, 1.0) for found in ratios.values()])
    return verdict(finding, min(ratios.values(), key=lambda each: each.value), note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The ratios by batch size."""
    labels = [name.replace("batch", "batch of") for name in cell_names(results)]
    lines = tuple(
        series(label, labels, [time_ratio(results, name, method) for name in cell_names(results)])
        for method, label in (("torch", "torch, the same equations"), ("autograd", "torch, BPTT"))
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
        "The phases of one batch with centered nudging and the update, 784-512-10, 6 free and 3 "
        "nudged sweeps, float32, one thread, batches of 64, 128 and 512; {rounds} interleaved "
        "rounds of {times} in one process, median, {seeds} repetitions; no autograd on either "
        "side. Geometric mean. For comparison BPTT through 6 sweeps of the same network by "
        "autograd."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "On a CPU, NumPy trains somewhat faster at this size; the 58 % of the notes include the "
        "cost of autograd.",
        "With the same equations NumPy has no advantage, or only with small batches: the notes "
        "compared code without autograd with code that used it.",
        "With the same equations NumPy and torch do not differ clearly at every batch size: choose "
        "by other criteria than speed. The notes compared code without autograd with code that "
        "used it.",
    ),
    chart=chart,
    shown={f"{method}, s": f"{method}.seconds" for method in ("numpy", "torch", "autograd")},
)
