"""The fused process against the reference, and Lava's own LIF against its own equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.base import BackendError, Feature
from neuro_eqprop.backends.lava.variants import LavaFused, LavaStock
from neuro_eqprop.backends.registry import load_backend
from neuro_eqprop.schedules import free_only
from neuro_eqprop.spiking.ir import (
    Gain,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.testing import CASES, check_case, draw_case
from neuro_eqprop.testing.case import Case, record_everything, run_case
from neuro_eqprop.testing.random_networks import draw_whole_case
from neuro_eqprop.traces import MemorySink, Record

pytestmark = pytest.mark.lava
NAMED = {case.name: case for case in CASES}
STEPS = 40


@pytest.mark.parametrize(
    "case",
    [draw_case(4, 3), draw_whole_case(4, 1), NAMED["samples start from rest"]],
    ids=lambda case: case.name,
)
def test_many_samples_in_one_process_are_as_in_the_reference(case: Case) -> None:
    """Three at a time, of which the last batch is not full, or all."""
    check_case(LavaFused(batch=3), case)


def test_no_samples_and_no_batch() -> None:
    case = NAMED["one neuron"]
    nobody = replace(case, stimulus=Stimulus(0, {}, {}), record=Record())
    assert run_case(load_backend("lava-fused"), nobody).result.messages["a"].shape == (0, 3, 1)
    with pytest.raises(ValueError, match=r"not 60\.0 s and 0 samples"):
        LavaFused(batch=0)


def stock() -> tuple[SpikingNetwork, Stimulus]:
    rng = np.random.default_rng(5)

    def grid(*shape: int) -> Array:
        return np.asarray(np.rint(rng.normal(0, 0.4, shape) * 64) / 64)

    neuron = Spiking(0.5, 0.125, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)
    plain = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)
    populations = (
        Population("a", neuron, np.abs(grid(5))),
        Population("b", plain, np.array([0.25, 0.5, 0.0])),
    )
    ways = (
        Projection("a", "b", grid(3, 5)),
        Projection("b", "a", grid(5, 3), delay=3),
        Projection("a", "a", grid(5, 5)),
    )
    network = SpikingNetwork(1e-3, populations, ways, "b")
    return network, Stimulus(2, {"a": np.abs(grid(2, 5)), "b": grid(2, 3)}, {})


def by_hand(network: SpikingNetwork, stimulus: Stimulus, sample: int) -> dict[str, Array]:
    """s = v > threshold, and v = 0 where s, without limits."""
    u = {p.name: np.zeros(p.size) for p in network.populations}
    v = {p.name: np.full(p.size, 0.5) for p in network.populations}
    sent: list[dict[str, Array]] = []
    for t in range(STEPS):
        now: dict[str, Array] = {}
        for p in network.populations:
            neuron = p.neuron
            assert isinstance(neuron, Spiking)
            a = np.zeros(p.size)
            for way in network.into(p.name, Gain.ONE):
                if t >= way.delay:
                    a = a + way.weight @ sent[t - way.delay][way.source]
            u[p.name] = (1 - neuron.current_decay) * u[p.name] + a
            outside = p.bias + stimulus.current[p.name][sample]
            voltage = (1 - neuron.voltage_decay) * v[p.name] + u[p.name] + outside
            now[p.name] = (voltage > neuron.threshold).astype(float)
            v[p.name] = np.where(now[p.name] > 0, 0.0, voltage)
        sent.append(now)
    return {name: np.stack([step[name] for step in sent]) for name in u}


def test_stock_neurons_do_what_their_equations_say() -> None:
    network, stimulus = stock()
    sink = MemorySink()
    record = Record(frozenset({"a", "b"}), frozenset({("b", "drive")}))
    schedule = free_only(steps=STEPS, window=30)
    result = LavaStock().run(network, stimulus, schedule, record=record, sink=sink)
    for sample, recording in enumerate(sink.recordings):
        want = by_hand(network, stimulus, sample)
        for name, raster in want.items():
            np.testing.assert_array_equal(recording.spikes[name], raster)
            np.testing.assert_array_equal(result.messages[name][sample, 0], raster.sum(axis=0))
        drive = recording.signals["b", "drive"]
        np.testing.assert_allclose(result.drive["b"][sample, 0], drive[-30:].mean(axis=0))
    whole = Case("", network, stimulus, schedule, record_everything(network))
    right = run_case(load_backend("reference"), whole).result
    assert np.abs(result.firing["b"] - right.firing["b"]).mean() > 0.02


def test_what_stock_neurons_cannot_do_is_refused_with_a_reason() -> None:
    support = LavaStock().support
    assert Feature.SPIKING in support
    assert Feature.EXACT not in support
    for name, told in {
        "graded relu": ".*graded messages: .*binary spikes; use reference",
        "nudge": ".*no gains are switched",
        "reset to zero, in fixed point": ".*floating point",
        "floor": ": its voltages are not recorded",
    }.items():
        with pytest.raises(BackendError, match=f"^lava-stock{told}"):
            run_case(load_backend("lava-stock"), NAMED[name])
