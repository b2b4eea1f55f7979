from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.learn_on_chip import loop
from neuro_eqprop.runs.learn_on_chip.epoch import learn_epoch

FIELDS = {
    *("run", "dataset", "model", "rule", "nudging", "beta", "seed", "epochs", "parameters"),
    *("train_accuracy", "test_accuracy", "seconds", "settle_steps", "spectral"),
    *("on", "code", "bits", "steps_per_phase", "weight_updates"),
}
SMALL = ("--hidden", "12", "--epochs", "2", "--samples", "120", "--learning-rate", "0.1")


def call(*options: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(["learn", *options])
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def learned(out: Path, *options: str) -> dict[str, Any]:
    code, printed, err = call(*SMALL, *options, "--out", str(out), "--json")
    assert code == 0, err
    assert printed.count("\n") == 1
    result = json.loads(printed)
    assert isinstance(result, dict)
    return result


Finished = tuple[Path, dict[str, Any]]
"""A run folder and the JSON that `learn` printed for it."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Finished]:
    """A function that returns a run with these options, learned once and not to be changed."""

    @cache
    def run(*options: str) -> Finished:
        out = tmp_path_factory.mktemp("learn") / "run"
        return out, learned(out, *options)

    return run


@pytest.fixture(scope="module")
def graded(shared: Callable[..., Finished]) -> Finished:
    return shared()


def test_json_has_the_fields_of_the_interface(graded: Finished) -> None:
    result = graded[1]
    assert set(result) >= FIELDS
    assert (result["on"], result["code"], result["bits"], result["steps_per_phase"]) == (
        "emulator",
        "graded",
        None,
        16,
    )
    assert result["phases"] == {"free": 16, "negative": 16, "positive": 16, "commit": 1}
    assert result["lessons"] == 240
    assert result["weight_updates"] > 0
    assert result["test_accuracy"] > 0.3
    assert min(c["rate"] for c in result["cosines"].values()) > 0.95
    assert result["warnings"] == []


def test_updates_are_counted_by_phase(graded: Finished) -> None:
    lines = [json.loads(text) for text in (graded[0] / "metrics.jsonl").read_text().splitlines()]
    assert graded[1]["updates"] == lines[-1]["updates"]
    for line in lines:
        phases = line["updates"]
        assert list(phases) == ["free", "negative", "positive", "commit"] == list(line["spikes"])
        for what in ("weights", "tags", "traces"):
            total = sum(phase[what] for phase in phases.values())
            assert total == line[f"{what[:-1]}_updates"]
        assert phases["free"]["tags"] == 0 < phases["negative"]["tags"]
        assert phases["positive"]["weights"] == 0 < phases["commit"]["weights"]


def test_the_run_folder_can_be_evaluated_like_a_trained_one(
    graded: Finished,
) -> None:
    out, result = graded
    assert {path.name for path in out.iterdir()} == {
        "study.toml",
        "metrics.jsonl",
        "model.safetensors",
    }
    printed = io.StringIO()
    options = ["evaluate", str(out), "--on", "emulator", "--code", "graded", "--steps", "32"]
    with redirect_stdout(printed):
        assert main([*options, "--json"]) == 0
    found = json.loads(printed.getvalue())
    assert found["accuracy"] == pytest.approx(result["test_accuracy"], abs=0.02)
    assert found["rate_accuracy"] == pytest.approx(result["rate_test_accuracy"], abs=0.01)


def test_the_same_seed_gives_the_same_bytes(graded: Finished, tmp_path: Path) -> None:
    learned(tmp_path / "again")
    both = [(p / "model.safetensors").read_bytes() for p in (graded[0], tmp_path / "again")]
    assert both[0] == both[1]
    learned(tmp_path / "other", "--seed", "1")
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != both[0]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--bits", "8"),
        ("--bits", "8", "--asymmetric"),
        ("--code", "rate", "--engine", "--steps", "16"),
        ("--on", "rate"),
    ],
)
def test_an_interrupted_run_resumes_to_the_same_bytes(
    shared: Callable[..., Finished],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    uninterrupted, _ = shared(*options)
    real, calls = learn_epoch, list[int]()

    def killed(*args: Any) -> Any:  # noqa: ANN401
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(loop, "learn_epoch", killed)
    assert call(*SMALL, *options, "--out", str(tmp_path / "half"))[0] == 130
    assert (tmp_path / "half" / "resume.safetensors").exists()
    assert not (tmp_path / "half" / "model.safetensors").exists()
    monkeypatch.setattr(loop, "learn_epoch", real)
    assert main(["train", "--resume", "--out", str(tmp_path / "half")]) == 1
    code, _, err = call("--resume", "--out", str(tmp_path / "half"))
    assert code == 0, err
    both = [(p / "model.safetensors").read_bytes() for p in (uninterrupted, tmp_path / "half")]
    assert both[0] == both[1]
    assert len((tmp_path / "half" / "metrics.jsonl").read_text().splitlines()) == 2
    code, _, err = call("--resume", "--out", str(tmp_path / "half"))
    assert code == 1
    assert "nothing to resume" in err


def test_eight_bits_learn_integer_weights(shared: Callable[..., Finished]) -> None:
    out, result = shared("--bits", "8")  # clipped at 1 unless --limit is given
    assert result["bits"] == 8
    for name, value in checkpoint.load(out / "model.safetensors").params.items():
        integers = value * 128
        assert np.array_equal(integers, np.rint(integers)), name
        assert -128 <= integers.min() <= integers.max() <= 127


def test_short_phases_of_spikes_give_a_warning_with_the_cosine(tmp_path: Path) -> None:
    options = ("--code", "rate", "--steps", "8", "--tau", "4", "--out", str(tmp_path / "run"))
    code, printed, err = call(*SMALL, *options, "--json")
    assert code == 0
    assert "are short for beta 0.5" in err
    lowest = min(c["rate"] for c in json.loads(printed)["cosines"].values())
    assert f"{lowest:.3f}" in err


def test_a_large_beta_gives_a_warning_with_the_cosine(tmp_path: Path) -> None:
    options = ("--beta", "0.99", "--hidden", "128", "--out", str(tmp_path / "run"))
    code, printed, err = call(*SMALL, *options, "--json")
    assert code == 0
    lowest = min(c["gradient"] for c in json.loads(printed)["cosines"].values())
    assert "beta 0.99 is too large" in err
    assert f"{lowest:.3f}" in err
    small = ("--beta", "0.2", "--hidden", "128", "--out", str(tmp_path / "small"))
    assert call(*SMALL, *small, "--json")[2] == ""


def test_one_sided_nudging_with_unsettled_traces_gives_a_warning(tmp_path: Path) -> None:
    options = ("--nudging", "positive", "--code", "rate", "--steps", "16", "--out", str(tmp_path))
    assert "traces of tau 8 still rise" in call(*SMALL, *options)[2]


def test_saturated_weights_are_counted(tmp_path: Path) -> None:
    result = learned(tmp_path / "run", "--limit", "0.2")
    assert sum(result["saturated"].values()) > 0
    assert result["clipped"] > 0


def test_tasks_learned_one_after_another_are_forgotten(tmp_path: Path) -> None:
    result = learned(tmp_path / "run", "--tasks", "2", "--samples", "300")
    assert result["epochs"] == 4
    first, second = result["forgetting"]
    assert first["learned"] > 0.7
    assert first["end"] < first["learned"] - 0.2
    assert second["end"] == second["learned"] > 0.5


def test_learning_compensates_nonidealities(tmp_path: Path) -> None:
    nonidealities = ("--weight-noise", "0.1", "--dead", "0.1", "--mismatch", "0.05")
    result = learned(tmp_path / "run", *nonidealities, "--hidden", "32", "--samples", "400")
    assert result["test_accuracy"] > 0.7


def test_the_rate_baseline_learns_the_same_samples(
    graded: Finished, shared: Callable[..., Finished]
) -> None:
    baseline, result = shared("--on", "rate")
    assert result["code"] is None
    assert result["test_accuracy"] == pytest.approx(graded[1]["test_accuracy"], abs=0.04)
    spikes, rates = (
        checkpoint.load(path / "model.safetensors").params["input->hidden"]
        for path in (graded[0], baseline)
    )
    assert np.corrcoef(spikes.ravel(), rates.ravel())[0, 1] > 0.97


def test_the_printed_result_fits_100_columns(tmp_path: Path) -> None:
    code, printed, err = call(*SMALL, "--batch", "4", "--out", str(tmp_path / "run"))
    assert code == 0
    assert err.startswith("next: neuro-eqprop energy ")
    assert "a commit for 4 samples" in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--on", "snntorch"), 1, "snntorch cannot learn: its synapses do not change"),
        (("--on", "emulat"), 2, "unknown simulator that learns 'emulat'; known: emulator"),
        (("--code", "bernoulli"), 1, "cannot learn: synapses have no trace"),
        (("--code", "nothing"), 2, "unknown code 'nothing'"),
        (("--code", "rate", "--engine", "--batch", "2"), 1, "use a batch of 1"),
        (("--engine",), 1, "unsigned bytes"),
        (("--run-on",), 1, "use fresh=True, or learn with code rate"),
        (("--model", "looped"), 1, "spectral bound"),
        (("--samples", "99999"), 1, "has 1437 training samples"),
        (("--bits", "1"), 2, "weights have 2 to 16 bits"),
        (("--bits", "8", "--weight-noise", "0.1"), 1, "without bits"),
        (("--on", "rate", "--bits", "8"), 2, "rates have no bits"),
        (("--tasks", "11"), 1, "need as many classes"),
        (("--steps", "1"), 2, "a phase needs 2 or more"),
        (("--set", "weight_decay=0.1"), 1, "no setting 'weight_decay' (here 0.1): leave it out"),
        (("--set", "rule=asymmetric"), 1, "no setting 'rule'"),
        (("--set", "optimizer=rmsprop"), 1, "no setting 'optimizer'"),
    ],
)
def test_invalid_settings_are_refused_and_leave_no_folder(
    tmp_path: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    found, printed, err = call(*SMALL, *options, "--out", str(tmp_path / "run"))
    assert (found, printed) == (code, "")
    assert sentence in err
    assert not (tmp_path / "run").exists()


def test_warnings_come_before_the_first_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise ValueError("no epoch was learned")

    monkeypatch.setattr(loop, "learn_epoch", nothing)
    code, _, err = call(*SMALL, "--code", "rate", "--steps", "8", "--out", str(tmp_path / "run"))
    assert code == 1
    assert err.index("phases of 8 steps are short") < err.index("no epoch was learned")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--on", "brian2", "--bits", "8"), "brian2 learns in floating point"),
        (("--on", "lava", "--code", "rate", "--bits", "8"), "lava rounds integer weights"),
        (("--on", "lava", "--bits", "8"), "reads payloads as unsigned bytes"),
        (("--on", "lava", "--weight-noise", "0.1"), "differ from the stored weights"),
        (("--traces", "a.h5", "--snapshots", "0,900"), "a snapshot after 900 samples lies outside"),
        (("--traces", "model.safetensors"), "exists already"),
    ],
)
def test_a_refusal_keeps_the_existing_run(
    graded: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.setattr("neuro_eqprop.simulators.lava.learner.interpreter", lambda *_: "")
    monkeypatch.chdir(graded[0])
    before = {path.name: path.read_bytes() for path in graded[0].iterdir()}
    forced = () if "exists" in sentence else ("--force",)
    where = tmp_path / "run" if "exists" in sentence else graded[0]
    code, printed, err = call(*SMALL, *options, *forced, "--out", str(where))
    assert (code, printed) == (1, "")
    assert sentence in err
    assert {path.name: path.read_bytes() for path in graded[0].iterdir()} == before
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_not_overwritten(graded: Finished) -> None:
    code, _, err = call(*SMALL, "--out", str(graded[0]))
    assert code == 1
    assert "already holds a run" in err


def test_settings_come_from_a_study_file(tmp_path: Path) -> None:
    learned(tmp_path / "a", "--bits", "6")
    study = tmp_path / "a" / "study.toml"
    code, printed, _ = call(str(study), "--out", str(tmp_path / "b"), "--json")
    assert code == 0
    assert json.loads(printed)["bits"] == 6
    study.write_text(study.read_text().replace("bits = 6", "bits = 6\nspikes = 3"))
    code, _, err = call(str(study), "--out", str(tmp_path / "c"))
    assert code == 2
    assert "unknown setting of [learn] 'spikes'" in err
