"""The report of a run."""

from __future__ import annotations

import doctest
import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from math import inf
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from torch import nn

import neuro_eqprop
import neuro_eqprop as ne
from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.dense_reference import DenseComparison, DenseReference, Outcome
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.chips.energy.interval import Interval
from neuro_eqprop.chips.energy.pareto import Point
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    CurveSettings,
    EnergyEstimate,
    EnergyReport,
)
from neuro_eqprop.chips.energy.terms import MissingTerm
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.html_report import html as text
from neuro_eqprop.html_report import write as write_module
from neuro_eqprop.html_report.contents import RunContents, read_contents
from neuro_eqprop.html_report.encoding import LETTERS, LEVELS, encode, encode_steps
from neuro_eqprop.html_report.header import cards
from neuro_eqprop.html_report.html import percent
from neuro_eqprop.html_report.opening import start_first, start_sample
from neuro_eqprop.html_report.page import chart_data as chart_data_of
from neuro_eqprop.html_report.page import chart_library, render
from neuro_eqprop.html_report.section import PageLimits
from neuro_eqprop.html_report.sections import SECTIONS, fields
from neuro_eqprop.html_report.sections.settling import smooth
from neuro_eqprop.runs.rows import EvaluationRow
from neuro_eqprop.simulators.recordings import select_samples
from neuro_eqprop.simulators.synapse_recording import COLUMNS, SynapseLog, Weights
from neuro_eqprop.traces.compare import hebbian_update
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.synapse_history import synapse_logs_of_trace
from neuro_eqprop.traces.trace import Trace

Fill = Callable[[Path], Path]
ChipEstimate = Callable[..., EnergyEstimate]


