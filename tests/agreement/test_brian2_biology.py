"""The biological rendering: against formulas neuron by neuron, against rates on the digits."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule, free_only, three_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.runs.evaluate import agreement, equilibria
from neuro_eqprop.simulators.base import Backend, BackendError, Feature, Result, tally
from neuro_eqprop.simulators.biology.dale import merge_pairs, pair_stimulus, paired
from neuro_eqprop.simulators.biology.options import make_biology
from neuro_eqprop.simulators.biology.settings import BASE, NOISY, Biology, Refractory
from neuro_eqprop.simulators.biology.simulator import (
    CompiledBiology,
    ContinuousBackend,
    settle,
    values_per_sample,
)
from neuro_eqprop.simulators.brian2.continuous import Brian2Biology
from neuro_eqprop.simulators.brian2.setup import known_settings, simulator
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record, Recording
from neuro_eqprop.simulators.reference.simulator import Reference
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
from neuro_eqprop.training.study import make_study

pytestmark = pytest.mark.brian2

INTEGRATE = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
FINE = replace(BASE, dt=2e-4)
DRIVES = np.array([-0.5, 0.0, 0.05, 0.3, 0.52, 0.7, 0.95, 1.0, 1.6])


def alone(currents: Array, neuron: Neuron = INTEGRATE) -> tuple[SpikingNetwork, Stimulus]:
    """Neurons without synapses."""
    population = Population("cells", neuron, np.zeros(currents.size))
    network = SpikingNetwork(1e-3, (population,), (), "cells")
    return network, Stimulus(1, {"cells": currents[None]}, {})


def small(samples: int = 3) -> tuple[SpikingNetwork, Stimulus]:
    """Two populations that talk to each other, with weights of both signs."""
    rng = np.random.default_rng(7)
    forth = np.rint(rng.normal(0.0, 0.4, (4, 6)) * 64) / 64
    network = SpikingNetwork(
        1e-3,
        (
            Population("hidden", INTEGRATE, np.full(6, 0.25)),
            Population("output", INTEGRATE, np.full(4, 0.125)),
        ),
        (Projection("hidden", "output", forth), Projection("output", "hidden", forth.T.copy())),
        "output",
    )
    return network, Stimulus(samples, {"hidden": rng.random((samples, 6))}, {})


def run(
    backend: ContinuousBackend,
    network: SpikingNetwork,
    stimulus: Stimulus,
    *,
    schedule: Schedule,
    record: Record = NOTHING,
) -> tuple[Result, list[Recording]]:
    memory = MemorySink()
    result = backend.run(network, stimulus, schedule, record=record, sink=memory)
    return result, memory.recordings


def firing_of(biology: Biology) -> Array:
    """Of lone neurons with currents DRIVES."""
    return np.asarray(settle(biology, *alone(DRIVES)).firing["cells"][0, 0])


# One neuron, against formulas


@pytest.mark.parametrize("rmax", [100.0, 50.0])
def test_a_neuron_fires_at_its_drive_clamped(rmax: float) -> None:
    biology = replace(BASE, rmax=rmax, duration=200 / rmax)
    assert np.abs(firing_of(biology) - np.clip(DRIVES, 0.0, 1.0)).max() <= 1.01 / 150


def test_without_refractory_period_there_is_no_upper_clamp() -> None:
    firing = firing_of(replace(BASE, refractory=0.0, duration=2.0))
    assert np.abs(firing - np.maximum(DRIVES, 0.0)).max() <= 1.01 / 150


def test_a_held_membrane_fires_less() -> None:
    """An interval is the refractory period and then 1 / (rmax drive)."""
    firing = firing_of(replace(FINE, refractory_kind=Refractory.HOLD))
    above = np.maximum(DRIVES, 0.0)
    assert np.abs(firing - above / (1 + above)).max() <= 0.02


def test_a_leak_is_that_of_the_formula() -> None:
    """From 0 to 1 towards v_end = 1/2 + tau_m rmax drive takes tau_m ln(v_end / (v_end - 1))."""
    tau, rmax = 20e-3, 100.0
    firing = firing_of(replace(FINE, tau_m=tau, invert=False))
    end = 0.5 + tau * rmax * DRIVES
    want = np.zeros_like(end)
    fires = end > 1
    want[fires] = 1 / (rmax * tau * np.log(end[fires] / (end[fires] - 1)))
    assert np.abs(firing - np.minimum(want, 1.0)).max() <= 0.02


def test_reset_to_zero_forgets_what_was_above_the_threshold() -> None:
    to_zero = replace(INTEGRATE, reset=Reset.ZERO)
    network, stimulus = alone(np.array([0.7]), to_zero)
    # 0.07 a millisecond: the 15th, at 1.05, is the spike, where subtraction has 1 / 0.07.
    firing = settle(replace(BASE, duration=2.0), network, stimulus).firing["cells"]
    assert firing.item() == pytest.approx(10 / 15, abs=0.01)


def test_noise_spreads_the_membrane_as_it_says() -> None:
    biology = replace(BASE, tau_m=10e-3, noise=0.1, dt=5e-4, record_dt=1 / BASE.rmax, invert=False)
    network, stimulus = alone(np.zeros(400))
    record = Record(signals=frozenset({("cells", "voltage")}))
    schedule = free_only(steps=40, window=30)
    result, kept = run(
        CompiledBiology(biology), network, stimulus, schedule=schedule, record=record
    )
    voltage = kept[0].signals["cells", "voltage"][10:]
    assert result.messages["cells"].sum() == 0
    assert voltage.mean() == pytest.approx(0.5, abs=0.01)
    assert voltage.std() == pytest.approx(0.1, rel=0.05)


# The witness

OPTIONS = [
    {},
    {"noise": 0.2, "tau_m": "20ms", "delay": "3ms"},
    {"nudge": "spikes", "refractory": "2ms"},
    {"dale": "pairs"},
    {"neuron": "conductance", "noise": 0.2, "common_noise": "yes", "dt": "1ms"},
    {"neuron": "adex", "dt": "0.5ms", "dale": "interneurons"},
    {"neuron": "izhikevich", "dt": "0.5ms"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: ",".join(map(str, o.values())))
def test_compiled_and_brian2_are_equal_step_by_step(options: dict[str, Any]) -> None:
    network, stimulus = small(2)
    nudge = Projection("output", "output", -np.eye(4), gain=Gain.BETA)
    network = replace(network, projections=(*network.projections, nudge))
    stimulus = replace(stimulus, pull={"output": np.eye(4)[:2]})
    names = ("hidden", "output")
    record = Record(
        frozenset(names), frozenset((n, v) for n in names for v in ("voltage", "drive"))
    )
    schedule = three_phase(beta=0.5, free=12, nudged=12)
    chosen = make_biology(**options)
    found, witness = (
        run(backend(chosen), network, stimulus, schedule=schedule, record=record)
        for backend in (CompiledBiology, Brian2Biology)
    )
    assert found[0].messages["output"].sum() > 5
    for name in names:
        np.testing.assert_array_equal(found[0].messages[name], witness[0].messages[name])
        np.testing.assert_allclose(found[0].drive[name], witness[0].drive[name], atol=1e-10)
    for one, other in zip(found[1], witness[1], strict=True):
        for name in names:
            np.testing.assert_array_equal(one.spikes[name], other.spikes[name])
        for key in record.signals:
            np.testing.assert_allclose(one.signals[key], other.signals[key], atol=1e-9)


# Synapses


def chain(weight: float, delay: int = 1) -> tuple[SpikingNetwork, Stimulus]:
    """A neuron of drive 0.6 that feeds one which has no other input."""
    network = SpikingNetwork(
        1e-3,
        (Population("a", INTEGRATE, np.array([0.6])), Population("b", INTEGRATE, np.zeros(1))),
        (Projection("a", "b", np.array([[weight]]), delay=delay),),
        "b",
    )
    return network, Stimulus(1, {}, {})


@pytest.mark.parametrize("tau_s", [1e-3, 5e-3, 20e-3])
def test_a_synapse_brings_its_weight_whatever_its_time_constant(tau_s: float) -> None:
    result = settle(replace(BASE, tau_s=tau_s, duration=2.0), *chain(0.5))
    assert result.drive["b"].item() == pytest.approx(0.3, abs=0.005)
    assert result.firing["b"].item() == pytest.approx(0.3, abs=0.008)


def drives(biology: Biology, delay: int) -> Array:
    """The drive of the second neuron of the chain, step by step."""
    network, stimulus = chain(0.5, delay)
    record = Record(signals=frozenset({("b", "drive")}))
    schedule = free_only(steps=30, window=20)
    backend = CompiledBiology(replace(biology, record_dt=1 / biology.rmax))
    _, kept = run(backend, network, stimulus, schedule=schedule, record=record)
    return kept[0].signals["b", "drive"][:, 0]


def test_delays_in_seconds_and_in_steps_are_delays() -> None:
    at_once = drives(BASE, 1)
    late = drives(replace(BASE, delay=30e-3), 1)
    assert at_once.any()
    np.testing.assert_array_equal(late[:3], 0.0)
    np.testing.assert_allclose(late[3:], at_once[:-3], atol=1e-12)
    np.testing.assert_array_equal(drives(BASE, 4), late)


def test_the_nudge_acts_in_its_phases() -> None:
    """s = drive + beta (y - s), so s = (drive + beta y) / (1 + beta)."""
    network = SpikingNetwork(
        1e-3,
        (Population("out", INTEGRATE, np.array([0.4, 0.4])),),
        (Projection("out", "out", -np.eye(2), gain=Gain.BETA),),
        "out",
    )
    target = np.array([[1.0, 0.0]])
    stimulus = Stimulus(1, {}, {"out": target})
    schedule = three_phase(beta=0.25, free=150, nudged=150)
    result, _ = run(CompiledBiology(), network, stimulus, schedule=schedule)
    for k, phase in enumerate(schedule):
        want = (0.4 + phase.beta * target[0]) / (1 + phase.beta)
        assert np.abs(result.firing["out"][0, k] - want).max() <= 0.02, phase.name
        assert np.abs(result.drive["out"][0, k] - want).max() <= 0.02, phase.name


# Runs


def test_recordings_are_what_the_result_was_made_of() -> None:
    network, stimulus = small()
    names = ("hidden", "output")
    record = Record(
        frozenset(names), frozenset((n, v) for n in names for v in ("voltage", "drive"))
    )
    schedule = free_only(steps=40, window=30)
    step = 1 / BASE.rmax
    for biology in (replace(BASE, record_dt=step), replace(NOISY, dale=True, record_dt=step)):
        result, kept = run(
            CompiledBiology(biology), network, stimulus, schedule=schedule, record=record
        )
        assert len(kept) == stimulus.samples
        for k, recording in enumerate(kept):
            for name in names:
                spikes, drive = recording.spikes[name], recording.signals[name, "drive"]
                assert spikes.shape == (40, network[name].size)
                assert set(np.unique(spikes)) <= {0.0, 1.0}
                np.testing.assert_allclose(spikes[10:].mean(axis=0), result.firing[name][k, 0])
                np.testing.assert_allclose(drive[10:].mean(axis=0), result.drive[name][k, 0])
                each = 2 if biology.dale else 1
                np.testing.assert_array_equal(
                    each * spikes.sum(axis=0), result.messages[name][k, 0]
                )
                voltage = recording.signals[name, "voltage"]
                assert voltage.min() >= -1
                assert voltage.max() <= 2


def test_same_seed_same_spikes_however_samples_are_chunked() -> None:
    network, stimulus = small(3)
    schedule = free_only(steps=20, window=15)
    whole, _ = run(CompiledBiology(NOISY), network, stimulus, schedule=schedule)
    two = 2 * values_per_sample(network, schedule, NOTHING)
    again, _ = run(CompiledBiology(NOISY, values=two), network, stimulus, schedule=schedule)
    other, _ = run(CompiledBiology(replace(NOISY, seed=1)), network, stimulus, schedule=schedule)
    for name in whole.messages:
        np.testing.assert_array_equal(whole.messages[name], again.messages[name])
        np.testing.assert_array_equal(whole.drive[name], again.drive[name])
    assert any((whole.messages[n] != other.messages[n]).any() for n in whole.messages)


def test_samples_and_neurons_have_noise_of_their_own() -> None:
    network, _ = alone(np.full(6, 0.5))
    stimulus = Stimulus(4, {"cells": np.full((4, 6), 0.5)}, {})
    record = Record(signals=frozenset({("cells", "voltage")}))
    _, kept = run(
        CompiledBiology(NOISY),
        network,
        stimulus,
        schedule=free_only(steps=5, window=4),
        record=record,
    )
    first = np.concatenate([r.signals["cells", "voltage"][0] for r in kept])
    assert np.unique(first).size == 24


def test_nothing_global_is_changed_and_objects_are_freed() -> None:
    brian2 = simulator()
    before = {key: brian2.prefs[key] for key in known_settings(brian2)}
    chance = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    counted: list[tuple[int, int]] = []
    for _ in range(2):
        backend = Brian2Biology(NOISY)
        run(backend, *small(), schedule=free_only(steps=5, window=4))
        gc.collect()
        alive = brian2.NeuronGroup.__instances__(), brian2.Synapses.__instances__()
        counted.append((len(alive[0]), len(alive[1])))
    assert counted[0] == counted[1]
    assert {key: brian2.prefs[key] for key in known_settings(brian2)} == before
    assert (np.random.get_state()[1] == chance).all()  # type: ignore[index]  # noqa: NPY002


FRESH = """
import numpy as np, sys
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.simulators.biology.settings import NOISY
from neuro_eqprop.simulators.brian2.continuous import Brian2Biology
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
assert "brian2" not in sys.modules, "imported before it is run"
from neuro_eqprop.spiking.ir import Population, Reset, Spiking, SpikingNetwork, Stimulus
cells = Population("cells", Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0), np.full(3, 0.5))
network = SpikingNetwork(1e-3, (cells,), (), "cells")
schedule = free_only(steps=5, window=4)
run = Brian2Biology(NOISY).run
run(network, Stimulus(1, {}, {}), schedule, record=NOTHING, sink=MemorySink())
assert "brian2" in sys.modules
"""


def test_a_run_leaves_no_files_and_prints_nothing(tmp_path: Path) -> None:
    for name in ("tmp", "home", "here"):
        (tmp_path / name).mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "tmp"),
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", FRESH],
        cwd=tmp_path / "here",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not [path for name in ("tmp", "home", "here") for path in (tmp_path / name).iterdir()]


# Dale's law


def test_pairs_have_one_sign_and_twice_of_everything() -> None:
    network, stimulus = small()
    double = paired(network)
    for before, after in zip(network.projections, double.projections, strict=True):
        signs = np.sign(after.weight)
        half = before.weight.shape[1]
        assert (signs[:, :half] >= 0).all()
        assert (signs[:, half:] <= 0).all()
        rows = before.weight.shape[0]
        folded = after.weight[:, :half] + after.weight[:, half:]
        np.testing.assert_array_equal(folded[:rows], before.weight)
        np.testing.assert_array_equal(folded[rows:], before.weight)
        assert np.count_nonzero(after.weight) == 2 * np.count_nonzero(before.weight)
    assert pair_stimulus(stimulus).current["hidden"].shape == (3, 12)


def test_pairs_spike_as_before_in_the_reference() -> None:
    network, stimulus = small()
    schedule = free_only(steps=100, window=75)
    plain = Reference().run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())
    double, fed = paired(network), pair_stimulus(stimulus)
    pairs = Reference().run(double, fed, schedule, record=NOTHING, sink=MemorySink())
    folded = merge_pairs(pairs)
    for name in plain.messages:
        np.testing.assert_array_equal(folded.messages[name], 2 * plain.messages[name])
        np.testing.assert_array_equal(folded.firing[name], plain.firing[name])
        np.testing.assert_array_equal(folded.drive[name], plain.drive[name])


@pytest.mark.parametrize("biology", [BASE, NOISY], ids=["base", "noisy"])
def test_pairs_change_only_the_number_of_neurons_and_spikes(biology: Biology) -> None:
    network, stimulus = small()
    schedule = free_only(steps=50, window=40)
    plain, _ = run(CompiledBiology(biology), network, stimulus, schedule=schedule)
    pairs, _ = run(
        CompiledBiology(replace(biology, dale=True)), network, stimulus, schedule=schedule
    )
    assert sum(m.sum() for m in plain.messages.values()) > 100
    for name in plain.messages:
        np.testing.assert_array_equal(pairs.messages[name], 2 * plain.messages[name])
        np.testing.assert_allclose(pairs.drive[name], plain.drive[name], atol=1e-9)
        np.testing.assert_array_equal(pairs.firing[name], plain.firing[name])
    one, two = (
        sum(c.synops for c in tally(network, stimulus, schedule, r).values())
        for r in (plain, pairs)
    )
    assert two == 2 * one


# What is refused


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dt": 0.0}, "dt is 0.0"),
        ({"rmax": float("nan")}, "rmax is nan"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"delay": 1.5e-3}, "delay of 0.0015 s is no multiple of dt"),
        ({"rmax": 300.0}, "1 / rmax of"),
        ({"refractory": 2.5e-3}, "period of 0.0025 s is no multiple"),
        ({"tau_s": 0.5e-3}, "tau_s of 0.0005 s is shorter than dt"),
        ({"tau_m": 0.0}, "tau_m is 0.0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(BASE, **change)


def test_networks_it_cannot_run_are_refused_by_name() -> None:
    backend: Backend = CompiledBiology()
    assert backend.name == "biology"
    assert Brian2Biology().name == "brian2-biology"
    assert Feature.SPIKING in backend.support
    assert "binary spikes" in backend.support.reasons[Feature.GRADED]
    schedule = free_only(steps=4, window=3)
    for neuron, says in (
        (Graded(HARD_SIGMOID, 0.125, 0.5), "graded messages: its membranes send binary spikes"),
        (replace(INTEGRATE, voltage_decay=0.25), "'cells' decays by 1.0 and 0.25"),
    ):
        network, stimulus = alone(np.zeros(2), neuron)
        with pytest.raises(BackendError, match=says):
            backend.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())


# The digits, all of them


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("biology") / "run"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    run_training(
        make_study(epochs=10), folder, force=False, resume=False, on_epoch=lambda line: None
    )
    torch.set_num_threads(threads)
    return open_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("biology", "same", "pearson"),
    [(BASE, 0.99, 0.999), (NOISY, 0.985, 0.99)],
    ids=["base", "noisy"],
)
def test_all_digits_agree_with_the_rates(
    digits: Run, biology: Biology, same: float, pearson: float
) -> None:
    x = digits.data.test.x
    assert len(x) == 360
    spiking = digits.model.to_spiking(code="rate")
    network, stimulus = spiking.network, spiking.encode(x)
    result = settle(biology, network, stimulus)
    exact = equilibria(digits.model.network, digits.model.params, x)
    firing = {name: values[:, 0] for name, values in result.firing.items()}
    side = firing, result.drive[network.output][:, 0]
    found = agreement(digits.model.network, (exact.state, exact.drive), side)
    assert found["agreement"] is not None
    assert found["agreement"] >= same
    assert found["pearson"] is not None
    assert found["pearson"] >= pearson
