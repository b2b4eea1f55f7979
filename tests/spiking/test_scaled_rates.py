"""Rates that binary spikes do not carry are scaled to 0..1; the network stays the same."""

from __future__ import annotations

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import GaussSeidel, Stop, solve
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, box
from neuro_eqprop.networks.architectures import convolutional, layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.spiking.scaled_rates import ScaledRates, scaled_rates

RNG = np.random.default_rng(0)
RATE, GRADED = Coding(Code.RATE), Coding(Code.GRADED)
NETWORKS = {
    "layers": layered(6, (5, 4), 3, hidden_rate=box(2.0), output_rate=LINEAR, feedback=0.2),
    "loop": looped(6, 5, 3, hidden_rate=box(3.0), output_rate=LINEAR, bound=0.5, feedback=0.3),
    "images": convolutional(
        (1, 8, 8), (2,), 3, kernel=3, hidden_rate=HARD_SIGMOID, output_rate=LINEAR, feedback=0.5
    ),
    "hidden alone": layered(6, (5,), 3, hidden_rate=box(2.0), output_rate=HARD_SIGMOID),
}


def made(name: str) -> tuple[Network, dict[str, Array], ScaledRates]:
    network = NETWORKS[name]
    rng = np.random.default_rng(1)
    params = {name: 0.6 * value for name, value in initialize(network, rng).items()}
    for layer in network.moving:
        params[layer.name] = rng.normal(0.2, 0.1, layer.bias)
    found = scaled_rates(network, RATE)
    assert found is not None
    return network, params, found


def settled(
    network: Network, params: dict[str, Array], nudge: tuple[Array, float]
) -> dict[str, Array]:
    x = np.random.default_rng(2).random((4, *network.input.shape))
    free = field(NumpyOps(), network, params, x).nudged(*nudge)
    return dict(solve(free, free.zero_state(), GaussSeidel(), Stop(1e-12, 500)).state)


@pytest.mark.parametrize("beta", [0.0, 0.3, -0.3])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_scaled_network_settles_at_the_same_rates(name: str, beta: float) -> None:
    network, params, scaled = made(name)
    target = np.eye(3)[[0, 1, 2, 0]]
    plain = settled(network, params, (target, beta))
    output = network.output.name
    other = settled(scaled.network, scaled.scaled(params), (scaled.encode(output, target), beta))
    assert -0.5 < plain[output].min() <= plain[output].max() < 1.5
    for layer in network.moving:
        assert scaled.network[layer.name].activation == HARD_SIGMOID
        np.testing.assert_allclose(
            scaled.decode(layer.name, other[layer.name]), plain[layer.name], atol=1e-9
        )


def test_a_code_that_carries_the_rates_leaves_the_network() -> None:
    assert scaled_rates(NETWORKS["layers"], GRADED) is None
    hard = layered(6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    assert scaled_rates(hard, RATE) is None


def test_rates_without_a_range_are_refused() -> None:
    network = layered(6, (5,), 3, hidden_rate=RELU, output_rate=LINEAR)
    readout = Network(NETWORKS["layers"].layers, NETWORKS["layers"].connections, Cost.CROSS_ENTROPY)
    for each in (network, readout):
        assert scaled_rates(each, RATE) is None
        with pytest.raises(LoweringError):
            lower_network(each, initialize(each, RNG), code="rate")


def test_a_default_run_becomes_spikes_of_every_code() -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(24,), epochs=3, seed=0)
    few = data.test.take(slice(60))
    for code, steps in (("rate", 128), ("graded", 32), ("paired", 128), ("predictive", 128)):
        found = model.evaluate(few, on="emulator", code=code, steps=steps)
        assert found.agreement >= 0.95
        assert found.rmse < 0.05


def test_traces_and_nudged_phases_are_in_the_ranges_of_the_rates() -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(16,), epochs=3, beta=0.2, feedback=0.5, seed=0)
    x, y = data.test.x[:8], data.test.y[:8]
    rates = model.record(x, y, phases=True)
    spikes = model.to_spiking(code="rate").record(x, y, phases=True, steps=512)
    found = ne.compare(rates, spikes).to_json()
    assert max(each["rmse"] for each in found["layers"]) < 0.03
    assert min(each["cosine"] for each in found["connections"]) > 0.95


def test_scaled_networks_pass_through_nir_and_snntorch() -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(16,), epochs=2, seed=0)
    spiking, x = model.to_spiking(code="rate"), data.test.x[:30]
    same = spiking.run(x).predictions
    assert np.array_equal(ne.from_nir(spiking.to_nir()).run(x).predictions, same)
    assert np.array_equal(spiking.run(x, on="snntorch").predictions, same)
    again = ne.from_snntorch(spiking.to_snntorch())
    assert np.array_equal(again.predict(x), model.predict(x))
