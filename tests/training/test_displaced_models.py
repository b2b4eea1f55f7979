"""The displacement path on pyramids, texts and normalized inputs, against the true gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.data import Dataset, one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import implicit
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.contrastive import (
    UpdatePath,
    contrastive,
    path_of,
    phase_gradients,
)
from neuro_eqprop.training.rules.phases import settle_phases
from neuro_eqprop.training.settings import RuleSettings
from neuro_eqprop.training.study import make_study

SAMPLES = 6
KINDS: dict[str, dict[str, Any]] = {
    "pyramid": {"model": "pyramid", "hidden": (3, 4), "feedback": 0.1},
    "memory": {"model": "pyramid", "hidden": (3, 4), "memory": 4, "feedback": 0.1},
    "conv": {"model": "conv", "hidden": (3, 4), "kernel": 3, "padding": "same", "normalize": True},
    "text": {"model": "text", "width": 6, "hidden": 5, "pooling": "mean", "feedback": 0.1},
    "linear": {"model": "transformer", "hidden": (8,), "heads": 2, "patch": 4},
    "softmax": {
        "model": "transformer",
        "hidden": (8,),
        "heads": 2,
        "attention": "softmax",
        "patch": 4,
    },
    "query": {"model": "transformer", "hidden": (6,), "heads": 1, "query": True, "patch": 2},
    "words": {"model": "transformer", "hidden": (6,), "heads": 3, "attention": "softmax"},
    "sum": {"model": "text", "width": 6, "hidden": 5, "feedback": 0.1},
}


def data_of(kind: str) -> Dataset:
    rng = np.random.default_rng(0)
    if kind in ("text", "sum", "words"):
        x = rng.integers(1, 9, (SAMPLES, 7)).astype(float)
        x[0, 3:] = x[1, 5:] = x[2, 1:] = 0
        return Dataset(x, np.arange(SAMPLES) % 2, x, np.arange(SAMPLES) % 2, vocabulary=9)
    images, y = rng.normal(0.3, 1.0, (SAMPLES, 3, 8, 8)), np.arange(SAMPLES) % 3
    return Dataset(images, y, images, y)


def made(kind: str) -> tuple[Network, dict[str, Array], Dataset, RuleSettings]:
    data, study = data_of(kind), make_study(**KINDS[kind])
    network = study.network(data)
    params = initialize(network, np.random.default_rng(1))
    scaled = {name: 1.3 * value for name, value in params.items()}
    config = replace(study.rule, free_steps=200, nudged_steps=200)
    return network, scaled, data, config


def update(kind: str, beta: float, dtype: torch.dtype, *, phases: bool) -> dict[str, Array]:
    """The gradients of the summed cost, by the path of the network or by settled phases."""
    network, params, data, config = made(kind)
    ops, config = TorchOps(dtype), replace(config, beta=beta)
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    target = ops.from_numpy(one_hot(data.train.y, data.classes))
    batch = Batch(ops.from_numpy(data.train.x), target, measured=True)
    with torch.no_grad():
        if phases:
            settled = settle_phases(field(ops, network, tensors, batch.x), batch, config)
            found = phase_gradients(settled, batch, config, scale=-1.0 / SAMPLES)
        else:
            assert path_of(ops, network, config) is UpdatePath.DISPLACEMENT
            found = dict(contrastive(ops, network, tensors, batch, config).gradients)
    return {name: SAMPLES * ops.to_numpy(value) for name, value in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_displacements_are_differences_of_settled_phases(kind: str) -> None:
    settled = update(kind, 0.3, torch.float64, phases=True)
    for name, found in update(kind, 0.3, torch.float64, phases=False).items():
        np.testing.assert_allclose(found, settled[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_gradient_in_float32_where_differences_of_phases_are_noise(kind: str) -> None:
    network, params, data, _ = made(kind)
    exact = implicit(network, params, data.train.x, one_hot(data.train.y, data.classes))
    found = update(kind, 3e-7, torch.float32, phases=False)
    noisy = update(kind, 3e-7, torch.float32, phases=True)
    compared = [name for name, gradient in exact.items() if gradient.any()]
    for name in compared:
        assert (cosine(found[name], exact[name]) or 0.0) > 0.9999, name
        norms = np.linalg.norm(found[name]), np.linalg.norm(exact[name])
        assert norms[0] == pytest.approx(norms[1], rel=1e-2)
    assert min(cosine(noisy[name], exact[name]) or 0.0 for name in compared) < 0.9


@pytest.mark.parametrize("model", ["modern", "multiscale"])
def test_a_layer_that_the_nudge_does_not_reach_in_time_stays(model: str) -> None:
    study = make_study(model=model, hidden=(8,))
    x, y = np.random.default_rng(0).random((SAMPLES, 5)), np.arange(SAMPLES) % 3
    network = study.network(Dataset(x, y, x, y))
    ops = TorchOps(torch.float64)
    start = initialize(network, np.random.default_rng(1))
    params = {name: ops.from_numpy(value) for name, value in start.items()}
    batch = Batch(ops.from_numpy(x), ops.from_numpy(one_hot(y, 3)), measured=True)
    config = replace(study.rule, free_steps=9, nudged_steps=1)
    assert path_of(ops, network, config) is UpdatePath.DISPLACEMENT
    found = contrastive(ops, network, params, batch, config).gradients
    memories = [layer.name for layer in network.moving if "memory" in layer.name]
    assert memories
    for layer in network.moving:
        moved = bool(found[layer.name].any())
        assert moved is (layer.name not in memories), layer.name
