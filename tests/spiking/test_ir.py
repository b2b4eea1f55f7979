"""What the spiking description refuses, and what it tells of itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH, Activation
from neuro_eqprop.spiking.ir import (
    DecreasingGain,
    Gain,
    Graded,
    Population,
    Projection,
    RateTracking,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.synapses import DenseSynapses

NEURON = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
A = Population("a", NEURON, np.array([0.25, 0.5]))
B = Population("b", Graded(HARD_SIGMOID, 1 / 16, 0.5), np.zeros(3))
WEIGHT = np.array([[1.0, 0.0], [0.5, -1.0], [0.0, 0.0]])
PATH = Projection("a", "b", WEIGHT)
NEGATED = replace(PATH, synapses=DenseSynapses(-WEIGHT))
NETWORK = SpikingNetwork(1e-3, (A, B), (PATH, Projection("b", "b", np.eye(3), 2, Gain.BETA)), "b")


@pytest.mark.parametrize("decay", [-0.1, 1.1, np.nan])
def test_decays_lie_between_zero_and_one(decay: float) -> None:
    with pytest.raises(ValueError, match="does not lie between 0 and 1"):
        replace(NEURON, current_decay=decay)
    with pytest.raises(ValueError, match="does not lie between 0 and 1"):
        replace(NEURON, voltage_decay=decay)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.inf, np.nan])
def test_thresholds_are_above_zero(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be above zero"):
        replace(NEURON, threshold=threshold)


@pytest.mark.parametrize(("floor", "ceiling"), [(0.75, 2.0), (-1.0, 0.25), (np.nan, 2.0)])
def test_the_rest_lies_within_the_limits(floor: float, ceiling: float) -> None:
    with pytest.raises(ValueError, match="half the threshold, must lie"):
        replace(NEURON, floor=floor, ceiling=ceiling)


@pytest.mark.parametrize("theta", [0.0, -1.0, np.inf, np.nan])
def test_theta_is_above_zero(theta: float) -> None:
    with pytest.raises(ValueError, match="theta must be above zero"):
        Graded(HARD_SIGMOID, theta, 0.5)


@pytest.mark.parametrize("damping", [0.0, 1.5, np.nan])
def test_damping_is_a_fraction(damping: float) -> None:
    with pytest.raises(ValueError, match=r"does not lie in \(0, 1\]"):
        Graded(HARD_SIGMOID, 0.25, damping)


@pytest.mark.parametrize("bias", [np.zeros(0), np.zeros((2, 1))])
def test_every_neuron_has_a_bias(bias: np.typing.NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="population 'a' needs a bias"):
        replace(A, bias=bias)


def test_biases_and_weights_are_finite() -> None:
    with pytest.raises(ValueError, match="population 'a' has biases that are not finite"):
        replace(A, bias=np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="projection 'a->b' has weights that are not finite"):
        replace(PATH, synapses=DenseSynapses(np.full((3, 2), np.inf)))


def test_a_spike_takes_at_least_one_step() -> None:
    with pytest.raises(ValueError, match="projection 'a->b': a spike takes at least one step"):
        replace(PATH, delay=0)


def test_populations_have_their_own_names() -> None:
    with pytest.raises(ValueError, match="two populations share a name"):
        replace(NETWORK, populations=(A, B, A))


def test_the_output_is_a_population() -> None:
    with pytest.raises(ValueError, match="the output 'c' is not one of the populations"):
        replace(NETWORK, output="c")


@pytest.mark.parametrize("dt", [0.0, -1e-3, np.inf, np.nan])
def test_dt_is_above_zero(dt: float) -> None:
    with pytest.raises(ValueError, match="dt must be above zero"):
        replace(NETWORK, dt=dt)


def test_projections_join_populations() -> None:
    with pytest.raises(ValueError, match="projection 'c->b': no population 'c'"):
        replace(NETWORK, projections=(replace(PATH, source="c"),))
    with pytest.raises(ValueError, match="projection 'a->c': no population 'c'"):
        replace(NETWORK, projections=(replace(PATH, target="c"),))


def test_weights_have_a_row_for_each_target() -> None:
    with pytest.raises(ValueError, match=r"'a->b'.* \(2, 3\).* \(3, 2\)"):
        replace(NETWORK, projections=(replace(PATH, synapses=DenseSynapses(WEIGHT.T)),))


def test_stimuli_have_a_row_for_each_sample() -> None:
    with pytest.raises(ValueError, match=r"stimulus of 'a' is \(2, 2\), not 3 rows"):
        Stimulus(3, {"a": np.zeros((2, 2))}, {})
    with pytest.raises(ValueError, match="stimulus of 'b'"):
        Stimulus(3, {}, {"b": np.zeros(3)})
    with pytest.raises(ValueError, match="stimulus of 'a' holds values that are not finite"):
        Stimulus(1, {"a": np.array([[np.nan, 0.0]])}, {})


def test_stimuli_fit_the_network() -> None:
    Stimulus(1, {"a": np.zeros((1, 2))}, {"b": np.zeros((1, 3))}).check(NETWORK)
    with pytest.raises(ValueError, match="stimulus of 'b' has 2 columns"):
        Stimulus(1, {}, {"b": np.zeros((1, 2))}).check(NETWORK)


def test_some_samples_of_a_stimulus() -> None:
    whole = Stimulus(
        4, {"a": np.arange(8, dtype=np.float64).reshape(4, 2)}, {"b": np.ones((4, 3))}, host_macs=7
    )
    part = whole.take(1, 3)
    assert part.samples == 2
    assert part.current["a"].tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert part.pull["b"].shape == (2, 3)
    assert part.host_macs == 7
    assert whole.take(3, 9).samples == 1


def test_a_population_is_found_by_its_name() -> None:
    assert NETWORK["b"] is B
    assert B.size == 3
    with pytest.raises(KeyError):
        NETWORK["c"]


def test_projections_are_found_by_target_and_gain() -> None:
    assert NETWORK.into("b", Gain.ONE) == (PATH,)
    assert [p.name for p in NETWORK.into("b", Gain.BETA)] == ["b->b"]
    assert NETWORK.into("a", Gain.ONE) == ()


def test_fan_out_counts_weights_other_than_zero() -> None:
    assert PATH.fan_out.tolist() == [2, 1]


def test_digests_of_different_networks_differ() -> None:
    same = SpikingNetwork(1e-3, NETWORK.populations, NETWORK.projections, "b")
    others = [
        replace(NETWORK, dt=2e-3),
        replace(NETWORK, output="a"),
        replace(NETWORK, populations=(replace(A, bias=A.bias + 1), B)),
        replace(NETWORK, populations=(replace(A, neuron=replace(NEURON, floor=-2.0)), B)),
        replace(NETWORK, projections=(PATH,)),
        replace(NETWORK, projections=(replace(PATH, delay=2), *NETWORK.projections[1:])),
        replace(NETWORK, projections=(replace(PATH, gain=Gain.BETA), *NETWORK.projections[1:])),
        replace(
            NETWORK,
            projections=(replace(PATH, synapses=DenseSynapses(-WEIGHT)), *NETWORK.projections[1:]),
        ),
    ]
    assert same.digest == NETWORK.digest
    assert len({network.digest for network in (NETWORK, *others)}) == len(others) + 1


def test_descriptions_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        NETWORK.dt = 1.0  # type: ignore[misc]


def test_a_digest_is_that_of_earlier_versions_for_any_type_of_number() -> None:
    one: Any = np.float64(1.0)
    nothing: Any = np.float64(0.0)
    two: Any = np.int64(2)
    seven: Any = np.int64(7)
    neuron = Spiking(one, nothing, one, Reset.SUBTRACT, -one, 2 * one)
    rate = Activation("hard_sigmoid", nothing, one)
    network = replace(
        NETWORK,
        dt=one * 1e-3,
        populations=(
            replace(A, neuron=neuron),
            replace(B, neuron=Graded(rate, one / 16, one / 2)),
        ),
        projections=(PATH, Projection("b", "b", np.eye(3), two, Gain.BETA)),
    )
    assert NETWORK.digest == network.digest
    assert NETWORK.digest == "6bbef274217376127595982ca99bf1fa3171a6c69d1353b96f83dc63d017f2da"
    gain, step = DecreasingGain(one, one / 2), DecreasingGain(one / 2, nothing)
    followed = replace(neuron, follow=RateTracking(TANH, gain, step, seven))
    random = replace(network, populations=(replace(A, neuron=followed), B))
    assert random.digest == "cd77cb1f31ae80c2dff5b388e027a697757bb0644bd38bef999e56b4d70e8b05"
