from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs.simulate import RecordedRun, record_rates, record_spikes
from neuro_eqprop.runs.simulation_settings import RecordingSettings, SimulationSettings
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.codes import CODES, Code
from neuro_eqprop.traces.compare import compare, hebbian_update
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.training.rules.phases import SWEEPS, relax
from neuro_eqprop.training.study import make_study

STUDY = make_study(hidden=(16,), epochs=2, batch=64, learning_rate=0.01, beta=0.25)


@dataclass(frozen=True)
class Asked:
    """What the tests vary of a recording."""

    on: str = "reference"
    samples: int = 5
    steps: int = 40
    code: Code = Code.RATE
    phases: bool = True
    record: tuple[str, ...] = ()
    bits: int | None = None


ASKED = Asked()


def nothing(_: Any) -> None:  # noqa: ANN401
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("simulated") / "run"
    run_training(STUDY, out, force=False, resume=False, on_epoch=nothing)
    return open_run(out)


def record(run: Run, path: Path, asked: Asked, force: bool = False) -> RecordedRun:
    split = run.test_samples(asked.samples)
    recording = RecordingSettings(phases=asked.phases, record=asked.record, out=path, force=force)
    if asked.on == "rate":
        return record_rates(run.model, split.x, split.y, recording, steps=asked.steps)
    spiking = run.model.to_spiking(code=asked.code, bits=asked.bits)
    settings = SimulationSettings(on=asked.on, steps=asked.steps)
    return record_spikes(run.model, spiking, split.x, split.y, recording, settings)


def test_recorded_rates_settle_at_the_equilibrium_of_each_phase(run: Run, tmp_path: Path) -> None:
    result = record(run, tmp_path / "rate.h5", replace(ASKED, on="rate", steps=400))
    trace = read(tmp_path / "rate.h5")
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    x, y = run.data.test.x[:5], run.data.test.y[:5]
    free = field(NumpyOps(), run.model.network, params, x)
    schedule = three_phase(beta=0.25, free=2000, nudged=2000)
    wanted = relax(free, one_hot(y, 10), schedule, replace(SWEEPS, tolerance=1e-12))
    for phase in schedule:
        for name in ("hidden", "output"):
            gap = np.abs(trace.rate(name, phase.name) - wanted[phase.name].state[name]).max()
            # The file keeps single precision.
            assert gap < 1e-5, (phase.name, name)
    assert [phase.name for phase in result.trace.schedule] == ["free", "negative", "positive"]
    assert set(trace.kinds.values()) == {ActivityKind.RATE}
    assert np.array_equal(trace.label, y)
    assert trace.origin.backend == "rate"
    assert trace.complete


@pytest.mark.parametrize("code", list(CODES.values()), ids=lambda code: str(code.name))
def test_recorded_spikes_are_those_that_evaluation_counts(
    run: Run, tmp_path: Path, code: Code
) -> None:
    asked = replace(ASKED, code=code, phases=False)
    record(run, tmp_path / "spikes.h5", asked)
    trace = read(tmp_path / "spikes.h5")
    result = run.model.evaluate(run.test_samples(5), on="reference", code=code, steps=40)
    assert result.spikes_per_neuron is not None
    sent = sum(len(train.step) for train in trace.spikes.values())
    assert sent == round(result.spikes_per_neuron * 26 * 5)
    assert sent == sum(counts.spikes for counts in trace.counts.values())
    assert [phase.name for phase in trace.schedule] == ["free"]


def test_spikes_and_rates_are_of_the_same_samples_and_phases(run: Run, tmp_path: Path) -> None:
    record(run, tmp_path / "a.h5", replace(ASKED, on="rate", steps=256))
    record(run, tmp_path / "b.h5", replace(ASKED, steps=256))
    rates, spikes = read(tmp_path / "a.h5"), read(tmp_path / "b.h5")
    assert rates.schedule == spikes.schedule
    assert np.array_equal(rates.inputs, spikes.inputs)
    assert rates.connections == spikes.connections == ("input->hidden", "hidden->output")
    for phase in rates.schedule:
        for name in ("hidden", "output"):
            gap = np.abs(rates.rate(name, phase.name) - spikes.rate(name, phase.name))
            assert gap.max() < 0.05


def test_more_is_recorded_when_asked(run: Run, tmp_path: Path) -> None:
    asked = replace(ASKED, record=("hidden:voltage", "output:drive"))
    result = record(run, tmp_path / "more.h5", asked)
    trace = read(tmp_path / "more.h5")
    assert result.recorded == ["hidden:spikes", "hidden:voltage", "output:drive", "output:spikes"]
    assert trace.signals["hidden", "voltage"].shape == (5 * 120, 16)
    assert trace.signals["output", "drive"].shape == (5 * 120, 10)


