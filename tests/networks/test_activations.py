from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.networks.activations import (
    ACTIVATIONS,
    HARD_SIGMOID,
    LINEAR,
    RELU,
    TANH,
    Activation,
    activation,
    box,
    tanh,
)

CALM = settings(derandomize=True, deadline=None, max_examples=60)
EPS = np.finfo(float).eps
WIDE = np.concatenate([np.linspace(-25, 25, 200_001), np.geomspace(1e-300, 1e300, 20_001)])


def test_tanh_is_within_two_units_in_the_last_place_of_one() -> None:
    assert np.abs(tanh(WIDE) - np.tanh(WIDE)).max() <= 2 * EPS


def test_tanh_is_within_four_of_its_own_last_places_where_it_is_not_small() -> None:
    u = WIDE[np.abs(WIDE) >= 0.5]
    last_place = np.spacing(np.abs(np.tanh(u)))
    assert (np.abs(tanh(u) - np.tanh(u)) / last_place).max() <= 4


def test_tanh_is_odd_bounded_and_never_falls() -> None:
    t = tanh(np.sort(WIDE))
    assert np.array_equal(tanh(-WIDE), -tanh(WIDE))
    assert np.abs(t).max() == 1.0
    assert (np.diff(t) >= 0).all()


@CALM
@given(st.floats(-21, 21))
def test_tanh_does_not_fall_from_one_float_to_the_next(start: float) -> None:
    steps = start + np.spacing(abs(start) + 1e-3) * np.arange(64)
    assert (np.diff(tanh(steps)) >= 0).all()


def test_tanh_neither_overflows_nor_complains_far_out() -> None:
    with np.errstate(all="raise"):
        ends = tanh(np.array([1e300, -1e300, np.inf, -np.inf, 0.0, 1e-300]))
    assert ends.tolist() == [1.0, -1.0, 1.0, -1.0, 0.0, 0.0]


def test_tanh_gives_the_same_bits_one_by_one_and_all_at_once() -> None:
    u = np.random.default_rng(0).normal(0, 3, 500)
    assert np.array_equal(tanh(u), [float(tanh(np.array(x))) for x in u])


@pytest.mark.parametrize(
    ("activation", "rates"),
    [
        (HARD_SIGMOID, [0.0, 0.25, 1.0]),
        (RELU, [0.0, 0.25, 9.0]),
        (LINEAR, [-9.0, 0.25, 9.0]),
        (box(4.0), [0.0, 0.25, 4.0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_straight_activations_clip_to_their_range(
    activation: Activation, rates: list[float]
) -> None:
    assert activation.value(np.array([-9.0, 0.25, 9.0])).tolist() == rates


def test_tanh_activation_is_our_tanh() -> None:
    u = np.linspace(-3, 3, 99)
    assert np.array_equal(TANH.value(u), tanh(u))


@pytest.mark.parametrize("height", [0.0, -1.0, float("nan")])
def test_an_empty_range_is_refused(height: float) -> None:
    with pytest.raises(ValueError, match="activation box"):
        box(height)


def test_known_names_are_listed_closest_first() -> None:
    assert closest_first("fashion", ["mnist", "digits", "fashion-mnist"])[0] == "fashion-mnist"
    assert closest_first("LAVA", ["brian2", "lava"]) == ["lava", "brian2"]
    with pytest.raises(UnknownNameError, match=r"unknown thing 'b1'; known: b2, a"):
        raise UnknownNameError("thing", "b1", ["a", "b2"])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_slope_is_the_derivative_of_the_function(name: str) -> None:
    rho, u = activation(name, 2.0), np.array([-1.7, -0.4, 0.3, 0.9, 1.6, 2.5])
    numeric = (rho.value(u + 1e-6) - rho.value(u - 1e-6)) / 2e-6
    assert np.allclose(rho.slope(u), numeric, atol=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_energy_is_the_integral_of_the_inverse_function(name: str) -> None:
    rho, u = activation(name, 2.0), np.array([0.1, 0.4, 0.8])
    s = rho.value(u)
    numeric = (rho.energy(s + 1e-6) - rho.energy(s - 1e-6)) / 2e-6
    assert np.allclose(numeric, u, atol=1e-6)


def test_the_table_says_which_activations_spikes_can_render() -> None:
    spiking = {name for name in ACTIVATIONS if activation(name, 2.0).spiking}
    smooth = {name for name in ACTIVATIONS if activation(name, 2.0).smooth}
    assert (spiking, smooth) == ({"hard_sigmoid", "hard_tanh"}, {"tanh", "linear"})
    assert all(activation(name).name == name for name in ACTIVATIONS)
    with pytest.raises(UnknownNameError, match="unknown activation 'rellu'; known: relu"):
        activation("rellu")
