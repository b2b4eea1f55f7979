"""One field, two spellings: torch and NumPy give the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.dynamics.solve import Anderson, Damped, GaussSeidel, Solver, Stop, solve
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax

SAMPLES, INPUTS, OUTPUTS = 12, 9, 4
CASES = pytest.mark.parametrize("kind", ["layered", "soft", "deep", "looped"])
RATES = pytest.mark.parametrize(
    ("hidden", "output"),
    [
        (HARD_SIGMOID, HARD_SIGMOID),
        (box(4.0), LINEAR),
        (RELU, LINEAR),
        (TANH, LINEAR),
        (TANH, TANH),
    ],
    ids=lambda a: str(a.name),
)
CLOSE = 1e-12


def network_of(kind: str, hidden: Activation, output: Activation) -> Network:
    if kind == "looped":
        return looped(INPUTS, 14, OUTPUTS, hidden_rate=hidden, output_rate=output, bound=0.95)
    sizes = (14, 11, 6) if kind == "deep" else (14,)
    feedback = 0.3 if kind == "soft" else 1.0
    return layered(
        INPUTS, sizes, OUTPUTS, hidden_rate=hidden, output_rate=output, feedback=feedback
    )


def problem(network: Network) -> tuple[dict[str, Array], Array, Array]:
    rng = np.random.default_rng(5)
    params = initialize(network, rng)
    params |= {layer.name: rng.normal(0, 0.3, layer.shape) for layer in network.moving}
    y = np.eye(OUTPUTS)[rng.integers(0, OUTPUTS, SAMPLES)]
    return params, rng.random((SAMPLES, INPUTS)), y


def settle(ops: Ops, network: Network, solver: Solver, beta: float) -> dict[str, Array]:
    params, x, y = problem(network)
    brought = {name: ops.from_numpy(value) for name, value in params.items()}
    at = field(ops, network, brought, ops.from_numpy(x)).nudged(ops.from_numpy(y), beta)
    found = solve(at, at.zero_state(), solver, Stop(None, 50))
    return {name: ops.to_numpy(rates) for name, rates in found.state.items()}


@CASES
@RATES
@pytest.mark.parametrize("solver", [GaussSeidel(), GaussSeidel(True), Damped(0.6)], ids=str)
def test_fifty_steps_end_at_the_same_rates(
    kind: str, hidden: Activation, output: Activation, solver: Solver
) -> None:
    network = network_of(kind, hidden, output)
    for beta in (0.0, 0.3):
        one = settle(NumpyOps(), network, solver, beta)
        two = settle(TorchOps(torch.float64), network, solver, beta)
        single = settle(TorchOps(torch.float32), network, solver, beta)
        for name, rates in one.items():
            assert rates.any()
            assert np.abs(rates - two[name]).max() < CLOSE
            assert np.abs(rates - single[name]).max() < 1e-4


@CASES
@RATES
def test_the_rule_asks_for_the_same_changes(
    kind: str, hidden: Activation, output: Activation
) -> None:
    network = network_of(kind, hidden, output)
    params, x, y = problem(network)
    schedule = three_phase(beta=0.25, free=40, nudged=20)
    asked = []
    for ops in (NumpyOps(), TorchOps(torch.float64)):
        brought = {name: ops.from_numpy(value) for name, value in params.items()}
        free = field(ops, network, brought, ops.from_numpy(x))
        phases = relax(free, ops.from_numpy(y), schedule, SWEEPS)
        states = {name: each.state for name, each in phases.items()}
        changes = hebbian(ops, network, ops.from_numpy(x), states=states, schedule=schedule)
        asked.append({name: ops.to_numpy(change) for name, change in changes.items()})
    for name, change in asked[0].items():
        assert np.abs(change).max() > 0
        assert np.abs(change - asked[1][name]).max() < 1e-11


@CASES
def test_a_solve_leaves_parameters_inputs_and_start_alone(kind: str) -> None:
    """Faster spellings work in place, and must not do so on what is not theirs."""
    network = network_of(kind, HARD_SIGMOID, HARD_SIGMOID)
    params, x, y = problem(network)
    for ops in (NumpyOps(), TorchOps(torch.float64)):
        brought = {name: ops.from_numpy(value) for name, value in params.items()}
        inputs, targets = ops.from_numpy(x), ops.from_numpy(y)
        free = field(ops, network, brought, inputs)
        fed = {name: ops.to_numpy(value).copy() for name, value in free.input_drive.items()}
        start = free.zero_state()
        first = solve(free.nudged(targets, 0.3), start, GaussSeidel(), Stop(1e-9, 99)).state
        kept = {name: ops.to_numpy(rates).copy() for name, rates in first.items()}
        solve(free, first, Damped(0.5), Stop(None, 9))
        assert all(np.array_equal(ops.to_numpy(brought[name]), params[name]) for name in params)
        assert np.array_equal(ops.to_numpy(inputs), x)
        assert np.array_equal(ops.to_numpy(targets), y)
        assert all(np.array_equal(ops.to_numpy(free.input_drive[name]), fed[name]) for name in fed)
        assert not any(ops.to_numpy(rates).any() for rates in start.values())
        assert all(np.array_equal(ops.to_numpy(first[name]), kept[name]) for name in kept)


@CASES
def test_answers_are_the_same(kind: str) -> None:
    network = network_of(kind, HARD_SIGMOID, HARD_SIGMOID)
    params, x, _ = problem(network)
    found = []
    for ops in (NumpyOps(), TorchOps(torch.float64)):
        brought = {name: ops.from_numpy(value) for name, value in params.items()}
        found.append(infer(ops, network, brought, x))
    assert np.array_equal(found[0].classes, found[1].classes)
    assert np.array_equal(found[0].steps, found[1].steps)
    assert np.abs(found[0].drive - found[1].drive).max() < CLOSE


def test_anderson_mixes_tensors_that_numpy_cannot_read_by_itself() -> None:
    # As those on another device; here they are in a graph, which NumPy refuses as well.
    network = network_of("looped", TANH, LINEAR)
    params, x, _ = problem(network)
    ops, stop = TorchOps(torch.float64), Stop(None, 12)
    watched = {name: ops.from_numpy(value).requires_grad_() for name, value in params.items()}
    tensors, arrays = (
        field(ops, network, watched, ops.from_numpy(x)),
        field(NumpyOps(), network, params, x),
    )
    mixed = solve(tensors, tensors.zero_state(), Anderson(), stop).state
    plain = solve(arrays, arrays.zero_state(), Anderson(), stop).state
    for name in plain:
        np.testing.assert_allclose(ops.to_numpy(mixed[name]), plain[name], rtol=1e-7, atol=1e-9)
