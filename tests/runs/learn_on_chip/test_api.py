"""The library function `learn_on_chip`: names or objects, with and without a run folder."""

from __future__ import annotations

import doctest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuro_eqprop
from neuro_eqprop.api import learn_on_chip as module
from neuro_eqprop.api.learn_on_chip import OnChipModel, learn_on_chip
from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import open_run
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import Dataset, load_data
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.runs import on_chip_config
from neuro_eqprop.runs.learn_on_chip.loop import OnChipWarning
from neuro_eqprop.runs.learn_on_chip.result import learning_result
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest
from neuro_eqprop.runs.learning_cost import run_plasticity
from neuro_eqprop.runs.on_chip_config import (
    DEEP_FEEDBACK,
    learning_settings,
    was_learned_on_chip,
)
from neuro_eqprop.runs.run_folder import STUDY
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.traces.lazy import read

SMALL: dict[str, Any] = {
    "hidden": (8,),
    "epochs": 2,
    "samples": 60,
    "learning_rate": 0.1,
    "beta": 0.2,
}


@pytest.fixture(scope="module")
def learned() -> OnChipModel:
    return learn_on_chip("layered", "digits", **SMALL)


def check_equal(a: Model, b: Model) -> None:
    for name, value in a.params.items():
        np.testing.assert_array_equal(value, b.params[name])


def test_the_example_of_the_docstring_runs() -> None:
    assert doctest.testmod(module).attempted > 0
    assert doctest.testmod(module).failed == 0


def test_it_returns_a_model_with_history_and_writes_no_folder(
    learned: OnChipModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = neuro_eqprop.learn_on_chip("layered", "digits", **SMALL)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(model, Model)
    assert [row["epoch"] for row in model.history] == [1, 2]
    assert "learned on emulator with code graded" in repr(model)
    assert learning_result(model)["run"] is None
    check_equal(learned, model)


def test_data_is_a_name_an_object_or_a_file(learned: OnChipModel, tmp_path: Path) -> None:
    digits = load_data("digits")
    check_equal(learned, learn_on_chip("layered", digits, **SMALL))
    train, test = digits.train, digits.test
    np.savez(tmp_path / "mine.npz", x=train.x, y=train.y, x_test=test.x, y_test=test.y)
    for path in (tmp_path / "mine.npz", str(tmp_path / "mine.npz")):
        check_equal(learned, learn_on_chip("layered", path, **SMALL))


def test_a_network_object_stands_for_a_model_name(
    learned: OnChipModel, tmp_path: Path, sequences_file: Path
) -> None:
    network = layered(64, (8,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    settings = {key: value for key, value in SMALL.items() if key != "hidden"}
    check_equal(learned, learn_on_chip(network, "digits", **settings))
    check_equal(learned, learn_on_chip(network, "digits", out=tmp_path / "run", **settings))
    check_equal(learned, open_run(tmp_path / "run").model)
    with pytest.raises(ValueError, match="model 'custom' has no setting 'hidden'"):
        learn_on_chip(network, "digits", **SMALL)
    with pytest.raises(ValueError, match=r"goes from 64 to 10 units, but '.*' has 16"):
        learn_on_chip(network, sequences_file, **settings)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_run_folder_holds_the_same_model(
    learned: OnChipModel, tmp_path: Path, as_text: bool
) -> None:
    out = tmp_path / "run"
    model = learn_on_chip("layered", "digits", out=str(out) if as_text else out, **SMALL)
    opened = open_run(out).model
    check_equal(learned, model)
    check_equal(model, opened)
    assert opened.summary == model.summary
    assert [*opened.history] == [*model.history]
    with pytest.raises(ValueError, match="already holds a run"):
        learn_on_chip("layered", "digits", out=out, **SMALL)
    check_equal(model, learn_on_chip("layered", "digits", out=out, force=True, **SMALL))


def test_callbacks_get_the_metrics_of_each_epoch_and_the_samples_done() -> None:
    epochs: list[dict[str, Any]] = []
    samples: list[tuple[int, int]] = []
    learn_on_chip(
        "layered",
        "digits",
        progress=epochs.append,
        on_samples=lambda done, total: samples.append((done, total)),
        **SMALL,
    )
    assert [metrics["epoch"] for metrics in epochs] == [1, 2]
    assert (samples[0], samples[-1]) == ((0, 120), (120, 120))


def test_an_interrupted_run_resumes_to_the_same_parameters(
    learned: OnChipModel, tmp_path: Path
) -> None:
    def interrupt(_: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        learn_on_chip("layered", "digits", out=out, progress=interrupt, **SMALL)
    with pytest.raises(ValueError, match="other settings"):
        learn_on_chip("layered", "digits", out=out, resume=True, **SMALL | {"beta": 0.3})
    model = learn_on_chip("layered", "digits", out=out, resume=True, **SMALL)
    check_equal(learned, model)
    assert [row["epoch"] for row in model.history] == [1, 2]


def test_a_trace_file_is_given_by_its_path(tmp_path: Path) -> None:
    learn_on_chip("layered", "digits", traces=str(tmp_path / "a.h5"), **SMALL)
    assert list(read(tmp_path / "a.h5").hebbian) == ["hidden->output"]
    request = TraceRequest(tmp_path / "b.h5", ["input->hidden[1,20]:hebbian"], samples=2)
    learn_on_chip("layered", "digits", traces=request, **SMALL)
    assert read(tmp_path / "b.h5").hebbian["input->hidden"].synapses == ((1, 20),)


def test_an_update_far_from_the_gradient_gives_a_python_warning() -> None:
    with pytest.warns(OnChipWarning) as caught:
        model = learn_on_chip("layered", "digits", **SMALL | {"beta": 0.99, "hidden": (64,)})
    assert "beta 0.99 is too large" in model.warnings[-1]
    assert tuple(str(each.message) for each in caught) == model.warnings
    assert {each.filename for each in caught} == {__file__}, "it points at the caller"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learn_on_chip("layered", "digits", **SMALL).warnings == ()


def test_two_hidden_layers_learn_by_default_and_full_feedback_gives_a_warning() -> None:
    two: dict[str, Any] = {"hidden": (32, 32), "epochs": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnChipWarning)
        model = learn_on_chip("layered", "digits", **two)
    assert model.history[-1]["test_accuracy"] > 0.9
    assert not any("hidden layers" in each for each in model.warnings)
    few = two | {"epochs": 1, "samples": 50}
    for given, cure in (({"feedback": 1.0}, "use feedback=0.25"), ({"bits": 8}, "use floating")):
        with pytest.warns(OnChipWarning):
            failing = learn_on_chip("layered", "digits", **few | given)
        assert "2 hidden layers hardly learn with a feedback of 1" in failing.warnings[-1]
        assert cure in failing.warnings[-1]


def test_defaults_depend_on_the_hidden_layers() -> None:
    _, one = learning_settings({"hidden": (8,)})
    study, two = learning_settings({"hidden": "8,8"})
    assert study.get("feedback") == DEEP_FEEDBACK
    assert two.settle + two.window == 2 * (one.settle + one.window)
    study, given = learning_settings({"hidden": (8, 8), "model.feedback": 0.5, "steps": 20})
    assert study.get("feedback") == 0.5
    assert given.settle + given.window == 20


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"on": "emulatr"}, "known: emulator"),
        ({"code": "grded"}, "known: graded"),
        ({"learnin_rate": 0.1}, "known: learning_rate"),
        ({"network": "layred"}, "known: layered"),
        ({"data": "digit"}, "known: digits"),
    ],
)
def test_a_wrong_name_lists_those_that_exist_closest_first(
    given: dict[str, Any], known: str
) -> None:
    with pytest.raises(UnknownNameError, match=known):
        learn_on_chip(**{"network": "layered", "data": "digits", **SMALL, **given})


