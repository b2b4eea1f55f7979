"""Wrong input ends in an error of one sentence, and leaves nothing half-written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from neuro_eqprop.api.train import run_training
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import closest_first
from neuro_eqprop.data import DataError, digits, load_data
from neuro_eqprop.simulators.lava import simulator
from neuro_eqprop.training.study import make_study

TINY = make_study(hidden=(6,), epochs=1, batch=512)


def call(*words: str) -> tuple[int, str, str]:
    """What the program returns, what it prints, and what it says on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue(), err.getvalue()


def refused(code: int, *words: str) -> str:
    """The one sentence with which a call is refused."""
    left, out, err = call(*words)
    assert (left, out) == (code, ""), err
    assert "Traceback" not in err
    lines = err.splitlines()
    if code == 1:
        assert len(lines) == 1
    assert lines[-1].startswith(f"neuro-eqprop {words[0]}: ")
    return lines[-1]


def quiet(_: dict[str, Any]) -> None:
    pass


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("good") / "run"
    run_training(TINY, out, force=False, resume=False, on_epoch=quiet)
    return out


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> Path:
    """A run of its own for each test."""
    out = tmp_path / "run"
    out.mkdir()
    for path in shared.iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("option", "name", "known"),
    [
        ("--dataset", "mnst", ["digits", "mnist", "fashion-mnist"]),
        ("--dataset", "digit", ["digits", "mnist", "fashion-mnist"]),
        ("--model", "loop", ["layered", "looped"]),
        ("--rule", "hebb", ["hebbian"]),
        ("--nudging", "central", ["positive", "centered"]),
        ("--activation", "tahn", ["hard_sigmoid", "box", "relu", "tanh"]),
        ("--output", "lin", ["hard_sigmoid", "linear"]),
    ],
)
def test_an_unknown_name_lists_the_known_ones_closest_first(
    tmp_path: Path, option: str, name: str, known: list[str]
) -> None:
    said = refused(2, "train", "--out", str(tmp_path / "run"), option, name)
    assert f"{name!r}" in said
    listed = said.partition("known: ")[2].partition("; did you mean")[0].split(", ")
    assert listed == closest_first(name, listed)
    assert set(known) <= set(listed)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("verb", ["evaluate", "simulate"])
def test_an_unknown_backend_lists_the_known_ones(run: Path, verb: str) -> None:
    before = files(run)
    said = refused(2, verb, str(run), "--on", "bryan2")
    assert "unknown backend 'bryan2'; known: brian2, " in said
    assert all(name in said for name in ("rate", "reference", "lava", "snntorch"))
    assert files(run) == before


def test_an_unknown_code_lists_the_known_ones(run: Path) -> None:
    said = refused(2, "evaluate", str(run), "--on", "reference", "--code", "grade")
    assert "unknown code 'grade'; known: graded, rate" in said


def test_an_unknown_profile_lists_the_known_ones(run: Path) -> None:
    for words in (("energy", str(run), "--profile", "loihi"), ("profiles", "show", "loihi")):
        assert "'loihi'; known: loihi" in refused(2, *words)


def test_an_unknown_data_set_to_check_lists_the_known_ones() -> None:
    assert "known: digits, " in refused(2, "data", "check", "digit")


