"""Settings that are not stated are derived from model and data, and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.training.defaults import ALL, DERIVED, EXACT, derive
from neuro_eqprop.training.study import Study, make_study, read, write


def samples(count: int, shape: tuple[int, ...] = (1, 28, 28)) -> Dataset:
    rows = np.zeros((count, int(np.prod(shape))), dtype=np.uint8)
    split = Split(rows, np.arange(count) % 10)
    return Dataset.from_splits("made", split, split, 10, shape)


MANY, FEW = samples(60000), samples(1000, (1, 8, 8))
CASES: list[tuple[dict[str, Any], Dataset, dict[str, Any]]] = [
    ({"hidden": (512,)}, MANY, {"batch": 128, "learning_rate": 0.001, "free_steps": 2}),
    (
        {"hidden": (512,)},
        MANY,
        {"feedback": 0.1, "beta": 0.02, "nudging": "positive", "bound": 0.0},
    ),
    ({"hidden": (512, 512)}, MANY, {"feedback": 0.1, "bound": 1.0, "nudged_steps": 1}),
    ({"hidden": (512, 512), "feedback": 0.02}, MANY, {"bound": 2.24}),
    ({"hidden": (512, 512, 512)}, MANY, {"feedback": 0.02, "bound": 1.58}),
    ({"hidden": (8,)}, FEW, {"batch": 16, "learning_rate": 0.002, "free_steps": 3, "epochs": 30}),
    ({"model": "looped"}, MANY, {"bound": 0.5, "free_steps": 4, "nudged_steps": 2}),
    ({"model": "toroidal"}, MANY, {"nudging": "centered", "beta": 0.1, "free_steps": 15}),
    ({"model": "modern"}, FEW, {"nudging": "positive", "beta": 0.002}),
    ({"model": "transformer"}, FEW, {"patch": 4, "normalize": True, "nudging": "positive"}),
    ({"batch": 256}, FEW, {"batch": 256, "learning_rate": 0.001}),
    ({"beta": 0.3}, FEW, {"nudging": "centered"}),
    ({"tolerance": 1e-3}, FEW, {"nudging": "centered", "beta": 0.1}),
    ({"rule": "vector-field"}, FEW, {"nudging": "centered", "free_steps": 15}),
    ({"normalize": False}, FEW, {"input_deviation": 1.0}),
]


@pytest.mark.parametrize(("given", "data", "expected"), CASES)
def test_a_default_follows_from_what_is_known(
    given: dict[str, Any], data: Dataset, expected: dict[str, Any]
) -> None:
    study = derive(given, data)
    assert {key: study.get(key) for key in expected} == expected


@pytest.mark.parametrize("model", ALL)
def test_what_is_stated_stands_and_is_not_called_chosen(model: str) -> None:
    plain = derive({"model": model}, FEW)
    assert plain.chosen
    stated = {key: MODELS.find(model) and make_study(model=model).get(key) for key in plain.chosen}
    study = derive({"model": model, **stated}, FEW)
    assert study.chosen == ()
    assert {key: study.get(key) for key in stated} == stated


def test_the_same_network_is_compared_with_backprop() -> None:
    ours, theirs = (
        derive({"rule": rule, "hidden": (8, 8)}, FEW) for rule in ("hebbian", "backprop")
    )
    assert ours.model == theirs.model
    assert ours.training == theirs.training
    assert "beta" not in theirs.chosen
    assert all(c.bound is None for c in theirs.network(FEW).connections)


def test_feedback_of_a_default_keeps_the_network_recurrent() -> None:
    for model in ALL:
        for hidden in ((8,), (8, 8, 8, 8)):
            if len(hidden) in MODELS.find(model).depths:
                assert derive({"model": model, "hidden": hidden}, FEW).get("feedback", 1.0) >= 0.02


def test_presets() -> None:
    assert derive({}, FEW, "chip") == Study()
    exact = derive({"hidden": (8,), "free_steps": 20}, FEW, "exact")
    assert {key: exact.get(key) for key in EXACT} == {**EXACT, "free_steps": 20}
    assert exact.model == derive({"hidden": (8,)}, FEW).model
    with pytest.raises(UnknownNameError, match="preset"):
        derive({}, FEW, "quick")
    with pytest.raises(ValueError, match="leave it out"):
        ne.Trainer(Study(), "digits", preset="exact")


def test_models_with_recipes_of_their_own_keep_them() -> None:
    for model in ("pyramid", "text", "predictive"):
        assert derive({"model": model}, FEW) == make_study(model=model)


def test_phases_of_convolutional_networks_are_derived() -> None:
    conv = derive({"model": "conv"}, FEW)
    assert set(conv.chosen) == {"feedback", "beta", "nudging", "free_steps", "nudged_steps"}
    largest = derive({"model": "conv", "pool": "max"}, FEW)
    assert (conv.rule.nudging, largest.rule.nudging) == ("positive", "centered")


def test_what_was_chosen_is_kept_in_the_file(tmp_path: Path) -> None:
    study = derive({"hidden": (8,)}, FEW)
    (tmp_path / "study.toml").write_text(write(study))
    assert read(tmp_path / "study.toml") == study
    (tmp_path / "study.toml").write_text('chosen = ["zzz"]\n')
    with pytest.raises(ValueError, match="names of settings"):
        read(tmp_path / "study.toml")


def test_a_complete_file_is_taken_as_it_is(tmp_path: Path) -> None:
    old = make_study(model="looped", hidden=(8,), epochs=1, batch=200)
    (tmp_path / "study.toml").write_text(write(old).replace("feedback = 1.0\n", ""))
    again = ne.Trainer(tmp_path / "study.toml")
    assert again.study == old
    (tmp_path / "part.toml").write_text('dataset = "digits"\n[model]\nhidden = [8]\n')
    assert ne.Trainer(tmp_path / "part.toml").study.rule.beta == 0.02


def test_the_command_says_what_it_chose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--hidden", "8", "--epochs", "1", "--beta", "0.03", "--out", str(tmp_path / "run")]
    assert main(["train", "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chosen"]["output"] == "linear"
    assert found["chosen"]["batch"] == 32
    assert "beta" not in found["chosen"]
    assert ne.open_run(tmp_path / "run").study.chosen == tuple(found["chosen"])


def test_every_derived_setting_is_one() -> None:
    known = {key for model in ALL for key in make_study(model=model).flat()}
    assert {each.setting for each in DERIVED} <= known


@pytest.mark.parametrize("hidden", [(32,), (32, 32)])
def test_unscaled_features_are_learned_as_well_as_by_backprop(hidden: tuple[int, ...]) -> None:
    from sklearn.datasets import load_wine

    data = load_wine(return_X_y=True)
    ours, theirs = (
        ne.train("layered", data, hidden=hidden, epochs=15, rule=rule)
        for rule in ("hebbian", "backprop")
    )
    accuracy = [m.history[-1]["test_accuracy"] for m in (ours, theirs)]
    assert min(accuracy) > 0.9
    assert accuracy[0] >= accuracy[1] - 0.03
    assert ours.history[-1]["warning"] is None
