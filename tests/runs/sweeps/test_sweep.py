from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.files.lock import FileLock
from neuro_eqprop.files.read import FileFormatError
from neuro_eqprop.runs.executors import Processes, Task, TaskResult
from neuro_eqprop.runs.executors.task import run_task
from neuro_eqprop.runs.sweeps.search import combinations
from neuro_eqprop.runs.sweeps.spec import Axis, Choice, Range, Search, Sweep, SweepError, read_sweep

SPEC: dict[str, Any] = {
    "settings": {"epochs": 1, "batch": 256},
    "axes": {
        "hidden": [[8], [12]],
        "code": ["rate", "graded"],
        "profile": ["loihi1"],
    },
    "spiking": {"samples": 10, "steps": 8},
}
TOML = """
[settings]
epochs = 1
batch = 256
[axes]
hidden = [[8], [12]]
code = ["rate", "graded"]
profile = ["loihi1"]
[spiking]
samples = 10
steps = 8
"""


class Counting:
    """Runs tasks here and counts them."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def run(self, tasks: list[Task], *, deadline: float) -> list[TaskResult]:
        self.tasks += tasks
        return [run_task(task) for task in reversed(tasks)]  # in another order than asked


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ne.SweepResult:
    return ne.sweep(SPEC, tmp_path_factory.mktemp("sweep") / "a")


@pytest.mark.slow
def test_the_table_does_not_depend_on_executor_and_order(
    swept: ne.SweepResult, tmp_path: Path
) -> None:
    counting = Counting()
    for name, executor in (("two", Processes(2)), ("other", counting)):
        found = ne.sweep(SPEC, tmp_path / name, executor=executor)  # type: ignore[arg-type]
        assert [path.name for path in found.files] == ["table.csv", "table.parquet"]
        for path, same in zip(found.files, swept.files, strict=True):
            assert path.read_bytes() == same.read_bytes()
    assert len(counting.tasks) == 2  # cells that share a training share the task


def test_rows_hold_axes_metrics_and_joules(swept: ne.SweepResult) -> None:
    rows = list(csv.DictReader(swept.table.read_text().splitlines()))
    assert [row["code"] for row in rows] == ["rate", "graded"] * 2
    assert [row["hidden"] for row in rows] == ["[8]", "[8]", "[12]", "[12]"]
    assert all(float(row["joules"]) > 0 and not row["error"] for row in rows)
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(swept.files[1])
    assert list(frame["cell"]) == [0, 1, 2, 3]
    assert frame["test_accuracy"].tolist() == [float(row["test_accuracy"]) for row in rows]
    assert swept.to_pandas().shape == frame.shape


def test_a_cell_equals_the_training_it_names(swept: ne.SweepResult) -> None:
    row, data = swept.rows[-1], ne.load_data("digits")
    model = ne.train("layered", data, hidden=(12,), epochs=1, batch=256)
    found = model.evaluate(data.test.take(slice(10)), on="emulator", code="graded", steps=8)
    assert row["test_accuracy"] == model.history[-1]["test_accuracy"]
    assert (row["spiking_accuracy"], row["agreement"]) == (found.accuracy, found.agreement)
    spiking = model.to_spiking(code="graded").run(data.test.x[:10], on="emulator", steps=8)
    assert row["joules"] == ne.estimate_energy(spiking, "loihi1").joules


def test_the_page_needs_nothing_else_and_escapes(swept: ne.SweepResult) -> None:
    text = swept.page.read_text()
    assert "Parallel coordinates" in text
    assert "Accuracy against joules" in text
    assert 'src="' not in text.split("<script>")[0]
    assert len(text) < 3_000_000


def test_the_best_cell_can_be_trained_again(swept: ne.SweepResult) -> None:
    from neuro_eqprop.training import study as config

    study = config.read(swept.path / "best.toml")
    best = swept.best()
    assert list(study.get("hidden")) == best["hidden"]
    assert swept.best("joules")["joules"] == min(row["joules"] for row in swept.rows)
    with pytest.raises(UnknownNameError, match="unknown column"):
        swept.best("tset_accuracy")


def test_a_second_call_runs_only_what_is_missing_or_failed(tmp_path: Path) -> None:
    spec = {"settings": {"epochs": 1, "batch": 512}, "axes": {"hidden": [[4], [6], [8]]}}
    out, first = tmp_path / "s", Counting()
    whole = ne.sweep(spec, out, executor=first)  # type: ignore[arg-type]
    assert (len(first.tasks), whole.failed) == (3, 0)
    stored = sorted((out / "trials").iterdir())
    stored[0].unlink()
    broken = json.loads(stored[1].read_text()) | {"error": "the worker process crashed"}
    stored[1].write_text(json.dumps(broken))
    table = whole.table.read_bytes()
    again = Counting()
    assert ne.sweep(spec, out, executor=again).table.read_bytes() == table  # type: ignore[arg-type]
    assert len(again.tasks) == 2
    whole_trial = json.loads(stored[2].read_text())
    whole_trial["values"]["training"]["test_accuracy"] = [1]
    for content, words in ((json.dumps(whole_trial), "test_accuracy"), ("{", "JSON")):
        stored[2].write_text(content)
        with pytest.raises(SweepError, match=f"{words}.*remove it and run again"):
            ne.sweep(spec, out)


def test_two_sweeps_in_one_folder_do_not_run_at_once(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(SweepError, match=r"is being written by process \d+"),
    ):
        ne.sweep({"axes": {"seed": [0]}}, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["table.csv", "sweep.json", "trials", "best.toml"])
def test_files_of_others_are_not_replaced_by_a_sweep(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(SweepError, match=f"{name} is not of a sweep of this program"):
        ne.sweep({"axes": {"seed": [0]}}, tmp_path, force=True)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "precious")]


def test_another_sweep_needs_another_folder_or_force(tmp_path: Path) -> None:
    spec = {"settings": {"epochs": 1, "batch": 512, "hidden": [4]}, "axes": {"seed": [0]}}
    ne.sweep(spec, tmp_path / "s")
    other = {**spec, "axes": {"seed": [1]}}
    with pytest.raises(SweepError, match="holds the results of another sweep"):
        ne.sweep(other, tmp_path / "s")
    assert ne.sweep(other, tmp_path / "s", force=True).rows[0]["seed"] == 1
    assert len(list((tmp_path / "s" / "trials").iterdir())) == 1


def test_failures_are_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    spec = {
        "settings": {"epochs": 1, "batch": 512, "hidden": [4]},
        "axes": {"dataset": ["digits", "/nowhere/a.npz"], "samples": [5, 100_000]},
        "spiking": {"steps": 4},
    }
    found = ne.sweep(spec, tmp_path / "s")
    assert (found.cells, found.failed) == (4, 3)
    assert found.rows[0]["error"] is None
    assert "has 360 test samples, not 100000" in str(found.rows[1]["error"])
    assert found.rows[1]["test_accuracy"] == found.rows[0]["test_accuracy"]
    assert all("/nowhere/a.npz" in str(row["error"]) for row in found.rows[2:])
    assert found.to_json()["done"] == 1


def test_random_draws_lie_in_their_ranges_and_repeat() -> None:
    axes: dict[str, Axis] = {
        "learning_rate": Range(1e-4, 1e-1, True),
        "batch": Range(8, 64),
        "seed": Choice((3, 5)),
    }
    sweep = Sweep(axes, search=Search("random", 200))
    cells = next(combinations(sweep))
    rates = np.array([cell["learning_rate"] for cell in cells])
    assert cells == next(combinations(sweep))
    assert ((rates >= 1e-4) & (rates <= 1e-1)).all()
    assert 0.4 < (rates < np.sqrt(1e-5)).mean() < 0.6
    assert {type(cell["batch"]) for cell in cells} == {int}
    assert {cell["seed"] for cell in cells} == {3, 5}
    fewer = Sweep(axes, search=Search("random", 20))
    assert next(combinations(fewer)) == cells[:20]


def test_optuna_finds_the_better_half_and_repeats() -> None:
    pytest.importorskip("optuna")
    axes: dict[str, Axis] = {"learning_rate": Range(0.0, 1.0), "hidden": Choice(([4], [8]))}
    sweep = Sweep(axes, search=Search("optuna", 40, maximise="score"))

    def search() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        generator = combinations(sweep)
        cells = next(generator)
        while True:
            new = [
                {**c, "score": -((c["learning_rate"] - 0.8) ** 2) - c["hidden"][0], "error": None}
                for c in cells
            ]
            rows += new
            try:
                cells = generator.send(new)
            except StopIteration:
                return rows

    rows = search()
    assert rows == search()
    assert len(rows) == 40
    late = [row for row in rows[-10:] if row["hidden"] == [4]]
    assert len(late) >= 7
    assert abs(np.mean([row["learning_rate"] for row in late]) - 0.8) < 0.2


@pytest.mark.slow
def test_an_optuna_sweep_trains_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    spec = {
        "settings": {"epochs": 1, "batch": 512, "hidden": [4], "validation": 0.2},
        "axes": {"learning_rate": {"low": 0.001, "high": 0.1, "log": True}},
        "search": {"method": "optuna", "trials": 4, "generation": 2},
    }
    first = ne.sweep(spec, tmp_path / "a")
    counting = Counting()
    again = ne.sweep(spec, tmp_path / "a", executor=counting)  # type: ignore[arg-type]
    assert not counting.tasks
    assert again.rows == first.rows
    assert first.objective == "validation_accuracy"


@pytest.mark.parametrize(
    ("tables", "error", "words"),
    [
        ({}, SweepError, "at least one axis"),
        ({"axis": {"seed": [0]}}, FileFormatError, "did you mean 'axes'"),
        ({"axes": {"seed": []}}, FileFormatError, "axes.seed.*the list is empty"),
        ({"axes": {"seed": 3}}, FileFormatError, "axes.seed: expected table or list, got 3"),
        ({"axes": {"beta": {"low": 0.1}}}, FileFormatError, "axes.beta: high is missing"),
        ({"axes": {"beta": {"low": 0.1, "high": 0.2}}}, SweepError, "a grid needs a list"),
        ({"axes": {"sede": [0]}}, UnknownNameError, "unknown setting 'sede'; known: seed"),
        ({"axes": {"seed": [0, "x"]}}, ValueError, "setting 'seed' cannot be 'x'"),
        ({"axes": {"code": ["grated"]}}, UnknownNameError, "known: graded"),
        ({"axes": {"on": ["brian"]}}, UnknownNameError, "known: brian2"),
        ({"axes": {"profile": ["loihi9"]}}, ValueError, "loihi9"),
        ({"axes": {"seed": [0]}, "spiking": {"cod": "rate"}}, UnknownNameError, "known: code"),
        ({"axes": {"bits": ["float", "eight"]}}, SweepError, "bits is 'eight'"),
        ({"axes": {"bits": [8, 40]}}, ValueError, "not 40"),
        ({"axes": {"seed": [0]}, "spiking": {"samples": -3}}, SweepError, "samples is -3"),
        ({"axes": {"steps": [8, 0]}}, SweepError, "steps is 0, which is not an integer above zero"),
        ({"axes": {"input": ["currant"]}}, UnknownNameError, "known: current"),
        ({"axes": {"dataset": ["digits", "moonist"]}}, UnknownNameError, "known: mnist"),
        (
            {"axes": {"seed": [0]}, "search": {"maximise": "accurate"}},
            UnknownNameError,
            "unknown column to maximise or minimise 'accurate'",
        ),
        ({"axes": {"seed": [0]}, "search": {"method": "grit"}}, UnknownNameError, "known: grid"),
        ({"axes": {"seed": [0]}, "search": {"method": "random"}}, ValueError, "needs trials"),
        ({"axes": {"seed": [0]}, "search": {"trials": 3}}, ValueError, "trials is for random"),
        (
            {"axes": {"seed": [0]}, "search": {"method": "optuna", "trials": 3}},
            SweepError,
            "no samples are held out",
        ),
        ({"axes": {"seed": list(range(400)), "steps": list(range(1, 401))}}, SweepError, "160000"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_runs(
    tables: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        ne.sweep(tables, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "sweep.toml", tmp_path / "out"
    path.write_text("[settings]\nepochs = 1\nbatch = 512\nhidden = [4]\n[axes]\nseed = [0, 1]\n")
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["done"], found["failed"]) == (2, 2, 0)
    assert Path(found["table"]).is_file()
    assert main(["sweep", str(path), "--out", str(out), "--workers", "1"]) == 0
    assert "best.toml" in capsys.readouterr().err
    assert main(["sweep", str(path), "--out", str(out), "--executor", "dusk"]) == 2
    assert "known: dask" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "none.toml"), "--out", str(out)]) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_a_file_and_its_tables_are_the_same_sweep(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(TOML)
    assert read_sweep(path) == read_sweep(SPEC) == read_sweep(read_sweep(SPEC))
