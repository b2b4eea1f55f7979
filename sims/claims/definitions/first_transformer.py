"""Whether a transformer was trained by EqProp before, decided by the literature."""

from __future__ import annotations

from sims.claims.cell_builders import meanings
from sims.claims.claim import Budget, Cell, CellResults, Claim, Finding, Verdict


def cells(budget: Budget) -> tuple[Cell, ...]:
    """No cells: no experiment can decide the claim."""
    return ()


def verdict_from(results: CellResults) -> Verdict:
    """Refuted by earlier publications."""
    return Verdict(
        Finding.REFUTED,
        "By the literature, not by an experiment: Bal and Sengupta (2023) trained modern-Hopfield "
        "attention by EqProp on text, and Hoier, Kerjan and Scellier (Convergent Energy "
        "Transformer, 2026) an energy transformer with log-sum-exp attention by centered EqProp.",
    )


CLAIM = Claim(
    id="first-transformer",
    statement="No one has trained a transformer by EqProp before.",
    source="001, 004",
    threshold="no earlier publication",
    method="Search of publications; nothing is run.",
    sizes={Budget.SMALL: {}, Budget.FULL: {}},
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "It would be a first.",
        "Cite the earlier work and compare with it; do not claim a first.",
    ),
)
