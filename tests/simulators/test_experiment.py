"""Experiments as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.activations import TANH
from neuro_eqprop.simulators.experiment import Experiment, load, save
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)


@pytest.fixture
def experiment() -> Experiment:
    populations = (
        Population("a/b", Spiking(0.1, 0.2, 1.0, Reset.ZERO, -np.inf, 2.0), np.array([0.1, 0.3])),
        Population("ü->", Graded(TANH, 1 / 3, 0.7), np.array([1 / 7])),
        Population("c", Spiking(0.0, 1.0, 0.5, Reset.SUBTRACT, 0.0, np.inf), np.array([0.0])),
    )
    projections = (
        Projection("a/b", "ü->", np.array([[0.1, -0.2]]), 3, Gain.BETA),
        Projection("a/b", "a/b", np.eye(2)),
    )
    network = SpikingNetwork(0.001, populations, projections, "c")
    stimulus = Stimulus(2, {"ü->": np.ones((2, 1))}, {"a/b": np.array([[0.1, 0.2], [0.3, 0.4]])})
    signals = frozenset({("a/b", "voltage"), ("a/b", "drive"), ("ü->", "state")})
    record = Record(frozenset({"a/b", "ü->"}), signals)
    return Experiment(network, stimulus, three_phase(beta=0.1, free=5, nudged=3), record)


def test_an_experiment_comes_back_as_it_was(experiment: Experiment, tmp_path: Path) -> None:
    save(experiment, tmp_path)
    back = load(tmp_path)
    assert back.network.digest == experiment.network.digest
    assert (back.schedule, back.record, back.steps) == (experiment.schedule, experiment.record, 11)
    assert back.stimulus.samples == 2
    for mine, other in (
        (back.stimulus.current, experiment.stimulus.current),
        (back.stimulus.pull, experiment.stimulus.pull),
    ):
        assert set(mine) == set(other)
        assert all(np.array_equal(mine[name], other[name]) for name in other)


def test_an_experiment_that_was_tampered_with_is_refused(
    experiment: Experiment, tmp_path: Path
) -> None:
    save(experiment, tmp_path)
    with np.load(tmp_path / "experiment.npz") as file:
        arrays = dict(file)
    arrays["weight1"] = arrays["weight1"][:1]
    np.savez(tmp_path / "experiment.npz", **arrays)
    with pytest.raises(ValueError, match="a/b->a/b"):
        load(tmp_path)
