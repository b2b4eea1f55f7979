from __future__ import annotations

import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop import __version__
from neuro_eqprop.cli import demo, main
from neuro_eqprop.cli.command import (
    fraction,
    percent,
    positive_float,
    positive_int,
    print_facts,
)
from neuro_eqprop.cli.evaluate import change
from neuro_eqprop.cli.program import COMMANDS, command
from neuro_eqprop.cli.simulate import phases
from neuro_eqprop.networks.activations import HIDDEN, OUTPUT
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Nudging

TRAINED = {
    "run",
    "dataset",
    "model",
    "rule",
    "nudging",
    "beta",
    "seed",
    "epochs",
    "parameters",
    "train_accuracy",
    "test_accuracy",
    "seconds",
    "settle_steps",
    "spectral",
}
EVALUATED = {
    "on",
    "code",
    "bits",
    "samples",
    "steps",
    "accuracy",
    "rate_accuracy",
    "agreement",
    "pearson",
    "rmse",
    "p999",
    "spikes_per_neuron",
    "synops_per_sample",
    "seconds",
}
SMALL = ("--hidden", "16", "--epochs", "2", "--batch", "64", "--learning-rate", "0.01")


def call(*words: str) -> tuple[int, str, str]:
    """What the program returns, what it prints, and what it says on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def json_of(*words: str) -> dict[str, Any]:
    """The one JSON object on standard output; nothing else may stand there or on the other."""
    code, out, err = call(*words, "--json")
    assert (code, err) == (0, "")
    assert out.endswith("}\n")
    assert out.count("\n") == 1
    result = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert isinstance(result, dict)
    return result


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("cli") / "run"
    return out, json_of("train", "--out", str(out), *SMALL)


@pytest.fixture(scope="module")
def run(trained: tuple[Path, dict[str, Any]]) -> str:
    return str(trained[0])


def test_train_returns_all_fields(trained: tuple[Path, dict[str, Any]]) -> None:
    out, result = trained
    assert result.keys() >= TRAINED
    assert (result["run"], result["dataset"], result["model"]) == (str(out), "digits", "layered")
    assert (result["rule"], result["nudging"], result["epochs"], result["seed"]) == (
        "hebbian",
        "positive",
        2,
        0,
    )
    assert set(result["settle_steps"]) == {"free", "nudged"}
    assert set(result["spectral"]) == {"input->hidden", "hidden->output"}
    assert 0 < result["test_accuracy"] <= 1
    names = {path.name for path in out.iterdir()}
    assert {"study.toml", "model.safetensors", "metrics.jsonl"} <= names


@pytest.mark.parametrize(
    ("words", "code", "steps"),
    [
        (("--on", "rate"), None, None),
        (("--on", "numpy"), None, None),
        (("--on", "reference"), "rate", 64),
        (("--on", "reference", "--code", "graded"), "graded", 32),
        (("--on", "reference", "--steps", "20"), "rate", 20),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_evaluate_returns_all_fields_and_appends_them(
    run: str, words: tuple[str, ...], code: str | None, steps: int | None
) -> None:
    result = json_of("evaluate", run, "--samples", "30", *words)
    assert result.keys() >= EVALUATED
    assert (result["on"], result["samples"]) == (words[1], 30)
    assert (result["code"], result["steps"], result["bits"]) == (code, steps, None)
    lines = (Path(run) / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == result


def test_all_samples_may_be_asked_for(run: str) -> None:
    assert json_of("evaluate", run, "--samples", "all")["samples"] == 360


def test_too_large_a_drop_is_a_failure(run: str) -> None:
    words = ("evaluate", run, "--on", "reference", "--steps", "1", "--samples", "60")
    assert call(*words, "--max-drop", "1")[0] == 0
    code, out, err = call(*words, "--max-drop", "0")
    assert code == 1
    assert "accuracy" in out  # what was measured is shown all the same
    assert "of accuracy is lost on reference" in err


@pytest.mark.parametrize("on", ["rate", "reference"])
def test_simulate_returns_what_it_wrote(run: str, tmp_path: Path, on: str) -> None:
    path = tmp_path / "t.h5"
    words = ("--on", on, "--samples", "2", "--steps", "12", "--phases", "--traces", str(path))
    result = json_of("simulate", run, *words)
    assert result["traces"] == str(path)
    assert result["phases"] == ["free", "negative", "positive"]
    assert (result["on"], result["samples"], result["steps"]) == (on, 2, 12)
    assert result["bytes"] == path.stat().st_size > 0


def test_simulate_writes_into_the_run_by_default(run: str) -> None:
    result = json_of("simulate", run, "--on", "reference", "--samples", "1", "--steps", "4")
    assert result["traces"] == str(Path(run) / "traces.h5")
    assert Path(result["traces"]).exists()


def test_data_lists_and_checks() -> None:
    listed = json_of("data", "list")["datasets"]
    assert {"name": "digits", "place": "embedded", "shape": [1, 8, 8]}.items() <= listed[0].items()
    assert {each["name"] for each in listed} >= {"digits", "mnist", "fashion-mnist"}
    result = json_of("data", "check", "digits")
    assert (result["train"], result["test"], result["features"], result["classes"]) == (
        1437,
        360,
        64,
        10,
    )


def test_json_may_stand_before_the_verb_too() -> None:
    code, out, _ = call("data", "--json", "list")
    assert code == 0
    assert "datasets" in json.loads(out)


def test_doctor_looks_around() -> None:
    result = json_of("doctor")
    assert result["version"] == __version__
    found = {each["thing"]: each for each in result["findings"]}
    assert {"python", "torch", "lava-nc", "brian2", "snntorch", "compiler", "browser"} <= set(found)
    assert found["python"]["note"] == sys.version.split()[0]
    assert found["data set digits"]["here"] is True
    assert all(each["note"] for each in found.values())


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "RUN", "--samples", "20", "--on", "reference"),
        ("evaluate", "RUN", "--samples", "20"),
        ("simulate", "RUN", "--on", "rate", "--samples", "2", "--steps", "5", "--force"),
        ("data", "list"),
        ("data", "check", "digits"),
        ("doctor",),
        ("profiles", "list"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_tables_fit_into_a_hundred_columns(run: str, words: tuple[str, ...]) -> None:
    code, out, err = call(*(run if word == "RUN" else word for word in words))
    assert code == 0
    assert all(line.startswith("next: ") for line in err.splitlines())
    assert out.strip()
    assert max(len(line) for line in out.splitlines()) <= 100


@pytest.mark.parametrize(
    ("accuracy", "text"),
    [
        (0.0028, "a gain of 0.28 points"),
        (-0.0028, "a drop of 0.28 points"),
        (0.0, "a drop of 0.00 points"),
        (1e-9, "a drop of 0.00 points"),
    ],
)
def test_a_higher_accuracy_is_a_gain(accuracy: float, text: str) -> None:
    assert change(accuracy) == text


def test_simulate_names_its_phases() -> None:
    assert phases(["free"], 64) == "free phase, 64 steps"
    assert phases(["free", "positive"], 64) == "free, positive, 64 steps each"


def test_train_shows_a_table(tmp_path: Path) -> None:
    # Square brackets are markup to the library that draws tables, and names to people.
    path = tmp_path / "a [/bold] run"
    code, out, err = call("train", "--out", str(path), "--hidden", "4", "--epochs", "1")
    assert code == 0
    assert err.startswith("next: neuro-eqprop evaluate ")
    assert "test accuracy" in out
    assert "[/bold]" in out
    assert max(len(line) for line in out.splitlines()) <= 100


def test_a_table_without_correlation_is_shown(run: str) -> None:
    result = json_of("evaluate", run, "--samples", "3") | {"pearson": None}
    out = io.StringIO()
    command("evaluate").show(result, Console(file=out, width=100))
    assert "Pearson none" in out.getvalue()


def test_options_override_the_study_file_and_set_reaches_the_rest(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text("hidden = [6]\nepochs = 9\nbatch = 400\nseed = 3\n")
    words = ("--epochs", "1", "--set", "free_steps=5", "--set", "nudged_steps=3")
    result = json_of("train", str(study), "--out", str(tmp_path / "run"), *words)
    assert (result["epochs"], result["seed"]) == (1, 3)
    assert result["settle_steps"] == {"free": 5, "nudged": 3}
    written = (tmp_path / "run/study.toml").read_text()
    assert "hidden = [6]" in written
    assert "epochs = 1" in written
    # The study that was written repeats the run, to the byte.
    repeat = ("train", str(tmp_path / "run/study.toml"), "--out", str(tmp_path / "again"))
    json_of(*repeat)
    first, again = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "again")
    )
    assert first == again


def test_force_replaces_a_run(tmp_path: Path) -> None:
    words = ("train", "--out", str(tmp_path / "run"), "--hidden", "4", "--epochs", "1")
    json_of(*words)
    before = (tmp_path / "run/model.safetensors").read_bytes()
    json_of(*words, "--seed", "1", "--force")
    assert (tmp_path / "run/model.safetensors").read_bytes() != before


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = call(name, "--help")
    assert (code, err) == (0, "")
    assert "--json" in out
    assert max(len(line) for line in out.splitlines()) <= 100


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--model", tuple(MODELS)),
        ("--rule", tuple(RULES)),
        ("--nudging", [nudging.value for nudging in Nudging]),
        ("--activation", HIDDEN),
        ("--output", OUTPUT),
    ],
)
def test_the_help_of_training_names_all_that_an_option_takes(
    option: str, names: Sequence[str]
) -> None:
    _, said, _ = call("train", "--help")
    result = re.search(rf"^  {option} (.*?)^  --", said, re.MULTILINE | re.DOTALL)
    assert result
    # A line may be broken at the hyphen of a name.
    words = re.split(r"[,;\s]+", re.sub(r"-\s+", "-", result.group(1)))
    assert set(names) <= set(words)


def test_help_lists_every_command_and_version_is_printed() -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert all(re.search(rf"^ +{name}\b", out, re.MULTILINE) for name in COMMANDS)
    assert call("--version")[:2] == (0, f"neuro-eqprop {__version__}\n")


def test_the_program_and_the_module_are_the_same() -> None:
    program = Path(sys.executable).with_name("neuro-eqprop")
    calls: list[Sequence[str]] = [[str(program)], [sys.executable, "-m", "neuro_eqprop"]]
    result = [
        subprocess.run([*words, "data", "list", "--json"], capture_output=True, check=True)
        for words in calls
    ]
    assert result[0].stdout == result[1].stdout
    assert [each.stderr for each in result] == [b"", b""]
    json.loads(result[0].stdout)


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = [sys.executable, "-m", "neuro_eqprop", "data", "list", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_numbers_in_words_are_checked() -> None:
    from argparse import ArgumentTypeError

    assert (positive_int("3"), positive_float("1e-3"), fraction("0")) == (3, 1e-3, 0.0)
    for check, words in (
        (positive_int, ("0", "-1", "1.5", "x", "")),
        (positive_float, ("0", "-1", "nan", "inf", "x")),
        (fraction, ("-0.1", "1.1", "nan", "x")),
    ):
        for word in words:
            with pytest.raises(ArgumentTypeError):
                check(word)
    assert percent(0.12345) == "12.35 %"


def test_facts_are_shown_as_they_are() -> None:
    out = io.StringIO()
    print_facts({"path[0]": "runs/[a]/[/b]"}, Console(file=out, width=100))
    assert out.getvalue().split() == ["path[0]", "runs/[a]/[/b]"]


SCORE = {"samples": 60, "steps": 64, "accuracy": 0.98, "agreement": 1.0, "seconds": 1.0}


@pytest.mark.slow
def test_the_demo_goes_through_the_library_and_names_the_simulators_it_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train, estimate, evaluate = ne.train, ne.estimate_energy, ne.Run.evaluate
    recorded: list[Any] = []
    record = ne.SpikingModel.record

    def evaluate_without_lava(run: ne.Run, *, on: str, **options: Any) -> ne.Evaluation:  # noqa: ANN401
        if on == "lava":
            raise BackendError("lava: not [here]")
        return evaluate(run, on=on, **options)

    def record_and_note(spiking: ne.SpikingModel, *given: Any, **options: Any) -> ne.Trace:  # noqa: ANN401
        recorded.append(options["on"])
        return record(spiking, *given, **options)

    monkeypatch.setattr(ne, "train", partial(train, hidden=(16,)), raising=False)
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(
        ne, "estimate_energy", lambda run, **_: estimate(run, samples=2), raising=False
    )
    monkeypatch.setattr(ne.Run, "evaluate", evaluate_without_lava)
    monkeypatch.setattr(ne.SpikingModel, "record", record_and_note)
    lava = [each for each in demo.EVALUATED if each[1] in ("rate", "emulator", "lava")]
    monkeypatch.setattr(demo, "EVALUATED", lava)
    out = tmp_path / "run"
    shown = json.loads(call("demo", "--out", str(tmp_path / "json"), "--json")[1])["train"]
    assert {"run", "dataset", "parameters", "test_accuracy", "spectral"} <= set(shown)
    code, printed, err = call("demo", "--out", str(out))
    assert code == 0
    assert "lava: not [here]" in err
    assert "Lava, rate: lava: not [here]" in printed
    assert str(out / "report.html") in printed.replace("\n", "")
    assert max(len(line) for line in printed.splitlines()) <= 100
    made = {path.name for path in out.iterdir()}
    assert {"evaluations.jsonl", "rate.h5", "traces.h5", "energy.json", "report.html"} <= made
    assert recorded == ["reference"] * 2  # without Lava, the spikes come from the reference


METHODS = {"evaluate": "evaluate", "simulate": "record", "translate": "translate"}
"""Commands that call a method of `Run`; the others call a public function."""
OF_THE_SHELL = {"demo", "completion"}
"""Commands that call no public function themselves."""


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - OF_THE_SHELL))
def test_a_command_calls_a_public_function_and_shows_what_it_returns(name: str) -> None:
    source = inspect.getsource(command(name).run)
    called = set(re.findall(r"(\w+)\(", source))
    if name in METHODS:
        assert "open_run" in called
        assert f".{METHODS[name]}(" in source
    else:
        assert called & set(ne.__all__)
    assert len(source.splitlines()) <= 55


def test_the_demo_is_a_short_script_of_public_calls() -> None:
    source = inspect.getsource(demo.run)
    assert len(source.splitlines()) <= 40
    names = set(re.findall(r"\bne\.(\w+)", source))
    assert names <= set(ne.__all__)
    assert {"train", "open_run", "compare", "estimate_energy", "report"} <= names
