"""The published verdicts follow from the published cells, and a few of these from their code."""

from __future__ import annotations

import json
from functools import cache as remember
from pathlib import Path

import numpy as np
import pytest

from sims.claims import cache, report
from sims.claims.check import SHIPPED as RESULTS
from sims.claims.claim import Budget, Cell, CellResult, Json, timeless
from sims.claims.definitions import IDS, claim
from sims.claims.registry import run_cell
from sims.claims.run import ClaimResult, claim_result

DOCS = Path(__file__).parents[2] / "docs"


@remember
def again(name: str) -> ClaimResult:
    """The verdict over the published cells, claim_result anew."""
    found = claim_result(claim(name), Budget.FULL, RESULTS)
    assert found is not None, f"cells of {name} are missing in {RESULTS}"
    return found


@remember
def published() -> dict[str, Json]:
    result = json.loads((RESULTS / "verdicts.json").read_text())["claims"]
    return {row["id"]: row for row in result}


@pytest.mark.parametrize("name", IDS)
def test_a_published_verdict_follows_from_its_cells(name: str) -> None:
    assert json.loads(json.dumps(report.as_json(again(name)))) == published()[name]


def test_the_page_is_what_the_results_say() -> None:
    drawn = {path.stem for path in (DOCS / "results" / "figures").glob("*.svg")}
    page = report.text(
        [again(name) for name in IDS],
        drawn,
        figures="figures",
        command="python -m sims.claims --budget full",
    )
    assert (DOCS / "results" / "claims.md").read_text() == page
    assert (RESULTS / "cells.csv").read_text() == report.table([again(name) for name in IDS])


def test_no_result_is_there_that_no_claim_asks_for() -> None:
    wanted = {cell.key for name in IDS for cell in claim(name).cells(Budget.FULL)}
    assert {path.stem for path in (RESULTS / cache.CELLS).glob("*.json")} == wanted


def small(name: str, label: str) -> Cell:
    return next(c for c in claim(name).cells(Budget.FULL) if c.name == label and c.seed == 0)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gradient-symmetric", "softmax attention, centered"),
        ("gradient-nonsymmetric", "asymmetric, centered"),
        ("memory", "steps 10"),
        ("generative", "autoencoder"),
    ],
)
def test_a_published_cell_comes_out_again(name: str, label: str) -> None:
    cell = small(name, label)
    kept, done = cache.load(RESULTS, cell), run_cell(cell)
    assert kept is not None
    assert done.error is None
    same(done, kept)


def same(one: CellResult, two: CellResult) -> None:
    """Equal but for the last digits, in which machines may differ."""
    parts = [dict(report.flat(timeless(each.values))) for each in (one, two)]
    assert parts[0].keys() == parts[1].keys()
    for path, value in parts[0].items():
        np.testing.assert_allclose(value, parts[1][path], rtol=2e-3, err_msg=path)
