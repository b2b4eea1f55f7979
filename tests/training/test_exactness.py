"""What the update of a rule is in corners: small contrasts, shared biases, arrays that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import neuro_eqprop as ne
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.metrics import chance_warning, linear_accuracy
from neuro_eqprop.training.rules.base import Batch, TrainingError
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.study import make_study

WEAK: dict[str, Any] = {
    "hidden": (16, 16),
    "activation": "relu",
    "output": "linear",
    "feedback": 2e-5,
    "bound": 2.0,
    "nudging": "positive",
    "beta": 0.05,
    "free_steps": 20,
    "nudged_steps": 20,
    "epochs": 1,
}


@pytest.fixture(scope="module")
def data() -> ne.Dataset:
    whole = ne.load_data("digits")
    few = whole.train.take(slice(256))
    return ne.Dataset(few.x / 2.0, few.y, whole.test.x / 2.0, whole.test.y, name="few")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"anderson": 3},
        {"order": "synchronous"},
        {"damping": 0.9},
        {"tolerance": 1e-7},
        {"rule": "vector-field"},
        {"rule": "asymmetric"},
        {"rule": "hybrid", "stem": 1},
    ],
    ids=str,
)
def test_weak_feedback_is_resolved_by_every_rule_and_solver(
    data: ne.Dataset, settings: dict[str, Any]
) -> None:
    trainer = ne.Trainer("layered", data, **(WEAK | settings))
    for k in range(4):
        trainer.step(data.train.x[32 * k : 32 * k + 32], data.train.y[32 * k : 32 * k + 32])
    found = trainer.diagnose()
    assert found.cosine is not None
    assert min(found.cosine.values()) > 0.999


def test_a_contrast_that_no_data_type_carries_is_refused(data: ne.Dataset) -> None:
    deep = WEAK | {"hidden": (8, 8, 8), "order": "synchronous"}
    with pytest.raises(TrainingError, match="no data type resolves"):
        ne.train("layered", data, **deep)
    cosines = ne.Trainer("layered", data, **(WEAK | {"hidden": (8, 8, 8)})).diagnose().cosine
    assert cosines is not None
    assert min(cosines.values()) > 0.999


@pytest.mark.parametrize("hidden", ["relu", "tanh"])
def test_a_bias_that_units_share_has_its_own_gradient(data: ne.Dataset, hidden: str) -> None:
    network = ne.Network(
        (
            ne.Layer("input", 64, "linear", "input"),
            ne.Layer("h", 12, hidden, shared=(1,)),
            ne.Layer("output", 10, "linear", "output", shared=(1,)),
        ),
        (ne.Connection("input", "h"), ne.Connection("h", "output", bound=0.8)),
    )
    trainer = ne.Trainer(network, data, beta=0.001)
    updates = trainer.updates(data.train.x[:32], data.train.y[:32])
    assert {name: each.shape for name, each in updates.items()} == network.parameters()
    cosines = trainer.diagnose().cosine
    assert cosines is not None
    assert min(cosines.values()) > 0.99
    assert trainer.step(data.train.x[:32], data.train.y[:32]).loss > 0.0


def test_a_layer_may_be_read_by_two_connections(data: ne.Dataset) -> None:
    network = ne.Network(
        (
            ne.Layer("input", 64, "linear", "input"),
            ne.Layer("a", 12, "relu"),
            ne.Layer("b", 12, "relu"),
            ne.Layer("output", 10, "linear", "output"),
        ),
        (
            ne.Connection("input", "a"),
            ne.Connection("a", "b", bound=0.4),
            ne.Connection("b", "output", bound=0.4),
            ne.Connection("b", "output", bound=0.4, label="more"),
        ),
    )
    found = ne.Trainer(network, data, beta=0.001, free_steps=60, nudged_steps=40).diagnose()
    assert found.cosine is not None
    assert min(found.cosine.values()) > 0.999


def test_updates_of_a_rule_are_not_overwritten_by_its_next_ones(data: ne.Dataset) -> None:
    """A rule of two calls of another one: Richardson extrapolation of beta to zero."""
    hebbian = RULES["hebbian"].update

    def richardson(ops: Any, network: Any, params: Any, batch: Batch, settings: Any) -> Any:  # noqa: ANN401
        small = hebbian(ops, network, params, replace(batch, beta=0.1), settings)
        large = hebbian(ops, network, params, replace(batch, beta=0.2), settings)
        both = small.gradients, large.gradients
        return replace(small, gradients={n: 2.0 * both[0][n] - both[1][n] for n in both[0]})

    settings: dict[str, Any] = {"hidden": (12, 12), "nudging": "positive", "bound": 0.6}
    trainer = ne.Trainer("layered", data, rule=richardson, activation="tanh", **settings)
    for k in range(3):
        trainer.step(data.train.x[32 * k : 32 * k + 32], data.train.y[32 * k : 32 * k + 32])
    cosines = trainer.diagnose().cosine
    assert cosines is not None
    assert min(cosines.values()) > 0.999


def test_a_rule_of_a_script_is_saved_and_resumed(data: ne.Dataset, tmp_path: Path) -> None:
    hebbian = RULES["hebbian"].update

    def scaled(ops: Any, network: Any, params: Any, batch: Batch, settings: Any) -> Any:  # noqa: ANN401
        found = hebbian(ops, network, params, batch, settings)
        return replace(found, gradients={n: 0.5 * g for n, g in found.gradients.items()})

    def trainer() -> ne.Trainer:
        return ne.Trainer("layered", data, rule=scaled, hidden=(12, 8), epochs=2, output="linear")

    whole, first, second = trainer(), trainer(), trainer()
    for _ in range(2):
        whole.epoch()
    first.epoch()
    first.step(data.train.x[:32], data.train.y[:32])
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=False))
    assert second.steps == first.steps
    for each in (first, second):
        each.epoch()
    for name, values in first.model().params.items():
        np.testing.assert_array_equal(values, second.model().params[name])
    assert [row["epoch"] for row in second.rows] == [1, 2]
    update = whole.updates(data.train.x[:32], data.train.y[:32])
    plain = ne.Trainer(whole.model(), data, rule="hebbian")
    for name, values in plain.updates(data.train.x[:32], data.train.y[:32]).items():
        np.testing.assert_allclose(update[name], 0.5 * values, rtol=1e-4, atol=1e-7)


def test_arrays_to_overwrite_are_used_once(data: ne.Dataset) -> None:
    trainer = ne.Trainer("layered", data, hidden=(12, 12), nudging="positive", beta=0.05)
    x, ops = trainer.ops.from_numpy(data.train.x[:32]), TorchOps()
    target = ops.from_numpy(np.eye(10)[data.train.y[:32]])
    spare = {name: value.clone() for name, value in trainer.params.items()}
    batch = Batch(x, target, measured=False, spare=spare)
    rule, settings = trainer.rule.update, trainer.study.rule
    first, second = (
        rule(ops, trainer.network, trainer.params, batch, settings).gradients for _ in range(2)
    )
    for name, gradient in first.items():
        assert gradient.data_ptr() != second[name].data_ptr()
        np.testing.assert_array_equal(gradient.numpy(), second[name].numpy())


@pytest.mark.parametrize("nudging", ["positive", "centered"])
def test_delayed_feedback_is_exact_with_nudging_of_every_kind(
    data: ne.Dataset, nudging: str
) -> None:
    found = ne.Trainer(
        "toroidal", data, hidden=(16,), nudging=nudging, beta=0.02, output="linear", bound=0.5
    )
    cosines = found.diagnose().cosine
    assert cosines is not None
    assert min(cosines.values()) > 0.999


def test_one_nudged_step_that_does_not_reach_a_layer_is_refused() -> None:
    few = ne.load_data("digits")
    pyramid: dict[str, Any] = {"hidden": (4, 4), "memory": 3, "places": 2}
    with pytest.raises(ValueError, match="'scale1-memory' drives no later layer"):
        ne.Trainer("pyramid", few, **pyramid)
    found = ne.Trainer("pyramid", few, **pyramid, free_steps=8, nudged_steps=8, beta=0.02)
    cosines = found.diagnose().cosine
    assert cosines is not None
    assert min(cosines.values()) > 0.99


def test_a_linear_classifier_is_the_least_to_reach(data: ne.Dataset) -> None:
    assert 0.85 < linear_accuracy(data) < 0.96
    poor = ne.train("layered", data, hidden=(2,), epochs=1, output="linear", beta=0.02)
    assert "a linear classifier (ridge regression) reaches" in str(poor.history[-1]["warning"])


def test_a_rare_class_leaves_room_for_a_good_accuracy() -> None:
    y = np.r_[np.zeros(99, dtype=int), 1]
    data = ne.Dataset(np.random.default_rng(0).random((100, 2)), y, np.zeros((5, 2)), y[-5:])
    assert chance_warning(make_study(), data, 0.99, 0.8) is not None  # those of a constant
    assert chance_warning(make_study(), data, 1.0, 0.8) is None


def test_a_lost_training_does_not_replace_a_good_run(data: ne.Dataset, tmp_path: Path) -> None:
    out = tmp_path / "run"
    good: dict[str, Any] = {"hidden": (32,), "output": "linear", "activation": "relu"}
    good |= {"beta": 0.02, "epochs": 12, "learning_rate": 0.005}
    kept = ne.train("layered", data, out=out, **good)
    assert kept.history[-1]["warning"] is None
    before = (out / "model.safetensors").read_bytes(), (out / "metrics.jsonl").read_bytes()
    bad = good | {"activation": "hard_sigmoid", "output": "hard_sigmoid", "learning_rate": 5.0}
    with pytest.raises(TrainingError, match="keeps the run that it held, and this one was not"):
        ne.train("layered", data, out=out, force=True, **bad)
    assert before == (
        (out / "model.safetensors").read_bytes(),
        (out / "metrics.jsonl").read_bytes(),
    )
    assert not (out / ".before").exists()
    lost = ne.train("layered", data, out=tmp_path / "other", **bad)
    assert lost.history[-1]["lost"]
    again = ne.train("layered", data, out=tmp_path / "other", force=True, seed=1, **bad)
    assert again.history[-1]["lost"]  # a lost run may be replaced by another one
    ne.train("layered", data, out=out, force=True, seed=1, **good)
    assert (out / "model.safetensors").read_bytes() != before[0]
