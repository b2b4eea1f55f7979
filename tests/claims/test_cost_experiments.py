"""What a training step holds in memory, and that its published form asks for the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.data import load_digits
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.study import make_study
from sims.claims.experiments.autograd_eqprop import prepare_autograd_step
from sims.claims.experiments.kernel import prepare_step, relative_difference
from sims.claims.experiments.memory import growth, peaks, saved_by_models, saved_bytes

LOOPED = {"model": "looped", "width": 96, "depth": 1, "batch": 96}


def test_no_model_saves_anything_for_a_backward_pass() -> None:
    assert saved_by_models() == dict.fromkeys(MODELS, 0)


def test_what_backprop_saves_is_counted() -> None:
    few = load_digits()
    study = make_study(hidden=(8,), rule="bptt", free_steps=3)
    once = saved_bytes(study, few)
    assert once > few.train.x.size * 4
    assert saved_bytes(make_study(hidden=(8,), rule="bptt", free_steps=6), few) > once


def test_memory_does_not_grow_with_settle_steps() -> None:
    sizes = growth({**LOOPED, "width": 24, "batch": 16}, (10, 200))
    assert 0 < sizes[200] <= 1.1 * sizes[10]


@pytest.mark.parametrize(("steps", "most"), [(10, 0.5), (60, 0.15)])
def test_memory_stays_below_that_of_backprop_through_the_steps(steps: int, most: float) -> None:
    found = peaks({**LOOPED, "steps": steps}, 0)
    assert 0 < found["eqprop"] <= most * found["bptt"]


def test_the_autograd_form_asks_for_the_same_update() -> None:
    network = layered(9, (12, 7), 4, hidden_rate=TANH, output_rate=LINEAR)
    rng, plan = np.random.default_rng(3), three_phase(beta=0.2, free=120, nudged=120)
    params, x = initialize(network, rng), rng.random((5, 9))
    y = np.eye(4)[rng.integers(0, 4, 5)]
    by_graph = prepare_autograd_step(network, params, x, y, plan)()
    with torch.no_grad():
        by_sweeps = prepare_step(NumpyOps(np.float32), network, params, x, y, plan)()
        by_torch = prepare_step(TorchOps(), network, params, x, y, plan)()
    assert relative_difference(by_sweeps, by_graph) < 1e-4
    assert relative_difference(by_sweeps, by_torch) < 1e-4


def test_the_autograd_form_is_for_chains() -> None:
    network = looped(3, 4, 2, hidden_rate=TANH, output_rate=LINEAR, bound=0.5)
    params = initialize(network, np.random.default_rng(0))
    plan = three_phase(beta=0.1, free=1, nudged=1)
    with pytest.raises(ValueError, match="needs a chain"):
        prepare_autograd_step(network, params, np.ones((1, 3)), np.ones((1, 2)), plan)
