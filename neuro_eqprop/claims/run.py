"""Run the cells of claims that have not been run, and judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.claims import cache
from neuro_eqprop.claims.claim import Budget, Cell, Claim, Outcome, Outcomes, Verdict, conclude
from neuro_eqprop.claims.executor import Executor

Watch = Callable[[Outcome], None]
"""Told each outcome as it comes."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its verdict and what this rests on."""

    claim: Claim
    budget: Budget
    verdict: Verdict
    outcomes: Outcomes


def pending(claims: Sequence[Claim], budget: Budget, folder: Path) -> list[Cell]:
    """The cells that have to be run, each once."""
    return cache.missing(folder, [cell for claim in claims for cell in claim.cells(budget)])


def carry_out(
    claims: Sequence[Claim],
    budget: Budget,
    folder: Path,
    *,
    executor: Executor,
    deadline: float,
    watch: Watch,
) -> list[Judged]:
    """Run what is missing, keeping each result as soon as it is there, and judge."""
    for outcome in executor.run(pending(claims, budget, folder), deadline=deadline):
        cache.store(folder, outcome)
        watch(outcome)
    found = [judged(claim, budget, folder) for claim in claims]
    return [each for each in found if each is not None]


def judged(claim: Claim, budget: Budget, folder: Path) -> Judged | None:
    """The verdict on a claim, or None while a cell of it has not been run."""
    outcomes = cache.gather(folder, claim.cells(budget))
    if outcomes is None:
        return None
    return Judged(claim, budget, conclude(claim, outcomes), outcomes)


def known(claim: Claim, folders: Sequence[Path]) -> Judged | None:
    """The best verdict that results in these folders allow: full budget before small."""
    for budget in (Budget.FULL, Budget.SMALL):
        for folder in folders:
            if claim.cells(budget) and not (folder / cache.CELLS).is_dir():
                continue
            found = judged(claim, budget, folder)
            if found is not None:
                return found
    return None
