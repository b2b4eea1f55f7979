"""Whether a hierarchical network reaches 50 % on CIFAR-10."""

from __future__ import annotations

from typing import Any

from sims.claims.cell_builders import (
    beside,
    meanings,
    over_seeds,
    percent,
    sample_counts,
)
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    column,
    verdict,
)
from sims.claims.statistics import student

SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 10000, "tests": 2000, "epochs": 3, "dense_images": 2000},
    Budget.FULL: {"seeds": 3, "images": 50000, "tests": 10000, "epochs": 2, "dense_images": 10000},
}
STUDY: dict[str, Any] = {
    **{"model": "pyramid", "hidden": [32, 64, 128], "learning_rate": 0.005},
    **{"flip": True, "shift": 2},
}
DENSE: dict[str, Any] = {
    **{"model": "multiscale", "hidden": [512], "activation": "tanh", "output": "linear"},
    **{"beta": 0.22, "learning_rate": 0.0005, "batch": 64, "free_steps": 15, "nudged_steps": 6},
    **{"normalise": True},
}
"""The multi-scale network without convolutions. On raw pixels, or at four times this learning rate,
it stays at chance."""


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The pyramid by EqProp; for comparison by backprop, and the dense multi-scale network."""
    size = SIZES[budget]
    counts, epochs = sample_counts(size, "cifar10"), {"epochs": size["epochs"]}
    made = over_seeds("pyramid", "accuracy", {**counts, "study": STUDY | epochs}, size["seeds"])
    twin = {**counts, "study": STUDY | epochs | {"rule": "backprop"}}
    made += over_seeds("pyramid, backprop", "accuracy", twin, 1, needed=False)
    dense = {**counts, "images": size["dense_images"], "study": DENSE | epochs}
    return made + over_seeds("dense", "accuracy", dense, 1, needed=False)


def verdict_from(results: CellResults) -> Verdict:
    """The test accuracy of the pyramid."""
    found = student(column(results, "pyramid", "test_accuracy"))
    twin = beside(results, "pyramid, backprop", "by backprop")
    dense = beside(results, "dense", "without convolutions")
    note = f"The test accuracy is {percent(found)}{twin}{dense}."
    return verdict(above(found, 0.5), found, note)


CLAIM = Claim(
    id="hierarchical-cifar",
    statement="A multi-scale hierarchical EqProp network reaches 50 to 65 % on CIFAR-10.",
    source="001, 002: 50, 60, 65 %",
    threshold="test accuracy above 50 %",
    method=(
        "The convolutional pyramid (32, 64 and 128 channels at three scales, each coupled to the "
        "next, all read out) on {images} CIFAR-10 images, {epochs} epochs, {seeds} seeds, where "
        "the data is present; for comparison the same by backprop, and the dense multi-scale "
        "network (512, 256 and 128 units) on {dense_images} images. The results name the version "
        "of the data."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "EqProp can be trained on natural images.",
        "Natural images need another architecture.",
    ),
)
