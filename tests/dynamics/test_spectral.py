from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.spectral import bound_factors, initial_vectors, norms, project_exactly
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.architectures.transformer import TransformerSettings, build
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps

LOOPED = looped(5, 8, 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=0.7)
LAYERED = layered(5, (8, 6), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=0.7)
SPELLINGS = pytest.mark.parametrize(
    "ops",
    [NumpyOps(), NumpyOps(np.float32), TorchOps(), TorchOps(torch.float64)],
    ids=["numpy64", "numpy32", "torch32", "torch64"],
)


def grown(network: Network, factor: float) -> dict[str, Array]:
    params = initialize(network, np.random.default_rng(0))
    return {name: factor * value for name, value in params.items()}


@SPELLINGS
@pytest.mark.parametrize("network", [LOOPED, LAYERED], ids=["looped", "layered"])
def test_norms_are_the_largest_singular_values(ops: Ops, network: Network) -> None:
    params = grown(network, 3.0)
    found = norms(ops, network, {name: ops.from_numpy(value) for name, value in params.items()})
    for connection in network.connections:
        wanted = np.linalg.svd(params[connection.name], compute_uv=False)[0]
        assert found[connection.name] == pytest.approx(wanted, rel=1e-5)


@SPELLINGS
def test_a_weight_beyond_its_bound_is_scaled_back_onto_it(ops: Ops) -> None:
    params = {name: ops.from_numpy(value) for name, value in grown(LOOPED, 5.0).items()}
    kept = project_exactly(ops, LOOPED, params)
    assert set(kept) == {"hidden->hidden"}
    weight = ops.to_numpy(kept["hidden->hidden"])
    largest = np.linalg.svd(weight, compute_uv=False)[0]
    assert 0.7 * (1 - 1e-5) < largest <= 0.7
    before = ops.to_numpy(params["hidden->hidden"])
    assert np.allclose(weight / np.linalg.norm(weight), before / np.linalg.norm(before), atol=1e-6)
    assert np.array_equal(weight, weight.T)


def test_every_bounded_connection_is_kept_and_the_input_left_alone() -> None:
    ops, params = NumpyOps(), grown(LAYERED, 5.0)
    assert set(project_exactly(ops, LAYERED, params)) == {"hidden1->hidden2", "hidden2->output"}


def test_a_weight_within_its_bound_is_left_alone() -> None:
    assert project_exactly(NumpyOps(), LOOPED, grown(LOOPED, 1.2)) == {}


@SPELLINGS
def test_power_iterations_bound_each_matrix_of_attention(ops: Ops) -> None:
    network = build(TransformerSettings(hidden=(8,), heads=2, attention_bound=0.9), (4, 5), 3)
    start = grown(network, 1.0)
    start["tokens->tokens"][0] *= 20.0
    start["tokens->tokens"][1] *= 0.01
    params = {name: ops.from_numpy(value) for name, value in start.items()}
    vectors, before = initial_vectors(network, ops), start["tokens->tokens"]
    for _ in range(12):
        for name, factor in bound_factors(ops, network, params, vectors).items():
            params[name] = params[name] * factor
    weight = ops.to_numpy(params["tokens->tokens"])
    assert np.linalg.norm(weight[0], 2) == pytest.approx(0.9, rel=1e-3)
    np.testing.assert_allclose(weight[1], before[1], rtol=1e-6)
