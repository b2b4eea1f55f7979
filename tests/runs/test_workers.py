"""Samples shared out among threads, processes or an executor give the same bytes; pruning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.networks.operators import Sparse
from neuro_eqprop.runs.executors import Task, TaskResult
from neuro_eqprop.runs.executors.task import run_task
from neuro_eqprop.runs.simulate import RecordedRun, record_spikes
from neuro_eqprop.runs.simulation import Simulation
from neuro_eqprop.runs.simulation_settings import RecordingSettings, SimulationSettings
from neuro_eqprop.runs.workers import Shared
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.emulator.simulator import Emulator
from neuro_eqprop.simulators.reference.simulator import Reference


@pytest.fixture(scope="module")
def model() -> ne.Model:
    return ne.train("layered", "digits", hidden=(24,), epochs=4, seed=0)


def same(one: Simulation, other: Simulation) -> None:
    np.testing.assert_array_equal(one.drive, other.drive)
    for name, rates in one.rates.items():
        np.testing.assert_array_equal(rates, other.rates[name])
    assert one.counts == other.counts
    assert one.overflows == other.overflows


@pytest.mark.parametrize("code", ["graded", "bernoulli"])
def test_threads_of_the_emulator_change_nothing(model: ne.Model, code: str) -> None:
    spiking, x = model.to_spiking(code=code), ne.load_data("digits").test.x[:7]
    alone = spiking.run(x, on="emulator", steps=16)
    for workers in (2, 3, 16):
        same(alone, spiking.run(x, on="emulator", steps=16, workers=workers))


def test_overflows_of_threads_are_added_up(model: ne.Model) -> None:
    spiking, x = model.to_spiking(code="rate", bits=8), 400 * ne.load_data("digits").test.x[:5]
    alone = spiking.run(x, on="emulator", steps=60)
    assert alone.overflows > 0
    same(alone, spiking.run(x, on="emulator", steps=60, workers=2))


def test_processes_change_nothing_and_keep_random_spikes(model: ne.Model) -> None:
    x = ne.load_data("digits").test.x[:3]
    for code in ("graded", "bernoulli"):
        spiking = model.to_spiking(code=code)
        alone = spiking.run(x, on="reference", steps=8)
        same(alone, spiking.run(x, on="reference", steps=8, workers=2))


@dataclass(frozen=True)
class Backwards:
    """An executor that returns the last task first."""

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        return map(run_task, reversed(tasks))


@pytest.mark.parametrize("on", ["reference", "emulator"])
def test_results_of_an_executor_come_in_the_order_of_the_samples(model: ne.Model, on: str) -> None:
    spiking, x = model.to_spiking(code="rate", bits=8), 400 * ne.load_data("digits").test.x[:5]
    alone = spiking.run(x, on=on, steps=60)
    assert alone.overflows > 0
    same(alone, spiking.run(x, on=on, steps=60, workers=3, executor=Backwards()))


@pytest.mark.parametrize("code", ["graded", "bernoulli"])
def test_a_recording_has_the_same_bytes_whatever_the_workers(
    model: ne.Model, code: str, tmp_path: Path
) -> None:
    data, spiking = ne.load_data("digits").test, model.to_spiking(code=code)

    def recorded(name: str, on: str, shared: Shared) -> RecordedRun:
        signals = ["hidden:drive", "hidden->output:hebbian"]
        recording = RecordingSettings(phases=True, record=signals, out=tmp_path / f"{name}.h5")
        x, y = data.x[:5], data.y[:5]
        settings = SimulationSettings(
            on=on, steps=8, workers=shared.workers, executor=shared.executor
        )
        return record_spikes(model, spiking, x, y, recording, settings)

    for on, ways in {
        "emulator": [Shared(2), Shared(2, Backwards())],
        "reference": [Shared(2), Shared(3, Backwards())],
    }.items():
        alone = recorded(f"{on}-alone", on, Shared())
        for k, shared in enumerate(ways):
            other = recorded(f"{on}-{k}", on, shared)
            assert other.counts == alone.counts
            assert arrays_of(other.path) == arrays_of(alone.path)


def arrays_of(path: Path | None) -> dict[str, bytes]:
    """The bytes of all data sets of a trace; dates stand in attributes."""
    found: dict[str, bytes] = {}

    def visit(name: str, each: object) -> None:
        if isinstance(each, h5py.Dataset):
            found[name] = np.asarray(each[()]).tobytes()

    assert path is not None
    with h5py.File(path) as file:
        file.visititems(visit)
    assert found
    return found


def test_a_failing_shard_is_an_error_of_the_simulator(
    model: ne.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reference, "run", lambda *_, **__: 1 / 0)
    with pytest.raises(BackendError, match="shard of the samples failed: ZeroDivisionError"):
        model.to_spiking().run(
            ne.load_data("digits").test.x[:2], on="reference", steps=4, executor=Backwards()
        )


@dataclass
class Killing:
    """An executor whose process is killed at the second task, as often as `times` says."""

    times: int
    ran: list[int]

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Run the tasks one after the other."""
        self.ran.append(len(tasks))
        for number, task in enumerate(tasks):
            if number == min(1, len(tasks) - 1) and self.times:
                self.times -= 1
                yield TaskResult(
                    task, {}, "the worker process crashed (exit code -9)", crashed=True
                )
            else:
                yield run_task(task)


