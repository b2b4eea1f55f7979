"""Run the missing cells of claims, and compute the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.runs.executors.task import Executor
from sims.claims import cache
from sims.claims.claim import (
    Budget,
    Cell,
    CellResult,
    CellResults,
    Claim,
    Verdict,
    conclude,
)
from sims.claims.registry import cell_result, task_of

CellCallback = Callable[[CellResult], None]
"""Called with the result of each cell."""


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim with its verdict and the results of its cells."""

    claim: Claim
    budget: Budget
    verdict: Verdict
    results: CellResults


def pending(claims: Sequence[Claim], budget: Budget, folder: Path) -> list[Cell]:
    """The distinct cells of the claims without a stored result."""
    return cache.missing(folder, [cell for claim in claims for cell in claim.cells(budget)])


def run_cells(
    cells: Sequence[Cell], executor: Executor, *, deadline: float
) -> Iterator[CellResult]:
    """Yield the results of cells in order of completion."""
    tasks = {task_of(cell).key: cell for cell in cells}
    for done in executor.run([task_of(cell) for cell in tasks.values()], deadline=deadline):
        yield cell_result(tasks[done.task.key], done)


def run_claims(
    claims: Sequence[Claim],
    budget: Budget,
    folder: Path,
    *,
    executor: Executor,
    deadline: float,
    on_cell: CellCallback,
) -> list[ClaimResult]:
    """Run the missing cells, store each result on arrival, and return the verdicts."""
    for outcome in run_cells(pending(claims, budget, folder), executor, deadline=deadline):
        cache.store(folder, outcome)
        on_cell(outcome)
    found = [claim_result(claim, budget, folder) for claim in claims]
    return [each for each in found if each is not None]


def claim_result(claim: Claim, budget: Budget, folder: Path) -> ClaimResult | None:
    """The verdict on a claim, or None if one of its cells has not run."""
    results = cache.gather(folder, claim.cells(budget))
    if results is None:
        return None
    return ClaimResult(claim, budget, conclude(claim, results), results)


def best_known_result(claim: Claim, folders: Sequence[Path]) -> ClaimResult | None:
    """The verdict from the first folder that has all cells, at the largest budget available."""
    for budget in (Budget.FULL, Budget.SMALL):
        for folder in folders:
            if claim.cells(budget) and not (folder / cache.CELLS).is_dir():
                continue
            found = claim_result(claim, budget, folder)
            if found is not None:
                return found
    return None
