"""Libraries of the array API standard settle and update as torch does in float64."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.dynamics.solve import Anderson, Damped, GaussSeidel
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.array_api import ArrayOps
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, Settling, relax
from neuro_eqprop.training.study import find_architecture, make_study

CLOSE = 1e-10
LIBRARIES = [
    *(["numpy"] if hasattr(np, "concat") else []),  # NumPy has the standard since 2.0
    "array_api_strict",
    pytest.param("jax.numpy", marks=pytest.mark.jax),
]
SOLVERS = {
    "sweeps": SWEEPS,
    "synchronous": Settling(Damped(0.6), Damped(0.6)),
    "anderson": Settling(Anderson(GaussSeidel()), Anderson(GaussSeidel(True))),
    "tolerance": Settling(GaussSeidel(), GaussSeidel(True), 1e-9),
}
RATES = [
    (HARD_SIGMOID, HARD_SIGMOID),
    (box(4.0), LINEAR),
    (RELU, LINEAR),
    (TANH, LINEAR),
    (TANH, TANH),
]


def library(name: str) -> Ops:
    """The operations of a library; on one that is not installed the test is skipped."""
    package = name.partition(".")[0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if package == "jax":
        config: Any = import_module("jax").config
        config.update("jax_enable_x64", True)
    xp: Any = import_module(name)
    return ArrayOps(xp.float64, xp)


def networks() -> dict[str, Network]:
    found = {}
    for k, (hidden, output) in enumerate(RATES):
        rates: dict[str, Activation] = {"hidden_rate": hidden, "output_rate": output}
        found[f"layered {k}"] = layered(12, (14,), 4, **rates)  # type: ignore[arg-type]
        found[f"deep {k}"] = layered(12, (9, 8, 7), 4, feedback=0.5, **rates)  # type: ignore[arg-type]
        found[f"looped {k}"] = looped(12, 10, 4, bound=0.95, **rates)  # type: ignore[arg-type]
    for name in ("toroidal", "multiscale", "predictive", "modern", "sparse"):
        settings = make_study(model=name, hidden=(16,)).model
        found[name] = find_architecture(name).build(settings, (12,), 4)
    found["conv"] = find_architecture("conv").build(make_study(model="conv").model, (1, 8, 8), 4)
    return found


NETWORKS = networks()


def updates(ops: Ops, network: Network, settling: Settling) -> dict[str, Array]:
    """Rates of all phases and the update of each parameter."""
    rng = np.random.default_rng(5)
    params = initialize(network, rng)
    params |= {layer.name: rng.normal(0, 0.3, layer.bias) for layer in network.moving}
    x, y = rng.random((6, network.input.size)), np.eye(4)[rng.integers(0, 4, 6)]
    schedule = three_phase(beta=0.25, free=30, nudged=15)
    held = {name: ops.from_numpy(value) for name, value in params.items()}
    given = ops.from_numpy(x)
    phases = relax(field(ops, network, held, given), ops.from_numpy(y), schedule, settling)
    states = {name: each.state for name, each in phases.items()}
    changes = hebbian(ops, network, given, states=states, schedule=schedule, params=held)
    found = {name: ops.to_numpy(change) for name, change in changes.items()}
    for phase, state in states.items():
        found |= {f"{phase} {name}": ops.to_numpy(rates) for name, rates in state.items()}
    return found


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("which", NETWORKS)
def test_updates_equal_those_of_torch(name: str, which: str) -> None:
    ops, network = library(name), NETWORKS[which]
    for solver in SOLVERS if which.endswith(" 0") else ("sweeps",):
        want = updates(TorchOps(torch.float64), network, SOLVERS[solver])
        found = updates(ops, network, SOLVERS[solver])
        for key, value in want.items():
            assert np.abs(found[key] - value).max(initial=0.0) <= CLOSE, (solver, key)
        assert any(np.abs(value).max(initial=0.0) > 0 for value in found.values())


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_operation_equals_numpy(name: str) -> None:
    ops, plain, rng = library(name), NumpyOps(), np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 3, 6, 8)), rng.normal(size=(4, 3, 3, 3))
    y, table = rng.normal(size=(2, 4, 6, 8)), rng.normal(size=(5, 7))
    index, rows = rng.integers(0, 5, (2, 3)).astype(float), rng.normal(size=(2, 3, 7))
    places = rng.integers(0, 6, 7)

    def values(ops: Ops) -> list[Any]:
        a = ops.from_numpy
        return [
            ops.conv(a(x), a(kernel), 1),
            ops.conv_transpose(a(y), a(kernel), 1),
            ops.conv_weight_gradient(a(y), a(x), 1),
            ops.pool(a(x), 2),
            ops.unpool(a(x), 2),
            ops.take_rows(a(table), a(index)),
            ops.add_rows(a(rows), a(index), 5),
            ops.sum_at(a(table), places, 6),
            ops.einsum("ni,nik->ik", a(rows[0]), a(rng_rows)),
            ops.softmax(a(table)),
            ops.log_softmax(a(table)),
            ops.layer_norm(a(table)),
            ops.elu_plus_one(a(table)),
            ops.addmm(a(table[:5, :5]), a(table), a(table.T), 0.5, None),
            ops.where(np.arange(5) > 2, a(table), -a(table)),
            ops.sum(a(x), (1, 2)),
        ]

    rng_rows = rng.normal(size=(3, 7, 4))
    for one, other in zip(values(ops), values(plain), strict=True):
        np.testing.assert_allclose(ops.to_numpy(one), other, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ops.dots(ops.from_numpy(x), ops.from_numpy(x)), plain.dots(x, x))
    np.testing.assert_array_equal(
        ops.max_change(ops.from_numpy(x), ops.from_numpy(-x)), plain.max_change(x, -x)
    )
    assert ops.is_finite(ops.from_numpy(x))
    assert not ops.is_finite(ops.from_numpy(np.array([np.nan])))
    assert ops.spectral_norm(ops.from_numpy(table)) == pytest.approx(plain.spectral_norm(table))
