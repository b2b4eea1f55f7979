from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.experiments.learn_on_chip import loop
from neuro_eqprop.experiments.learn_on_chip.epoch import learn_epoch
from neuro_eqprop.io import checkpoint

TOLD = {
    *("run", "dataset", "model", "rule", "nudging", "beta", "seed", "epochs", "parameters"),
    *("train_accuracy", "test_accuracy", "seconds", "settle_steps", "spectral"),
    *("on", "code", "bits", "steps_per_phase", "weight_updates"),
}
SMALL = ("--hidden", "12", "--epochs", "2", "--samples", "120", "--learning-rate", "0.1")


def call(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(["learn", *words])
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def learned(out: Path, *words: str) -> dict[str, Any]:
    code, printed, err = call(*SMALL, *words, "--out", str(out), "--json")
    assert code == 0, err
    assert printed.count("\n") == 1
    told = json.loads(printed)
    assert isinstance(told, dict)
    return told


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("learn") / "run"
    return out, learned(out)


def test_it_tells_what_the_interface_says(graded: tuple[Path, dict[str, Any]]) -> None:
    told = graded[1]
    assert set(told) >= TOLD
    assert (told["on"], told["code"], told["bits"], told["steps_per_phase"]) == (
        "emulator",
        "graded",
        None,
        16,
    )
    assert told["phases"] == {"free": 16, "negative": 16, "positive": 16, "commit": 1}
    assert told["lessons"] == 240
    assert told["weight_updates"] > 0
    assert told["test_accuracy"] > 0.3
    assert min(c["rate"] for c in told["cosines"].values()) > 0.95
    assert told["warnings"] == []


def test_updates_are_counted_by_phase(graded: tuple[Path, dict[str, Any]]) -> None:
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


def test_the_run_is_like_any_other(graded: tuple[Path, dict[str, Any]]) -> None:
    out, told = graded
    assert {path.name for path in out.iterdir()} == {
        "study.toml",
        "metrics.jsonl",
        "model.safetensors",
    }
    printed = io.StringIO()
    words = ["evaluate", str(out), "--on", "emulator", "--code", "graded", "--steps", "32"]
    with redirect_stdout(printed):
        assert main([*words, "--json"]) == 0
    found = json.loads(printed.getvalue())
    assert found["accuracy"] == pytest.approx(told["test_accuracy"], abs=0.02)
    assert found["rate_accuracy"] == pytest.approx(told["rate_test_accuracy"], abs=0.01)


def test_the_same_seed_gives_the_same_bytes(
    graded: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    learned(tmp_path / "again")
    both = [(p / "model.safetensors").read_bytes() for p in (graded[0], tmp_path / "again")]
    assert both[0] == both[1]
    learned(tmp_path / "other", "--seed", "1")
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != both[0]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--bits", "8"),
        ("--bits", "8", "--asymmetric"),
        ("--code", "rate", "--engine", "--steps", "16"),
        ("--on", "rate"),
    ],
)
def test_a_run_that_was_killed_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    whole = tmp_path / "whole"
    learned(whole, *words)
    real, calls = learn_epoch, list[int]()

    def killed(*args: Any) -> Any:  # noqa: ANN401
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(loop, "learn_epoch", killed)
    assert call(*SMALL, *words, "--out", str(tmp_path / "half"))[0] == 130
    assert (tmp_path / "half" / "resume.safetensors").exists()
    assert not (tmp_path / "half" / "model.safetensors").exists()
    monkeypatch.setattr(loop, "learn_epoch", real)
    assert main(["train", "--resume", "--out", str(tmp_path / "half")]) == 1
    code, _, err = call("--resume", "--out", str(tmp_path / "half"))
    assert code == 0, err
    both = [(tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "half")]
    assert both[0] == both[1]
    assert len((tmp_path / "half" / "metrics.jsonl").read_text().splitlines()) == 2
    code, _, err = call("--resume", "--out", str(tmp_path / "half"))
    assert code == 1
    assert "nothing to resume" in err


def test_eight_bits_learn_whole_numbers(tmp_path: Path) -> None:
    told = learned(tmp_path / "run", "--bits", "8", "--limit", "1")
    assert told["bits"] == 8
    for name, value in checkpoint.load(tmp_path / "run" / "model.safetensors").params.items():
        whole = value * 128
        assert np.array_equal(whole, np.rint(whole)), name
        assert -128 <= whole.min() <= whole.max() <= 127


def test_spikes_warn_when_phases_are_short(tmp_path: Path) -> None:
    words = ("--code", "rate", "--steps", "8", "--tau", "4", "--out", str(tmp_path / "run"))
    code, printed, err = call(*SMALL, *words, "--json")
    assert code == 0
    assert "are short for beta 0.5" in err
    lowest = min(c["rate"] for c in json.loads(printed)["cosines"].values())
    assert f"{lowest:.3f}" in err


def test_a_beta_that_is_too_large_is_told_with_the_cosine(tmp_path: Path) -> None:
    words = ("--beta", "0.99", "--hidden", "128", "--out", str(tmp_path / "run"))
    code, printed, err = call(*SMALL, *words, "--json")
    assert code == 0
    lowest = min(c["gradient"] for c in json.loads(printed)["cosines"].values())
    assert "beta 0.99 is too large" in err
    assert f"{lowest:.3f}" in err
    small = ("--beta", "0.2", "--hidden", "128", "--out", str(tmp_path / "small"))
    assert call(*SMALL, *small)[2] == ""


def test_one_sided_windows_warn(tmp_path: Path) -> None:
    words = ("--nudging", "positive", "--code", "rate", "--steps", "16", "--out", str(tmp_path))
    assert "traces of tau 8 still rise" in call(*SMALL, *words)[2]