@pytest.mark.parametrize(
    "words",
    [
        ("--beta", "-0.5"),
        ("--beta", "0"),
        ("--beta", "nan"),
        ("--beta", "1.5"),
        ("--set", "beta=-0.5"),
        ("--epochs", "0"),
        ("--epochs", "many"),
        ("--set", "epochs=inf"),
        ("--set", "free_steps=0"),
        ("--set", "nudged_steps=0"),
        ("--set", "bound=nan"),
        ("--set", "epochs"),
        ("--set", "epoch=3"),
        ("--batch", "-1"),
        ("--learning-rate", "0"),
        ("--bound", "-1"),
        ("--seed", "-1"),
        ("--seed", "1.5"),
        ("--hidden", "0"),
        ("--hidden", "8,"),
        ("--hidden", "3.5"),
        ("--model", "looped", "--hidden", "8,8"),
        ("--colour", "red"),
    ],
    ids=" ".join,
)
def test_wrong_words_of_training_are_refused_before_anything_is_made(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    out = str(tmp_path / "run")
    left, printed, said = call("train", "--out", out, *words)
    assert (left, printed) == (2, "")
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "RUN", "--steps", "0"),
        ("evaluate", "RUN", "--steps", "-4"),
        ("evaluate", "RUN", "--samples", "0"),
        ("evaluate", "RUN", "--samples", "some"),
        ("evaluate", "RUN", "--max-drop", "2"),
        ("evaluate", "RUN", "--on", "emulator", "--bits", "99"),
        ("simulate", "RUN", "--on", "rate", "--steps", "0"),
        ("simulate", "RUN", "--on", "rate", "--samples", "0"),
        ("simulate", "RUN", "--on", "rate", "--record", "hiden:rate"),
        ("simulate", "RUN"),
        ("evaluate",),
        ("train",),
        ("data",),
        ("data", "look"),
        ("evaluat",),
        (),
    ],
    ids=" ".join,
)
def test_wrong_words_are_refused_with_exit_code_two(run: Path, words: tuple[str, ...]) -> None:
    before = files(run)
    left, out, err = call(*(str(run) if word == "RUN" else word for word in words))
    assert (left, out) == (2, "")
    assert "Traceback" not in err
    assert files(run) == before


def test_more_samples_than_there_are_is_refused(run: Path) -> None:
    for words in (("evaluate",), ("simulate", "--on", "rate")):
        said = refused(1, words[0], str(run), *words[1:], "--samples", "361")
        assert "'digits' has 360 test samples, not 361" in said


def test_values_that_are_not_numbers_in_the_data_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = digits.read_digits()
    table[100, 7] = np.nan
    monkeypatch.setattr(digits, "read_digits", lambda: table)
    with pytest.raises(DataError, match="not finite"):
        load_data("digits")
    said = refused(1, "train", "--out", str(tmp_path / "run"))
    assert "samples of 'digits': sample" in said
    assert not (tmp_path / "run").exists()


def test_a_data_set_that_is_not_here_says_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURO_EQPROP_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = refused(1, "train", "--dataset", "mnist", "--out", str(tmp_path / "run"))
    assert "'mnist' is not here" in said
    assert "NEURO_EQPROP_DATA" in said
    assert not (tmp_path / "run").exists()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def words(path: Path) -> None:
    path.write_text("not a checkpoint at all\n" * 50)


def foreign(path: Path) -> None:
    save_file({"weight": np.zeros((3, 3))}, path, {"format": "pt"})


