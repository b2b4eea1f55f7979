from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from neuro_eqprop.runs.executors import Executor, Processes, Serial
from neuro_eqprop.runs.executors.task import canonical
from sims.claims.cache import CacheError, cell_path, gather, load, missing, store
from sims.claims.claim import Cell, CellResult, timeless
from sims.claims.run import run_cells


def report(do: str, seed: int = 0, **more: float) -> Cell:
    return Cell(do, "probe", {"do": do, **more}, seed)


def train(seed: int) -> Cell:
    study = {"hidden": [8], "epochs": 1, "batch": 64}
    arguments = {"dataset": "digits", "images": 128, "tests": 50, "study": study}
    return Cell("train", "accuracy", arguments, seed)


def results(
    executor: Executor, cells: list[Cell], deadline: float = 300.0
) -> dict[str, CellResult]:
    return {each.cell.key: each for each in run_cells(cells, executor, deadline=deadline)}


@pytest.mark.slow
def test_workers_do_not_change_a_bit() -> None:
    cells = [report("work", seed) for seed in range(4)] + [train(0), train(1)]
    here, two = results(Serial(), cells), results(Processes(2), cells)
    assert set(here) == set(two) == {cell.key for cell in cells}
    for key, outcome in here.items():
        assert outcome.error is None
        assert canonical(timeless(outcome.values)) == canonical(timeless(two[key].values))
    assert len({canonical(timeless(each.values)) for each in here.values()}) == len(cells)


def test_a_failing_and_a_dying_cell_are_recorded_and_the_rest_goes_on() -> None:
    cells = [
        report("fail"),
        report("die"),
        report("undecided"),
        report("work", 1),
        report("work", 2),
    ]
    found = results(Processes(1), cells)
    errors = [found[cell.key].error for cell in cells]
    assert errors[0] == "ValueError: fails on request"
    assert "exit code 3" in str(errors[1])
    assert errors[2:] == ["undecided: undecided on request", None, None]
    assert all(not found[cell.key].values for cell in cells[:3])


@pytest.mark.parametrize("executor", [Serial(), Processes(1)])
def test_a_cell_that_takes_too_long_is_stopped(executor: Executor) -> None:
    slow, quick = report("sleep", seconds=60.0), report("work")
    began = time.monotonic()
    found = results(executor, [slow, quick], deadline=4.0)
    assert time.monotonic() - began < 40
    assert "longer than 4 s" in str(found[slow.key].error)
    assert found[quick.key].error is None


def test_the_cache_keeps_and_finds(tmp_path: Path) -> None:
    good, bad = report("work"), report("fail")
    store(tmp_path, CellResult(good, {"total": 1.5}, None, 0.25))
    store(tmp_path, CellResult(bad, {}, "ValueError: fails on request", 0.5))
    assert load(tmp_path, good) == CellResult(good, {"total": 1.5}, None, 0.25)
    assert missing(tmp_path, [good, bad, report("work", 9), report("work", 9)]) == [
        bad,
        report("work", 9),
    ]
    assert gather(tmp_path, [good, report("work", 9)]) is None
    assert [each.error for each in gather(tmp_path, [good, bad]) or []] == [
        None,
        "ValueError: fails on request",
    ]


def test_a_cell_of_another_name_is_the_same_cell(tmp_path: Path) -> None:
    store(tmp_path, CellResult(report("work"), {"total": 1.5}))
    other = Cell("another", "probe", {"do": "work"}, 0, needed=False)
    assert (load(tmp_path, other) or CellResult(other)).values == {"total": 1.5}
    assert report("work").key != report("work", 1).key != report("fail").key


@pytest.mark.parametrize("content", ["{", "[]", '{"configuration": {}}'])
def test_a_damaged_result_is_refused(tmp_path: Path, content: str) -> None:
    cell = report("work")
    store(tmp_path, CellResult(cell, {"total": 1.5}))
    cell_path(tmp_path, cell).write_text(content)
    with pytest.raises(CacheError, match="remove it"):
        load(tmp_path, cell)


def test_a_result_without_values_is_refused(tmp_path: Path) -> None:
    cell = report("work")
    entry = {"configuration": cell.configuration(), "values": 3, "error": None, "seconds": 1}
    store(tmp_path, CellResult(cell))
    cell_path(tmp_path, cell).write_text(json.dumps(entry))
    with pytest.raises(CacheError, match="not the result of a cell"):
        load(tmp_path, cell)
