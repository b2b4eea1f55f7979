"""The integer step: reference = emulator bit for bit, = the float step where nothing is cut off."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, RELU, TANH, Activation
from neuro_eqprop.simulators.base import Backend, BackendError
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing.case import Case, CaseRun, record_everything, run_case
from neuro_eqprop.simulators.testing.random_networks import attempt_case
from neuro_eqprop.spiking.arithmetic import TOP
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
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding, Scaling
from neuro_eqprop.spiking.synapses import DenseSynapses

ON = ("reference", "emulator")
INTEGRATOR = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)
LEAKY = Spiking(0.25, 0.0625, 1.0, Reset.SUBTRACT, floor=-inf, ceiling=inf)
BITS = (8, 4, 12, 9, 3, 16)


def same(got: CaseRun, want: CaseRun) -> None:
    """Refuse any difference in what was measured, recorded or overflowed."""
    assert got.result.overflows == want.result.overflows
    for field in ("messages", "firing", "drive"):
        for name, right in getattr(want.result, field).items():
            np.testing.assert_array_equal(getattr(got.result, field)[name], right)
    for here, there in zip(got.recordings, want.recordings, strict=True):
        for name, array in there.spikes.items():
            np.testing.assert_array_equal(here.spikes[name], array)
        for key, array in there.signals.items():
            np.testing.assert_array_equal(here.signals[key], array)


def both(case: Case) -> CaseRun:
    """Run on reference and emulator, refuse a difference, and return what came out."""
    want = run_case(load_backend("reference"), case)
    same(run_case(load_backend("emulator"), case), want)
    return want


def drawn_case(seed: int, number: int, *, steps: int = 14) -> Case:
    """A random network in fixed point; every way to round weights comes up."""
    case = attempt_case(seed, number, attempt=0)
    rounding = Rounding(BITS[number % 6], tuple(Scaling)[number % 2], even=number % 3 == 0)
    network, _ = quantise(case.network, rounding)
    schedule = three_phase(beta=0.3, free=steps, nudged=steps)
    return replace(case, network=network, schedule=schedule)


@pytest.mark.parametrize("number", range(24))
def test_random_networks_are_equal_bit_for_bit(number: int) -> None:
    run = both(drawn_case(6, number))
    assert all(array.any() for array in run.result.messages.values())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_a_thousand_steps_are_equal_bit_for_bit(number: int) -> None:
    both(drawn_case(7, number, steps=340))


def case_of(
    neurons: list[Neuron],
    *,
    units: float,
    seed: int,
    size: float,
    outside: float,
    steps: int = 60,
) -> Case:
    """Populations of six, everyone heard by everyone, with these units and sizes of numbers."""
    rng = np.random.default_rng(seed)

    def whole(values: Array, unit: float) -> Array:
        return np.asarray(np.rint(values / unit) * unit)

    populations = tuple(
        Population(f"p{k}", neuron, whole(rng.normal(0, outside, 6), units))
        for k, neuron in enumerate(neurons)
    )
    projections = []
    for a in populations:
        for b in populations:
            theta = a.neuron.theta if isinstance(a.neuron, Graded) else 1.0
            weight = whole(rng.normal(0, size, (6, 6)), units / theta)
            gain = Gain.BETA if rng.random() < 0.3 else Gain.ONE
            delay = int(rng.integers(1, 4))
            projections.append(Projection(a.name, b.name, weight, delay, gain))
    fixed = FixedPoint({population.name: units for population in populations})
    last = populations[-1].name
    network = SpikingNetwork(1e-3, populations, tuple(projections), last, fixed)
    current = {"p0": rng.normal(0, outside, (2, 6))}
    stimulus = Stimulus(2, current, {last: rng.normal(0, outside, (2, 6))})
    schedule = three_phase(beta=0.3, free=steps, nudged=steps)
    return Case("", network, stimulus, schedule, record_everything(network))


@pytest.mark.parametrize("seed", range(6))
def test_currents_that_wrap_and_voltages_that_saturate(seed: int) -> None:
    slow = replace(LEAKY, current_decay=1 / 64)
    case = case_of([slow, LEAKY, slow], units=2.0**-14, seed=seed, size=2.0, outside=1.5)
    run = both(case)
    assert sum(overflow.wraps for overflow in run.result.overflows.values()) > 50
    assert sum(overflow.saturations for overflow in run.result.overflows.values()) > 50
    reached = max(
        float(np.abs(recording.signals["p1", "voltage"]).max()) for recording in run.recordings
    )
    assert reached * 64 / 2.0**-14 == TOP - 1


@pytest.mark.parametrize("activation", [HARD_SIGMOID, RELU, TANH])
def test_sums_that_wrap_and_states_that_saturate(activation: Activation) -> None:
    neuron = Graded(activation, theta=2.0**-6, damping=0.25)
    case = case_of([neuron, neuron], units=2.0**-20, seed=0, size=3.0, outside=4.0)
    run = both(case)
    overflows = run.result.overflows.values()
    assert sum(overflow.wraps for overflow in overflows) > 5
    bounded = activation is not RELU
    assert (sum(overflow.saturations for overflow in overflows) == 0) is bounded


def test_nothing_overflows_where_there_is_room() -> None:
    run = both(drawn_case(6, 0))
    assert set(run.result.overflows) == set(run.result.messages)
    assert not any(o.wraps or o.saturations for o in run.result.overflows.values())


@pytest.mark.parametrize("number", range(8))
def test_without_decays_it_is_the_float_step(number: int) -> None:
    """Then nothing is ever cut off, and beta = 1/2 of even numbers is whole."""
    rng = np.random.default_rng(number)
    neuron: Neuron = INTEGRATOR if number % 2 else Graded(HARD_SIGMOID, 2.0**-5, 1.0)
    case = case_of([neuron, neuron], units=2.0**-12, seed=number, size=0.4, outside=0.4)
    projections = tuple(
        replace(p, synapses=DenseSynapses(np.rint(p.weight * 2**6) / 2**6))
        for p in case.network.projections
    )
    pull = {"p1": np.rint(rng.normal(0, 1, (2, 6)) * 2**6) / 2**6}
    current = {"p0": np.rint(rng.normal(0, 1, (2, 6)) * 2**6) / 2**6}
    whole = replace(
        case,
        network=replace(case.network, projections=projections),
        stimulus=Stimulus(2, current, pull),
        schedule=three_phase(beta=0.5, free=40, nudged=40),
    )
    run = both(whole)
    float_run = run_case(
        load_backend("reference"), replace(whole, network=replace(whole.network, fixed=None))
    )
    assert not any(o.wraps or o.saturations for o in run.result.overflows.values())
    same(replace(run, result=replace(run.result, overflows={})), float_run)


def test_fewer_bits_change_spikes() -> None:
    """Lest the tests above compare what never differs."""
    case = attempt_case(6, 0, attempt=0)

    def spikes(bits: int) -> list[bytes]:
        network, _ = quantise(case.network, Rounding(bits))
        run = run_case(load_backend("emulator"), replace(case, network=network))
        return [array.tobytes() for array in run.result.messages.values()]

    assert spikes(3) != spikes(12)


@pytest.mark.parametrize("name", ["brian2", "snntorch"])
def test_simulators_without_integers_refuse(name: str) -> None:
    backend: Backend = load_backend(name)
    case = drawn_case(6, 0)
    with pytest.raises(BackendError, match="24-bit fixed point: it runs in floating point"):
        run_case(backend, case)


@pytest.mark.lava
@pytest.mark.parametrize("seed", range(4))
def test_current_and_voltage_are_those_of_lava(seed: int) -> None:
    """Lava's own fixed-point dynamics, fed with what arrived here; spikes and reset are ours."""
    from lava.proc.lif.models import AbstractPyLifModelFixed

    slow = replace(LEAKY, current_decay=(1 + 39) / 4096, voltage_decay=128 / 4096)
    case = case_of([slow], units=2.0**-13, seed=seed, size=1.0, outside=1.0)
    links = tuple(replace(p, gain=Gain.ONE) for p in case.network.projections)
    case = replace(case, network=replace(case.network, projections=links))
    case = replace(case, schedule=three_phase(beta=0.5, free=200, nudged=1))
    run = run_case(load_backend("reference"), case)
    assert run.result.overflows["p0"].wraps > 0
    assert run.result.overflows["p0"].saturations > 0
    unit = 2.0**-13
    for sample, recording in enumerate(run.recordings):
        here = SimpleNamespace(ds_offset=1, dm_offset=0, decay_shift=12, decay_unity=4096)
        here.max_uv_val, here.act_shift, here.du, here.dv = TOP, 6, 39, 128
        outside = np.rint(case.stimulus.current["p0"][sample] / unit)
        bias = (outside + case.network["p0"].bias / unit).astype(np.int32)
        here.effective_bias = bias << 6
        here.u, here.v = np.zeros(6, np.int32), np.full(6, round(32 / unit), np.int32)
        for t in range(200):
            arriving = arrivals(case, recording.spikes["p0"], t)
            AbstractPyLifModelFixed.subthr_dynamics(here, arriving.astype(np.int32))
            np.testing.assert_array_equal(
                here.u + here.effective_bias, recording.signals["p0", "drive"][t] * 64 / unit
            )
            fired = here.v >= round(64 / unit)
            np.testing.assert_array_equal(fired, recording.spikes["p0"][t] != 0)
            here.v[fired] -= round(64 / unit)
            np.testing.assert_array_equal(here.v, recording.signals["p0", "voltage"][t] * 64 / unit)


def arrivals(case: Case, spikes: Array, t: int) -> Ints:
    """What reaches the one population of a case at a step of its free phase, in whole numbers."""
    total = np.zeros(6)
    for projection in case.network.projections:
        if t >= projection.delay:
            total += projection.weight @ spikes[t - projection.delay]
    return np.asarray(np.rint(total / 2.0**-13), dtype=np.int64)


@cache
def trained() -> ne.Model:
    return ne.train("layered", "digits", hidden=(8,), epochs=1)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e18, 1e300, -1e18])
@pytest.mark.parametrize("code", ["rate", "graded"])
def test_data_of_any_size_overflow_equally_often(code: str, size: float) -> None:
    spiking = trained().to_spiking(code=code, bits=8)
    x = size * ne.load_data("digits").test.x[:3]
    found = {on: spiking.run(x, on=on, steps=16) for on in ON}
    reference = found["reference"]
    assert reference.overflows > 0 or code == "graded"
    for run in found.values():
        assert run.overflows == reference.overflows
        np.testing.assert_array_equal(run.drive, reference.drive)
        assert run.counts == reference.counts
