"""What a run on Lava leaves in its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.files import subprocess
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava.recording import SampleFiles, layouts
from neuro_eqprop.simulators.lava.simulator import check_steps
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.simulators.step_recorder import Step
from neuro_eqprop.spiking.ir import Population, Reset, Spiking, SpikingNetwork, Stimulus

NEURON = Spiking(0.1, 0.2, 1.0, Reset.ZERO, -np.inf, 2.0)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    populations = (
        Population("a/b", NEURON, np.array([0.1, 0.3])),
        Population("c", NEURON, np.array([0.0])),
    )
    network = SpikingNetwork(0.001, populations, (), "c")
    record = Record(frozenset({"a/b"}), frozenset({("a/b", "voltage"), ("a/b", "drive")}))
    np.zeros(3, dtype=np.int64).tofile(tmp_path / subprocess.PROGRESS)
    return Experiment(network, Stimulus(2, {}, {}), three_phase(beta=0.1, free=5, nudged=3), record)


def fill(files: SampleFiles, samples: int) -> None:
    """Record steps whose drive is the number of the step, and a spike of the first unit in each."""
    spike = np.array([True, False])
    for _ in range(samples):
        for step in range(files.experiment.steps):
            drive = np.full(2, float(step))
            last = Step(spike, spike.astype(float), {"drive": drive, "voltage": -drive})
            files.add(lambda _, last=last: last, lambda _: (1, 2))  # type: ignore[misc]


@pytest.mark.parametrize("batch", [1, 2])
def test_tables_hold_counts_means_and_recordings(
    experiment: Experiment, tmp_path: Path, batch: int
) -> None:
    fill(SampleFiles(experiment, tmp_path, ("a/b",), batch), 2 // batch)
    tables = {name: layout.read() for name, layout in layouts(experiment, tmp_path, "a/b").items()}
    expected = {"messages", "firing", "drive", "overflows", "spikes"}
    assert set(tables) == expected | {"signal.voltage", "signal.drive"}
    for sample in range(2):
        np.testing.assert_array_equal(tables["messages"][sample], [[5, 0], [3, 0], [3, 0]])
        np.testing.assert_array_equal(tables["firing"][sample], [[1, 0], [1, 0], [1, 0]])
        np.testing.assert_array_equal(tables["drive"][sample, :, 1], [2.5, 6.0, 9.0])
        np.testing.assert_array_equal(tables["overflows"][sample], [1, 2])
        np.testing.assert_array_equal(tables["spikes"][sample], [[True, False]] * 11)
        np.testing.assert_array_equal(tables["signal.voltage"][sample, :, 0], -np.arange(11.0))


def test_a_population_that_ran_too_few_steps_is_an_error(
    experiment: Experiment, tmp_path: Path
) -> None:
    fill(SampleFiles(experiment, tmp_path, ("a/b",)), 2)
    with pytest.raises(BackendError, match="lava ran 0 of 22 steps of population 'c'"):
        check_steps(experiment, tmp_path)


def test_tables_that_are_not_what_they_should_be_are_refused(
    experiment: Experiment, tmp_path: Path
) -> None:
    tables = layouts(experiment, tmp_path, "a/b")
    with pytest.raises(BackendError, match=r"cannot read 0\.messages\.npy of lava"):
        tables["messages"].read()
    fill(SampleFiles(experiment, tmp_path, ("a/b",)), 1)
    with pytest.raises(BackendError, match=r"cannot read 0\.messages\.npy of lava"):
        tables["messages"].read()
    np.save(tmp_path / "0.firing.npy", np.zeros(3))
    with pytest.raises(BackendError, match=r"0\.firing\.npy of lava has float64 \(3,\)"):
        tables["firing"].read()
