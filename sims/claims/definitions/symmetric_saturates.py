"""Whether networks with symmetric weights fail to train."""

from __future__ import annotations

from sims.claims.cell_builders import meanings, over_seeds, percent
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    below,
    cell_names,
    column,
    verdict,
)
from sims.claims.definitions import transformer_mnist
from sims.claims.definitions.multi_seed import SIZES, arguments
from sims.claims.statistics import student


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The symmetric looped network; for comparison the symmetric transformer."""
    size = SIZES[budget]
    looped = over_seeds("looped", "accuracy", arguments("looped", size), size["seeds"])
    other = transformer_mnist.SIZES[budget]
    values = transformer_mnist.arguments({"attention": "linear"}, other)
    return looped + over_seeds("transformer", "accuracy", values, other["seeds"], needed=False)


def verdict_from(results: CellResults) -> Verdict:
    """The test accuracy of the looped network."""
    found = student(column(results, "looped", "test_accuracy"))
    note = f"With symmetric weights the looped network reaches {percent(found)} on the digits."
    if "transformer" in cell_names(results):
        other = student(column(results, "transformer", "test_accuracy"))
        note += f" The transformer, symmetric by its energy, reaches {percent(other)} on MNIST."
    return verdict(below(found, 0.15), found, note)


CLAIM = Claim(
    id="symmetric-saturates",
    statement="In symmetric mode training saturates and fails.",
    source="003: 10.2 % on MNIST",
    threshold="test accuracy below 15 % (chance is 10 %)",
    method=(
        "The looped network of 128 tanh units with a symmetric loop, on {images} digits, "
        "{epochs} epochs, {seeds} seeds; for comparison the transformer of transformer-mnist, "
        "whose weights are tied."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Avoid symmetric weights.",
        "Symmetric weights train well; the failure in the notes came from a map that is not the "
        "gradient of its energy (the state inside its own tanh, and a normaliser summed over the "
        "wrong axis).",
    ),
)
