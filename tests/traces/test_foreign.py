"""Spike trains of NWB files and Neo blocks, of this package and of others."""

from __future__ import annotations

from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.simulators.recordings import Origin, Recording, RecordingPlan, parse_record
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.compare import compare
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

pytestmark = pytest.mark.skipif(
    find_spec("pynwb") is None or find_spec("neo") is None, reason="pynwb or neo is not installed"
)
RASTER = (np.random.default_rng(0).random((3, 40, 5)) < 0.2).astype(float)


def recorded() -> Trace:
    """Three samples of 40 steps and five units."""
    kinds = {"hidden": ActivityKind.SPIKES}
    plan = RecordingPlan(
        origin=Origin("example", "", {}, 0, "", "", 1e-3, 10.0),
        schedule=free_only(steps=40, window=30),
        kinds=kinds,
        sizes={"hidden": 5},
        connections=(),
        index=np.array([4, 5, 9]),
        label=np.array([1, 1, 7]),
        inputs=np.array([[0.25], [0.25], [0.5]]),
        record=parse_record([], kinds),
    )
    return Trace.from_recordings(plan, [Recording({"hidden": each}, {}) for each in RASTER], {})


def check_equal(found: Trace, trace: Trace) -> None:
    """Whether both have the same spikes, samples and rates."""
    assert found.index.tolist() == trace.index.tolist()
    assert found.label.tolist() == trace.label.tolist()
    assert np.array_equal(found.inputs, trace.inputs)
    assert np.array_equal(found.time_course("hidden"), trace.time_course("hidden"))
    assert np.array_equal(found.rate("hidden"), trace.rate("hidden"))


def test_own_files_come_back(tmp_path: Path) -> None:
    trace = recorded()
    path = trace.to_nwb(tmp_path / "own.nwb")
    check_equal(Trace.from_nwb(path), trace)
    assert compare(trace, path).pooled[0][1].rmse == 0.0


def test_blocks_come_back_as_spikes() -> None:
    trace = recorded()
    found = Trace.from_neo(trace.to_neo())
    assert np.array_equal(found.time_course("hidden"), trace.time_course("hidden"))
    assert found.label.tolist() == trace.label.tolist()


def write_other(path: Path, *, trials: bool) -> list[np.ndarray]:
    """A file as a laboratory writes it: two units, and trials of unequal length if asked for."""
    pynwb = pytest.importorskip("pynwb")
    file = pynwb.NWBFile("a session", "1", datetime(2020, 1, 1, tzinfo=timezone.utc))
    times = [np.array([0.0105, 0.0207, 0.5301, 1.2499]), np.array([0.7503])]
    for each in times:
        file.add_unit(spike_times=each)
    if trials:
        file.add_trial_column("label", "stimulus")
        for start, stop, label in ((0.0, 0.5, "left"), (0.5, 1.1, "right"), (0.7, 1.3, "left")):
            file.add_trial(start_time=start, stop_time=stop, label=label)
    with pynwb.NWBHDF5IO(str(path), "w") as io:
        io.write(file)
    return times


def test_trials_of_others_are_samples(tmp_path: Path) -> None:
    path = tmp_path / "other.nwb"
    write_other(path, trials=True)
    found = Trace.from_nwb(path)
    assert found.samples == 3
    assert found.steps == 500
    assert found.label.tolist() == [0, 1, 0]
    course = found.time_course("units")
    assert np.argwhere(course).tolist() == [
        [0, 10, 0],
        [0, 20, 0],
        [1, 30, 0],
        [1, 250, 1],
        [2, 50, 1],
    ]


def test_a_session_without_trials_is_one_sample(tmp_path: Path) -> None:
    path = tmp_path / "other.nwb"
    times = write_other(path, trials=False)
    found = Trace.from_nwb(path, step=0.01)
    assert found.samples == 1
    assert found.time_course("units").sum() == sum(len(each) for each in times)


def test_commands_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, other = tmp_path / "own.nwb", tmp_path / "other.nwb"
    recorded().to_nwb(own)
    write_other(other, trials=True)
    recorded().save(tmp_path / "own.h5")
    assert main(["traces", "show", str(other)]) == 0
    assert "Fano factor" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "own.h5"), str(own)]) == 0


@pytest.mark.parametrize("content", [b"", b"no HDF5", b"\x89HDF\r\n\x1a\n"])
def test_what_is_no_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.nwb"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"bad\.nwb"):
        Trace.from_nwb(path)
    assert main(["traces", "show", str(path)]) == 1
