"""Whether neuromorphic execution is a thousand times more efficient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sims.claims.cell_builders import meanings, over_seeds, sample_counts, series
from sims.claims.charts import Chart, Mark
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Json,
    Verdict,
    above,
    all_of,
    values_by_seed,
    verdict,
)
from sims.claims.statistics import Interval

SIZES: dict[Budget, dict[str, Any]] = {
    Budget.SMALL: {"seeds": 1, "images": 4000, "tests": 500, "epochs": 3, "samples": 16},
    Budget.FULL: {"seeds": 5, "images": 4000, "tests": 1000, "epochs": 4, "samples": 32},
}
STUDY = {
    **{"hidden": [256], "batch": 64, "learning_rate": 0.001},
    **{"free_steps": 8, "nudged_steps": 4},
}


SIDES = {
    "dynamic": "above idle",
    "total": "with static power",
    "hosted": "and with the\nhost's input work",
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """A hard-sigmoid network as rate-coded spikes."""
    size = SIZES[budget]
    arguments = {
        **sample_counts(size, "mnist"),
        **{"samples": size["samples"], "steps": 32, "code": "rate", "gpu": "gpu_k4000"},
        **{"chips": ["loihi1", "odin", "spinnaker1", "truenorth"], "batches": [1, 64]},
        "study": {**STUDY, "epochs": size["epochs"]},
    }
    return over_seeds("layered", "joules", arguments, size["seeds"])


def rows(results: CellResults) -> Iterator[Json]:
    """The rows of the results of all seeds."""
    for values in values_by_seed(results, "layered").values():
        yield from values["rows"]


def ratio(results: CellResults, chip: str, batch: int, side: str) -> Interval | None:
    """Joules of the GPU over those of the chip: median over seeds, with the widest range."""
    found = [
        row[side]
        for row in rows(results)
        if (row["chip"], row["batch"]) == (chip, batch) and side in row
    ]
    if not found:
        return None
    values = sorted(each[0] for each in found)
    low, high = min(each[1] for each in found), max(each[2] for each in found)
    return Interval(values[len(values) // 2], low, high, len(found))


def verdict_from(results: CellResults) -> Verdict:
    """The ratio on Loihi with static power, at both batch sizes, without the work of the host."""
    found = {batch: ratio(results, "loihi1", batch, "total") for batch in (1, 64)}
    one, many = found[1], found[64]
    if one is None or many is None:
        raise ValueError("the energy of the network on loihi1 is not known")
    hosted = ratio(results, "loihi1", 64, "hosted")
    note = (
        f"With static power a GPU uses {one} times the joules of Loihi at a batch of 1 and {many} "
        "at 64 (ranges of the estimate), with the input current computed by a host at no cost"
    )
    note += f"; with the work of the host at the cost of the GPU {hosted} at 64." if hosted else "."
    return verdict(all_of([above(one, 1000.0), above(many, 1000.0)]), many, note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The ratios by batch size and by the terms that are counted."""
    lines = []
    for batch in (1, 64):
        parts = [ratio(results, "loihi1", batch, side) for side in SIDES]
        known = [part or Interval(0.0, 0.0, 0.0, 2) for part in parts]
        shown = [Interval(e.value, e.low, e.high, 2) for e in known]
        lines.append(series(f"batch {batch}", list(SIDES.values()), shown))
    title = "Joules of a GPU over those of Loihi, per inference"
    return (Chart(title, "", "ratio", tuple(lines), Mark.BAR, log_y=True, threshold=1000.0),)


CLAIM = Claim(
    id="energy-1000x",
    statement="Neuromorphic execution is 1000 times more energy efficient.",
    source="004: 1000 times",
    threshold="GPU over Loihi above 1000 with static power, at a batch of 1 and at one of 64",
    method=(
        "A network 784-256-10 trained on {images} MNIST images for {epochs} epochs, as rate-coded "
        "spikes of 32 steps on the emulator; the events of {samples} samples are counted and "
        "converted to joules by the profile of Loihi 1, with its static power; the same dense "
        "pass on a measured Quadro K4000 with its idle power for the time of an inference. "
        "{seeds} seed(s); the interval is the range of the estimate's constants."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Three orders of magnitude can be claimed, also against a fully used GPU.",
        "State the batch size and what is counted: the gain is large against a GPU at batch 1, one "
        "or two orders of magnitude against a fully used GPU, and less with the work of the host.",
    ),
    chart=chart,
)
