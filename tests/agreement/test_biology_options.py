"""Options of the biological rendering: units, neuron models, Dale's law, and learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import cosine
from neuro_eqprop.data import load_digits, one_hot
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.biology.dale import with_interneurons
from neuro_eqprop.simulators.biology.learning import BiologyLearner
from neuro_eqprop.simulators.biology.neuron_models import MODELS, find_model
from neuro_eqprop.simulators.biology.options import parse_options
from neuro_eqprop.simulators.biology.settings import BASE
from neuro_eqprop.simulators.biology.simulator import CompiledBiology, biology, settle
from neuro_eqprop.simulators.learning import LearningRecord
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.ir import (
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import LearningRule, PlasticNetwork, TrainingSamples
from neuro_eqprop.traces.lazy import read

pytestmark = pytest.mark.brian2

INTEGRATE = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)


def test_options_carry_their_units() -> None:
    made = biology(
        tau_m="20 ms", tau_syn="0.004s", delay="2ms", rmax="50 Hz", noise=0.2, record_dt="0.5ms"
    ).biology
    expected = replace(
        BASE, tau_m=20e-3, tau_s=4e-3, delay=2e-3, rmax=50.0, noise=0.2, record_dt=5e-4, dt=5e-4
    )
    assert made == expected
    text = "neuron=adex, a=2nS, tau_m=10ms"
    assert biology(**parse_options(text)).biology.model == find_model("adex", {"a": "2nS"}, 0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tau_m": 20}, "tau_m is 20, without a unit; write it as '20 ms'"),
        ({"tau_m": "20"}, "tau_m: '20' is no number with a unit"),
        ({"tau_m": "20 mV"}, "'20 mV' is not in s"),
        ({"rmax": "100ms"}, "'100ms' is not in Hz"),
        ({"neuron": "hh"}, "unknown neuron 'hh'"),
        ({"dale": "twins"}, "unknown kind of Dale's law 'twins'"),
        ({"tau": "5ms"}, "unknown option of the biology 'tau'"),
        ({"neuron": "adex", "tauw": "100mV"}, "'100mV' is not in s"),
        ({"neuron": "izhikevich", "tau_m": "20ms"}, "has no membrane time constant"),
        ({"noise": "loud"}, "noise is 'loud'; write a number"),
        ({"record_dt": "0.3ms"}, "is no multiple of"),
        ({"refractory": "2ms", "record_dt": "5ms"}, "can fire twice within"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        biology(**options)


def test_every_neuron_model_names_its_source_and_units() -> None:
    for model in MODELS.values():
        assert any(character.isdigit() for character in model.source)
        assert all(parameter.unit for parameter in model.parameters.values())


@pytest.mark.parametrize("neuron", MODELS)
def test_a_neuron_model_fires_at_its_drive(neuron: str) -> None:
    """A lone neuron with a constant drive d fires at rmax d from zero to rmax."""
    drives = np.array([-0.5, 0.0, 0.3, 0.6, 0.9, 1.0, 1.6])
    cells = Population("cells", INTEGRATE, np.zeros(drives.size))
    network = SpikingNetwork(1e-3, (cells,), (), "cells")
    options = biology(neuron=neuron, dt="0.5ms").biology
    found = settle(options, network, Stimulus(1, {"cells": drives[None]}, {}))
    firing = found.firing["cells"][0, 0]
    assert np.abs(firing - np.clip(drives, 0.0, 1.0)).max() < 0.06
    assert firing[:2].max() == 0.0


def test_interneurons_obey_the_law_of_dale_and_keep_the_rates() -> None:
    rng = np.random.default_rng(3)
    weight = rng.normal(0.0, 0.4, (4, 6))
    network = SpikingNetwork(
        1e-3,
        (
            Population("hidden", INTEGRATE, np.full(6, 0.5)),
            Population("output", INTEGRATE, np.full(4, 0.4)),
        ),
        (Projection("hidden", "output", weight), Projection("output", "hidden", weight.T.copy())),
        "output",
    )
    real = with_interneurons(network)
    assert [p.name for p in real.populations][2:] == ["hidden_inhibitory", "output_inhibitory"]
    for projection in real.projections:
        inhibits = projection.source.endswith("_inhibitory")
        assert (projection.weight <= 0).all() if inhibits else (projection.weight >= 0).all()
    assert with_interneurons(real) is real
    stimulus = Stimulus(1, {"hidden": rng.random((1, 6))}, {})
    plain = settle(replace(BASE, duration=2.0), network, stimulus)
    found = settle(replace(BASE, duration=2.0, dale="interneurons"), network, stimulus)
    for name in ("hidden", "output"):
        assert np.abs(plain.firing[name] - found.firing[name]).max() < 0.05
    # An interneuron fires as the neuron that drives it.
    apart = found.firing["hidden"] - found.firing["hidden_inhibitory"]
    assert np.abs(apart).max() < 0.05


def test_poisson_input_has_the_rates_and_the_variance_of_poisson() -> None:
    x = np.array([[0.1, 0.3, 0.6] * 40])
    source = Population("input", INTEGRATE, np.zeros(120))
    cell = Population("cells", INTEGRATE, np.zeros(1))
    network = SpikingNetwork(
        1e-3, (source, cell), (Projection("input", "cells", np.full((1, 120), 0.001)),), "cells"
    )
    memory, schedule = MemorySink(), free_only(steps=200, window=200)
    CompiledBiology(replace(BASE, poisson=True, record_dt=1e-3)).run(
        network,
        Stimulus(1, {"input": x}, {}),
        schedule,
        record=Record(frozenset({"input"})),
        sink=memory,
    )
    spikes = memory.recordings[0].spikes["input"]
    assert spikes.shape == (2000, 120)
    counts = spikes.reshape(20, 100, 120).sum(axis=1).reshape(20, 40, 3)
    np.testing.assert_allclose(counts.mean(axis=(0, 1)), [1.0, 3.0, 6.0], rtol=0.1)
    fano = counts.var(axis=(0, 1)) / counts.mean(axis=(0, 1))
    np.testing.assert_allclose(fano, [0.99, 0.97, 0.94], atol=0.15)
    without = SpikingNetwork(1e-3, (Population("cells", INTEGRATE, np.ones(1)),), (), "cells")
    with pytest.raises(BackendError, match="Poisson input needs a population"):
        settle(replace(BASE, poisson=True), without, Stimulus(1, {}, {}))


def test_the_command_records_at_the_interval_it_is_given(trained_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    words = f"simulate {trained_run} --on biology --code rate --samples 2 --steps 16"
    options = f"--tau-m 20ms --record-dt 0.5ms --record hidden:voltage --traces {path}"
    assert main([*words.split(), *options.split()]) == 0
    trace = read(path)
    assert (trace.step_seconds, trace.steps) == (5e-4, 16 * 20)
    assert trace.max_rate == pytest.approx(100.0)
    assert trace.signals["hidden", "voltage"].shape == (2 * 320, 24)
    assert 0.0 < trace.rate("hidden").max() <= 2.2
    assert main([*words.split(), "--tau-m", "20", "--traces", str(tmp_path / "u.h5")]) == 2


def three_digits(samples: int, rule: LearningRule) -> tuple[PlasticNetwork, TrainingSamples]:
    train = load_digits().train
    rows = np.flatnonzero(train.y < 3)[:samples]
    network = layered(64, (16,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(network, np.random.default_rng(0))
    params = {name: value + (0.0 if "->" in name else 0.3) for name, value in params.items()}
    coding = Coding(Code.RATE)
    stimulus = training_stimulus(network, train.x[rows], one_hot(train.y[rows], 3), coding)
    plastic = make_plastic(network, params, PlasticityConfig(coding, rule, 2.0, 1e-3))
    return plastic, TrainingSamples(stimulus, np.full(samples, 0.1))


def test_learning_in_continuous_time_changes_weights_as_in_discrete_time() -> None:
    phases = PhaseLengths(32, 16, 32).schedule(beta=0.5, centered=True)
    plastic, training = three_digits(8, LearningRule(phases, 8.0, batch=4))
    chosen = LearningRecord((("hidden->output", 1, 3), ("output->hidden", 3, 1)))
    discrete, continuous = (
        learner.learn(plastic, training, record=chosen)
        for learner in (load_learner("emulator"), load_learner("biology"))
    )
    for name in plastic.learns:
        before = plastic.projection(name).weight
        changes = discrete.weights[name] - before, continuous.weights[name] - before
        assert (cosine(*changes) or 0.0) > 0.95, name
    np.testing.assert_allclose(discrete.drive, continuous.drive, atol=0.1)
    # A mirror has the tag of its pair, and the weights change at the end of a batch.
    pair = continuous.history
    np.testing.assert_array_equal(pair[:, :, 0, 2], pair[:, :, 1, 2])
    np.testing.assert_array_equal(pair[:, :, 0, 0], pair[:, :, 1, 1])
    assert (pair[:4, :-1, 0, 3] == pair[0, 0, 0, 3]).all()
    assert pair[4, 0, 0, 3] == pair[3, -1, 0, 3] != pair[0, 0, 0, 3]


@pytest.mark.parametrize(
    ("options", "rule", "words"),
    [
        ({"dale": "pairs"}, {}, "leave out dale"),
        ({}, {"fresh": False}, "starts every sample from rest"),
        ({"record_dt": 1e-3}, {}, "no record_dt"),
    ],
)
def test_what_cannot_learn_is_refused(
    options: dict[str, object], rule: dict[str, object], words: str
) -> None:
    phases = PhaseLengths(4, 2, 2).schedule(beta=0.5, centered=True)
    plastic, training = three_digits(2, LearningRule(phases, 8.0, **rule))  # type: ignore[arg-type]
    learner = BiologyLearner(replace(BASE, **options))  # type: ignore[arg-type]
    with pytest.raises(BackendError, match=words):
        learner.check(plastic, training)


@pytest.mark.parametrize("text", ["", "noise=0.2,readout=mixed", "readout=drive"])
def test_compiled_and_brian2_learn_the_same_weights(text: str) -> None:
    phases = PhaseLengths(8, 8, 8).schedule(beta=0.5, centered=True)
    plastic, training = three_digits(4, LearningRule(phases, 8.0, batch=2))
    chosen = LearningRecord((("hidden->output", 1, 3), ("output->hidden", 3, 1)))
    found, witness = (
        load_learner(name).with_options(text).learn(plastic, training, record=chosen)
        for name in ("biology", "brian2-biology")
    )
    for name in plastic.learns:
        np.testing.assert_allclose(found.weights[name], witness.weights[name], atol=1e-12)
    np.testing.assert_allclose(found.history, witness.history, atol=1e-12)
    assert found.total.tag_updates == witness.total.tag_updates > 0
    # What was recorded of a synapse integrates to its tag.
    gates = np.array([step.gate for step in plastic.rule.episode[:-1]])
    for first in (0, 2):
        rows = found.history[first, :-1, 0]
        np.testing.assert_allclose(np.cumsum(gates * rows[:, 0] * rows[:, 1]), rows[:, 2])
