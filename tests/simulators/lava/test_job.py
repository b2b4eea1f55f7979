"""Jobs for Lava and what comes of them, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.dynamics.schedules import Phase, three_phase
from neuro_eqprop.networks.activations import TANH
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.job import Job, Part, Tick, load, save, tick
from neuro_eqprop.simulators.lava.recording import StepRecorder, layouts
from neuro_eqprop.simulators.lava.worker import connected_components
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
def job() -> Job:
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
    return Job(network, stimulus, three_phase(beta=0.1, free=5, nudged=3), record)


def test_a_job_comes_back_as_it_was(job: Job, tmp_path: Path) -> None:
    save(job, tmp_path)
    back = load(tmp_path)
    assert back.network.digest == job.network.digest
    assert (back.schedule, back.record, back.steps) == (job.schedule, job.record, 11)
    assert back.stimulus.samples == 2
    for mine, other in (
        (back.stimulus.current, job.stimulus.current),
        (back.stimulus.pull, job.stimulus.pull),
    ):
        assert set(mine) == set(other)
        assert all(np.array_equal(mine[name], other[name]) for name in other)


def test_a_job_that_was_tampered_with_is_refused(job: Job, tmp_path: Path) -> None:
    save(job, tmp_path)
    with np.load(tmp_path / "job.npz") as file:
        arrays = dict(file)
    arrays["weight1"] = arrays["weight1"][:1]
    np.savez(tmp_path / "job.npz", **arrays)
    with pytest.raises(ValueError, match="a/b->a/b"):
        load(tmp_path)


def test_every_step_lies_in_its_phase() -> None:
    schedule = (Phase("free", 0.0, 2, 1), Phase("nudged", 0.5, 1, 1))
    assert [tick(schedule, step) for step in range(3)] == [
        Tick(0, 0.0, False),
        Tick(0, 0.0, True),
        Tick(1, 0.5, True),
    ]
    with pytest.raises(IndexError):
        tick(schedule, 3)


def test_populations_are_grouped_by_what_hangs_together(job: Job) -> None:
    assert connected_components(job.network) == [[0, 1], [2]]


def fill(part: Part, samples: int) -> None:
    """Book steps whose drive is the number of the step, and a spike of the first unit in each."""
    recorder = StepRecorder(part)
    spike = np.array([True, False])
    for _ in range(samples):
        for step in range(part.job.steps):
            drive = np.full(2, float(step))
            recorder.record(
                step,
                tick(part.job.schedule, step),
                message=spike,
                firing=spike,
                values={"drive": drive, "voltage": -drive},
            )


def test_a_ledger_counts_averages_and_keeps(job: Job, tmp_path: Path) -> None:
    part = Part(job, 0, tmp_path)
    fill(part, 2)
    tables = {name: layout.read() for name, layout in layouts(part).items()}
    assert set(tables) == {
        "messages",
        "firing",
        "drive",
        "spikes",
        "signal.voltage",
        "signal.drive",
    }
    for sample in range(2):
        np.testing.assert_array_equal(tables["messages"][sample], [[5, 0], [3, 0], [3, 0]])
        np.testing.assert_array_equal(tables["firing"][sample], [[1, 0], [1, 0], [1, 0]])
        np.testing.assert_array_equal(tables["drive"][sample, :, 1], [2.5, 6.0, 9.0])
        np.testing.assert_array_equal(tables["spikes"][sample], [[True, False]] * 11)
        np.testing.assert_array_equal(tables["signal.voltage"][sample, :, 0], -np.arange(11.0))


def test_tables_that_are_not_what_they_should_be_are_refused(job: Job, tmp_path: Path) -> None:
    part = Part(job, 0, tmp_path)
    with pytest.raises(BackendError, match=r"cannot read 0\.messages\.npy of lava"):
        layouts(part)["messages"].read()
    fill(part, 1)
    with pytest.raises(BackendError, match=r"cannot read 0\.messages\.npy of lava"):
        layouts(part)["messages"].read()
    np.save(tmp_path / "0.firing.npy", np.zeros(3))
    with pytest.raises(BackendError, match=r"0\.firing\.npy of lava has float64 \(3,\)"):
        layouts(part)["firing"].read()