def poisoned(path: Path) -> None:
    from neuro_eqprop.runs.checkpoint import load as load_checkpoint
    from neuro_eqprop.runs.checkpoint import save

    kept = load_checkpoint(path)
    kept.params["output"][3] = np.nan
    save(path, kept)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (cut, "cut short or no safetensors file"),
        (empty, "cut short or no safetensors file"),
        (words, "cut short or no safetensors file"),
        (foreign, "of another program"),
        (poisoned, "'output' holds values that are not finite"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize(
    "call_words", [("evaluate", "RUN"), ("simulate", "RUN", "--on", "rate")], ids=" ".join
)
def test_a_spoiled_checkpoint_is_refused_with_the_reason(
    run: Path, call_words: tuple[str, ...], spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(run / "model.safetensors")
    before = files(run)
    said = refused(1, *(str(run) if word == "RUN" else word for word in call_words))
    assert reason in said
    assert str(run / "model.safetensors") in said
    assert files(run) == before


def test_a_spoiled_snapshot_is_not_resumed(run: Path) -> None:
    (run / "model.safetensors").rename(run / "resume.safetensors")
    cut(run / "resume.safetensors")
    before = files(run)
    said = refused(1, "train", "--out", str(run), "--resume")
    assert "resume.safetensors is cut short" in said
    assert files(run) == before


def test_a_folder_that_holds_a_run_is_left_untouched(run: Path) -> None:
    (run / "traces.h5").write_text("precious")
    before = files(run)
    said = refused(1, "train", "--out", str(run), "--epochs", "1")
    assert f"{run} already holds a run" in said
    assert "--force" in said
    assert files(run) == before


def test_a_finished_run_is_not_resumed(run: Path) -> None:
    before = files(run)
    assert "nothing to resume" in refused(1, "train", "--out", str(run), "--resume")
    assert files(run) == before


def test_a_run_is_not_resumed_with_other_settings(run: Path, tmp_path: Path) -> None:
    (run / "model.safetensors").rename(run / "resume.safetensors")
    before, other = files(run), tmp_path / "other.toml"
    other.write_text("epochs = 7\n")
    for more in (("--epochs", "5"), ("--seed", "3"), (str(other),)):
        said = refused(1, "train", "--out", str(run), "--resume", *more)
        assert "begun with other settings" in said
    assert files(run) == before


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    assert "no run folder" in refused(1, "evaluate", str(tmp_path / "none"))
    assert "is a file, not a run folder" in refused(1, "evaluate", str(tmp_path / "file"))
    assert "has no model.safetensors" in refused(1, "evaluate", str(tmp_path / "empty"))
    for verb in ("train", "learn"):
        for place in ("none", "empty"):
            said = refused(1, verb, "--out", str(tmp_path / place), "--resume")
            assert f"there is no run in {tmp_path / place} to resume" in said
            assert "leave out --resume" in said
    assert "is a file" in refused(1, "train", "--out", str(tmp_path / "file"), "--force")
    assert "there is no such file" in refused(
        1, "train", "nowhere.toml", "--out", str(tmp_path / "new")
    )
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "new").exists()


def test_a_run_of_another_study_is_refused(run: Path) -> None:
    study = (run / "study.toml").read_text()
    (run / "study.toml").write_text(study.replace('"digits"', '"digitz"'))
    assert "unknown data set 'digitz'" in refused(2, "evaluate", str(run))
    (run / "study.toml").write_text('dataset = "digits"\n')
    assert "does not hold the settings" in refused(1, "evaluate", str(run))
    (run / "study.toml").write_text("dataset = \n")
    assert "not readable as TOML" in refused(1, "evaluate", str(run))
    (run / "study.toml").unlink()
    assert "there is no such file" in refused(1, "evaluate", str(run))


def test_a_network_that_cannot_be_lowered_names_layer_and_reason(tmp_path: Path) -> None:
    words = ("--hidden", "4", "--epochs", "1", "--batch", "512")
    for name, more, fault in (
        ("a", ("--activation", "tanh"), "layer 'hidden' has activation 'tanh'"),
        ("b", ("--activation", "relu"), "layer 'hidden' has activation 'relu' with range 0.0..inf"),
        ("c", ("--activation", "hard_tanh"), "layer 'hidden' has activation 'hard_tanh'"),
    ):
        out = str(tmp_path / name)
        assert call("train", "--out", out, *words, *more)[0] == 0
        said = refused(1, "evaluate", out, "--on", "reference", "--samples", "5")
        assert fault in said
        assert "use code 'graded'" in said
        said = refused(1, "simulate", out, "--on", "reference", "--samples", "5")
        assert fault in said
        assert not (tmp_path / name / "traces.h5").exists()


def test_a_lava_that_is_not_here_says_the_way_out(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("evaluate", str(run), "--on", "lava", "--samples", "1", "--steps", "2")
    before = files(run)
    monkeypatch.setenv(simulator.VARIABLE, "/no/such/python")
    said = refused(1, *asked)
    assert "/no/such/python" in said
    assert "neuro-eqprop lava install" in said
    monkeypatch.delenv(simulator.VARIABLE)
    monkeypatch.setattr(simulator, "find_spec", lambda _: None)
    assert "neuro-eqprop lava install" in refused(1, *asked)
    assert files(run) == before


def test_a_simulator_that_fails_leaves_no_trace_file(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(simulator.VARIABLE, "/no/such/python")
    refused(1, "simulate", str(run), "--on", "lava", "--samples", "1")
    assert sorted(files(run)) == ["metrics.jsonl", "model.safetensors", "study.toml"]


def test_a_network_larger_than_memory_is_refused(tmp_path: Path) -> None:
    said = refused(1, "train", "--out", str(tmp_path / "run"), "--hidden", "100000000000000")
    assert "of memory" in said
    assert not (tmp_path / "run").exists()


def test_training_that_explodes_is_reported_in_a_sentence(tmp_path: Path) -> None:
    wild = ("--activation", "relu", "--output", "linear", "--learning-rate", "1e30")
    said = refused(1, "train", "--out", str(tmp_path / "run"), *wild, "--hidden", "8")
    assert "diverged (NaN or inf)" in said
    assert "smaller learning rate" in said
    assert not (tmp_path / "run/model.safetensors").exists()


def test_an_interrupt_ends_with_130_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neuro_eqprop.training import loop

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "evaluate", interrupted)
    out = tmp_path / "run"
    small = ("--hidden", "4", "--epochs", "2", "--batch", "512")
    assert call("train", "--out", str(out), *small) == (130, "", "interrupted\n")
    assert sorted(files(out)) == ["study.toml"]
    monkeypatch.undo()
    assert call("train", "--out", str(out), "--resume")[0] == 0
    assert "model.safetensors" in files(out)


def test_debug_shows_where_an_error_comes_from(run: Path) -> None:
    cut(run / "model.safetensors")
    with pytest.raises(ValueError, match="cut short"):
        call("evaluate", str(run), "--debug")


TWO = ("--model", "conv", "--hidden", "4,4")
WILD = (
    *("--activation", "relu", "--output", "linear", "--hidden", "6", "--batch", "512"),
    *("--preset", "chip"),
)


def test_training_that_explodes_at_once_leaves_nothing(tmp_path: Path) -> None:
    words = (*WILD, "--learning-rate", "1e30", "--epochs", "3")
    said = refused(1, "train", "--out", str(tmp_path / "run"), *words)
    assert "first layer 'hidden'" in said
    assert "smaller learning rate" in said
    assert not (tmp_path / "run").exists()


def test_useless_weights_do_not_replace_a_good_run(run: Path) -> None:
    before = files(run)
    words = (*("--hidden", "4", "--epochs", "1", "--learning-rate", "1e30"), "--preset", "chip")
    said = refused(1, "train", "--out", str(run), "--force", *words)
    assert "the training diverged: the weights" in said
    assert files(run) == before


@pytest.mark.parametrize("name", ["study.toml", "model.safetensors", "metrics.jsonl"])
def test_files_of_other_programs_are_not_replaced_as_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of another program")
    before = files(tmp_path)
    said = refused(1, "train", "--out", str(tmp_path), "--hidden", "4", "--force")
    assert f"{tmp_path / name} is not of a run of this program" in said
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl", "energy.json", "traces.h5"])
def test_a_link_to_a_file_that_blocks_is_no_end(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to("/proc/kmsg")
    assert call("check", str(run), "--no-repair")[0] in (0, 1)
    assert call("report", str(run))[0] == 0


def test_training_that_explodes_later_keeps_the_last_good_model(tmp_path: Path) -> None:
    out = tmp_path / "run"
    rising = "lr_schedule=ExponentialLR(gamma=1e12)"
    words = (*WILD, "--learning-rate", "1e-3", "--epochs", "6", "--set", rising, "--json")
    left, printed, said = call("train", "--out", str(out), *words)
    result = json.loads(printed)
    assert left == 1
    assert 1 <= result["epochs"] < 6
    assert "diverged" in result["diverged"]
    assert f"keeps the model of epoch {result['epochs']} of 6" in result["diverged"]
    assert said == f"neuro-eqprop train: {result['diverged']}\n"
    assert len((out / "metrics.jsonl").read_text().splitlines()) == result["epochs"]
    assert call("evaluate", str(out), "--on", "numpy", "--samples", "20")[0] == 0
    before = files(out)
    said = refused(1, "train", "--out", str(out), "--resume")
    assert f"diverged (NaN or inf) after epoch {result['epochs']} of 6" in said
    assert "train anew with another --out or --force, and use a smaller learning rate" in said
    assert "finished" not in said
    assert files(out) == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--model", "looped", "--rule", "hybrid"), "use model 'layered'"),
        (("--model", "looped", "--rule", "single-phase"), "use model 'predictive'"),
        (("--model", "predictive", "--rule", "hebbian"), "no feedback reaches"),
        (("--nudging", "holomorphic"), "has kinks"),
        (
            (
                "--model",
                "transformer",
                "--nudging",
                "holomorphic",
                "--set",
                "symmetric=false",
                "--set",
                "patch=4",
            ),
            "linear attention with elu features",
        ),
        (("--model", "transformer", "--rule", "vector-field", "--set", "patch=4"), "use rule"),
        (("--model", "transformer", "--set", "patch=7"), "8 by 8 cannot be cut into patches of 7"),
        (("--model", "transformer", "--set", "patch=7"), "use patch=4"),
        (("--model", "transformer", "--set", "patch=3"), "use patch=2"),
        (("--model", "transformer", "--set", "patch=20"), "use patch=4"),
        (("--model", "transformer", "--dataset", "flat.npz"), "samples of shape (12,): give x as"),
        (("--model", "conv", "--dataset", "flat.npz"), "samples of shape (12,): give x as"),
        (("--model", "conv", "--set", "kernel=9"), "leave no pixel"),
        (("--model", "conv", "--set", "kernel=9"), "kernel=7"),
        ((*TWO, "--set", "kernel=3"), "layer 'conv2' is 1 by 1"),
        ((*TWO, "--set", "kernel=3"), "(padding=same) or fewer layers (--hidden 4)"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_what_does_not_go_together_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("flat.npz", x=np.ones((20, 12)), y=np.arange(20) % 2)
    assert why in refused(1, "train", "--out", str(tmp_path / "run"), *words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("--model", "transformer", "--set", "patch=7"), ("--set", "patch=4")),
        ((*TWO, "--set", "kernel=3"), ("--hidden", "4")),
        ((*TWO, "--set", "kernel=3"), ("--set", "padding=same")),
        (("--model", "conv", "--hidden", "4", "--set", "kernel=9"), ("--set", "kernel=7")),
    ],
    ids=" ".join,
)
def test_the_suggested_remedy_works(
    tmp_path: Path, first: tuple[str, ...], then: tuple[str, ...]
) -> None:
    out = ("--out", str(tmp_path / "run"), "--epochs", "1", "--batch", "512")
    setting = then[-1] if then[0] == "--set" else " ".join(then)
    assert setting in refused(1, "train", *first, *out)
    assert call("train", *first, *then, *out)[0] == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "modern", "--feedback", "0.1"), "model 'modern' has no setting 'feedback'"),
        (
            ("--hidden", "32x16"),
            "setting 'hidden' cannot be '32x16': '32x16' is not a number",
        ),
        (("--hidden", "32x16"), "integers separated by commas, such as 96,96"),
        (("--model", "layerd"), "unknown model 'layerd'; known: layered"),
        (("--rule", "hebian"), "unknown rule 'hebian'; known: hebbian"),
        (("--set", "epoch=3"), "unknown setting 'epoch'; known: epochs"),
    ],
)
def test_a_wrong_setting_is_refused_as_a_wrong_argument(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    assert reason in refused(2, "train", "--out", str(tmp_path / "run"), *words)
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_no_npz_is_refused_with_the_format_and_the_data_sets(
    tmp_path: Path,
) -> None:
    said = refused(1, "train", "--out", str(tmp_path / "run"), "--dataset", "a.txt")
    assert "data file 'a.txt' cannot be read: only NumPy files .npz with arrays x and y" in said
    assert "digits" in said


def test_weights_that_explode_without_diverging_are_warned_of(tmp_path: Path) -> None:
    words = ("--learning-rate", "50", "--epochs", "1", "--hidden", "8", "--batch", "512", "--json")
    left, printed, _ = call("train", "--out", str(tmp_path / "run"), *words)
    assert left == 0
    assert "the weights have grown too large" in json.loads(printed)["warning"]
    assert "smaller learning_rate" in json.loads(printed)["warning"]
    left, printed, _ = call("train", "--out", str(tmp_path / "again"), *words[:-1])
    assert "use a smaller --learning-rate, or a bound" in " ".join(printed.split())


def test_a_misspelled_command_gets_the_closest_command() -> None:
    left, out, err = call("trian", "--out", "x")
    assert (left, out) == (2, "")
    assert "unknown command 'trian'; did you mean train? " in err


def test_a_code_for_rates_is_refused_with_a_simulator_to_use(run: Path) -> None:
    assert "--on emulator" in refused(2, "evaluate", str(run), "--code", "graded")


def test_a_file_of_a_run_folder_is_refused_with_its_folder(run: Path) -> None:
    said = refused(1, "evaluate", str(run / "model.safetensors"))
    assert f"a run is a folder such as {run}" in said
