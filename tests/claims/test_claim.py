from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import load_data
from neuro_eqprop.runs.executors import Serial
from neuro_eqprop.runs.executors.task import canonical
from sims.claims import cache, report
from sims.claims import latex as paper
from sims.claims.__main__ import main
from sims.claims.charts import Chart, Mark, Series, draw
from sims.claims.claim import (
    Budget,
    Cell,
    CellResult,
    Claim,
    Finding,
    above,
    all_of,
    below,
    conclude,
)
from sims.claims.data import OWN, load
from sims.claims.definitions import IDS, claim, claims
from sims.claims.registry import FUNCTIONS, find
from sims.claims.run import ClaimResult, best_known_result, claim_result, run_claims
from sims.claims.statistics import Interval

NOTES = 28
ROOT = Path(__file__).parents[2]


def made(cell: Cell) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912
    """Values of the shape that a function returns, drawn from the cell alone."""
    rng = np.random.default_rng(int(cell.key[:8], 16))
    a = cell.arguments

    def near(middle: float) -> float:
        return middle + 0.001 * float(rng.standard_normal())

    def times(*ways: str) -> dict[str, Any]:
        return {
            way: {"cosine": near(0.99), "seconds": near(0.02 * (k + 1))}
            for k, way in enumerate(ways)
        }

    match cell.function:
        case "gradient":
            angles = [near(0.998) - 0.01 * b for b in a["betas"]]
            own = {"tokens->memory": near(0.1)}
            return {"cosine": angles, "ratio": [1.0], "by_parameter": own}
        case "lipschitz":
            top = 0.9 if a["study"]["bound"] == 0.95 else 1.6
            return {"loop": [0.5, near(top)], "test_accuracy": near(0.9)}
        case "algorithmic":
            steps = [near(7.0) for _ in a["lengths"]]
            return {"rho": near(0.1), "lengths": a["lengths"], "steps": steps, "accuracy": steps}
        case "autoencoder":
            return {"error": near(0.3), "before": 2.0}
        case "variational":
            drawn = {"distance": 2.0, "distance_of_pixels": 2.2, "distance_of_digits": 1.2}
            return {"error": near(0.4), "bound": near(7.0), "without_latent": -7.5, **drawn}
        case "annealing":
            return {"beta": [0.2, 0.2], "test_accuracy": [0.8, near(0.9)], "drop": 0.0}
        case "continual":
            return {"before": 0.98, "after": 0.1, "second": near(0.97), "lost": near(0.88)}
        case "memory":
            states = 2**20 * a["depth"] * a["width"]
            return {"eqprop": states, "bptt": states * a["steps"] // 4, "feedforward": states // 4}
        case "settling":
            return {
                "samples": 100,
                "within_25": 99,
                "rho_steps": near(-0.1),
                "saved": near(0.7),
                "rho_last_change": near(-0.4),
                "mean_steps": near(10.0),
                "accuracy": 0.95,
                "accuracy_at_10": near(0.95),
                "accuracy_by_step": [0.9, near(0.95)],
                "steps_by_margin": [near(11.0), near(10.0)],
                "steps_by_class": [near(11.0), near(10.0)],
                "leaving": [{"accuracy": near(0.95), "saved": 0.5 * k} for k in (1, 0)],
            }
        case "landscape":
            plane = {"span": [-1.0, 0.0, 1.0], "height": [[1.0, 0.5, 1.0]] * 3}
            pairs = a["samples"] * a["starts"]
            ways = pairs + a["samples"]
            found = {"alike": pairs, "pairs": pairs, "rising": 0, "ways": ways, "plane": plane}
            return {**found, "curves": [[1.0, 0.5], [2.0, 0.5]]}
        case "kernel":
            return {"close": True, **times("numpy", "torch", "autograd")}
        case "cost":
            return times("backprop", "eqprop", "bptt", "implicit")
        case "deq":
            return times("eqprop", "implicit", "bptt", "phantom 1", "phantom 5")
        case "joules":
            shares = {"dynamic": [900.0, 500.0, 1500.0], "total": [near(40.0), 20.0, 80.0]}
            return {"rows": [{"chip": "loihi1", "batch": b, **shares} for b in a["batches"]]}
        case "grid":
            rows = [
                {"beta": b, "rate": r, "held_out": near(0.9 + 10 * r), "test_accuracy": near(0.9)}
                for b in a["betas"]
                for r in a["rates"]
            ]
            return {"rows": rows}
    return {"test_accuracy": near(0.96)}


def results(each: Claim, budget: Budget = Budget.SMALL) -> list[CellResult]:
    return [CellResult(cell, made(cell), None, 0.5) for cell in each.cells(budget)]


@pytest.fixture(scope="module")
def found() -> list[ClaimResult]:
    return [
        ClaimResult(each, Budget.SMALL, conclude(each, results(each)), results(each))
        for each in claims()
    ]


def test_every_claim_of_the_notes_is_there() -> None:
    assert len(IDS) == len(set(IDS)) == NOTES
    assert [each.id for each in claims()] == list(IDS)
    assert [each.id for each in claims(["memory", "gradient-symmetric"])] == [
        "gradient-symmetric",
        "memory",
    ]
    with pytest.raises(UnknownNameError, match="memory"):
        claims(["memry"])


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("budget", list(Budget))
def test_cells_are_plain_json_with_a_stable_key(name: str, budget: Budget) -> None:
    each = claim(name)
    cells = each.cells(budget)
    for cell, again in zip(cells, claim(name).cells(budget), strict=True):
        there = json.loads(canonical(cell.configuration()))
        assert there == cell.configuration()
        back = Cell(cell.name, there["function"], there["arguments"], there["seed"], cell.needed)
        assert back.key == again.key == cell.key
        assert cell.function in FUNCTIONS
    labels = [(cell.name, cell.seed) for cell in cells]
    assert len(set(labels)) == len(labels)
    assert len({cell.key for cell in cells}) == len(cells)
    assert "{" not in each.method_text(budget)


def test_the_key_of_a_cell_does_not_change() -> None:
    cell = Cell("x", "probe", {"do": "work", "b": [1, 2.5]}, 3)
    assert cell.key == "c83467e3cd875e30ac080a505c11712adf17639ccd82f569ea4f2b67fe52b990"


def test_every_function_is_found() -> None:
    for name in FUNCTIONS:
        assert callable(find(name))


def test_every_claim_has_a_verdict_and_texts(found: list[ClaimResult]) -> None:
    for each in found:
        assert each.verdict.note
        assert set(each.claim.meaning) == set(Finding)
        assert each.claim.source
        assert each.claim.threshold
        if each.verdict.interval is not None and each.verdict.value is not None:
            low, high = each.verdict.interval
            assert low <= each.verdict.value <= high
    seen = {each.claim.id: each.verdict.finding for each in found}
    assert seen["continual"] is Finding.REFUTED
    assert seen["sn-lipschitz"] is Finding.CONFIRMED
    assert seen["memory"] is Finding.REFUTED
    assert seen["energy-1000x"] is Finding.REFUTED
    assert seen["gradient-symmetric"] is Finding.CONFIRMED
    assert seen["beta-annealing"] is Finding.REFUTED
    assert seen["algorithmic"] is Finding.REFUTED
    assert seen["first-transformer"] is Finding.REFUTED
    assert seen["text-sst2"] is Finding.CONFIRMED
    assert seen["generative"] is Finding.CONFIRMED


def test_a_finding_needs_the_whole_interval_on_one_side() -> None:
    inside, over = Interval(1.0, 0.8, 1.2, 5), Interval(1.5, 1.3, 1.7, 5)
    assert above(inside, 1.1) is below(inside, 1.1) is Finding.UNDECIDED
    assert above(over, 1.1) is Finding.CONFIRMED
    assert below(over, 1.1) is Finding.REFUTED
    assert above(over, 1.9) is Finding.REFUTED
    assert all_of([Finding.CONFIRMED, Finding.UNDECIDED]) is Finding.UNDECIDED
    assert all_of([Finding.UNDECIDED, Finding.REFUTED]) is Finding.REFUTED


def test_one_seed_decides_nothing() -> None:
    each = claim("continual")
    single = [outcome for outcome in results(each) if outcome.cell.seed == 0]
    verdict = conclude(each, single)
    assert verdict.finding is Finding.UNDECIDED
    assert verdict.interval is None
    each = claim("multi-seed")
    verdict = conclude(each, [o for o in results(each) if o.cell.seed == 0])
    assert verdict.note == "undecided: 1 values are too few for a standard deviation"


def fail(all_of: Sequence[CellResult], name: str, error: str) -> list[CellResult]:
    return [
        replace(each, values={}, error=error) if each.cell.name.startswith(name) else each
        for each in all_of
    ]


def test_a_claim_with_failed_cells_is_undecided_and_says_why() -> None:
    each = claim("continual")
    verdict = conclude(each, fail(results(each), "eqprop", "undecided: data not present (mnist)"))
    assert verdict.finding is Finding.UNDECIDED
    assert verdict.note == "undecided: data not present (mnist)"
    broken = conclude(each, fail(results(each), "eqprop", "ValueError: no"))
    assert broken.note == "undecided: 3 of 6 cells failed (ValueError: no)"


def test_tasks_without_data_leave_the_others_but_no_confirmation() -> None:
    each = claim("multi-dataset")
    whole = conclude(each, results(each))
    assert whole.finding is Finding.CONFIRMED
    part = conclude(each, fail(results(each), "acrobot", "undecided: data not present (acrobot)"))
    assert part.finding is Finding.UNDECIDED
    assert part.value is not None
    assert "acrobot-bc, eqprop" in part.note


def test_cells_beside_a_claim_do_not_hold_it_up() -> None:
    each = claim("gradient-nonsymmetric")
    lame = fail(fail(results(each), "vector", "undecided: no rule"), "asym", "undecided: no rule")
    assert conclude(each, lame).value is not None
    assert "Left out" in conclude(each, lame).note


FEW = ("memory", "landscape", "continual", "first-transformer", "sn-lipschitz")
"""A line, a heat map, bars, no figure, a confirmed one."""


def test_every_claim_has_a_section_and_a_chart_that_can_be_drawn(found: list[ClaimResult]) -> None:
    page = report.text(found, set(), figures="figures", command="claims")
    assert page.index("| claim |") < page.index("## gradient-symmetric")
    for each in found:
        assert f"\n## {each.claim.id}\n" in page
        assert report.finding(each.verdict) in page
        if each.claim.chart is not None:
            panels = each.claim.chart(each.results)
            assert panels
            for series in (series for panel in panels for series in panel.series):
                assert len(series.x) == len(series.y) > 0
                assert np.isfinite(series.y).all()


def test_tables_have_a_column_for_each_number_and_a_row_for_each_cell(
    found: list[ClaimResult],
) -> None:
    for each in (each for each in found if each.results):
        head, line, *rows = report.numbers(each)
        columns = head.count("|")
        assert 4 <= columns <= 14
        assert {row.count("|") for row in (line, *rows)} == {columns}
        assert len(rows) == len({outcome.cell.name for outcome in each.results})
    parity = next(each for each in found if each.claim.id == "parity-mlp")
    assert next(report.numbers(parity)) == "| cell | seeds | test accuracy | learning rate chosen |"


def test_what_could_not_be_run_says_so_once() -> None:
    each = claim("text-sst2")
    lame = fail(results(each), "text", "undecided: data not present (sst2)")
    page = report.text(
        [ClaimResult(each, Budget.SMALL, conclude(each, lame), lame)],
        set(),
        figures="f",
        command="c",
    )
    assert "**Undecided:** data not present (sst2)." in page
    assert "| text | 0 | undecided: data not present (sst2) |" in page


def test_where_the_notes_disagree_the_page_says_which_version_holds(
    found: list[ClaimResult],
) -> None:
    page = report.text(found, set(), figures="figures", command="claims")
    result = [each for each in found if each.claim.conflict]
    assert {"memory", "beta-annealing", "parity-mlp"} <= {each.claim.id for each in result}
    assert page.count("Where the notes disagree: ") == len(result)


@pytest.mark.slow
def test_the_report_is_written_and_again_the_same(found: list[ClaimResult], tmp_path: Path) -> None:
    few = [each for each in found if each.claim.id in FEW]
    for name in ("one", "two"):
        report.write(few, tmp_path / name / "data", page=tmp_path / name / "p.md", command="claims")
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two
    pictures = re.findall(r"!\[.*\]\((.*)\)", one["p.md"].decode())
    assert len(pictures) == len(FEW) - 1
    for name in pictures:
        ElementTree.parse(tmp_path / "one" / name)
    rows = list(csv.DictReader(StringIO(one["cells.csv"].decode())))
    assert {row["claim"] for row in rows} == set(FEW) - {"first-transformer"}
    result = json.loads(one["verdicts.json"])["claims"]
    assert {row["id"] for row in result} == set(FEW)


def test_the_paper_has_what_is_confirmed_and_traces_it(
    found: list[ClaimResult], tmp_path: Path
) -> None:
    few = [each for each in found if each.claim.id in FEW]
    paper.write(few, tmp_path)
    latex = (tmp_path / "claims.tex").read_text()
    held = [each for each in few if each.verdict.finding is Finding.CONFIRMED]
    assert {each.claim.id for each in held} == {"sn-lipschitz", "landscape"}
    for begin, end in (("\\begin{figure}", "\\end{figure}"), ("{", "}")):
        bare = latex.replace("\\{", "").replace("\\}", "")
        assert bare.count(begin) == bare.count(end) > 0
    for line in latex.splitlines():
        code = re.split(r"(?<!\\)%", line)[0]
        assert not re.search(r"(?<!\\)[#$]", code)
        assert "_" not in re.sub(r"\\_", "", code)
    for name in re.findall(r"includegraphics\[.*\]\{(.*)\}", latex):
        assert (tmp_path / name).read_bytes().startswith(b"%PDF")
    traced = json.loads((tmp_path / "provenance.json").read_text())
    assert set(traced) == {each.claim.id for each in held}
    for each in few:
        assert (f"% {each.claim.id}: " in latex) == (each in held)
    keys = {key[:12] for cells in traced.values() for key in cells}
    result = re.findall(r"% cells: (.*)", latex)
    assert result
    assert {key for line in result for key in line.split()} <= keys
    lost = [each for each in few if each.verdict.finding is not Finding.CONFIRMED]
    with pytest.raises(ValueError, match="nothing to write"):
        paper.write(lost, tmp_path / "none")


def test_latex_is_escaped() -> None:
    assert paper.escape("50 % of a_b & {x}") == r"50 \% of a\_b \& \{x\}"


@pytest.mark.parametrize("mark", list(Mark))
def test_charts_are_drawn_the_same_twice(mark: Mark) -> None:
    parts = tuple(
        Series(str(k), [0.1, 0.5], [k, k + 1.0], [k - 0.1] * 2, [k + 2.0] * 2) for k in range(3)
    )
    chart = Chart("t", "x", "y", parts, mark, log_x=mark is Mark.LINE, threshold=1.0)
    for form, start in (("svg", b"<?xml"), ("pdf", b"%PDF")):
        picture = draw((chart, chart, chart), form=form)
        assert picture.startswith(start)
        assert picture == draw((chart, chart, chart), form=form)
        assert b"CreationDate" not in picture
    with pytest.raises(ValueError, match="svg or pdf"):
        draw((chart,), form="bmp")


def test_claims_are_carried_out_once_and_remembered(empty_data_folder: Path) -> None:
    tmp_path = empty_data_folder
    chosen, seen = claims(["text-sst2", "first-transformer"]), list[CellResult]()
    go = {"executor": Serial(), "deadline": 60.0, "on_cell": seen.append}
    done = run_claims(chosen, Budget.SMALL, tmp_path, **go)  # type: ignore[arg-type]
    assert [each.verdict.finding.value for each in done] == ["refuted", "undecided"]
    assert len(seen) == 4
    assert claim_result(claim("memory"), Budget.SMALL, tmp_path) is None
    assert best_known_result(claim("memory"), [tmp_path]) is None
    best = best_known_result(claim("text-sst2"), [tmp_path / "nowhere", tmp_path])
    assert best is not None
    assert best.budget is Budget.SMALL
    for cell in claim("text-sst2").cells(Budget.SMALL):
        cache.store(tmp_path, CellResult(cell, {"test_accuracy": 0.8}))
    run_claims(chosen, Budget.SMALL, tmp_path, **go)  # type: ignore[arg-type]
    assert len(seen) == 4


def test_the_command_lists_runs_and_writes(
    empty_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = empty_data_folder
    (tmp_path / "nothing").mkdir()
    assert main(["list", "--json", "--results", "nothing"]) == 0
    rows = json.loads(capsys.readouterr().out)["claims"]
    assert [row["id"] for row in rows] == list(IDS)
    assert rows[0]["finding"] is None
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["finding"] == "confirmed"
    words = ["gradient-symmetric", "text-sst2", "--workers", "1", "--json"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["finding"] for row in result["claims"]] == ["confirmed", "undecided"]
    first = result["claims"][0]
    assert {"id", "statement", "finding", "value", "interval", "seeds", "note"} <= set(first)
    assert (tmp_path / "claims-results" / "claims.md").is_file()
    assert main(["list", "--results", "claims-results"]) == 0
    assert "confirmed" in capsys.readouterr().out
    assert main(["paper", "--out", "paper", "--results", "claims-results"]) == 0
    assert (tmp_path / "paper" / "figures" / "gradient-symmetric.pdf").is_file()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["memry"], 2, "memory"),
        (["paper"], 2, "--out"),
        (["list", "memory"], 2, "takes no ID"),
        (["paper", "--out", "p", "--results", "."], 1, "no claim is confirmed"),
        (["list", "--results", "nowhere"], 1, "no folder nowhere of results"),
        (["--workers", "1000000", "--out", "o"], 1, "--workers must be"),
        (["data", "parity"], 2, "--out FILE.npz"),
        (["data", "party", "--out", "o.npz"], 2, "unknown data set 'party'; known: parity"),
    ],
)
def test_wrong_arguments_are_refused(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    assert said in capsys.readouterr().err


def test_the_module_runs_by_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sims.claims"]
    words = ["continual", "--workers", "2", "--deadline", "0.1", "--json", "--out", str(tmp_path)]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["claims"][0]["finding"] == "undecided"
    done = subprocess.run([*command, "--bugdet"], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"unknown option --bugdet; did you mean --budget?" in done.stderr


@pytest.mark.parametrize("name", OWN)
def test_a_data_set_becomes_a_file_that_training_reads(name: str, tmp_path: Path) -> None:
    if OWN[name].classes and name.endswith("-bc"):
        pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    out = tmp_path / f"{name}.npz"
    assert main(["data", name, "--out", str(out)]) == 0
    known, read = load(name), load_data(out)
    assert (read.shape, read.classes) == (known.shape, known.classes)
    for one, two in ((read.train, known.train), (read.test, known.test)):
        assert np.array_equal(one.x, two.x)
        assert np.array_equal(one.y, two.y)
    with pytest.raises(UnknownNameError, match=f"known: .*digits.*data {name} --out {name}.npz"):
        load_data(name)