def test_a_killed_shard_runs_again_once_and_the_others_are_kept(model: ne.Model) -> None:
    x, spiking = ne.load_data("digits").test.x[:5], model.to_spiking(code="rate")
    alone = spiking.run(x, on="reference", steps=8)
    once = Killing(1, [])
    same(alone, spiking.run(x, on="reference", steps=8, workers=3, executor=once))
    assert once.ran == [3, 1]
    with pytest.raises(BackendError, match=r"failed twice: the worker process crashed"):
        spiking.run(x, on="reference", steps=8, workers=3, executor=Killing(2, []))


def test_a_backend_with_other_settings_is_not_shared_out(model: ne.Model) -> None:
    with pytest.raises(ValueError, match="workers load a backend by its name"):
        model.to_spiking().run(
            ne.load_data("digits").test.x[:2], on=Emulator(threads=2), executor=Backwards()
        )


def test_learning_is_the_same_whoever_runs_its_test_samples() -> None:
    settings: dict[str, Any] = {"hidden": (8,), "epochs": 1, "samples": 40, "beta": 0.2}
    ways: list[dict[str, Any]] = [{}, {"workers": 2}, {"workers": 3, "executor": Backwards()}]
    one, *others = (ne.learn_on_chip("layered", "digits", **way, **settings) for way in ways)
    for other in others:
        for name, value in one.params.items():
            np.testing.assert_array_equal(value, other.params[name])
        assert one.history[-1]["test_accuracy"] == other.history[-1]["test_accuracy"]
    with pytest.raises(ValueError, match="`workers` must be between 1 and"):
        ne.learn_on_chip("layered", "digits", workers=0, **settings)


def test_no_workers_are_refused(model: ne.Model) -> None:
    with pytest.raises(ValueError, match=r"`workers` must be between 1 and .* not 0"):
        model.evaluate(ne.load_data("digits").test, on="emulator", workers=0)


def test_the_name_of_an_executor_is_refused_with_the_way_to_make_one(model: ne.Model) -> None:
    spiking, x = model.to_spiking(), ne.load_data("digits").test.x[:2]
    with pytest.raises(ValueError, match=r"make_executor\('slurm'\)"):
        spiking.run(x, executor="slurm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`workers` must be an integer, not 1\.5"):
        spiking.run(x, workers=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bits are an integer such as 8, not '8'"):
        model.to_spiking(bits="8")  # type: ignore[arg-type]


def test_pruning_removes_the_smallest_weights_and_their_operations(model: ne.Model) -> None:
    test = ne.load_data("digits").test.take(slice(100))
    whole, half, few = (
        model.prune(fraction)
        .to_spiking(code="graded", input="graded")
        .run(test.x, on="emulator", steps=16)
        for fraction in (0.0, 0.5, 0.95)
    )
    synapses = [sum(p.synapses.count for p in run.network.projections) for run in (whole, half)]
    assert synapses[0] > 1.9 * synapses[1]
    assert whole.total.synops > half.total.synops > few.total.synops > 0
    assert whole.accuracy(test.y) > 0.7
    rates = model.prune(0.5).evaluate(test).accuracy
    assert abs(half.accuracy(test.y) - rates) < 0.05
    pruned = model.prune(0.5)
    for name in ("input->hidden", "hidden->output"):
        kept, before = pruned.params[name], model.params[name]
        np.testing.assert_array_equal(kept[kept != 0], before[kept != 0])
        assert np.abs(before[kept == 0]).max() <= np.abs(kept[kept != 0]).min()
    sparse = model.prune(0.95).to_spiking(code="graded").network
    assert {p.synapses.kind for p in sparse.projections} == {"sparse"}
    with pytest.raises(ValueError, match="below 1, not 1"):
        model.prune(1.0)


def test_a_symmetric_recurrence_stays_symmetric() -> None:
    looped = ne.train("looped", "digits", hidden=(12,), epochs=1)
    weight = looped.prune(0.3).params["hidden->hidden"]
    np.testing.assert_array_equal(weight == 0, weight.T == 0)
    assert 0.2 < np.mean(weight == 0) < 0.5


def test_the_sparse_model_learns_and_runs_as_spikes() -> None:
    data = ne.load_data("digits")
    model = ne.train("sparse", data, hidden=(64,), fan_in=6, epochs=4, seed=0)
    loop = model.network.connections[1]
    assert loop.operator == Sparse(6, 0, symmetric=True)
    assert model.params[loop.name].shape == (64, 6)
    found = model.evaluate(data.test.take(slice(60)), on="emulator", code="graded", steps=64)
    assert found.rate_accuracy > 0.85
    assert found.agreement > 0.9
    network = model.to_spiking(code="graded").network
    kinds = {p.name: p.synapses.kind for p in network.projections}
    assert kinds["hidden->hidden"] == "sparse"
