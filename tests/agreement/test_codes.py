"""The codes that keep a rate, and the one with two signs: against the reference, against rates."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import free_only, tail, three_phase, two_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, HARD_TANH, LINEAR, TANH, Activation
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.emulator import simulator
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing.case import Case, CaseRun, record_everything, run_case
from neuro_eqprop.simulators.testing.random_networks import attempt_case, draw_spiking
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.counter_rng import uniform
from neuro_eqprop.spiking.ir import (
    DecreasingGain,
    FixedPoint,
    RateTracking,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.lower import lower, rates_of, stimulate
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.training.rules.phases import SWEEPS, relax

BETA = 0.25


def same(got: CaseRun, want: CaseRun) -> None:
    """Refuse any difference, even in the last bit."""
    for part in ("messages", "firing", "drive"):
        for name, right in getattr(want.result, part).items():
            np.testing.assert_array_equal(getattr(got.result, part)[name], right)
    for here, there in zip(got.recordings, want.recordings, strict=True):
        for name, array in there.spikes.items():
            np.testing.assert_array_equal(here.spikes[name], array)
        for key, array in there.signals.items():
            np.testing.assert_array_equal(here.signals[key], array)


def following_case(number: int) -> Case:
    """A random network most of whose populations follow a rate, in every way there is."""
    case, rng = attempt_case(9, number, attempt=0), np.random.default_rng(number)
    populations = []
    for population in case.network.populations:
        follow = RateTracking(
            (HARD_SIGMOID, TANH)[int(rng.integers(2))],
            DecreasingGain(float(rng.choice([1.0, 0.503])), float(rng.choice([0.5, 0.292, 0.0]))),
            DecreasingGain(float(rng.choice([1.0, 0.354])), float(rng.choice([0.0, 0.75]))),
            None if rng.random() < 0.5 else int(rng.integers(1000)),
        )
        neuron = replace(draw_spiking(rng), follow=follow)
        follows = rng.random() < 0.8
        populations.append(replace(population, neuron=neuron) if follows else population)
    network = replace(case.network, populations=tuple(populations))
    schedule = three_phase(beta=0.3, free=40, nudged=30)
    return replace(case, network=network, schedule=schedule, record=record_everything(network))


# The step


@pytest.mark.parametrize("number", range(16))
def test_the_emulator_follows_as_the_reference_does(number: int) -> None:
    case = following_case(number)
    same(run_case(load_backend("emulator"), case), run_case(load_backend("reference"), case))


def with_neurons(case: Case, follow: RateTracking | None) -> Case:
    """The case with currents that do not last, and with units that follow in this way."""
    populations = []
    for population in case.network.populations:
        assert isinstance(population.neuron, Spiking)
        neuron = replace(population.neuron, current_decay=1.0, follow=follow)
        populations.append(replace(population, neuron=neuron))
    return replace(case, network=replace(case.network, populations=tuple(populations)))


def test_with_full_gain_and_step_it_is_the_integrator() -> None:
    case = attempt_case(0, 0, attempt=0)
    at_once = RateTracking(LINEAR, DecreasingGain(1.0, 0.0), DecreasingGain(1.0, 0.0))
    plain = run_case(load_backend("reference"), with_neurons(case, None))
    follow = run_case(load_backend("reference"), with_neurons(case, at_once))
    for one, other in zip(plain.recordings, follow.recordings, strict=True):
        for name, array in one.spikes.items():
            assert array.any()
            np.testing.assert_array_equal(other.spikes[name], array)


def test_random_numbers_are_even_and_depend_on_all_they_are_for() -> None:
    drawn = uniform(3, 7, (200, 500))
    assert 0.0 <= drawn.min() < drawn.max() < 1.0
    assert np.abs(np.histogram(drawn, 10, (0, 1))[0] / drawn.size - 0.1).max() < 0.005
    for other in (
        uniform(4, 7, (200, 500)),
        uniform(3, 8, (200, 500)),
        drawn[::-1],
        drawn[:, ::-1],
    ):
        assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 0.02
    np.testing.assert_array_equal(uniform(3, 7, (2, 5)), drawn[:2, :5])


def test_samples_keep_their_random_numbers_when_a_run_is_done_in_parts() -> None:
    case = following_case(1)
    assert any(f.seed is not None for f in follows(case.network))
    whole = run_case(load_backend("emulator"), case)
    with patch.object(simulator, "WORK", 1):
        same(run_case(load_backend("emulator"), case), whole)


def follows(network: SpikingNetwork) -> list[RateTracking]:
    neurons = [population.neuron for population in network.populations]
    return [n.follow for n in neurons if isinstance(n, Spiking) and n.follow is not None]


@pytest.mark.parametrize("name", ["brian2", "snntorch", "lava"])
def test_other_simulators_refuse(name: str) -> None:
    refusal = f"{name} cannot run a network with spikes that track a rate: .*; use reference or emu"
    with pytest.raises(BackendError, match=refusal):
        run_case(load_backend(name), following_case(0))


def test_there_is_no_following_in_integers() -> None:
    network = following_case(0).network
    units = {population.name: 0.5 for population in network.populations}
    with pytest.raises(ValueError, match="not defined in integers"):
        replace(network, fixed=FixedPoint(units))
    with pytest.raises(ValueError, match="not defined in integers"):
        quantise(network, Rounding(8))


@pytest.mark.parametrize(("first", "power"), [(0.0, 0.5), (1.5, 0.5), (1.0, -0.5), (1.0, np.inf)])
def test_what_does_not_fall_is_refused(first: float, power: float) -> None:
    with pytest.raises(ValueError, match="needs `first` in"):
        DecreasingGain(first, power)


# The codes


def problem(network: Network) -> tuple[dict[str, Array], Array, Array]:
    rng = np.random.default_rng(4)
    params = initialize(network, rng)
    params |= {layer.name: rng.normal(0.2, 0.3, layer.shape) for layer in network.moving}
    params = {name: np.rint(value * 1024) / 1024 for name, value in params.items()}
    return params, rng.integers(0, 17, (12, 10)) / 16, np.eye(4)[rng.integers(0, 4, 12)]


def distance(network: Network, coding: Coding, steps: int) -> dict[str, float]:
    """By phase, how far what spikes tell is from equilibrium (rms)."""
    params, x, y = problem(network)
    long = two_phase(beta=BETA, free=5000, nudged=5000)
    stop = replace(SWEEPS, tolerance=1e-13)
    settled = relax(field(NumpyOps(), network, params, x), y, long, stop)
    schedule = two_phase(beta=BETA, free=steps, nudged=steps, part=coding.tail)
    stimulus = stimulate(network, params, x, target=y, coding=coding)
    made = lower(network, params, dt=1e-3, coding=coding, nudged=True)
    result = load_backend("emulator").run(
        made, stimulus, schedule, record=NOTHING, sink=MemorySink()
    )
    firing = rates_of(network, result.firing, coding)
    found = {}
    for k, phase in enumerate(schedule):
        state = settled[phase.name].state
        gaps = [np.ravel(firing[name][:, k] - state[name]) for name in firing]
        found[phase.name] = float(np.sqrt(np.mean(np.concatenate(gaps) ** 2)))
    return found


SIGMOID = layered(10, (20, 16), 4, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
SIGNED = layered(10, (24,), 4, hidden_rate=HARD_TANH, output_rate=HARD_TANH)


def test_the_predictive_code_is_nearer_than_rates_at_the_same_steps() -> None:
    plain = distance(SIGMOID, Coding(Code.RATE), 64)
    result = distance(SIGMOID, Coding(Code.PREDICTIVE), 64)
    assert result["free"] < 0.5 * plain["free"]
    assert result["nudged"] < plain["nudged"]
    assert result["free"] < 0.005


def test_random_spikes_come_near_slowly() -> None:
    near, far = (distance(SIGMOID, Coding(Code.BERNOULLI), steps)["free"] for steps in (1024, 32))
    assert near < 0.8 * far
    assert near > 5 * distance(SIGMOID, Coding(Code.PREDICTIVE), 1024)["free"]


def test_seeds_and_layers_draw_apart() -> None:
    params, _, _ = problem(SIGMOID)
    seeds = set()
    for seed in (0, 1):
        coding = Coding(Code.BERNOULLI, seed=seed)
        made = lower(SIGMOID, params, dt=1e-3, coding=coding, nudged=False)
        seeds |= {follow.seed for follow in follows(made)}
    assert len(seeds) == 2 * 3


def test_pairs_carry_both_signs() -> None:
    near, far = (distance(SIGNED, Coding(Code.PAIRED), steps) for steps in (512, 64))
    assert far["free"] < 0.05
    assert near["free"] < 0.3 * far["free"]
    assert near["nudged"] < 0.3 * far["nudged"]


def test_a_pair_never_fires_with_both() -> None:
    params, x, _ = problem(SIGNED)
    coding = Coding(Code.PAIRED)
    made = lower(SIGNED, params, dt=1e-3, coding=coding, nudged=False)
    assert [p.name for p in made.populations] == ["hidden+", "hidden-", "output+", "output-"]
    assert made.output == "output+"
    steps = 400
    schedule = free_only(steps=steps, window=tail(steps, 0.5))
    stimulus = stimulate(SIGNED, params, x, target=None, coding=coding)
    result = load_backend("emulator").run(
        made, stimulus, schedule, record=NOTHING, sink=MemorySink()
    )
    both = np.minimum(result.firing["hidden+"], result.firing["hidden-"])
    assert both.max() < 0.02
    assert result.firing["hidden-"].max() > 0.2
    np.testing.assert_array_equal(result.drive["output+"], -result.drive["output-"])


def test_layers_with_one_sign_are_no_pairs() -> None:
    params, _, _ = problem(SIGMOID)
    plain = lower(SIGMOID, params, dt=1e-3, coding=Coding(Code.RATE), nudged=True)
    paired = lower(SIGMOID, params, dt=1e-3, coding=Coding(Code.PAIRED), nudged=True)
    assert plain.digest == paired.digest


@pytest.mark.parametrize(
    ("code", "rate"),
    [
        (Code.PAIRED, TANH),
        (Code.PAIRED, LINEAR),
        (Code.PREDICTIVE, HARD_TANH),
        (Code.BERNOULLI, TANH),
        (Code.RATE, HARD_TANH),
    ],
)
def test_what_a_code_cannot_carry_is_refused_by_name(code: Code, rate: Activation) -> None:
    network = layered(10, (24,), 4, hidden_rate=rate, output_rate=HARD_SIGMOID)
    params, _, _ = problem(network)
    with pytest.raises(LoweringError, match=f"'hidden' has activation '{rate.name}'.*{code.name}"):
        lower(network, params, dt=1e-3, coding=Coding(code), nudged=False)


def test_a_stimulus_for_a_plain_network_is_accepted_as_before() -> None:
    params, x, y = problem(SIGMOID)
    stimulus = stimulate(SIGMOID, params, x, target=y, coding=Coding(Code.RATE))
    assert isinstance(stimulus, Stimulus)
    stimulus.check(lower(SIGMOID, params, dt=1e-3, coding=Coding(Code.RATE), nudged=True))