class Elements(HTMLParser):
    """The ids, tags and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in {"src", "href"} and value:
                self.links.append(value)


def page(run: Path, traces: dict[str, Trace]) -> str:
    return render(read_contents(run, traces))


def chart_data(run: RunContents, limits: PageLimits) -> dict[str, Any]:
    return chart_data_of([section.show(run) for section in SECTIONS], limits)


def decode(packed: dict[str, Any]) -> Array:
    """Array from `encode`, as the script of the page reads it; rows must have one length."""
    step = (packed["high"] - packed["low"]) / (LEVELS - 1)
    return np.asarray(packed["low"] + step * np.array(levels_of(packed["rows"])))


def levels_of(rows: Any) -> Any:  # noqa: ANN401
    """Nested lists of levels from nested lists of texts."""
    if not isinstance(rows, str):
        return [levels_of(each) for each in rows]
    found: list[int] = []
    for a, b in zip(rows[::2], rows[1::2], strict=True):
        if a == "~":
            found += [found[-1]] * (LETTERS.index(b) + 1)
        else:
            found.append(LETTERS.index(a) * len(LETTERS) + LETTERS.index(b))
    return found


def decode_steps(text: str) -> list[int]:
    """Steps from `encode_steps`."""
    found, at = [], 0
    for letter in text:
        at += len(LETTERS) if letter == "~" else LETTERS.index(letter)
        if letter != "~":
            found.append(at)
    return found


def report(run: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["report", str(run), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["report"] == str(run / "report.html")
    return (run / "report.html").read_text(encoding="utf-8")


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    held: dict[str, Any] = json.loads(found[1])
    return held


def body_of(html: str) -> str:
    """What stands before the scripts."""
    return html[: html.index('<script type="application/json"')]


def test_report_shows_everything_a_run_holds(
    make_run: Fill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = report(make_run(tmp_path / "run"), capsys)
    assert len(html) < 2_000_000
    seen = Elements(html)
    assert len(seen.ids) == len(set(seen.ids))
    wanted = {
        "accuracy",
        "loss",
        "confusion",
        "energy-course",
        "spectral",
        "rates",
        "firing",
        "raster",
        "scatter",
        "matrix",
        "history",
        "chips",
        "terms",
    }
    assert wanted | {"agreement-table", "updates-table", "simulators-table", "chips-table"} <= set(
        seen.ids
    )
    assert all(link.startswith("#") and link[1:] in seen.ids for link in seen.links)
    body = body_of(html)
    accuracy = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert f"{100 * accuracy['test_accuracy']:.1f}\u00a0%" in body
    rows = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    spikes = next(row for row in map(json.loads, rows) if row["on"] == "reference")
    agreement = f"{100 * spikes['agreement']:.1f}\u00a0%"
    assert f"the same answer as the rates on {agreement} of 60 samples" in body
    profiles = json.loads((tmp_path / "run" / "energy.json").read_text())["profiles"]
    unknown = [term for each in profiles for term in each["inference"]["unknown"]]
    assert unknown
    assert escape(unknown[0]) in body
    run = tmp_path / "run"
    for command in ("train", "compare", "evaluate", "energy", "report"):
        assert f"<code>neuro-eqprop {command} " in body
    assert f"<code>{escape(read(run / 'rate.h5').origin.command)}</code>" in body
    assert f"neuro-eqprop compare {run}/rate.h5 {run}/traces.h5" in body
    assert sorted(p.name for p in run.iterdir() if p.name.startswith(".")) == []


def test_cards_of_spikes_have_one_configuration(make_run: Fill, tmp_path: Path) -> None:
    run = read_contents(make_run(tmp_path / "run"))
    counted = run.energy.counted
    shown = {card.label: card for card in cards(run)}
    joules = next(card for label, card in shown.items() if label.startswith("an inference"))
    assert joules.configuration is not None
    assert joules.configuration.code == counted.code
    assert joules.configuration.steps == counted.steps
    assert joules.configuration.on == "emulator"
    assert all(str(c.configuration) in c.note for c in shown.values() if c.configuration)
    least = min(
        (e for e in run.energy if e.fits and e.inference.joules is not None),
        key=lambda e: e.inference.joules.value if e.inference.joules else inf,
    )
    assert joules.value.startswith(">= ") == least.inference.at_least
    # The accuracy beside the joules is that of the weights that the chip takes.
    assert least.accuracy is not None
    assert shown["accuracy of spikes"].configuration == joules.configuration
    assert shown["accuracy of spikes"].value == percent(least.accuracy)
    assert joules.configuration.bits == least.bits
    # An evaluation in the configuration of the joules comes before those of other simulators.
    same = EvaluationRow(
        on="reference", code=counted.code, bits=counted.bits, steps=counted.steps, samples=3
    )
    other = EvaluationRow(on="lava", code="paired", bits=None, steps=7, samples=3)
    for rows in ((same, other), (other, same)):
        found = {card.label: card for card in cards(replace(run, evaluations=rows))}
        together = {found["same answer"].configuration, found["correlation"].configuration}
        assert {each[:3] for each in together if each} == {
            (counted.code, counted.bits or None, counted.steps)
        }


def test_the_energy_of_spikes_is_drawn_where_they_were_counted(
    make_run: Fill, recorded: dict[str, Trace], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates, spikes = data_of(report(make_run(tmp_path / "run"), capsys))["energyCourse"]
    assert None not in rates["y"]
    for phase in spikes["phases"]:
        steps = [s for s, y in zip(spikes["steps"], spikes["y"], strict=True) if y is None]
        inside = [s for s in steps if phase["start"] < s <= phase["stop"]]
        left_out = 0 if phase["start"] == 0 else phase["window"] - 1
        assert len(inside) == left_out


def test_numbers_of_the_charts_are_those_of_the_traces(
    make_run: Fill,
    recorded: dict[str, Trace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = data_of(report(make_run(tmp_path / "run"), capsys))
    rates, firing = data["settling"]
    assert (rates["spikes"], firing["spikes"]) == (False, True)
    line = firing["layers"]["output"]
    np.testing.assert_allclose(
        decode(line["course"])[2, :, 63],
        recorded["spikes"].rate("output", "free")[2, line["units"]],
        atol=5e-4,
    )
    hidden = rates["layers"]["hidden"]
    assert (len(hidden["units"]), len(hidden["lines"]), hidden["of"]) == (24, 16, 24)
    np.testing.assert_allclose(
        decode(hidden["course"])[0, 7], recorded["rate"].time_course("hidden")[0, :, 7], atol=5e-4
    )
    raster = data["rasters"]["traces.h5"]["layers"]["hidden"]
    first = recorded["spikes"].recording(1).spikes["hidden"]
    assert decode_steps(raster["samples"][1][5]) == (np.flatnonzero(first[:, 5]) + 1).tolist()
    x, y = decode(data["scatter"]["traces.h5"]["free"]["output"])
    assert x[3] == pytest.approx(recorded["rate"].rate("output", "free").ravel()[3], abs=5e-4)
    assert y[3] == pytest.approx(recorded["spikes"].rate("output", "free").ravel()[3], abs=5e-4)
    metrics = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert data["learning"][0]["rows"][-1]["test_accuracy"] == metrics["test_accuracy"]
    assert data["samples"][0][0]["index"] == 0
    inputs = decode(data["samples"][0][0]["inputs"])
    np.testing.assert_allclose(inputs, recorded["rate"].inputs[0], atol=2e-4)


def test_matrices_hold_the_weights_and_the_changes_asked_for(
    make_run: Fill,
    recorded: dict[str, Trace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    held = data_of(report(make_run(tmp_path / "run"), capsys))["synapses"]
    assert [each["name"] for each in held["matrices"]] == ["hidden->output", "input->hidden"]
    assert held["matrices"][0]["contrast"] == {"free": 0.0, "negative": -2.0, "positive": 2.0}
    first = held["matrices"][0]
    weight = recorded["rate"].weights["hidden->output"].before
    np.testing.assert_allclose(decode(first["views"]["weights"]), weight, atol=5e-4)
    for file, kind in (("rate.h5", "rate"), ("traces.h5", "spikes")):
        wanted = hebbian_update(recorded[kind], "hidden->output") / 6
        np.testing.assert_allclose(decode(first["updates"][file]), wanted, atol=1e-3)
    row, column = first["first"]
    sample = first["sample"]
    result = synapse_logs_of_trace(recorded["rate"], "hidden->output", [(row, column)])[sample]
    everything = [(t, s) for t in range(10) for s in range(24)]
    most = np.abs(
        synapse_logs_of_trace(recorded["rate"], "hidden->output", everything)[sample].tag[-1]
    )
    assert abs(result.tag[-1, 0]) > 0.9 * most.max() > 0.0


def test_a_large_matrix_shows_the_units_that_change_most(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    run = read_contents(tmp_path, {"rate.h5": episode["rate"]})
    first, second = chart_data(run, PageLimits(samples=4, rows=5))["synapses"]["matrices"]
    assert (len(first["rows"]), len(first["columns"]), first["of"]) == (5, 5, [10, 24])
    loud = np.abs(hebbian_update(episode["rate"], "input->hidden")).sum(axis=1)
    assert second["rows"] == sorted(np.argsort(-loud)[:5].tolist())


def test_recorded_histories_of_a_run_that_learned_are_shown(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    spikes = episode["spikes"]
    weights = {n: Weights(w.before, w.before + 1) for n, w in spikes.weights.items()}
    own = SynapseLog(((3, 5),), *np.random.default_rng(0).normal(size=(5, 6 * 192, 1)))
    learned = replace(spikes, weights=weights, hebbian={"hidden->output": own})
    run = read_contents(tmp_path, {"rate.h5": episode["rate"], "traces.h5": learned})
    held = chart_data(run, PageLimits(samples=2))["synapses"]["histories"]
    assert list(held) == ["traces.h5"]
    log = held["traces.h5"]["hidden->output"]
    assert log["synapses"] == [[3, 5]]
    np.testing.assert_allclose(decode(log["tag"])[1, 0], own.tag[192:384, 0], atol=2e-3)


def test_numbers_are_packed_and_unpacked() -> None:
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=(3, 4, 5)), [1, 2, 3, 70, 140], axis=2)
    packed = encode(values)
    np.testing.assert_allclose(decode(packed), values, atol=np.ptp(values) / 8000)
    assert len(packed["rows"][0][0]) == 2 * 5 + 2 * 1 + 2 + 2 * 2 + 2 * 3
    assert decode(encode(np.full((2, 3), 7.0))).tolist() == [[7.0] * 3] * 2
    assert decode(encode(np.array([np.nan, 1.0, np.inf, 3.0]))).tolist() == [1.0, 1.0, 3.0, 3.0]
    steps = np.array([1, 2, 65, 66, 131, 1000])
    assert decode_steps(encode_steps(steps)) == steps.tolist()
    assert encode_steps(np.zeros(0, dtype=np.int64)) == ""


def test_runs_stand_side_by_side(
    make_run: Fill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = make_run(tmp_path / "one"), make_run(tmp_path / "two")
    (two / "study.toml").write_text((two / "study.toml").read_text().replace("0.25", "0.125"))
    out = tmp_path / "both.html"
    assert main(["report", str(one), str(two), "--out", str(out), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["runs"] == [str(one), str(two)]
    assert outcome["report"] == str(out)
    html = out.read_text(encoding="utf-8")
    assert len(html) < 2_400_000
    body, data = body_of(html), data_of(html)
    assert "<h1>one · two</h1>" in body
    assert {"runs-table", "agreement-table"} <= set(Elements(html).ids)
    assert 'data-value="0.125">0.125</td>' in body
    assert [each["run"] for each in data["learning"]] == ["one", "two"]
    assert [(t["place"], t["file"], t["on"]) for t in data["settling"]] == [
        (0, "rate.h5", "rate, one"),
        (0, "traces.h5", "reference, one"),
        (1, f"{two}/rate.h5", "rate, two"),
        (1, f"{two}/traces.h5", "reference, two"),
    ]
    assert f"neuro-eqprop compare {two}/rate.h5 {two}/traces.h5" in body
    assert f"neuro-eqprop report {one} {two}" in body
    assert not (one / "report.html").exists()


def test_a_training_is_not_taken_for_rates(episode: dict[str, Trace], tmp_path: Path) -> None:
    training = replace(episode["rate"], epochs={"epoch": np.arange(6, dtype=np.float64)})
    run = read_contents(tmp_path, {"a.h5": training, "rate.h5": episode["rate"]})
    assert run.rates is not None
    assert run.rates[0] == "rate.h5"
    assert run.training is not None
    assert run.training[0] == "a.h5"


def test_the_chart_library_keeps_its_licence() -> None:
    folder = files("neuro_eqprop.html_report").joinpath("assets").joinpath("plotly")
    assert "Permission is hereby granted" in folder.joinpath("LICENSE").read_text()
    assert "Licensed under the MIT license" in chart_library()[:300]


def test_what_is_missing_is_said_with_the_command_that_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "study.toml").write_text('dataset = "digits"\n')
    body = body_of(report(run, capsys))
    for command in ("train", "simulate", "evaluate", "energy"):
        assert f"neuro-eqprop {command} " in body
    assert "<table" not in body


@pytest.mark.parametrize("left", ["rate.h5", "traces.h5"])
def test_one_trace_alone_is_shown(
    left: str, make_run: Fill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    (run / ({"rate.h5", "traces.h5"} - {left}).pop()).unlink()
    html = report(run, capsys)
    assert ("raster" in Elements(html).ids) == (left == "traces.h5")
    assert "agreement-table" not in Elements(html).ids
    assert ("--on rate" in body_of(html)) or left == "rate.h5"


EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&$title'


def test_nothing_from_a_file_becomes_markup(
    episode: dict[str, Trace], make_run: Fill, chip_estimate: ChipEstimate, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run")
    (run / "study.toml").write_text(f"dataset = {json.dumps(EVIL)}\nmodel = {json.dumps(EVIL)}\n")
    (run / "evaluations.jsonl").write_text(json.dumps({"on": EVIL, "code": EVIL, "samples": EVIL}))
    chip = chip_estimate(EVIL, 1.0, scenario=EVIL, overridden=(EVIL,))
    term = replace(chip.terms[0], name=EVIL, source=EVIL)
    missing = (MissingTerm(EVIL, None, EVIL),)
    evil = replace(chip.inference, terms=(term,), missing=missing)
    none = chip_estimate(EVIL, None, reason=EVIL)
    EnergyReport((replace(chip, inference=evil), none)).save(run / "energy.json")
    row = {"epoch": 1, "spectral": {EVIL: 1.0}, "settle_steps": {EVIL: 2}}
    (run / "metrics.jsonl").write_text(json.dumps(row))
    made = {}
    for name in ("rate", "spikes"):
        trace = episode[name]
        marked = replace(
            trace.origin, backend=EVIL, command=EVIL, network_hash=EVIL, versions={EVIL: EVIL}
        )
        kinds = {EVIL if layer == "hidden" else layer: k for layer, k in trace.kinds.items()}
        spikes = {EVIL if layer == "hidden" else layer: t for layer, t in trace.spikes.items()}
        signals = {
            (EVIL if layer == "hidden" else layer, variable): values
            for (layer, variable), values in trace.signals.items()
        }
        made[f"{name}{EVIL}.h5"] = replace(
            trace, origin=marked, kinds=kinds, spikes=spikes, signals=signals, connections=()
        )
    html = page(run, made)
    seen = Elements(html)
    assert "img" not in seen.tags
    assert seen.tags.count("script") == 3
    assert any(EVIL in layer for layer in data_of(html)["settling"][0]["layers"])


def test_policy_names_exactly_the_scripts_of_the_page(tmp_path: Path) -> None:
    html = page(tmp_path, {})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    allowed = set(re.findall(r"'sha256-([^']*)'", policy[1]))
    scripts = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 2
    assert allowed == {b64encode(sha256(s.encode()).digest()).decode() for s in scripts}
    assert "default-src 'none'" in policy[1]


def test_damaged_files_are_left_out_and_reported(
    make_run: Fill, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    (run / "other.h5").write_text("no")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "tr')
    (run / "energy.json").write_text("[]")
    (run / "study.toml").write_text("= no toml")
    body = body_of(report(run, capsys))
    assert "other.h5 is no HDF5 file" in body
    assert "metrics.jsonl: line 3: " in body
    assert "energy.json was left out: " in body
    assert "the file holds no JSON object" in body
    assert "study.toml was left out: " in body


def test_traces_that_do_not_match_are_reported(episode: dict[str, Trace], tmp_path: Path) -> None:
    other = replace(episode["spikes"], index=episode["spikes"].index + 1)
    run = read_contents(tmp_path, {"rate.h5": episode["rate"], "traces.h5": other})
    assert run.agreements == {}
    assert (
        "rate.h5 and traces.h5 were not compared: the traces have different samples"
        in (run.notes[0])
    )


def test_lava_comes_first_and_graded_is_named(episode: dict[str, Trace], tmp_path: Path) -> None:
    lava = replace(episode["spikes"], origin=replace(episode["spikes"].origin, backend="lava"))
    traces = {"a.h5": episode["graded"], "b.h5": episode["spikes"], "c.h5": lava}
    run = read_contents(tmp_path, traces)
    assert [run.label(name, trace) for name, trace in run.spikes.items()] == [
        "lava",
        "reference",
        "reference, graded",
    ]


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), [1]])
def test_what_is_no_number_is_a_dash(value: object) -> None:
    assert text.percent(value) == text.decimal(value) == text.count(value) == "\u2013"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.1e-6, "3.1 µJ"),
        (0.0, "0 J"),
        (2.0, "2 J"),
        (1.5e-12, "1.5 pJ"),
        (4e-18, "0.004 fJ"),
        (1e-3, "1 mJ"),
        (12345.0, "12.3 kJ"),
    ],
)
def test_quantities_have_prefixes(value: float, expected: str) -> None:
    assert text.quantity(value, "J").replace("\u00a0", " ") == expected


def test_a_chip_without_joules_says_why(chip_estimate: ChipEstimate, tmp_path: Path) -> None:
    none = Estimate(reason="unknown: no learning run counted")
    chips = (
        chip_estimate("full", 2e-6, learning=none),
        chip_estimate("small", None, fits=False, reason="too few neurons", learning=none),
        chip_estimate("secret", None, fits=None, learning=none),
    )
    joules = Interval(1e-4, 1e-4, 1e-4, 1e-4)
    dense = DenseReference("gpu", 8, joules, Boundary.BOARD_TOTAL, "")
    EnergyReport(chips, references=(dense,)).save(tmp_path / "energy.json")
    html = page(tmp_path, {})
    body = body_of(html)
    assert "too few neurons" in body
    assert "unknown whether it fits" in body
    assert "No joules of learning: unknown: no learning run counted" in body
    assert "an inference on full" in body
    drawn = data_of(html)["energy"]
    rows = drawn["bars"]["inference"]
    assert [row["name"] for row in rows] == ["full", "gpu, batch 8", "small", "secret"]
    assert rows[2]["reason"] == "too few neurons"
    assert rows[3]["reason"] == "takes 1 core of 1 chip; unknown whether it fits"
    assert [row["group"] for row in rows[:2]] == ["chip total", "board total"]
    assert rows[0]["parts"] == {"idle": 0.75, "synop": 0.25}
    assert [each["name"] for each in drawn["estimates"]] == ["full: inference"]


def test_overrides_comparisons_and_the_best_point_are_shown(
    chip_estimate: ChipEstimate, tmp_path: Path
) -> None:
    won = DenseComparison(
        *("p", "cpu", 1, Outcome.OPEN, Boundary.CHIP_TOTAL, 1e-6, 2e-6, 0.25),
        sentence="the ranges overlap",
        likelihood=0.9,
    )
    lost = replace(won, device="mcu", outcome=Outcome.LOSES, spiking=4e-6, likelihood=0.001)
    points = (Point("rate", 8, 0.9, 1e-6, 1e-7, 1e-5), Point("rate", 4, 0.5, 2e-6, 1e-7, 1e-5))
    changed = ("energy.synop: 2.36e-11 J -> 3e-11 J (override)",)
    chip = chip_estimate(
        "p", 2e-6, title="Chip", overridden=changed, comparisons=(won, lost), curve=points
    )
    guess = chip_estimate("s", 2e-6, title="Guess", scenario="a what-if")
    counted = CountedEvents("counts", 32, 64, "rate", input_coding="current")
    options = ("--override", "p.energy.synop=30pJ")
    curve = CurveSettings(20, (4, 8), {})
    report = EnergyReport((chip, guess), counted, options=options, curve=curve)
    report.save(tmp_path / "energy.json")
    html = page(tmp_path, {})
    body = body_of(html)
    assert "Chip: energy.synop: 2.36e-11 J -&gt; 3e-11 J (override)" in body
    assert "Guess: scenario: a what-if" in body
    assert "Counted on 32 samples of 64 steps in code rate, the input as current." in body
    assert "needs 2x less than cpu at batch 1, though the ranges overlap: likely" in body
    # One row a chip: the device that needs the fewest joules.
    assert "needs 2x more than mcu" not in body
    assert 'id="trade"' in body
    assert f"neuro-eqprop energy {tmp_path} --override p.energy.synop=30pJ</code>" in body
    drawn = data_of(html)["energy"]
    best = [(each["steps"], each["best"]) for each in drawn["curves"]["p"]]
    assert best == [(8, True), (4, False)]
    assert [row["name"] for row in drawn["bars"]["inference"]] == ["Chip *", "Guess *"]


def test_joules_of_several_runs_stand_side_by_side(
    chip_estimate: ChipEstimate, tmp_path: Path
) -> None:
    runs = []
    other = Boundary.BOARD_TOTAL
    for name, joules, boundary in (("one", 2e-6, Boundary.CHIP_TOTAL), ("two", 8e-6, other)):
        chips = (chip_estimate("a", joules), chip_estimate("b", joules, boundary))
        EnergyReport(chips).save(tmp_path / name / "energy.json")
        runs.append(read_contents(tmp_path / name, {}))
    body = body_of(render(replace(runs[0], others=(runs[1],))))
    table = body[body.index('id="joules-runs-table"') :]
    assert "one : two" in table
    assert ">0.25<" in table
    assert "not compared: chip total, board total" in table


def test_a_smaller_page_shows_fewer_samples(episode: dict[str, Trace], tmp_path: Path) -> None:
    run = read_contents(tmp_path, {"rate.h5": episode["rate"], "traces.h5": episode["spikes"]})
    assert PageLimits().smaller() == PageLimits(samples=12)
    small = chart_data(run, PageLimits(samples=3, lines=4, rows=8).smaller())
    assert len(small["samples"][0]) == 1
    assert len(small["settling"][0]["layers"]["hidden"]["lines"]) == 2
    assert len(small["rasters"]["traces.h5"]["layers"]["hidden"]["units"]) == 4
    limits = PageLimits()
    for _ in range(20):
        limits = limits.smaller()
    assert limits == PageLimits(1, 1, 1) == limits.smaller()


def test_the_settling_opens_on_the_correct_sample_that_the_nudge_moves_most(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    trace = episode["rate"]
    phases = [phase.name for phase in trace.schedule]
    away, towards = (trace.rate("output", name) for name in phases[1:3])
    moved = np.abs(towards - away).sum(axis=1)
    answer = trace.rate("output").argmax(axis=1)
    label = np.where(moved == moved.max(), (answer + 1) % 3, answer)  # that one is wrong
    run = read_contents(tmp_path, {"rate.h5": replace(trace, label=label)})
    assert chart_data(run, PageLimits())["start"] == np.argsort(moved)[-2]


def test_a_sample_to_start_with_that_a_page_would_leave_out_comes_first(
    episode: dict[str, Trace],
) -> None:
    traces = {"rate.h5": episode["rate"], "spikes.h5": episode["spikes"]}
    count = len(episode["rate"].index)
    start = start_sample(episode["rate"], count)
    moved = start_first(traces, start)
    for name, trace in traces.items():
        assert moved[name].index[0] == trace.index[start]
        assert sorted(moved[name].index) == sorted(trace.index)
        rate = trace.rate("output")[start]
        np.testing.assert_array_equal(moved[name].rate("output")[0], rate)
    assert start_first(traces, count)["rate.h5"] is traces["rate.h5"]


@pytest.mark.parametrize("dataset", ["digits", "wine"])
def test_the_weights_of_images_are_shown_before_and_after(dataset: str, tmp_path: Path) -> None:
    model = ne.train("layered", "digits", hidden=(8,), epochs=1, seed=3)
    study = {"dataset": dataset, "seed": 3}
    run = replace(read_contents(tmp_path, {}), model=model, study=study)
    shown = fields.show(run)
    if dataset != "digits":
        assert shown.html == ""
        return
    assert shown.data is not None
    held = shown.data(PageLimits())["fields"]
    found = fields.weights(run)
    assert found is not None
    before, after = found
    np.testing.assert_array_equal(after, model.params["input->hidden"])
    assert np.abs(after - before).max() > 0.01
    assert (held["side"], held["units"]) == (8, list(range(8)))


def test_the_tile_of_joules_names_the_chip_that_fits_and_needs_least(
    chip_estimate: ChipEstimate, tmp_path: Path
) -> None:
    chips = (chip_estimate("a", 3e-6), chip_estimate("b", 2e-6))
    EnergyReport(chips).save(tmp_path / "energy.json")
    assert "an inference on b" in render(read_contents(tmp_path, {}))


def test_values_that_are_not_finite_do_not_break_the_page(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    values = {key: np.where(v > 0.5, np.nan, v) for key, v in episode["rate"].signals.items()}
    traces = {"rate.h5": replace(episode["rate"], signals=values), "t.h5": episode["spikes"]}
    assert data_of(page(tmp_path, traces))["settling"]


def test_smooth_is_a_mean_of_the_last_steps() -> None:
    raster = np.array([1.0, 0.0, 0.0, 1.0])[None, :, None]
    assert smooth(raster, np.array([1, 2, 2, 2]))[0, :, 0].tolist() == [1.0, 0.5, 0.0, 0.5]


def test_a_folder_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "holds no run" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "absent")]) == 1
    assert "there is no run folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_traces_show_prints_a_tree(
    make_run: Fill, recorded: dict[str, Trace], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    assert main(["traces", "show", str(run / "traces.h5")]) == 0
    shown = capsys.readouterr().out
    assert "spikes/hidden/step" in shown
    assert "[step]" in shown
    assert "█" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100
    assert main(["traces", "show", str(run / "rate.h5"), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["samples"], outcome["steps"], outcome["complete"]) == (6, 192, True)
    mean = recorded["rate"].rate("output", "free").mean()
    assert outcome["populations"][1]["rate"]["free"] == pytest.approx(mean)
    assert {"name": "samples/input", "shape": [6, 64], "unit": "1"} in outcome["data"]


def test_traces_export_gives_back_the_arrays(
    make_run: Fill,
    recorded: dict[str, Trace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run")
    words = ["traces", "export", str(run / "traces.h5")]
    npz, tables = tmp_path / "out.npz", tmp_path / "tables"
    assert main([*words, "--npz", str(npz), "--csv", str(tables)]) == 0
    with np.load(npz) as arrays:
        steps = recorded["spikes"].spikes["hidden"].step
        np.testing.assert_array_equal(arrays["spikes/hidden/step"], steps)
        assert json.loads(str(arrays["about"]))["kinds"]["hidden"] == "spikes"
    rows = np.loadtxt(tables / "voltage.output.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(rows[:, 1], (rows[:, 0] + 0.5) * 1e-3)  # seconds
    np.testing.assert_array_equal(rows[:, 2:], recorded["spikes"].signals["output", "voltage"])
    events = np.loadtxt(tables / "spikes.hidden.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(events[:, 0], steps)
    assert main([*words, "--npz", str(npz)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(words) == 1
    assert "--npz OUT.npz, --csv DIR or --nwb OUT.nwb" in capsys.readouterr().err


def learning_of(trace: Trace, epochs: int) -> Trace:
    """A trace as a training leaves it: its samples after each of some epochs."""
    count = len(trace.index) // epochs
    after = {n: replace(w, after=w.before + 0.1) for n, w in trace.weights.items()}
    (result,) = synapse_logs_of_trace(select_samples(trace, [0]), "hidden->output", [(2, 3)])
    log = SynapseLog(
        result.synapses, *(np.tile(getattr(result, c), (epochs * count, 1)) for c in COLUMNS)
    )
    numbers = np.arange(1, epochs + 1, dtype=np.float64)
    return replace(
        trace,
        index=np.resize(trace.index[:count], len(trace.index)),  # the same samples every epoch
        weights=after,
        hebbian={"hidden->output": log},
        epochs={"epoch": numbers, "test_accuracy": numbers / 10, "seconds": numbers},
    )


def test_a_training_alone_shows_its_course(episode: dict[str, Trace], tmp_path: Path) -> None:
    trace = learning_of(episode["rate"], 3)
    run = read_contents(tmp_path, {"traces.h5": trace})
    assert run.snapshots == ("epoch 1, sample 100", "epoch 2, sample 100", "epoch 3, sample 100")
    data = chart_data(run, PageLimits())
    assert [each["name"] for each in data["samples"][0]] == list(run.snapshots)
    (shown,) = data["settling"]
    course = decode(shown["layers"]["output"]["course"])
    assert course.shape[0] == 3
    np.testing.assert_allclose(course[1], trace.time_course("output")[2].T, atol=5e-4)
    first = data["synapses"]["matrices"][0]
    assert first["learned"] is True
    assert (first["recorded"], first["updates"]) == ([[2, 3]], {})
    assert list(first["views"]) == ["weights after", "weights before", "change"]
    np.testing.assert_allclose(decode(first["views"]["change"])[0, :4], 0.1, atol=1e-3)
    html = page(tmp_path, {"traces.h5": trace})
    assert "The same sample during training" in html


def test_a_training_is_shown_beside_simulations(episode: dict[str, Trace], tmp_path: Path) -> None:
    """A hint of the page must add content: recording rates keeps what was shown before."""
    training = learning_of(episode["rate"], 3)
    alone = read_contents(tmp_path, {"traces.h5": training})
    both = read_contents(tmp_path, {"traces.h5": training, "rate.h5": episode["rate"]})
    assert [(v.place, v.key, v.title) for v in both.views()] == [
        (0, "rate.h5", "rate"),
        (1, "traces.h5", "rate, training"),
    ]
    data, before = chart_data(both, PageLimits()), chart_data(alone, PageLimits())
    assert [each["name"] for each in data["samples"][1]] == list(alone.snapshots)
    assert data["settling"][1]["layers"] == before["settling"][0]["layers"]
    named = {each["key"]: each for each in data["synapses"]["matrices"]}
    assert list(named) == [
        *("hidden->output", "input->hidden"),
        *("hidden->output, training", "input->hidden, training"),
    ]
    first = named["hidden->output, training"]
    assert (first["place"], first["linked"], first["learned"]) == (1, False, True)
    assert first["views"] == before["synapses"]["matrices"][0]["views"]
    assert data["synapses"]["histories"] == before["synapses"]["histories"]
    assert set(Elements(render(alone)).ids) <= set(Elements(render(both)).ids)


def test_sections_have_distinct_ids() -> None:
    assert len({section.id for section in SECTIONS}) == len(SECTIONS)


def test_units_of_a_multiscale_network_are_not_called_channels(tmp_path: Path) -> None:
    for model, what in (("multiscale", "16 hidden units"), ("conv", "16 channels")):
        (tmp_path / "study.toml").write_text(f'model = "{model}"\nhidden = [16]\n')
        assert f"A {model} network with {what} " in page(tmp_path, {})


def test_report_takes_names_paths_and_runs(trained_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    copytree(trained_run, run)
    for each in (str(run), run, neuro_eqprop.open_run(run)):
        assert neuro_eqprop.report(each) == run / "report.html"
    out = neuro_eqprop.report(run, out=str(tmp_path / "x.html"))
    assert out == tmp_path / "x.html"
    done = doctest.testmod(write_module, extraglobs={"example_run": run})
    assert (done.attempted, done.failed) == (2, 0)


def test_learning_on_a_chip_is_labelled(episode: dict[str, Trace], tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('dataset = "digits"\n[learn]\non = "lava"\n')
    line = {"epoch": 1, "test_accuracy": 0.5, "spectral": {"hidden->output": 1.0}}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    kinds = episode["spikes"].kinds
    learning = replace(learning_of(episode["rate"], 1), kinds=kinds, signals={})
    html = page(tmp_path, {"traces.h5": learning})
    assert "learned digits by equilibrium propagation in spikes on Lava in 1 epoch." in html
    assert f"neuro-eqprop learn {tmp_path}/study.toml --out NEW" in html
    seen = set(Elements(html).ids)
    assert {"spectral", "matrix", "history"} <= seen
    assert not {"settle", "sample", "rates"} & seen
    assert data_of(html)["samples"][0][1]["name"] == "presentation 2"


def test_simulators_of_one_name_are_distinguished(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    spikes = episode["spikes"]
    run = read_contents(
        tmp_path, {"float.h5": spikes, "bits8.h5": spikes, "graded.h5": episode["graded"]}
    )
    titles = {view.title for view in run.views()}
    assert {"reference (float)", "reference (bits8)", "reference, graded"} == titles


def test_a_network_converted_from_torch_is_described_as_such(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    neuro_eqprop.from_torch(module, (64,)).save(tmp_path / "mine", dataset="digits")
    made = neuro_eqprop.report(tmp_path / "mine").read_text(encoding="utf-8")
    assert "converted from torch, for digits; it was not trained here" in made
    assert "learned digits by equilibrium propagation" not in made
    # The folder holds a model, so that training into it would be refused.
    assert f"neuro-eqprop train --out {tmp_path / 'mine-trained'}<" in made


def test_objects_give_the_page_of_their_folder(make_run: Fill, tmp_path: Path) -> None:
    run = neuro_eqprop.open_run(make_run(tmp_path / "run"))
    read_back = neuro_eqprop.report(run.path).read_text()
    traces = [neuro_eqprop.open_trace(run.path / name) for name in ("rate.h5", "traces.h5")]
    energy = read_energy(run.path / "energy.json")
    for name in ("energy.json", "model.safetensors", "rate.h5", "traces.h5"):
        (run.path / name).rename(tmp_path / name)
    page = neuro_eqprop.report(run, *traces, energy, out=tmp_path / "page.html").read_text()
    assert page == read_back


def test_a_model_needs_no_folder(make_run: Fill, tmp_path: Path) -> None:
    run = neuro_eqprop.open_run(make_run(tmp_path / "run"))
    x, y = run.data.test.x[:3], run.data.test.y[:3]
    made = run.model.record(x, y, phases=True), run.model.evaluate((x, y), on="reference")
    out = tmp_path / "page.html"
    html = neuro_eqprop.report(run.model, *made, out=out).read_text()
    assert {"accuracy", "rates", "matrix", "simulators-table"} <= set(Elements(html).ids)
    assert "digits · layered" in html
    with pytest.raises(ValueError, match="give `out`"):
        neuro_eqprop.report(run.model)
