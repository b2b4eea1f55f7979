"""The commands `energy` and `profiles`, from the words of a call to what is printed."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from neuro_eqprop.api.model import Model
from neuro_eqprop.chips.energy.file import SCHEMA, read_energy
from neuro_eqprop.chips.energy.pareto import SLACK
from neuro_eqprop.chips.energy.validation import validate_profiles
from neuro_eqprop.chips.profiles.load import load_profile, profile_folder
from neuro_eqprop.chips.workload_file import CountsError, read_workload, write_workload
from neuro_eqprop.cli import main
from neuro_eqprop.cli.energy import show
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH, Activation
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.runs.checkpoint import save
from neuro_eqprop.training.study import make_study, write

TWO, TWENTY = ("--samples", "2"), ("--samples", "20")

COUNTS: dict[str, Any] = {
    "schema": "neuro_eqprop.counts/1",
    "populations": [
        {"name": "hidden", "size": 128, "soft_reset": True},
        {"name": "output", "size": 10, "soft_reset": True},
    ],
    "projections": [
        {"source": "hidden", "target": "output"},
        {"source": "output", "target": "hidden"},
        {
            **{"source": "hidden", "target": "hidden", "synapses": 1280},
            **{"max_fan_in": 10, "max_fan_out": 10},
        },
    ],
    "output": "output",
    "samples": 4,
    "steps": 10,
    "input_coding": "current",
    "dense_macs": 9472,
    "counts": [
        {
            **{"population": "hidden", "phase": "free", "steps": 40, "spikes": 400},
            **{"synops": 8000, "updates_active": 400, "updates_idle": 4720, "host_macs": 32768},
        },
        {
            **{"population": "output", "phase": "free", "steps": 40, "spikes": 80},
            **{"synops": 10240, "updates_active": 80, "updates_idle": 320},
        },
    ],
}


def trained(path: Path, rate: Activation) -> Path:
    """A run as if it had been trained."""
    path.mkdir()
    network = layered(64, (12,), 10, hidden_rate=rate, output_rate=rate)
    (path / "study.toml").write_text(write(make_study(hidden=(12,), epochs=2)))
    params = initialize(network, np.random.default_rng(0))
    save(path / "model.safetensors", Model(network, params, 2))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("energy") / "run", HARD_SIGMOID)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps(COUNTS))
    return path


def call(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def fails(
    capsys: pytest.CaptureFixture[str], *words: str, code: int = 1, shown: bool = False
) -> str:
    assert main(list(words)) == code
    result = capsys.readouterr()
    assert bool(result.out) is shown
    assert "Traceback" not in result.err
    return result.err


def test_energy_has_the_fields_of_the_contract(
    capsys: pytest.CaptureFixture[str], counts: Path
) -> None:
    outcome = call(capsys, "energy", "--counts", str(counts))
    assert outcome["input_coding"] == "current"
    assert len(outcome["profiles"]) >= 11
    for each in outcome["profiles"]:
        fields = {"profile", "fits", "cores", "chips", "binding", "unchecked"}
        assert fields <= set(each)
        for side in (each["inference"], each["learning"]):
            assert {"joules", "low", "high", "seconds", "terms", "unknown"} <= set(side)
            assert side["joules"] is None or side["low"] <= side["joules"] <= side["high"]
            assert side["joules"] is not None or side["reason"]
        assert each["learning"]["reason"] == "unknown: no learning run counted"
    assert {"device", "batch", "joules"} <= set(outcome["reference"][0])
    assert len(outcome["reference"]) == 14
    assert set(outcome["arithmetic_ratio"]) == {"mac45nm"}
    named = {each["profile"] for each in outcome["profiles"]}
    assert "loihi2_scenario" not in named
    assert {"fits": True, "profile": "loihi1"}.items() <= next(
        each for each in outcome["profiles"] if each["profile"] == "loihi1"
    ).items()


def test_energy_writes_into_the_run_and_repeats_itself(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    words = ("energy", str(run), "--counts", str(counts), "--profile", "loihi1")
    outcome = call(capsys, *words)
    first = (run / "energy.json").read_bytes()
    call(capsys, *words)
    assert (run / "energy.json").read_bytes() == first
    written = json.loads(first)
    assert outcome.pop("file") == str(run / "energy.json")
    assert written.pop("schema") == SCHEMA
    assert written == outcome
    assert [path.name for path in run.iterdir()] == ["energy.json"]


def test_people_see_unknown_and_does_not_fit_within_a_hundred_columns(
    capsys: pytest.CaptureFixture[str], counts: Path
) -> None:
    assert main(["energy", "--counts", str(counts), "--explain", "--verbose"]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    joined = " ".join(text.split())  # a long path of the counts moves the line breaks
    for phrase in ("does not fit", "unknown", "loaded above idle", "input as current", "~"):
        assert phrase in joined
    assert "davies2018, Table 2" in text
    assert "more chips do not help" in " ".join(text.split())


def test_nothing_is_cut_off_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    words = ("energy", str(run), "--samples", "2", "--steps", "4", "--explain")
    outcome = call(capsys, *words, "--curve", "2,4", "--curve-samples", "4")
    assert len(known(outcome)) >= 12
    report = replace(read_energy(run / "energy.json"), verbose=True)
    for width in (80, 100, 160):
        page = StringIO()
        show(report, Console(width=width, file=page, highlight=False))
        lines = page.getvalue().splitlines()
        assert max(len(line) for line in lines) <= min(width, 100)
        assert "…" not in page.getvalue()


def test_a_report_is_one_line_a_chip_and_at_most_thirty_in_all(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    words = ("energy", str(run), "--samples", "2", "--steps", "4")
    outcome = call(capsys, *words)
    assert main(list(words)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    for chip in outcome["profiles"]:
        named = [line for line in lines if line.startswith(f"{chip['profile']} ")]
        assert named, chip["profile"]
        if chip["inference"]["joules"]:
            assert len(named) == 1
            rough = chip["inference"]["tier"] == "order of magnitude"
            assert ("~" in named[0]) is rough
    one = (*words, "--profile", "loihi1")
    (slow,), (fast,) = (
        [each["inference"]["duty_cycle"] for each in call(capsys, *one, *rate)["profiles"]]
        for rate in ((), ("--rate", "50Hz"))
    )
    assert (slow["rate"], fast["rate"]) == (10, 50)
    assert slow["watts"] < fast["watts"]


def known(outcome: Any) -> list[Any]:  # noqa: ANN401
    """The sides of inference that have joules."""
    return [c["inference"] for c in outcome["profiles"] if c["inference"]["joules"]]


def test_an_override_and_a_users_file_are_shown(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'schema = "neuro_eqprop.profile/1"\nextends = "loihi1"\nname = "mine"\n'
        "[power]\nidle_loaded = { value = 50 }\n"
    )
    words = ["--profile", "loihi1", "--profile", str(mine)]
    override = ["--override", "loihi1.energy.synop=30pJ"]
    outcome = call(capsys, "energy", "--counts", str(counts), *words, *override)
    assert outcome["options"] == ["--counts", str(counts), *words, *override]
    ours, theirs = outcome["profiles"]
    assert ours["overridden"] == ["energy.synop: 2.36e-11 J -> 3e-11 J (override)"]
    assert theirs["overridden"] == ["power.idle_loaded: 96.3 mW -> 50 mW (mine.toml)"]
    assert theirs["inference"]["joules"] < ours["inference"]["joules"]
    assert main(["energy", "--counts", str(counts), *words, *override]) == 0
    assert "* loihi1: energy.synop" in capsys.readouterr().out


def test_options_reach_the_estimate(capsys: pytest.CaptureFixture[str], counts: Path) -> None:
    base = ("energy", "--counts", str(counts), "--profile", "loihi1")
    plain = call(capsys, *base)["profiles"][0]["inference"]
    slow = call(capsys, *base, "--step-seconds", "0.001")["profiles"][0]["inference"]
    assert slow["seconds"] == pytest.approx(0.01)
    assert slow["joules"] > plain["joules"]
    tick = call(capsys, *base, "--time", "tick")["profiles"][0]["inference"]
    assert tick["seconds"] == pytest.approx(0.01)
    other = call(capsys, *base, "--overhead", "static_and_host")["profiles"][0]["inference"]
    assert {term["name"] for term in other["terms"]} >= {"static power", "host power"}
    wide = call(capsys, *base, "--bits", "16")["profiles"][0]
    assert wide["fits"] is False
    one = call(capsys, *base, "--batch", "8")
    assert [each["batch"] for each in one["reference"]] == [8, 8, 8]
    hard = call(capsys, *base, "--soft-reset", "off")["profiles"][0]["inference"]
    updates = {
        name: sum(t["amount"] for t in side["terms"] if t["name"].startswith("neuron"))
        for name, side in (("soft", plain), ("hard", hard))
    }
    assert updates["soft"] == 2 * updates["hard"] == 2 * 1380


def test_learning_is_priced_per_sample_and_for_the_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    learned = json.loads(json.dumps(COUNTS))
    for each in COUNTS["counts"]:
        learned["counts"].append({**each, "phase": "nudged", "weight_updates": 4000})
    path = tmp_path / "learned.json"
    path.write_text(json.dumps(learned))
    words = ("--counts", str(path), "--profile", "loihi1", "--presentations", "1000")
    each = call(capsys, "energy", *words)["profiles"][0]
    assert each["learning"]["joules"] > each["inference"]["joules"]
    assert each["learning"]["training"]["joules"] == 1000 * each["learning"]["joules"]
    assert "weight update" in {term["name"] for term in each["learning"]["terms"]}


def test_two_runs_stand_side_by_side(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    runs = [tmp_path / name for name in ("one", "two")]
    for run in runs:
        run.mkdir()
    base = ("--counts", str(counts), "--profile", "loihi1", "--profile", "akida1000")
    assert "energy.json is missing" in fails(
        capsys, "energy", str(runs[0]), *base, "--beside", str(runs[1])
    )
    call(capsys, "energy", str(runs[1]), *base, "--step-seconds", "0.01")
    outcome = call(capsys, "energy", str(runs[0]), *base, "--beside", str(runs[1]))
    loihi, other = outcome["beside"]["profiles"][:2]
    assert loihi["times"] == pytest.approx(loihi["joules"] / loihi["other"])
    assert loihi["times"] < 0.1
    assert other["times"] is None
    assert outcome["beside"]["counted"]["spikes_per_sample"] == 120
    learned = outcome["beside"]["profiles"][2]
    assert (learned["use"], learned["reasons"][0]) == (
        "learning",
        "unknown: no learning run counted",
    )
    words = ["energy", str(runs[0]), *base]
    assert main([*words, "--beside", str(runs[1])]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "the other: 10 steps, input as current, 120 spikes" in shown
    assert f"{loihi['times']:.3g}" in shown
    held = json.loads((runs[1] / "energy.json").read_text())
    held["profiles"][0]["inference"]["boundary"] = "system_wall"
    (runs[1] / "energy.json").write_text(json.dumps(held))
    apart = call(capsys, *words, "--beside", str(runs[1]))["beside"]["profiles"][0]
    assert (apart["times"], apart["boundaries"]) == (None, ["board_total", "system_wall"])
    assert main([*words, "--beside", str(runs[1])]) == 0
    assert "not compared: board_total, system_wall" in " ".join(capsys.readouterr().out.split())
    (runs[1] / "energy.json").write_text('{"profiles": [{"profile": "a"}]}')
    assert "inference is missing" in fails(
        capsys, "energy", str(runs[0]), *base, "--beside", str(runs[1])
    )


def test_accuracy_for_joules_over_codes_and_steps_of_a_run(
    capsys: pytest.CaptureFixture[str], run: Path, counts: Path
) -> None:
    words = ("energy", str(run), "--samples", "2", "--profile", "loihi1", "--profile", "tianjic")
    outcome = call(capsys, *words, "--curve", "2,8", "--curve-samples", "20")
    assert set(outcome["curve"]) == {"loihi1", "tianjic"}
    points = outcome["curve"]["loihi1"]["points"]
    assert [(each["code"], each["steps"]) for each in points] == [
        *(("rate", 2), ("rate", 8), ("graded", 2), ("graded", 8))
    ]
    assert [each["fits"] for each in points] == [True, True, False, False]
    assert outcome["curve_counted"]["left_out"] == {}
    assert outcome["curve_counted"]["samples"] == 20
    best = next(each for each in points if each["best"])
    top = max(each["accuracy"] for each in points)
    close = [each for each in points if each["accuracy"] >= top - SLACK]
    assert best["joules"] == min(each["joules"] for each in close)
    accuracy = call(capsys, "evaluate", str(run), "--on", "reference", "--steps", "8", *TWENTY)
    assert points[1]["accuracy"] == accuracy["accuracy"]
    counted = call(capsys, *words, "--steps", "8")["counted"]
    assert counted["synops_per_sample"] > 0
    assert main([*words, "--curve", "2,8", "--curve-samples", "20"]) == 0
    assert "best trade" in capsys.readouterr().out
    assert "leave out --counts" in fails(
        capsys, "energy", "--counts", str(counts), "--curve", code=2
    )


def test_a_code_that_does_not_carry_the_network_is_left_out_of_the_curve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = trained(tmp_path / "run", TANH)
    words = ("energy", str(run), "--samples", "2", "--code", "graded", "--profile", "tianjic")
    outcome = call(capsys, *words, "--curve", "4", "--curve-samples", "2")
    assert set(outcome["curve_counted"]["left_out"]) == {"rate", "paired"}
    assert [each["code"] for each in outcome["curve"]["tianjic"]["points"]] == ["graded"]
    assert main([*words, "--curve", "4", "--curve-samples", "2"]) == 0
    assert "code rate is left out" in capsys.readouterr().out


def test_input_from_outside_is_counted_as_axons_and_needs_no_host(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    few = ("--samples", "2", "--steps", "8", "--profile", "loihi1")
    words = ("energy", str(run), *few, "--mapping", "fewest-cores")
    fed, sent = call(capsys, *words, "--input", "current"), call(capsys, *words)
    assert (fed["input_coding"], sent["input_coding"]) == ("current", "rate")
    assert fed["counted"]["host_macs_per_sample"] > 0
    assert sent["counted"]["host_macs_per_sample"] == 0
    assert sent["counted"]["synops_per_sample"] > fed["counted"]["synops_per_sample"]
    chip = sent["profiles"][0]
    assert [each["name"] for each in chip["inference"]["populations"]] == ["hidden", "output"]
    assert chip["cores"] == 2
    evaluated = call(
        capsys, "evaluate", str(run), "--on", "reference", "--steps", "8", "--input", "rate", *TWO
    )
    assert sent["counted"]["synops_per_sample"] == evaluated["synops_per_sample"]
    assert "unknown input" in fails(capsys, *words, "--input", "tea", code=2)


def test_a_network_without_a_placement_has_events_but_no_time(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    path = tmp_path / "dark.toml"
    path.write_text(
        'schema = "neuro_eqprop.profile/1"\nextends = "loihi1"\nname = "dark"\n'
        '[capacity]\nneurons_per_core = { unknown = true, note = "not stated" }\n'
    )
    words = ("energy", "--counts", str(counts), "--profile", str(path))
    chip = call(capsys, *words)["profiles"][0]
    assert (chip["fits"], chip["cores"], chip["chips"]) == (None, None, None)
    side = chip["inference"]
    assert side["seconds"] is None
    assert any("needs a placement" in each for each in side["unknown"])
    assert any(each.startswith("message: its number is unknown") for each in side["unknown"])
    assert {"synop", "neuron update"} <= {term["name"] for term in side["terms"]}
    given = call(capsys, *words, "--step-seconds", "1e-5")["profiles"][0]["inference"]
    assert given["seconds"] == pytest.approx(1e-4)
    assert given["joules"] > side["joules"]


def test_bits_are_those_of_the_counted_run(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    few = ("--samples", "2", "--steps", "8", "--input", "rate")
    words = ("energy", str(run), *few, "--profile", "odin")
    wide, narrow = call(capsys, *words, "--bits", "8"), call(capsys, *words, "--bits", "4")
    auto = call(capsys, *words, "--bits", "auto")["profiles"][0]
    assert (auto["bits"], auto["inference"]["joules"]) == (
        4,
        narrow["profiles"][0]["inference"]["joules"],
    )
    assert auto["accuracy"] == pytest.approx(narrow["counted"]["accuracy"])
    assert wide["profiles"][0]["fits"] is False
    assert "use bits=4" in wide["profiles"][0]["violations"][0]["reason"]
    assert narrow["profiles"][0]["violations"] == []
    assert narrow["profiles"][0]["cores"] == 1
    assert narrow["counted"]["bits"] == 4
    evaluated = call(
        *(capsys, "evaluate", str(run), "--on", "reference", "--steps", "8", "--bits", "4"),
        *("--input", "rate", *TWO),
    )
    assert narrow["counted"]["synops_per_sample"] == evaluated["synops_per_sample"]


def test_the_table_names_the_option_of_a_hint(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    words = ["energy", str(run), "--samples", "2", "--steps", "8", "--profile", "truenorth"]
    assert main([*words, "--bits", "8"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "use --bits 1" in printed
    assert "bits=1" not in printed
    assert main([*words[:-1], "brainscales2", "--bits", "8", "--verbose"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("use --bits 6") == 2  # for inference and for learning
    assert "bits=6" not in printed
    assert call(capsys, *words, "--bits", "1")["profiles"][0]["fits"] is True


def test_the_accuracy_of_few_bits_stands_beside_the_joules(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    few = ("--samples", "2", "--steps", "8", "--profile", "truenorth")
    table = tmp_path / "energy.csv"
    found = call(capsys, "energy", str(run), *few, "--bits", "1", "--csv", str(table))
    settings = ("--steps", "8", "--bits", "1", "--input", "rate", "--samples", "all")
    evaluated = call(capsys, "evaluate", str(run), "--on", "emulator", *settings)
    assert found["profiles"][0]["fits"] is True
    assert found["counted"]["accuracy"] == pytest.approx(evaluated["accuracy"])
    assert found["counted"]["accuracy_samples"] == evaluated["samples"]
    inference, learning = csv.DictReader(table.read_text().splitlines())
    assert float(inference["accuracy"]) == pytest.approx(evaluated["accuracy"])
    assert learning["accuracy"] == ""
    auto = call(capsys, "energy", str(run), *few)
    assert auto["counted"]["accuracy"] is None
    assert auto["profiles"][0]["accuracy"] == pytest.approx(evaluated["accuracy"])


def test_wrong_calls_of_energy_are_reported_in_a_sentence(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    base = ("energy", "--counts", str(counts))
    assert "known: loihi1" in fails(capsys, *base, "--profile", "loihi_1", code=2)
    assert "needs a RUN" in fails(capsys, "energy", code=2)
    assert "no run folder" in fails(capsys, "energy", str(tmp_path / "none"))
    assert "no such file" in fails(capsys, *base, "--profile", "none.toml")
    assert "is no spiking chip" in fails(capsys, *base, "--profile", "gpu_k4000")
    assert "waits for your factor" in fails(capsys, *base, "--profile", "loihi2_scenario")
    assert "measured at a batch of 3" in fails(capsys, *base, "--batch", "3")
    assert "leave out --counts" in fails(capsys, *base, "--curve", code=2)
    assert "names no profile" in fails(capsys, *base, "--override", "x.energy.synop=1")


def test_an_all_in_cost_away_from_its_rate_is_refused_with_the_way_out(
    capsys: pytest.CaptureFixture[str], counts: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'schema = "neuro_eqprop.profile/1"\nextends = "loihi1"\nname = "mine"\n'
        "[energy]\nsynop = { unknown = true, note = 'all-in only' }\n"
        "spike = { unknown = true, note = 'all-in only' }\n"
        "synop_all_in = { value = 26, low = 26, high = 26, unit = 'pJ', kind = 'all_in', "
        "basis = 'measured', evidence = 'read', boundary = 'chip_total', src = 'davies2018', "
        "where = 'nowhere', at = 1e9, tolerance = 0.05 }\n"
    )
    result = fails(capsys, "energy", "--counts", str(counts), "--profile", str(mine))
    assert "holds at 1e+09 synops" in result
    assert "override mine.energy.synop" in result
    both = ("--profile", str(mine), "--profile", "loihi1")
    outcome = call(capsys, "energy", "--counts", str(counts), *both)
    assert outcome["profiles"][0]["inference"]["reason"].startswith("refused")
    assert outcome["profiles"][1]["inference"]["joules"] > 0


BROKEN = [
    (("schema",), "x", "is not 'neuro_eqprop.counts/1'"),
    (("samples",), 0, "hold no events"),
    (("samples",), "4", "samples: expected integer, got '4'"),
    (("steps",), -1, "steps: expected integer >= 0, got -1"),
    (("dense_mac",), 1, "did you mean 'dense_macs'"),
    (("populations", 0, "size"), 0, "at least 1 needed"),
    (("populations", 1, "name"), "hidden", "share a name"),
    (("populations", 0, "graded"), 1, "populations[0].graded: expected true or false"),
    (("projections", 0, "source"), "x", "no population 'x'"),
    (("projections", 2, "synapses"), 99999, "more synapses than pairs"),
    (("counts", 0, "spike"), 1, "did you mean 'spikes'"),
    (("counts", 0, "population"), "x", "'x'"),
    (("counts",), [], "no events were counted"),
    (("counts",), 3, "counts: expected list, got 3"),
    (("counts", 0, "spikes"), -1, "counts[0]: spikes is negative"),
    (("output",), "x", "'x' is not one of the populations"),
]


@pytest.mark.parametrize(("place", "value", "words"), BROKEN)
def test_broken_counts_are_refused(
    tmp_path: Path, place: tuple[str | int, ...], value: object, words: str
) -> None:
    content = json.loads(json.dumps(COUNTS))
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(content))
    with pytest.raises(CountsError) as error:
        read_workload(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)


def test_counts_that_are_no_json_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    for content in ("{", "[]"):
        path.write_text(content)
        with pytest.raises(CountsError, match="JSON"):
            read_workload(path)
    with pytest.raises(CountsError, match="no such file"):
        read_workload(tmp_path / "none.json")


def test_counts_go_to_a_file_and_back(counts: Path, tmp_path: Path) -> None:
    workload = read_workload(counts)
    again = tmp_path / "again.json"
    write_workload(again, workload)
    assert read_workload(again) == workload


def test_profiles_lists_shows_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    listed = call(capsys, "profiles", "list")
    assert {"loihi1", "gpu_k4000"} <= {each["profile"] for each in listed["profiles"]}
    shown = call(capsys, "profiles", "show", "loihi1")
    synop = next(row for row in shown["entries"] if row["key"] == "energy.synop")
    assert synop["value"] == pytest.approx(23.6e-12)
    assert synop["where"].startswith("Table 2")
    for words in (("list",), ("show", "loihi1"), ("show", "gpu_k4000"), ("explain", "loihi1")):
        assert main(["profiles", *words]) == 0
        text = capsys.readouterr().out
        assert max(len(line) for line in text.splitlines()) <= 100
    assert "doi 10.1109/MM.2018.112130359" in " ".join(text.split())
    assert "unknown" in text
    assert main(["profiles", "explain", "loihi2_scenario"]) == 0
    assert "SCENARIO" in capsys.readouterr().out
    assert "needs the NAME" in fails(capsys, "profiles", "show", code=2)
    assert "known: loihi1" in fails(capsys, "profiles", "show", "loihi", code=2)


def test_profiles_validate_has_the_fields_of_the_contract(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = call(capsys, "profiles", "validate")
    fields = {"id", "profile", "role", "measured", "predicted", "low", "high", "error", "within"}
    fields |= {"tier", "score"}
    assert {"coverage", "width", "score", "by_chip", "calibrated"} <= set(outcome)
    for chip in outcome["by_chip"].values():
        assert {"coverage", "width", "score"} <= set(chip)
    for case in outcome["cases"]:
        assert fields <= set(case)
        assert case["role"] in ("prediction", "consistency")
    assert outcome["predictions"] >= 5
    assert main(["profiles", "validate"]) == 0
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "predictions count as validation" in text


def test_profiles_validate_fails_when_a_case_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = ("--override", "truenorth.power.static=80mW")
    result = fails(capsys, "profiles", "validate", *wrong, shown=True)
    assert "truenorth-held-out-20Hz" in result
    assert main(["profiles", "validate", *wrong, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)["failure"]
    assert "truenorth-held-out-20Hz" in result
    only = call(capsys, "profiles", "validate", "odin")
    assert {case["profile"] for case in only["cases"]} == {"odin"}
    assert "no published measurement" in fails(capsys, "profiles", "validate", "akida1000")
    cases = tmp_path / "cases.toml"
    (path,) = (profile_folder() / "validation").glob("*.toml")
    first = next(
        part for part in path.read_text().split("[[case]]") if "truenorth-held-out-20Hz" in part
    )
    cases.write_text('schema = "neuro_eqprop.cases/1"\n[[case]]' + first.replace("0.071", "0.171"))
    result = fails(capsys, "profiles", "validate", "--cases", str(cases), shown=True)
    assert "measured 0.171 W" in result


def test_the_chip_of_the_readme_can_be_copied(tmp_path: Path) -> None:
    text = (profile_folder() / "README.md").read_text()
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    path = tmp_path / "my_chip.toml"
    path.write_text(re.sub(r"^    ", "", block.group(1), flags=re.MULTILINE))
    assert load_profile(str(path)).name == "my_chip"
    blocks = re.findall(r"^```toml\n(schema.*?)```", text, re.DOTALL | re.MULTILINE)
    cases = tmp_path / "my_cases.toml"
    cases.write_text(blocks[0].replace('"my_chip.toml"', f'"{path}"'))
    checked = validate_profiles(str(path), cases=[cases])
    assert ([each.case.name for each in checked.checks], checked.failed) == (["my-chip"], [])


def test_a_profile_that_is_a_file_is_named_by_its_path(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    assert main(["energy", str(run), "--profile", "my_chip"]) == 2
    assert "named by its path, which ends in .toml" in capsys.readouterr().err


def test_a_laboratory_fits_its_own_chip(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Joules of known constants are found again, in a profile that extends the chip's."""
    truth = {"synop": 30e-12, "neuron_update": 60e-12}
    idle, runs = 0.09, tmp_path / "runs.csv"
    rows = ["name,joules,seconds,synop,neuron_update"]
    for k, (synops, updates, seconds) in enumerate(
        [(1e9, 1e8, 0.01), (1e8, 1e9, 0.02), (3e8, 3e8, 0.5), (2e9, 1e7, 0.001), (1e7, 2e9, 1.0)]
    ):
        joules = synops * truth["synop"] + updates * truth["neuron_update"] + idle * seconds
        rows.append(f"run {k},{joules!r},{seconds},{synops},{updates}")
    runs.write_text("\n".join(rows))
    mine = tmp_path / "mine.toml"
    words = ("profiles", "fit", "loihi1", "--measured", str(runs), "--out", str(mine))
    outcome = call(capsys, *words)
    assert outcome["calibration"]["energy"]["points"] == 5
    found = load_profile(str(mine))
    for event, joules in truth.items():
        cost = found.known(f"energy.{event}")
        assert cost is not None
        assert cost.value == pytest.approx(joules, rel=0.05)
        assert cost.low < joules < cost.high
    assert found.fit is not None
    assert len(found.fit.covariance) == len(found.fit.keys)
    assert all(abs(error) < 0.1 for error in found.fit.left_out.values())
    assert found.calibration["energy"].factor < 1.2
    assert main(list(words)) == 0
    assert "calibrated: within a factor of" in " ".join(capsys.readouterr().out.split())
    assert "needs a NAME" in fails(capsys, "profiles", "fit", "loihi1", code=2)
    runs.write_text("name,joules,seconds,synop\na,much,1,1e9\n")
    assert "'much' is not a quantity" in fails(capsys, *words)
    runs.write_text("name,joules,seconds,synops\na,1,1,1e9\n")
    assert "did you mean 'energy.synop'" in fails(capsys, *words)
