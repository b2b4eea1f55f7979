from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import Field, field
from neuro_eqprop.dynamics.solve import Damped, GaussSeidel, Solver, SolveStatus, Stop, solve
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps

SAMPLES, INPUTS, OUTPUTS = 5, 6, 4
TIGHT = Stop(1e-14, 5000)


def network_of(kind: str, hidden: Activation, output: Activation) -> Network:
    if kind == "looped":
        return looped(INPUTS, 8, OUTPUTS, hidden_rate=hidden, output_rate=output, bound=0.9)
    sizes = (8,) if kind == "one" else (7, 5)
    return layered(INPUTS, sizes, OUTPUTS, hidden_rate=hidden, output_rate=output)


def setting(network: Network, seed: int = 0) -> tuple[dict[str, Array], Array, Array]:
    rng = np.random.default_rng(seed)
    params = initialize(network, rng)
    params |= {layer.name: rng.uniform(0.1, 0.4, layer.shape) for layer in network.moving}
    x = rng.random((SAMPLES, INPUTS))
    return params, x, np.eye(OUTPUTS)[rng.integers(0, OUTPUTS, SAMPLES)]


def free_field(network: Network, seed: int = 0) -> tuple[Field, Array]:
    params, x, y = setting(network, seed)
    return field(NumpyOps(), network, params, x), y


KINDS = pytest.mark.parametrize("kind", ["one", "two", "looped"])
PAIRS = [
    (HARD_SIGMOID, HARD_SIGMOID),
    (box(4.0), LINEAR),
    (RELU, HARD_SIGMOID),
    (TANH, LINEAR),
    (TANH, TANH),
]
RATES = pytest.mark.parametrize(("hidden", "output"), PAIRS, ids=lambda a: str(a.name))


@KINDS
@RATES
def test_every_solver_reaches_the_same_equilibrium(
    kind: str, hidden: Activation, output: Activation
) -> None:
    free, y = free_field(network_of(kind, hidden, output))
    for at in (free, free.nudged(y, 0.3), free.nudged(y, -0.3)):
        solvers: list[Solver] = [GaussSeidel(), GaussSeidel(True), Damped(0.5), Damped(0.9)]
        ends = [solve(at, at.zero_state(), solver, TIGHT) for solver in solvers]
        assert all(end.status is SolveStatus.CONVERGED for end in ends)
        for end in ends[1:]:
            assert at.change(end.state, ends[0].state).max() < 1e-12


@KINDS
@RATES
@pytest.mark.parametrize("beta", [0.4, -0.4])
def test_a_nudged_equilibrium_satisfies_its_definition(
    kind: str, hidden: Activation, output: Activation, beta: float
) -> None:
    free, y = free_field(network_of(kind, hidden, output), seed=2)
    state = solve(free.nudged(y, beta), free.zero_state(), GaussSeidel(), TIGHT).state
    ops = NumpyOps()
    for layer in free.network.moving:
        u = free.drive(layer.name, state)
        if layer.name == "output":
            u = u + beta * (y - state["output"])
        assert np.abs(ops.activate(layer.activation, u) - state[layer.name]).max() < 1e-12


def test_a_straight_output_answers_a_nudge_in_one_go() -> None:
    free, y = free_field(network_of("one", HARD_SIGMOID, HARD_SIGMOID))
    rng = np.random.default_rng(3)
    for beta in (0.9, 0.01, -0.5):
        state = {name: rng.random(rates.shape) for name, rates in free.zero_state().items()}
        # Drives spread to both sides, so that some units are clipped.
        nudged = free.nudged(y, beta)
        fed = dict(nudged.input_drive) | {
            "output": nudged.input_drive["output"] + rng.normal(0, 1, y.shape)
        }
        at = Field(free.ops, free.network, free.params, SAMPLES, free.incoming, fed, y, beta)
        s = at.update_layer("output", state)
        again = np.clip(at.drive("output", state) + beta * (y - s), 0.0, 1.0)
        assert np.abs(s - again).max() < 1e-12
        assert ((s == 0) | (s == 1)).any()
        assert ((s > 0) & (s < 1)).any()


