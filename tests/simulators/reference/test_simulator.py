"""The reference against steps worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, TANH
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Recording
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.testing.case import record_everything
from neuro_eqprop.spiking.ir import (
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

NEURON = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
SIGMA_DELTA = Graded(HARD_SIGMOID, theta=0.25, damping=0.5)


def free(steps: int) -> Schedule:
    return (Phase("free", 0.0, steps, steps),)


def single(neuron: Neuron, *bias: float) -> SpikingNetwork:
    return SpikingNetwork(1e-3, (Population("a", neuron, np.array(bias)),), (), "a")


def chain(
    source: Neuron, target: Neuron, *, bias: float, weight: float, delay: int, gain: Gain
) -> SpikingNetwork:
    a, b = Population("a", source, np.array([bias])), Population("b", target, np.array([0.0]))
    path = Projection("a", "b", np.array([[weight]]), delay, gain)
    return SpikingNetwork(1e-3, (a, b), (path,), "b")


def run(
    network: SpikingNetwork, schedule: Schedule, stimulus: Stimulus | None = None
) -> tuple[Result, list[Recording]]:
    """Everything recorded."""
    sink = MemorySink()
    given, record = stimulus or Stimulus(1, {}, {}), record_everything(network)
    return Reference().run(network, given, schedule, record=record, sink=sink), sink.recordings


def column(recording: Recording, name: str, variable: str = "spikes") -> list[float]:
    array = recording.spikes[name] if variable == "spikes" else recording.signals[name, variable]
    values: list[float] = array[:, 0].tolist()
    return values


def test_reset_by_subtraction() -> None:
    _, (recording,) = run(single(NEURON, 0.375), free(6))
    # From 0.5: 0.875, 1.25 fires, 0.625, 1.0 fires, 0.375, 0.75.
    assert column(recording, "a", "voltage") == [0.875, 0.25, 0.625, 0.0, 0.375, 0.75]
    assert column(recording, "a") == [0, 1, 0, 1, 0, 0]
    assert column(recording, "a", "drive") == [0.375] * 6


def test_reset_to_zero() -> None:
    _, (recording,) = run(single(replace(NEURON, reset=Reset.ZERO), 0.375), free(6))
    # From 0.5: 0.875, 1.25 fires, 0.375, 0.75, 1.125 fires, 0.375.
    assert column(recording, "a", "voltage") == [0.875, 0.0, 0.375, 0.75, 0.0, 0.375]
    assert column(recording, "a") == [0, 1, 0, 0, 1, 0]


def test_limits_come_after_the_reset() -> None:
    # From 0.5: 4.0 fires, 3.0 is cut to 2.0; 5.5 fires, 4.5 is cut to 2.0.
    _, (recording,) = run(single(NEURON, 3.5), free(2))
    assert column(recording, "a", "voltage") == [2.0, 2.0]
    _, (recording,) = run(single(NEURON, -0.875), free(3))
    assert column(recording, "a", "voltage") == [-0.375, -1.0, -1.0]


def test_voltage_that_meets_the_threshold_fires() -> None:
    _, (recording,) = run(single(NEURON, 0.5), free(3))
    assert column(recording, "a") == [1, 0, 1]


def test_current_and_voltage_decay() -> None:
    leaky = Spiking(0.5, 0.25, 1.0, Reset.SUBTRACT, -1.0, 2.0)
    network = chain(NEURON, leaky, bias=1.0, weight=0.25, delay=1, gain=Gain.ONE)
    _, (recording,) = run(network, free(4))
    assert column(recording, "a") == [1, 1, 1, 1]
    # u: 0, 0.25, 0.125 + 0.25, 0.1875 + 0.25.
    assert column(recording, "b", "drive") == [0.0, 0.25, 0.375, 0.4375]
    # v: 0.375, 0.28125 + 0.25, 0.3984375 + 0.375, 0.580078125 + 0.4375 which fires.
    assert column(recording, "b", "voltage") == [0.375, 0.53125, 0.7734375, 0.017578125]
    assert column(recording, "b") == [0, 0, 0, 1]


@pytest.mark.parametrize("delay", [1, 2, 5])
def test_a_spike_arrives_after_its_delay(delay: int) -> None:
    network = chain(NEURON, NEURON, bias=1 / 16, weight=0.25, delay=delay, gain=Gain.ONE)
    _, (recording,) = run(network, free(14))
    fired = column(recording, "a").index(1.0)
    assert fired == 7
    arrived = [0.25 if t == fired + delay else 0.0 for t in range(14)]
    assert column(recording, "b", "drive") == arrived


def test_a_gain_is_read_on_arrival() -> None:
    network = chain(NEURON, NEURON, bias=1.0, weight=0.25, delay=2, gain=Gain.BETA)
    phases = (Phase("free", 0.0, 3, 1), Phase("nudged", 0.5, 2, 1), Phase("back", -1.0, 2, 1))
    _, (recording,) = run(network, phases)
    assert column(recording, "b", "drive") == [0, 0, 0, 0.125, 0.125, -0.25, -0.25]


def test_current_and_pull_belong_to_their_sample() -> None:
    stimulus = Stimulus(
        2, {"a": np.array([[0.25], [0.0]])}, {"a": np.array([[1.0], [-2.0]])}, host_macs=3
    )
    phases = (Phase("free", 0.0, 1, 1), Phase("nudged", 0.25, 1, 1))
    _, (first, second) = run(single(NEURON, 0.125), phases, stimulus)
    assert column(first, "a", "drive") == [0.375, 0.625]
    assert column(second, "a", "drive") == [0.125, -0.375]


def test_graded_state_and_messages() -> None:
    _, (recording,) = run(single(SIGMA_DELTA, 0.8125), free(5))
    # x goes half of the way to 0.8125; what was sent follows it in quarters.
    assert column(recording, "a", "state") == [
        0.40625,
        0.609375,
        0.7109375,
        0.76171875,
        0.787109375,
    ]
    # (x - sent) / theta: 1.625 sends 2, 0.4375 nothing, 0.84375 sends 1, 0.046875 nothing.
    assert column(recording, "a") == [0.5, 0, 0.25, 0, 0]


def test_graded_ties_go_to_even() -> None:
    coarse = Graded(LINEAR, theta=0.25, damping=1.0)
    _, (recording,) = run(single(coarse, 0.125, 0.375, 0.625, -0.125, -0.375, -0.625), free(1))
    assert recording.spikes["a"][0].tolist() == [0.0, 0.5, 0.5, 0.0, -0.5, -0.5]


def test_graded_sums_keep_what_arrived() -> None:
    network = chain(SIGMA_DELTA, SIGMA_DELTA, bias=1.0, weight=0.5, delay=1, gain=Gain.ONE)
    _, (recording,) = run(network, free(5))
    # x of a: 0.5, 0.75, 0.875, 0.9375; (x - sent) / theta: 2, 1, 0.5 which ties to 0, 0.75.
    assert column(recording, "a")[:4] == [0.5, 0.25, 0.0, 0.25]
    assert column(recording, "b", "drive") == [0.0, 0.25, 0.375, 0.375, 0.5]


def test_graded_sums_of_gain_beta_change_with_the_phase() -> None:
    network = chain(SIGMA_DELTA, SIGMA_DELTA, bias=1.0, weight=0.5, delay=1, gain=Gain.BETA)
    phases = (Phase("free", 0.0, 3, 1), Phase("nudged", 0.5, 2, 1), Phase("back", -1.0, 1, 1))
    _, (recording,) = run(network, phases)
    # The sum is 0, 0.25, 0.375, 0.375, 0.5, 0.5.
    assert column(recording, "b", "drive") == [0, 0, 0, 0.1875, 0.25, -0.5]


def test_graded_tanh_is_near_the_library() -> None:
    follow = Graded(TANH, theta=2.0**-20, damping=1.0)
    _, (recording,) = run(single(follow, 0.75), free(1))
    assert column(recording, "a", "state")[0] == pytest.approx(np.tanh(0.75), abs=1e-15)


def test_result_counts_all_steps_and_averages_the_window() -> None:
    phases = (Phase("free", 0.0, 4, 2), Phase("nudged", 1.0, 3, 3))
    stimulus = Stimulus(1, {}, {"a": np.array([[0.5]])})
    result, (recording,) = run(single(NEURON, 0.375), phases, stimulus)
    # Spikes 0 1 0 1, then with drive 0.875 from 0.0: 0.875, 1.75 fires, 1.625 fires.
    assert column(recording, "a") == [0, 1, 0, 1, 0, 1, 1]
    assert result.messages["a"].tolist() == [[[2], [2]]]
    assert result.firing["a"].tolist() == [[[0.5], [2 / 3]]]
    assert result.drive["a"].tolist() == [[[0.375], [0.875]]]


def test_firing_of_a_graded_population_is_what_it_has_sent() -> None:
    result, _ = run(single(SIGMA_DELTA, 0.8125), (Phase("free", 0.0, 4, 3),))
    assert result.messages["a"].tolist() == [[[2]]]
    # Sent in sum 0.5, 0.5, 0.75, 0.75.
    assert result.firing["a"].tolist() == [[[2.0 / 3]]]


def test_samples_do_not_touch_each_other() -> None:
    network = chain(NEURON, SIGMA_DELTA, bias=0.0, weight=0.5, delay=3, gain=Gain.ONE)
    current = np.array([[1.5], [0.25], [-1.0]])
    together, recordings = run(network, free(9), Stimulus(3, {"a": current}, {}))
    for k in range(3):
        alone, (recording,) = run(network, free(9), Stimulus(1, {"a": current[k : k + 1]}, {}))
        assert np.array_equal(together.messages["b"][k], alone.messages["b"][0])
        assert np.array_equal(recordings[k].spikes["b"], recording.spikes["b"])


def test_only_what_is_asked_for_is_recorded() -> None:
    sink = MemorySink()
    stimulus = Stimulus(2, {}, {})
    Reference().run(single(NEURON, 0.5), stimulus, free(2), record=NOTHING, sink=sink)
    assert [(r.spikes, r.signals) for r in sink.recordings] == [({}, {}), ({}, {})]


def test_a_stimulus_that_does_not_fit_is_refused() -> None:
    stimulus = Stimulus(1, {"a": np.zeros((1, 2))}, {})
    with pytest.raises(ValueError, match="stimulus of 'a' has 2 columns"):
        run(single(NEURON, 0.5), free(1), stimulus)
