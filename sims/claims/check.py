"""`check_claims` runs the claims of the research notes; `list_claims` lists them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.common.arrays import parse_enum
from neuro_eqprop.runs.executors import make_executor
from sims.claims import latex, report
from sims.claims.claim import Budget, Claim
from sims.claims.definitions import claims
from sims.claims.run import (
    ClaimResult,
    best_known_result,
    claim_result,
    pending,
    run_claims,
)

RESULTS = Path("claims-results")
"""The default folder of results."""
SHIPPED = Path(__file__).with_name("results")
"""The folder of the published results."""
WORKERS = min(4, os.cpu_count() or 1)
DEADLINE = 1800.0
"""Default time limit of a cell in seconds."""


@dataclass(frozen=True, slots=True, repr=False)
class ClaimStatus:
    """A claim and its last known result, if it has one."""

    claim: Claim
    result: ClaimResult | None

    def __repr__(self) -> str:
        found = "not tested" if self.result is None else self.result.verdict.finding.value
        return f"ClaimStatus({self.claim.id}: {found})"

    def to_json(self) -> dict[str, Any]:
        """The fields of a claim in `list --json`."""
        nothing = dict.fromkeys(("finding", "value", "interval", "seeds", "note"))
        found = nothing if self.result is None else report.as_json(self.result)
        claim = self.claim
        return {**found, "id": claim.id, "statement": claim.statement, "source": claim.source}


@dataclass(frozen=True, slots=True)
class CheckedClaims:
    """The results of `check_claims`, and the page that was written."""

    budget: Budget
    out: Path
    page: Path
    results: Sequence[ClaimResult]

    def to_json(self) -> dict[str, Any]:
        """The fields of `--json`."""
        return {
            "budget": self.budget.value,
            "out": str(self.out),
            "page": str(self.page),
            "claims": [report.as_json(each) for each in self.results],
        }


def folders(given: str | Path | Iterable[str | Path] | None) -> list[Path]:
    """The folders to search for results, in this order."""
    if given is None:
        return [RESULTS, SHIPPED]
    named = [Path(each) for each in ([given] if isinstance(given, str | Path) else given)]
    for folder in named:
        if not folder.is_dir():
            raise ValueError(f"there is no folder {folder} of results; `check_claims` makes one")
    return named


class ClaimList(list[ClaimStatus]):
    """Claims with their last known results, in the order of the notes."""

    def to_json(self) -> dict[str, Any]:
        """The fields of `list --json`."""
        return {"claims": [each.to_json() for each in self]}

    def write_paper(self, out: str | Path) -> list[Path]:
        """Write LaTeX and figures of the confirmed claims.

        Parameters
        ----------
        out : str or Path
            The folder to write to.

        Returns
        -------
        list of Path
            The files.
        """
        return latex.write([each.result for each in self if each.result is not None], Path(out))


def list_claims(results: str | Path | Iterable[str | Path] | None = None) -> ClaimList:
    """All claims of the research notes, each with its last known result.

    Parameters
    ----------
    results : str, Path or iterable of these, optional
        Folders with results of `check_claims`; default: `claims-results`, then those published.

    Returns
    -------
    ClaimList
        A list of `ClaimStatus`; `write_paper` writes LaTeX and figures of those confirmed.

    Examples
    --------
    >>> from sims.claims.check import list_claims
    >>> first = list_claims(results=[])[0]
    >>> first.result is None, len(first.claim.statement) > 0
    (True, True)
    """
    known = folders(results)
    return ClaimList(ClaimStatus(claim, best_known_result(claim, known)) for claim in claims())


def check_claims(
    ids: str | Sequence[str] = (),
    *,
    budget: str = "small",
    out: str | Path = RESULTS,
    page: str | Path | None = None,
    workers: int = WORKERS,
    scheduler: str | None = None,
    deadline: float = DEADLINE,
    progress: Callable[[str, int, int], None] | None = None,
) -> CheckedClaims:
    """Check claims of the research notes: run missing experiments and write a page of verdicts.

    Parameters
    ----------
    ids : str or sequence of str
        Identifiers of claims, as in `list_claims`; all if empty.
    budget : str
        "small" (minutes) or "full" (hours).
    out : str or Path
        The folder of the results; stored results are not computed again.
    page : str or Path, optional
        The Markdown page to write; default: `claims.md` in `out`.
    workers : int
        Processes that run experiments.
    scheduler : str, optional
        The address of a Dask scheduler, to run them on its cluster instead.
    deadline : float
        Time limit of an experiment in seconds.
    progress : callable, optional
        Called as `progress(name, done, total)` after each experiment.

    Returns
    -------
    CheckedClaims
        The verdict on each claim, and the path of the page.

    Examples
    --------
    >>> from sims.claims.check import check_claims
    >>> check_claims(["no-such-claim"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    neuro_eqprop.common.arrays.UnknownNameError: unknown claim 'no-such-claim'; known: ...
    """
    chosen, folder = claims([ids] if isinstance(ids, str) else ids), Path(out)
    size = parse_enum("budget", Budget, budget)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; `out` names a folder for the results")
    executor = make_executor(
        "local" if scheduler is None else "dask", workers=workers, scheduler=scheduler
    )
    done, total = 0, len(pending(chosen, size, folder))

    def on_cell(name: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(name, done, total)

    found = run_claims(
        chosen,
        size,
        folder,
        executor=executor,
        deadline=deadline,
        on_cell=lambda outcome: on_cell(outcome.cell.function),
    )
    everything = [claim_result(claim, size, folder) for claim in claims()]
    shown = folder / "claims.md" if page is None else Path(page)
    command = f"python -m sims.claims --budget {size.value}"
    report.write([e for e in everything if e is not None], folder, page=shown, command=command)
    return CheckedClaims(size, folder, shown, found)