def test_the_nudge_pulls_towards_the_target_and_pushes_away() -> None:
    free, y = free_field(network_of("two", HARD_SIGMOID, LINEAR))
    errors = []
    for beta in (-0.5, 0.0, 0.5):
        at = free.nudged(y, beta) if beta else free
        state = solve(at, at.zero_state(), GaussSeidel(), TIGHT).state
        errors.append(float(np.sum((state["output"] - y) ** 2)))
    assert errors[0] > errors[1] > errors[2]


def test_a_nudge_of_minus_one_or_less_is_refused() -> None:
    free, y = free_field(network_of("one", HARD_SIGMOID, LINEAR))
    for beta in (-1.0, -2.0):
        with pytest.raises(ValueError, match="unbounded"):
            free.nudged(y, beta)


def test_drive_is_written_out_once_by_hand() -> None:
    network = network_of("looped", HARD_SIGMOID, HARD_SIGMOID)
    params, x, _ = setting(network)
    free = field(NumpyOps(), network, params, x)
    rng = np.random.default_rng(1)
    h, o = rng.random((SAMPLES, 8)), rng.random((SAMPLES, OUTPUTS))
    for k in range(SAMPLES):
        hidden = (
            params["hidden"]
            + params["input->hidden"] @ x[k]
            + params["hidden->hidden"] @ h[k]
            + params["hidden->output"].T @ o[k]
        )
        output = params["output"] + params["hidden->output"] @ h[k]
        assert np.allclose(free.drive("hidden", {"hidden": h, "output": o})[k], hidden, atol=1e-14)
        assert np.allclose(free.drive("output", {"hidden": h, "output": o})[k], output, atol=1e-14)


def test_feedback_scales_what_comes_back_and_only_that() -> None:
    soft = layered(INPUTS, (7, 5), OUTPUTS, hidden_rate=RELU, output_rate=LINEAR, feedback=0.25)
    params, x, _ = setting(soft)
    at = field(NumpyOps(), soft, params, x)
    rng = np.random.default_rng(1)
    state = {name: rng.random(rates.shape) for name, rates in at.zero_state().items()}
    up = state["hidden1"] @ params["hidden1->hidden2"].T
    down = state["output"] @ params["hidden2->output"]
    wanted = params["hidden2"] + up + 0.25 * down
    assert np.abs(at.drive("hidden2", state) - wanted).max() < 1e-14
    assert [layer.stiffness for layer in soft.moving] == [1.0, 0.25, 0.0625]


def test_a_one_way_connection_brings_nothing_back() -> None:
    both = network_of("one", HARD_SIGMOID, HARD_SIGMOID)
    ways = tuple(Connection(c.source, c.target, symmetric=False) for c in both.connections)
    params, x, _ = setting(both)
    at = field(NumpyOps(), Network(both.layers, ways), params, x)
    loud = {"hidden": np.ones((SAMPLES, 8)), "output": np.ones((SAMPLES, OUTPUTS))}
    still = {"hidden": np.ones((SAMPLES, 8)), "output": np.zeros((SAMPLES, OUTPUTS))}
    assert np.array_equal(at.drive("hidden", loud), at.drive("hidden", still))


@KINDS
def test_a_sample_settles_alike_alone_and_in_company(kind: str) -> None:
    network = network_of(kind, HARD_SIGMOID, HARD_SIGMOID)
    params, x, _ = setting(network)
    stop = Stop(1e-7, 400)
    together_at = field(NumpyOps(), network, params, x)
    together = solve(together_at, together_at.zero_state(), GaussSeidel(), stop)
    for k in range(SAMPLES):
        at = field(NumpyOps(), network, params, x[k : k + 1])
        alone = solve(at, at.zero_state(), GaussSeidel(), stop)
        assert alone.steps[0] == together.steps[k]
        for name, rates in alone.state.items():
            # Products of matrices may round a row differently in other company, no more.
            assert np.abs(rates[0] - together.state[name][k]).max() < 1e-14
