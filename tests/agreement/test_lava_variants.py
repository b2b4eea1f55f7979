"""The fused process against the reference; Lava's own neurons against equations and rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop import open_run
from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import BackendError, Feature
from neuro_eqprop.simulators.lava.export import stock_plan
from neuro_eqprop.simulators.lava.native.plan import StockPlan, biases, expanded
from neuro_eqprop.simulators.lava.variants import LavaFused, LavaStock
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES, check_case, draw_case
from neuro_eqprop.simulators.testing.case import Case, run_case
from neuro_eqprop.simulators.testing.random_networks import draw_whole_case
from neuro_eqprop.spiking.ir import (
    FixedPoint,
    Gain,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.synapses import DenseSynapses

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
    empty = replace(case, stimulus=Stimulus(0, {}, {}), record=Record())
    assert run_case(load_backend("lava-fused"), empty).result.messages["a"].shape == (0, 3, 1)
    with pytest.raises(ValueError, match=r"not 60\.0 s and 0 samples"):
        LavaFused(batch=0)


def stock() -> tuple[SpikingNetwork, Stimulus]:
    rng = np.random.default_rng(5)

    def grid(*shape: int) -> Array:
        return np.asarray(np.rint(rng.normal(0, 0.4, shape) * 64) / 64)

    neuron = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)
    populations = (
        Population("a", neuron, np.abs(grid(5))),
        Population("b", neuron, np.array([0.25, 0.5, 0.0])),
    )
    ways = (
        Projection("a", "b", grid(3, 5)),
        Projection("b", "a", grid(5, 3)),
        Projection("a", "a", grid(5, 5)),
    )
    network = SpikingNetwork(1e-3, populations, ways, "b")
    return network, Stimulus(2, {"a": np.abs(grid(2, 5)), "b": grid(2, 3)}, {})


def by_hand(network: SpikingNetwork, stimulus: Stimulus, sample: int) -> dict[str, Array]:
    """ATRLIF: v = v + a + bias, s = v - r >= 1/2, and r = r + 1 where s, without limits."""
    v, r = ({p.name: np.zeros(p.size) for p in network.populations} for _ in range(2))
    sent: list[dict[str, Array]] = []
    for _ in range(STEPS):
        now: dict[str, Array] = {}
        for p in network.populations:
            for way in network.into(p.name, Gain.ONE) if sent else ():
                v[p.name] += way.weight @ sent[-1][way.source]
            v[p.name] += p.bias + stimulus.current[p.name][sample]
            now[p.name] = (v[p.name] - r[p.name] >= 0.5).astype(float)
            r[p.name] += now[p.name]
        sent.append(now)
    return {name: np.stack([step[name] for step in sent]) for name in v}


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


@pytest.mark.parametrize(("code", "bits"), [("graded", None), ("graded", 8), ("rate", 8)])
def test_stock_neurons_have_the_rates_and_classes_of_the_rate_network(
    code: str, bits: int | None, trained_run: Path
) -> None:
    run = open_run(trained_run)
    x = run.data.test.x[:4]
    found = run.model.to_spiking(code=code, bits=bits).run(x, on="lava-stock")
    rates = run.model.equilibrium(x)
    np.testing.assert_array_equal(found.predictions, rates.classes)
    for layer in ("hidden", "output"):
        error = found.rates[layer] - rates.state[layer]
        assert np.sqrt(np.mean(error**2)) < 0.02
    assert np.abs(found.drive - rates.drive).max() < 0.1


def graded_by_hand(plan: StockPlan, currents: Mapping[str, Array]) -> tuple[int, int]:
    """Messages and synaptic operations of SigmaDelta units on one sample, counted one by one."""
    ways = {(e.source, e.target): np.asarray(expanded(plan, e)) for e in plan.edges}
    bias = {layer.name: biases(plan, layer) for layer in plan.layers}
    sigma, act, residue = ({n: np.zeros(b.shape) for n, b in bias.items()} for _ in range(3))
    arriving = {n: np.resize(currents.get(n, np.zeros(1)), b.shape) for n, b in bias.items()}
    messages = synops = 0
    for _ in range(STEPS):
        sent = {}
        for layer in plan.layers:
            name = layer.name
            sigma[name] += arriving[name]
            now = sigma[name] + bias[name]
            now = np.maximum(now, 0) if layer.corners else now
            delta = now - act[name] + residue[name]
            sent[name] = np.where(np.abs(delta) >= plan.threshold, delta, 0)
            act[name], residue[name] = now, delta - sent[name]
        arriving = {name: np.zeros(b.shape) for name, b in bias.items()}
        messages += sum(int(np.count_nonzero(message)) for message in sent.values())
        for (source, target), weight in ways.items():
            arriving[target] += weight @ sent[source]
            synops += int(np.count_nonzero(weight[:, sent[source] != 0]))
    return messages, synops


def test_pairs_of_relu_units_count_every_message_and_synapse() -> None:
    """A clipped hidden layer has two neurons for each unit, a linear output has one."""
    network = layered(12, (9,), 4, hidden_rate=HARD_SIGMOID, output_rate=LINEAR)
    params = initialize(network, np.random.default_rng(2))
    spiking = Model(network, params).to_spiking(code="graded")
    x = np.random.default_rng(0).random((1, 12))
    run = spiking.run(x, on="lava-stock", steps=STEPS)
    plan = stock_plan(spiking.network, {})
    current = {"hidden": np.rint(x @ spiking.input_weights["hidden"].T * 4096)[0] / 4096}
    messages, synops = graded_by_hand(plan, current)
    assert (run.total.spikes, run.total.synops) == (messages, synops)
    assert run.total.updates_idle + run.total.updates_active == STEPS * (2 * 9 + 4)


def test_what_stock_neurons_cannot_do_is_refused_with_a_reason() -> None:
    support = LavaStock().support
    assert Feature.SPIKING in support
    assert Feature.GRADED in support
    assert Feature.FIXED_POINT in support
    assert Feature.EXACT not in support
    for name, message in {
        "nudge": ".*cannot change the gain",
        "reset to zero, in fixed point": ".*resets by subtraction",
        "floor": ".*(leaks|does not record voltages)",
    }.items():
        with pytest.raises(BackendError, match=f"^lava-stock{message}"):
            run_case(load_backend("lava-stock"), NAMED[name])
    network, stimulus = stock()
    fine = replace(
        network.projections[0], synapses=DenseSynapses(network.projections[0].weight + 1 / 4096)
    )
    fine_network = replace(network, projections=(fine, *network.projections[1:]))
    units = FixedPoint({"a": 2.0**-12, "b": 2.0**-12})
    with pytest.raises(BackendError, match="'a->b' have more than 8 bits; use lava"):
        LavaStock().run(
            replace(fine_network, fixed=units),
            stimulus,
            free_only(steps=4, window=1),
            record=Record(frozenset(), frozenset()),
            sink=MemorySink(),
        )