def test_the_number_of_steps_sets_the_phases() -> None:
    model = learn_on_chip("layered", "digits", steps=20, **SMALL | {"epochs": 1})
    assert [(phase.steps, phase.window) for phase in model.schedule] == [(20, 5)] * 3


def test_own_arrays_of_two_classes_learn_in_fixed_point(tmp_path: Path) -> None:
    digits = load_data("digits")
    train, test = (s.take(np.flatnonzero(s.y < 2)) for s in (digits.train, digits.test))
    data = Dataset.from_splits("zeros-and-ones", train, test, 2)
    model = learn_on_chip("layered", data, bits=8, bias=0.2, out=tmp_path / "run", **SMALL)
    check_equal(model, open_run(tmp_path / "run").model)
    assert model.history[-1]["test_accuracy"] > 0.9
    for value in model.params.values():
        np.testing.assert_array_equal(value * 128, np.rint(value * 128))


@pytest.mark.parametrize("as_text", [True, False])
def test_a_saved_model_keeps_the_settings_of_learning_for_energy(
    learned: OnChipModel, tmp_path: Path, as_text: bool
) -> None:
    out = tmp_path / "saved"
    learned.save(str(out) if as_text else out)
    assert was_learned_on_chip(out)
    assert on_chip_config.read(out / STUDY) == (learned.study, learned.config)
    check_equal(learned, open_run(out).model)
    plasticity, presentations = run_plasticity(open_run(out), code=Code.RATE, steps=9, limit=1.0)
    assert learned.study is not None
    assert plasticity == learned.config.plasticity(learned.study)
    assert presentations == learned.samples_seen == 120
    learned.save(tmp_path / "weights.safetensors")
    check_equal(learned, Model.load(tmp_path / "weights.safetensors"))
