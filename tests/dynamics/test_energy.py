from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.energy import energy
from neuro_eqprop.dynamics.field import Field, field
from neuro_eqprop.dynamics.solve import GaussSeidel, Stop, solve
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.ops.numpy import NumpyOps

PAIRS = pytest.mark.parametrize(
    ("hidden", "output"),
    [(HARD_SIGMOID, HARD_SIGMOID), (HARD_SIGMOID, LINEAR), (RELU, LINEAR), (TANH, LINEAR)],
    ids=lambda a: str(a.name),
)


def settled(kind: str, hidden: Activation, output: Activation) -> tuple[Field, Array, Array]:
    """A field, its inputs and targets."""
    if kind == "looped":
        network = looped(5, 7, 3, hidden_rate=hidden, output_rate=output, bound=0.9)
    else:
        feedback = 0.4 if kind == "soft" else 1.0
        network = layered(5, (6, 4), 3, hidden_rate=hidden, output_rate=output, feedback=feedback)
    rng = np.random.default_rng(1)
    params = initialize(network, rng)
    params |= {layer.name: rng.uniform(-0.2, 0.5, layer.shape) for layer in network.moving}
    x = rng.random((6, 5))
    return field(NumpyOps(), network, params, x), x, np.eye(3)[rng.integers(0, 3, 6)]


def total(at: Field, x: Array, y: Array, state: dict[str, Array]) -> Array:
    """The energy plus that of the nudge."""
    cost = 0.5 * np.sum((state["output"] - y) ** 2, axis=1)
    stiffness = at.network.output.stiffness
    return np.asarray(energy(at.network, at.params, x, state) + at.beta * stiffness * cost)


@PAIRS
@pytest.mark.parametrize("kind", ["layered", "soft", "looped"])
@pytest.mark.parametrize("beta", [0.0, 0.5, -0.5])
def test_an_equilibrium_is_a_minimum(
    kind: str, hidden: Activation, output: Activation, beta: float
) -> None:
    free, x, y = settled(kind, hidden, output)
    at = free.nudged(y, beta)
    state = solve(at, at.zero_state(), GaussSeidel(), Stop(1e-14, 5000)).state
    low = total(at, x, y, state)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1):
        for _ in range(40):
            near = {
                layer.name: np.clip(
                    state[layer.name] + size * rng.normal(size=state[layer.name].shape),
                    layer.activation.low,
                    layer.activation.high,
                )
                for layer in at.network.moving
            }
            assert (total(at, x, y, near) > low).all()


@PAIRS
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["layered", "soft"])
def test_energy_never_rises_under_sweeps_of_a_layered_network(
    kind: str, hidden: Activation, output: Activation, beta: float
) -> None:
    free, x, y = settled(kind, hidden, output)
    at = free.nudged(y, beta)
    state, energies = at.zero_state(), []
    for _ in range(25):
        energies.append(total(at, x, y, state))
        state = GaussSeidel().step(at, state)
    falls = -np.diff(energies, axis=0)
    assert falls.min() > -1e-13
    assert (falls[:3] > 0).all()


@pytest.mark.parametrize("activation", [HARD_SIGMOID, TANH, RELU], ids=lambda a: str(a.name))
def test_storage_is_the_integral_of_the_inverse_activation(activation: Activation) -> None:
    u = np.linspace(0.01, 0.95, 9)
    s = activation.value(u)
    slope = (activation.energy(s + 1e-6) - activation.energy(s - 1e-6)) / 2e-6
    assert np.abs(slope - u).max() < 1e-6
    assert activation.energy(np.zeros(1))[0] == 0.0


def test_rates_out_of_range_cost_infinitely_much() -> None:
    outside = np.array([-1.5, 1.5])
    assert np.isinf(HARD_SIGMOID.energy(outside)).all()
    assert np.isinf(TANH.energy(outside)).all()
    assert np.isinf(RELU.energy(outside)).tolist() == [True, False]
    assert TANH.energy(np.array([1.0]))[0] == pytest.approx(np.log(2.0))


def test_a_one_way_network_has_no_energy() -> None:
    network = Network(
        (Layer("x", (2,), LINEAR, Role.INPUT), Layer("y", (2,), LINEAR, Role.OUTPUT)),
        (Connection("x", "y", symmetric=False),),
    )
    params = initialize(network, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'x->y' is not symmetric"):
        energy(network, params, np.ones((1, 2)), {"y": np.ones((1, 2))})