def test_saturated_weights_are_counted(tmp_path: Path) -> None:
    told = learned(tmp_path / "run", "--limit", "0.2")
    assert sum(told["saturated"].values()) > 0
    assert told["clipped"] > 0


def test_classes_one_after_the_other_are_forgotten(tmp_path: Path) -> None:
    told = learned(tmp_path / "run", "--tasks", "2", "--samples", "300")
    assert told["epochs"] == 4
    first, second = told["forgetting"]
    assert first["learned"] > 0.7
    assert first["end"] < first["learned"] - 0.2
    assert second["end"] == second["learned"] > 0.5


def test_flaws_are_learned_around(tmp_path: Path) -> None:
    flaws = ("--weight-noise", "0.1", "--dead", "0.1", "--mismatch", "0.05")
    told = learned(tmp_path / "run", *flaws, "--hidden", "32", "--samples", "400")
    assert told["test_accuracy"] > 0.7


def test_rates_learn_the_same_lessons(graded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    told = learned(tmp_path / "run", "--on", "rate")
    assert told["code"] is None
    assert told["test_accuracy"] == pytest.approx(graded[1]["test_accuracy"], abs=0.04)
    spikes, rates = (
        checkpoint.load(path / "model.safetensors").params["input->hidden"]
        for path in (graded[0], tmp_path / "run")
    )
    assert np.corrcoef(spikes.ravel(), rates.ravel())[0, 1] > 0.97


def test_the_outcome_in_words(tmp_path: Path) -> None:
    code, printed, err = call(*SMALL, "--batch", "4", "--out", str(tmp_path / "run"))
    assert (code, err) == (0, "")
    assert "a commit for 4 samples" in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--on", "snntorch"), 1, "snntorch cannot learn: its neurons have no synapses"),
        (("--on", "emulat"), 2, "unknown simulator that learns 'emulat'; known: emulator"),
        (("--code", "bernoulli"), 1, "cannot learn: no synapse has a trace"),
        (("--code", "nothing"), 2, "unknown code 'nothing'"),
        (("--code", "rate", "--engine", "--batch", "2"), 1, "use a batch of 1"),
        (("--engine",), 1, "without a sign"),
        (("--run-on",), 1, "start every lesson at rest"),
        (("--model", "looped"), 1, "spectral bound"),
        (("--samples", "99999"), 1, "has 1437 training samples"),
        (("--bits", "1"), 2, "weights have 2 to 16 bits"),
        (("--bits", "8", "--weight-noise", "0.1"), 1, "leave out --bits"),
        (("--on", "rate", "--bits", "8"), 2, "rates have no bits"),
        (("--tasks", "11"), 1, "need as many classes"),
        (("--steps", "1"), 2, "a phase needs 2 or more"),
        (("--set", "weight_decay=0.1"), 1, "no setting 'weight_decay' (here 0.1): leave it out"),
        (("--set", "rule=asymmetric"), 1, "no setting 'rule'"),
        (("--set", "optimiser=rmsprop"), 1, "no setting 'optimiser'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    found, printed, err = call(*SMALL, *words, "--out", str(tmp_path / "run"))
    assert (found, printed) == (code, "")
    assert sentence in err
    assert not (tmp_path / "run").exists()


def test_warnings_come_before_the_first_lesson(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise ValueError("no lesson was learned")

    monkeypatch.setattr(loop, "learn_epoch", nothing)
    code, _, err = call(*SMALL, "--code", "rate", "--steps", "8", "--out", str(tmp_path / "run"))
    assert code == 1
    assert err.index("phases of 8 steps are short") < err.index("no lesson was learned")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on", "brian2", "--bits", "8"), "brian2 learns in real numbers"),
        (("--on", "lava", "--code", "rate", "--bits", "8"), "lava rounds whole weights"),
        (("--on", "lava", "--bits", "8"), "takes payloads for bytes without a sign"),
        (("--on", "lava", "--weight-noise", "0.1"), "pass on other weights than they have"),
        (("--on", "rate", "--traces", "a.h5"), "rates have no synapses to watch"),
        (("--traces", "model.safetensors"), "exists already"),
    ],
)
def test_a_refusal_leaves_the_run_that_was_there(
    graded: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.setattr("neuro_eqprop.backends.lava.learning.learner.interpreter", lambda *_: "")
    monkeypatch.chdir(graded[0])
    before = {path.name: path.read_bytes() for path in graded[0].iterdir()}
    forced = () if "exists" in sentence else ("--force",)
    where = tmp_path / "run" if "exists" in sentence else graded[0]
    code, printed, err = call(*SMALL, *words, *forced, "--out", str(where))
    assert (code, printed) == (1, "")
    assert sentence in err
    assert {path.name: path.read_bytes() for path in graded[0].iterdir()} == before
    assert not (tmp_path / "run").exists()


def test_a_run_is_not_overwritten(graded: tuple[Path, dict[str, Any]]) -> None:
    code, _, err = call(*SMALL, "--out", str(graded[0]))
    assert code == 1
    assert "already holds a run" in err


def test_a_study_file_says_how_to_learn(tmp_path: Path) -> None:
    learned(tmp_path / "a", "--bits", "6")
    study = tmp_path / "a" / "study.toml"
    code, printed, _ = call(str(study), "--out", str(tmp_path / "b"), "--json")
    assert code == 0
    assert json.loads(printed)["bits"] == 6
    study.write_text(study.read_text().replace("bits = 6", "bits = 6\nspikes = 3"))
    code, _, err = call(str(study), "--out", str(tmp_path / "c"))
    assert code == 2
    assert "unknown setting of [learn] 'spikes'" in err
