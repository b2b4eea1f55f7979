"""Integer arithmetic, rounding of weights, and networks in fixed point."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH, box
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.registry import check_run, load_backend
from neuro_eqprop.spiking.arithmetic import (
    ONE,
    STATE_BITS,
    TOP,
    divide,
    nearest,
    power_above,
    saturate,
    scale,
    wrap,
)
from neuro_eqprop.spiking.fixed_point import state_bits, weights
from neuro_eqprop.spiking.ir import (
    FixedPoint,
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.kinds import GradedNeurons
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import (
    QuantisationError,
    Rounding,
    Scaling,
    round_weight,
)

PLAIN = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=1.0)
MESSAGES = Graded(HARD_SIGMOID, theta=2.0**-6, damping=0.5)
WHOLE = st.integers(-(2**45), 2**45)


def pair(
    weight: Array, *, hidden: Neuron = PLAIN, output: Neuron = PLAIN, bias: float = 0.1
) -> SpikingNetwork:
    """Two populations with a projection both ways and the nudge of the second."""
    rows, columns = weight.shape
    populations = (
        Population("hidden", hidden, np.full(columns, bias)),
        Population("output", output, np.full(rows, -bias)),
    )
    projections = (
        Projection("hidden", "output", weight),
        Projection("output", "hidden", np.ascontiguousarray(weight.T)),
        Projection("output", "output", -np.eye(rows), gain=Gain.BETA),
    )
    return SpikingNetwork(1e-3, populations, projections, "output")


def drawn(seed: int, size: float = 0.1, shape: tuple[int, int] = (5, 30)) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(0, size, shape))


# The operations of the integer step, against unbounded integers


@given(WHOLE, st.integers(-ONE, ONE))
def test_scaling_cuts_towards_zero(x: int, part: int) -> None:
    assert int(scale(np.array([x]), part)[0]) == int(Fraction(x * part, ONE))


@given(WHOLE)
def test_wrapping_goes_round(x: int) -> None:
    found = int(wrap(np.array([x]))[0])
    assert -TOP < found <= TOP
    assert (found - x) % (2 * TOP) == 0


def test_wrapping_is_that_of_the_chip_at_the_ends() -> None:
    ends = np.array([TOP, TOP + 1, -TOP, 1 - TOP, -TOP - 1, 3 * TOP])
    np.testing.assert_array_equal(wrap(ends), [TOP, 1 - TOP, TOP, 1 - TOP, TOP - 1, TOP])


@given(WHOLE)
def test_saturating_stays_at_the_end(x: int) -> None:
    assert int(saturate(np.array([x]))[0]) == min(max(x, 1 - TOP), TOP - 1)


@given(WHOLE, st.integers(0, 20))
def test_dividing_rounds_ties_to_even(x: int, shift: int) -> None:
    assert int(divide(np.array([x]), shift)[0]) == round(Fraction(x, 2**shift))


def test_nearest_multiples_round_ties_to_even() -> None:
    np.testing.assert_array_equal(
        nearest(np.array([0.125, 0.375, -0.375, 0.3]), 0.25), [0, 2, -2, 1]
    )


# Weights


@given(st.floats(1e-9, 1e9))
def test_the_power_above(x: float) -> None:
    power = power_above(x)
    assert x <= power < 2 * x or power == x
    assert np.frexp(power)[0] == 0.5


@settings(deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(3, 12),
    st.sampled_from(Scaling),
    st.booleans(),
    st.floats(1e-3, 1e3),
)
def test_weights_fit_their_bits_and_are_the_nearest(
    seed: int, bits: int, scaling: Scaling, even: bool, size: float
) -> None:
    weight = drawn(seed, size, (4, 6))
    rounding = Rounding(bits, scaling, even)
    found = round_weight(weight, rounding)
    assert np.abs(found.whole).max() <= 2 ** (bits - 1) - 1
    assert not even or not (found.whole % 2).any()
    step = found.factor * found.base * rounding.step
    assert (np.abs(found.weight - weight) <= step / 2 * (1 + 1e-12)).all()
    # The next smaller scale would not hold the largest weight.
    if scaling is Scaling.LAYER:
        assert np.abs(weight).max() > found.base / 2 * rounding.most
    else:
        rows = np.abs(weight).max(axis=1, keepdims=True)
        assert (rows > (found.factor - 1) * found.base * rounding.most).all()


def test_a_scale_by_neuron_is_better_where_bits_are_few() -> None:
    weight = drawn(0) * np.array([[1.0], [0.1], [0.03], [1.0], [0.3]])

    def error(scaling: Scaling) -> float:
        rounded = round_weight(weight, Rounding(3, scaling)).weight
        return float(np.sqrt(np.mean((rounded - weight) ** 2)))

    assert error(Scaling.NEURON) < 0.6 * error(Scaling.LAYER)


def test_two_bits_are_ternary_and_one_bit_is_the_sign() -> None:
    weight = np.random.default_rng(0).normal(size=(20, 30))
    weight[0] = 0.0
    ternary, binary = (round_weight(weight, Rounding(bits)) for bits in (2, 1))
    assert set(np.unique(ternary.whole)) == {-1, 0, 1}
    assert np.array_equal(binary.whole, np.sign(weight))

    def error(base: float, whole: Ints) -> float:
        return float(((weight - base * whole) ** 2).sum())

    for found in (ternary, binary):
        assert np.log2(found.base) == np.rint(np.log2(found.base))
    for factor in (0.5, 2.0):
        clipped = np.clip(np.rint(weight / (factor * ternary.base)), -1, 1)
        assert error(ternary.base, ternary.whole) <= error(factor * ternary.base, clipped)
        assert error(binary.base, binary.whole) <= error(factor * binary.base, binary.whole)


def test_no_weights_are_none() -> None:
    found = round_weight(np.zeros((2, 3)), Rounding(8))
    assert not found.weight.any()


@pytest.mark.parametrize(("bits", "even"), [(0, False), (25, False), (2, True), (0, True)])
def test_bits_that_hold_nothing_are_refused(bits: int, even: bool) -> None:
    with pytest.raises(QuantisationError, match=f"to 24 bits, not {bits}"):
        Rounding(bits, even=even)


# Networks


@pytest.mark.parametrize("scaling", Scaling)
@pytest.mark.parametrize("even", [False, True])
def test_a_pair_keeps_its_symmetry(scaling: Scaling, even: bool) -> None:
    made, _ = quantise(pair(drawn(1)), Rounding(5, scaling, even))
    forth, back = made.projections[:2]
    np.testing.assert_array_equal(forth.weight, back.weight.T)
    assert (forth.weight != drawn(1)).any()


def test_a_symmetric_loop_keeps_its_symmetry() -> None:
    half = drawn(2, 0.3, (6, 6))
    population = Population("a", PLAIN, np.zeros(6))
    loop = Projection("a", "a", half + half.T)
    network = SpikingNetwork(1e-3, (population,), (loop,), "a")
    made, _ = quantise(network, Rounding(4, Scaling.NEURON))
    np.testing.assert_array_equal(made.projections[0].weight, made.projections[0].weight.T)


def test_a_pair_between_unlike_populations_shares_the_coarser_scale() -> None:
    strong = replace(PLAIN, threshold=16.0, floor=-16.0, ceiling=16.0)
    made, report = quantise(pair(drawn(1, 0.01), output=strong), Rounding(12))
    assert len({each.exponent for each in report.projections[:2]}) == 1
    np.testing.assert_array_equal(made.projections[0].weight, made.projections[1].weight.T)


def test_all_numbers_are_whole_in_their_unit() -> None:
    odd = Spiking(0.3, 0.1, 0.9, Reset.ZERO, floor=-0.77, ceiling=0.4501)
    made, report = quantise(pair(drawn(1), output=odd, bias=0.123), Rounding(8))
    assert made.fixed is not None
    for population in made.populations:
        neurons, unit = neurons_of(made, population), made.fixed.units[population.name]
        np.testing.assert_array_equal(neurons.bias * unit, population.bias)
        assert abs(population.bias[0]) == pytest.approx(0.123, abs=unit / 2)
    neuron, unit = made["output"].neuron, made.fixed.units["output"]
    assert isinstance(neuron, Spiking)
    assert (neuron.current_decay, neuron.voltage_decay) == (1229 / 4096, 410 / 4096)
    assert neuron.threshold == pytest.approx(0.9, abs=unit / 2)
    assert -0.77 - unit <= neuron.floor <= -0.77
    assert 0.4501 <= neuron.ceiling <= 0.4501 + unit
    for projection in made.projections:
        whole = weights(made, projection)
        assert whole.dtype == np.int64
        np.testing.assert_array_equal(
            whole * made.fixed.units[projection.target], projection.weight
        )
    assert report.populations[1].threshold == round(neuron.threshold / unit)


def test_the_scale_of_the_research_notes() -> None:
    weight = drawn(3)
    weight[0, 0] = 0.2
    _, report = quantise(pair(np.clip(weight, -0.2, 0.2)), Rounding(8))
    # 2^ceil(log2(0.2 / 127)) = 2^-9, and the threshold 1 / 2^-9.
    assert [each.exponent for each in report.projections] == [-9, -9, -6]
    assert [each.threshold for each in report.populations] == [512, 512]
    assert report.projections[0].largest == round(0.2 * 512)


def test_sixteen_bits_lose_nothing_on_the_grid_of_lowered_networks() -> None:
    grid = np.rint(drawn(4) * 4096) / 4096
    network = pair(grid, bias=205 / 4096)
    made, report = quantise(network, Rounding(16))
    assert all(each.worst_error == 0.0 and each.lost == 0 for each in report.projections)
    for old, new in zip(network.populations, made.populations, strict=True):
        np.testing.assert_array_equal(old.bias, new.bias)
        assert old.neuron == new.neuron


def test_graded_populations_count_in_parts_of_theta() -> None:
    bent = replace(MESSAGES, activation=TANH, damping=0.3)
    tall = replace(MESSAGES, activation=box(1.3))
    made, report = quantise(pair(drawn(1), hidden=bent, output=tall), Rounding(8))
    hidden, output = (neurons_of(made, population) for population in made.populations)
    assert isinstance(hidden, GradedNeurons)
    assert isinstance(output, GradedNeurons)
    assert hidden.damping == 1229
    assert hidden.theta == round(2.0**-6 / hidden.shown) >= 64
    assert abs(output.high * output.shown - 1.3) <= output.shown / 2
    assert weights(made, made.projections[0]).dtype == np.int64
    assert all(each.reach < 1 for each in report.populations)


def test_no_limit_stays_none() -> None:
    free = replace(PLAIN, floor=-inf, ceiling=inf)
    made, _ = quantise(pair(drawn(1), hidden=free), Rounding(8))
    neuron = made["hidden"].neuron
    assert isinstance(neuron, Spiking)
    assert (neuron.floor, neuron.ceiling) == (-inf, inf)


def test_the_state_needs_the_bits_of_its_farthest_value() -> None:
    neuron = replace(PLAIN, floor=-3.0, ceiling=2.0)
    network = pair(drawn(1), hidden=neuron)
    assert state_bits(network) is None
    made, _ = quantise(network, Rounding(8))
    numbers = neurons_of(made, made["hidden"])
    farthest = 3.0 / numbers.shown
    assert 2 ** (numbers.state_bits - 2) <= farthest < 2 ** (numbers.state_bits - 1)
    assert state_bits(made) == max(neurons_of(made, p).state_bits for p in made.populations)
    free, _ = quantise(pair(drawn(1), hidden=replace(neuron, floor=-inf)), Rounding(8))
    assert state_bits(free) == STATE_BITS


def test_the_report_says_what_was_lost_and_what_may_wrap() -> None:
    weight = drawn(5)
    weight[0, 0], weight[1, 1] = 1.0, 1e-4
    network = pair(weight)
    _, report = quantise(network, Rounding(4))
    made, _ = quantise(network, Rounding(4))
    first, new = report.projections[0], made.projections[0].weight
    assert first.worst_error == np.abs(new - weight).max() > 0
    assert first.lost == np.count_nonzero((new == 0) & (weight != 0)) > 0
    assert not report.may_wrap
    slow = replace(PLAIN, current_decay=0.001)
    _, other = quantise(pair(weight, output=slow), Rounding(4))
    assert other.may_wrap == ("output",)


def test_a_weight_that_overflows_is_refused_by_name() -> None:
    with pytest.raises(QuantisationError, match=r"'hidden->output' has a weight of size 1000,"):
        quantise(pair(np.array([[1000.0, 1.0]])), Rounding(8))


def test_a_theta_that_is_no_power_of_two_is_refused() -> None:
    odd = replace(MESSAGES, theta=0.01)
    with pytest.raises(QuantisationError, match=r"'output' has theta 0\.01"):
        quantise(pair(drawn(1), output=odd), Rounding(8))


def test_twice_is_refused() -> None:
    made, _ = quantise(pair(drawn(1)), Rounding(8))
    with pytest.raises(QuantisationError, match="already"):
        quantise(made, Rounding(8))


def test_once_more_changes_nothing() -> None:
    made, _ = quantise(pair(drawn(1)), Rounding(8))
    again, _ = quantise(replace(made, fixed=None), Rounding(8))
    assert again.digest == made.digest


# The description


def test_fixed_point_is_part_of_the_digest() -> None:
    made, _ = quantise(pair(drawn(1)), Rounding(8))
    assert made.fixed is not None
    finer = {name: unit / 2 for name, unit in made.fixed.units.items()}
    digests = {
        made.digest,
        replace(made, fixed=None).digest,
        replace(made, fixed=FixedPoint(finer)).digest,
    }
    assert len(digests) == 3


@pytest.mark.parametrize("unit", [0.0, -0.5, 0.3, inf])
def test_a_unit_that_is_no_power_of_two_is_refused(unit: float) -> None:
    with pytest.raises(ValueError, match="unit of 'a' must be a power of two"):
        FixedPoint({"a": unit})


def test_every_population_needs_a_unit() -> None:
    with pytest.raises(ValueError, match="units of"):
        replace(pair(drawn(1)), fixed=FixedPoint({"hidden": 0.5}))


def test_numbers_that_are_not_whole_are_refused() -> None:
    network = replace(pair(drawn(1)), fixed=FixedPoint({"hidden": 2.0**-9, "output": 2.0**-9}))
    with pytest.raises(ValueError, match="a bias of 'hidden' is not a multiple"):
        neurons_of(network, network.populations[0])
    with pytest.raises(ValueError, match="a weight of 'hidden->output' is not a multiple"):
        weights(network, network.projections[0])


def test_a_simulator_without_integers_is_refused_the_network() -> None:
    made, _ = quantise(pair(drawn(1)), Rounding(8))
    stimulus = Stimulus(1, {}, {})
    with pytest.raises(BackendError, match=r"brian2 cannot run a network with 24-bit fixed point"):
        check_run(load_backend("brian2"), made, stimulus)
    check_run(load_backend("lava"), made, stimulus)