def test_float_is_compared_with_fixed_point(run: Run, tmp_path: Path) -> None:
    asked = replace(ASKED, code=Code.GRADED)
    record(run, tmp_path / "float.h5", asked)
    result = record(run, tmp_path / "fixed.h5", replace(asked, bits=8))
    assert result.trace.complete
    found = compare(read(tmp_path / "float.h5"), read(tmp_path / "fixed.h5"))
    assert 0.0 < max(each.distance.rmse for each in found.layers) < 0.02
    assert all(each.cosine is not None and each.cosine > 0.95 for each in found.connections)


@pytest.mark.parametrize("on", ["rate", "reference"])
def test_synapse_histories_are_recorded_step_by_step(run: Run, tmp_path: Path, on: str) -> None:
    words = ("hidden->output[3,5;9,0]:hebbian", "input->hidden:hebbian")
    asked = replace(ASKED, on=on, steps=400, record=words)
    result = record(run, tmp_path / "t.h5", asked)
    trace = read(tmp_path / "t.h5")
    assert "hidden->output[3,5;9,0]:hebbian" in result.recorded
    assert result.plan.most_bytes > (tmp_path / "t.h5").stat().st_size
    log = trace.hebbian["hidden->output"]
    weight = trace.weights["hidden->output"].before
    np.testing.assert_array_equal(log.weight, np.tile(weight[[3, 9], [5, 0]], (5 * 1200, 1)))
    asked_for = hebbian_update(trace, "hidden->output")[[3, 9], [5, 0]]
    last = log.tag.reshape(5, 1200, 2)[:, -1].sum(axis=0)
    np.testing.assert_allclose(last, asked_for, atol=0.004)
    assert np.abs(asked_for).min() > 0.02
    assert len(trace.hebbian["input->hidden"].synapses) == 8


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (replace(ASKED, on="lavva"), "unknown backend 'lavva'; known: lava"),
        (replace(ASKED, record=("hiden:voltage",)), "'hiden:voltage'; known: hidden"),
        (replace(ASKED, record=("hidden:volts",)), "'volts'; known: "),
        (replace(ASKED, on="rate", record=("hidden:voltage",)), "'voltage'; known: "),
        (replace(ASKED, record=("hidden->out:hebbian",)), "'hidden->out'; known: hidden->output"),
    ],
)
def test_unknown_names_leave_no_file(run: Run, tmp_path: Path, asked: Asked, reason: str) -> None:
    with pytest.raises(UnknownNameError, match=reason):
        record(run, tmp_path / "none.h5", asked)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("on", ["rate", "reference"])
def test_a_trace_is_overwritten_only_by_force(run: Run, tmp_path: Path, on: str) -> None:
    path, asked = tmp_path / "trace.h5", replace(ASKED, on=on, samples=2)
    record(run, path, asked)
    before = path.read_bytes()
    with pytest.raises(TraceError, match="exists already"):
        record(run, path, replace(asked, samples=3))
    assert path.read_bytes() == before
    record(run, path, replace(asked, samples=3), force=True)
    assert len(read(path).index) == 3


def test_too_many_samples_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="360 test samples, not 999"):
        record(run, tmp_path / "none.h5", replace(ASKED, samples=999))
    assert list(tmp_path.iterdir()) == []


def test_without_labels_the_nudge_goes_to_the_predicted_class(run: Run) -> None:
    x = run.data.test.x[:4]
    spikes = run.model.to_spiking().record(x, phases=True, steps=20)
    rates = run.model.record(x, phases=True, steps=20)
    assert np.array_equal(spikes.label, run.model.predict(x))
    assert np.array_equal(rates.label, spikes.label)
    assert {each.layer for each in compare(rates, spikes).layers} == {"hidden", "output"}


def test_a_trace_in_memory_equals_the_one_in_a_file(run: Run, tmp_path: Path) -> None:
    split = run.test_samples(3)
    spiking = run.model.to_spiking(code="graded")
    given: dict[str, Any] = {"steps": 12, "record": ["output:drive"]}
    memory = spiking.record(split.x, split.y, **given)
    file = spiking.record(split.x, split.y, out=tmp_path / "t.h5", **given)
    assert memory.counts == file.counts
    assert np.array_equal(memory.spikes["hidden"].value, file.spikes["hidden"].value)
    drive = memory.signals["output", "drive"]
    np.testing.assert_allclose(drive, file.signals["output", "drive"], rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.zeros((2, 63)), None, "takes samples of 64 features"),
        (np.full((2, 64), np.nan), None, "not finite"),
        (np.zeros((0, 64)), None, "no sample"),
        (np.zeros((2, 64)), [1], "give 2 integers"),
        (np.zeros((2, 64)), [1, 10], "outside 0..9"),
    ],
)
def test_samples_that_do_not_fit_are_refused(run: Run, x: Any, y: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=reason):
        run.model.record(x, y)


def test_labels_must_be_as_many_as_the_samples_of_a_simulation(run: Run) -> None:
    simulation = run.model.to_spiking(code="graded").run(run.test_samples(3).x, steps=4)
    with pytest.raises(ValueError, match=r"y has shape \(2,\); this simulation has 3 samples"):
        simulation.accuracy([0, 1])
