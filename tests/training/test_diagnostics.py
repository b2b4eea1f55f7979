"""What a training tells about itself: probe, judgement, held-out samples, device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Split, load_digits
from neuro_eqprop.dynamics.inference import accuracy, infer, score
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs.run_folder import METRICS
from neuro_eqprop.training.diagnostics import DRIFT_LIMIT, Diagnostics
from neuro_eqprop.training.diagnostics import diagnose as diagnose_batches
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule, RuleSettings
from neuro_eqprop.training.study import Study, adapt, make_study

RECIPE = ContrastiveSettings(
    "hebbian", nudging=Nudging.CENTERED, beta=0.1, free_steps=60, nudged_steps=40
)


def network_of(symmetric: bool = True) -> Network:
    return looped(5, 9, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.95, symmetric=symmetric)


def diagnose(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    y: Array,
    settings: RuleSettings,
    *,
    truth: bool = True,
) -> Diagnostics:
    ops = TorchOps(torch.float64)
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    batch, rule = Batch(ops.from_numpy(x), ops.from_numpy(y), measured=False), RULES[settings.name]
    return diagnose_batches(ops, network, tensors, [batch], settings, rule, truth=truth)


def diagnosed(network: Network, recipe: RuleSettings) -> Diagnostics:
    rng = np.random.default_rng(1)
    params = initialize(network, rng)
    loop = params["hidden->hidden"]
    params["hidden->hidden"] = loop * 0.9 / np.linalg.norm(loop, 2)
    x, y = rng.normal(0, 1, (8, 5)), np.eye(3)[rng.integers(0, 3, 8)]
    return diagnose(network, params, x, y, recipe)


def test_a_settled_symmetric_network_has_no_drift_and_the_true_gradient() -> None:
    found = diagnosed(network_of(), RECIPE)
    assert found.drift is None  # it explains a cosine that is not good
    assert found.cosine is not None
    assert set(found.cosine) == set(network_of().parameters())
    assert min(found.cosine.values()) > 0.999
    assert found.warning is None


def test_too_few_free_steps_are_reported_as_drift_with_the_cure() -> None:
    found = diagnosed(network_of(), replace(RECIPE, free_steps=1, beta=0.01))
    assert found.drift is not None
    assert found.drift > DRIFT_LIMIT
    assert "more free_steps" in str(found.warning)


def test_a_nudge_without_effect_is_reported_unless_there_is_no_error() -> None:
    network = layered(2, (3,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = {name: np.zeros(shape) for name, shape in network.parameters().items()}
    params["output"], params["hidden"] = np.array([-9.0, 9.0]), np.full(3, 0.5)
    x, y = np.ones((2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]])
    dead = diagnose(network, params, x, y, RECIPE)
    assert dead.drift is None
    assert "the nudge moved no rate" in str(dead.warning)
    done = diagnose(network, params, x[:1], y[:1], RECIPE)
    assert (done.drift, done.warning) == (None, None)


def test_the_drift_alone_can_be_asked_for() -> None:
    network, rng = network_of(), np.random.default_rng(1)
    given = initialize(network, rng), rng.normal(0, 1, (8, 5)), np.eye(3)[rng.integers(0, 3, 8)]
    both, alone = (diagnose(network, *given, RECIPE, truth=truth) for truth in (True, False))
    assert both.cosine is not None
    assert alone.drift is not None
    assert alone.drift < 1e-3
    assert replace(alone, drift=None) == replace(both, cosine=None)


def test_negative_nudging_of_saturated_outputs_gives_a_warning() -> None:
    network = layered(2, (2,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = {name: np.zeros(shape) for name, shape in network.parameters().items()}
    params["output"] = np.array([0.1, -0.1])
    x, y = np.ones((2, 2)), np.array([[0.0, 1.0], [0.0, 1.0]])
    config = replace(RECIPE, nudging=Nudging.NEGATIVE, beta=0.5)
    away = diagnose(network, params, x, y, config, truth=False)
    assert away.blocked == 1.0
    assert "do not move under the nudge" in str(away.warning)
    towards = diagnose(network, params, x, y, replace(config, nudging=Nudging.POSITIVE))
    assert towards.blocked == 0.0
    assert "has a cosine of 0.12 with minus the true gradient" in str(towards.warning)


@pytest.mark.parametrize("model", ["layered", "looped", "sparse", "toroidal", "predictive"])
def test_where_negative_nudging_learns_nothing_the_warning_names_another(model: str) -> None:
    """All outputs are off, and a nudge away from the target keeps them there."""
    study = make_study(model=model, nudging="negative")
    data = load_digits()
    network = study.network(data)
    params = initialize(network, np.random.default_rng(0))
    params["output"] = params["output"] - 9.0
    few = data.train.take(slice(16))
    found = diagnose(network, params, few.x, np.eye(10)[few.y], study.rule, truth=False)
    assert "use nudging 'centered' or 'positive'" in str(found.warning)
    assert "larger beta" not in str(found.warning)


def test_a_wrong_rule_shows_in_the_cosine() -> None:
    plain = diagnosed(network_of(symmetric=False), RECIPE).cosine
    right = diagnosed(network_of(symmetric=False), replace(RECIPE, name=Rule.ASYMMETRIC)).cosine
    assert plain is not None
    assert right is not None
    assert min(plain.values()) < 0.99
    assert min(right.values()) > 0.9999


def test_baselines_have_no_drift() -> None:
    found = diagnosed(network_of(), replace(RECIPE, name=Rule.IMPLICIT))
    assert found.drift is None
    assert found.cosine is not None
    assert min(found.cosine.values()) > 0.999999


def test_the_confusion_counts_every_sample_once() -> None:
    network, rng = network_of(), np.random.default_rng(2)
    params = initialize(network, rng)
    split = Split(rng.normal(0, 1, (50, 5)), rng.integers(0, 3, 50))
    found = score(NumpyOps(), network, params, split)
    classes = infer(NumpyOps(), network, params, split.x).classes
    for true in range(3):
        for said in range(3):
            wanted = int(((split.y == true) & (classes == said)).sum())
            assert found.confusion[true, said] == wanted
    assert found.accuracy == accuracy(NumpyOps(), network, params, split)
    assert found.settled == 1.0


def test_metrics_hold_validation_accuracy_and_gradient_diagnostics(tmp_path: Path) -> None:
    study = make_study(epochs=1, hidden=(12,), validation=0.2)
    result = run_training(
        study, tmp_path / "run", force=False, resume=False, on_epoch=lambda _: None
    )
    line = json.loads((tmp_path / "run" / METRICS).read_text().splitlines()[-1])
    assert line["validation_accuracy"] == result["validation_accuracy"]
    assert 0.0 < line["validation_accuracy"] < 1.0
    assert set(line["saturated"]) == {"hidden"}
    assert line["path"] == result["path"] == "one-hidden"
    assert set(line["cosine"]) == {"input->hidden", "hidden->output", "hidden", "output"}
    assert all(0.5 < cosine <= 1.0 for cosine in line["cosine"].values())
    assert 0.0 < line["loss"] < 0.5
    assert np.sum(result["confusion"]) == len(load_digits().test)
    assert np.trace(result["confusion"]) / 360 == pytest.approx(result["test_accuracy"])


def test_a_device_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    study = make_study(epochs=1, device="nowhere")
    with pytest.raises(ValueError, match="use cpu"):
        run_training(study, tmp_path / "run", force=False, resume=False, on_epoch=lambda _: None)
    assert not (tmp_path / "run").exists()


def test_another_model_brings_its_own_rule_unless_one_is_named() -> None:
    assert adapt(Study(), {"model": "predictive"}).rule.name == "single-phase"
    assert adapt(Study(), {"model": "predictive", "rule": "backprop"}).rule.name == "backprop"
    assert adapt(make_study(model="predictive"), {"model": "looped"}).rule.name == "hebbian"
