"""Traces for the tools of neuroscience: what they read is what was recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.simulators.recordings import Origin, SpikeTrain
from neuro_eqprop.traces import nwb
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.nwb import UNKNOWN, start_time, to_nwb
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

DT = 1e-3
KINDS = ["rate", "spikes", "graded"]

pytestmark = pytest.mark.skipif(find_spec("pynwb") is None, reason="pynwb is not installed")


def needs(*names: str) -> pytest.MarkDecorator:
    missing = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    pynwb = pytest.importorskip("pynwb")
    with pynwb.NWBHDF5IO(str(path), "r") as file:
        yield file.read()


@pytest.fixture(scope="module")
def files(episode: dict[str, Trace], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The exported file of each kind of trace."""
    folder = tmp_path_factory.mktemp("nwb")
    made = {kind: to_nwb(trace, folder / f"{kind}.nwb", dt=DT) for kind, trace in episode.items()}
    assert sorted(folder.iterdir()) == sorted(made.values())
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_holds(kind: str, files: dict[str, Path]) -> None:
    pynwb = pytest.importorskip("pynwb")
    assert pynwb.validate(path=str(files[kind])) == []


DOCUMENTED = {
    "check_experimenter_exists",
    "check_institution",
    "check_keywords",
    "check_subject_species_exists",
    "check_processing_module_name",
    "check_data_orientation",
    "check_single_row",
}
"""Findings of the inspector that docs/reference/traces.md explains."""


@needs("nwbinspector")
@pytest.mark.parametrize("kind", ["rate", "graded"])
def test_the_inspector_finds_only_what_is_documented(kind: str, files: dict[str, Path]) -> None:
    inspector = pytest.importorskip("nwbinspector")
    found = list(inspector.inspect_nwbfile(nwbfile_path=str(files[kind])))
    assert found, "it always misses the experimenter"
    assert {message.check_function_name for message in found} <= DOCUMENTED
    violation = inspector.Importance.BEST_PRACTICE_VIOLATION.value
    assert violation < inspector.Importance.CRITICAL.value
    # A network has no species, and we do not make one up.
    severe = {m.check_function_name for m in found if m.importance.value >= violation}
    assert severe == {"check_subject_species_exists"}


@needs("nwbinspector")
def test_a_training_of_one_epoch_adds_a_finding_that_is_documented(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    inspector = pytest.importorskip("nwbinspector")
    trained = replace(episode["rate"], epochs={"test_accuracy": np.array([0.5])})
    path = to_nwb(trained, tmp_path / "t.nwb", dt=DT)
    found = {m.check_function_name for m in inspector.inspect_nwbfile(nwbfile_path=str(path))}
    assert "check_single_row" in found
    assert found <= DOCUMENTED
    page = (Path(__file__).parents[2] / "docs" / "reference" / "traces.md").read_text()
    assert all(f"`{each}`" in page for each in DOCUMENTED)


@pytest.mark.parametrize("kind", ["spikes", "graded"])
def test_units_are_the_spike_trains_of_each_sample(
    kind: str, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    trace = episode[kind]
    with opened(files[kind]) as file:
        assert file.units.resolution == DT
        table = file.units.to_dataframe()
    assert len(table) == 6 * (24 + 10)
    assert set(table["backend"]) == {"reference"}
    for _, row in table.iterrows():
        train, start = trace.spikes[row["population"]], 192 * row["sample"]
        mine = (train.unit == row["unit"]) & (train.step >= start) & (train.step < start + 192)
        np.testing.assert_array_equal(row["spike_times"], (train.step[mine] + 0.5) * DT)
        np.testing.assert_allclose(row["obs_intervals"], [[start * DT, (start + 192) * DT]])
        if kind == "graded":
            np.testing.assert_array_equal(row["payload"], train.value[mine])
    assert ("payload" in table) == (kind == "graded")
    assert table["_name"].tolist()[23:25] == ["hidden.23", "output.0"]
    assert table["unit"].tolist() == [*range(24), *range(10)] * 6


@pytest.mark.parametrize("kind", KINDS)
def test_signals_are_series_of_each_sample_with_a_rate_and_a_unit(
    kind: str, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    with opened(files[kind]) as file:
        names = {f"{'.'.join(key)}.sample{k}" for key in episode[kind].signals for k in range(6)}
        assert set(file.acquisition) == names
        assert names
        for (name, variable), values in episode[kind].signals.items():
            series = file.acquisition[f"{name}.{variable}.sample2"]
            assert (series.rate, series.starting_time) == (1000.0, pytest.approx(384.5 * DT))
            scale, unit = (1000.0, "hertz") if variable == "rate" else (100.0, "percent")
            assert series.unit == unit
            np.testing.assert_allclose(series.data, scale * values[384:576])
        assert (file.units is None) == (kind == "rate")


def test_inputs_and_targets_are_intervals(episode: dict[str, Trace], tmp_path: Path) -> None:
    trace = replace(episode["spikes"], targets=np.eye(10)[episode["spikes"].label])
    with opened(to_nwb(trace, tmp_path / "t.nwb")) as file:
        table = file.intervals["samples"].to_dataframe()
    assert table["sample"].tolist() == trace.index.tolist()
    np.testing.assert_array_equal(np.stack(table["input"].tolist()), trace.inputs)
    np.testing.assert_array_equal(np.argmax(table["target"].tolist(), axis=1), trace.label)
    np.testing.assert_allclose(table["stop_time"], 192 * DT * np.arange(1, 7))


def test_the_time_base_is_that_of_the_trace(episode: dict[str, Trace], tmp_path: Path) -> None:
    whole = episode["spikes"]
    trace = replace(whole, origin=replace(whole.origin, step_seconds=1e-2))
    with opened(to_nwb(trace, tmp_path / "t.nwb")) as file:
        assert file.acquisition["output.voltage.sample0"].rate == pytest.approx(100.0)
        assert file.units.resolution == 1e-2
        assert file.trials["stop_time"][17] == pytest.approx(6 * 1.92)


def test_missing_folders_are_made(episode: dict[str, Trace], tmp_path: Path) -> None:
    made = episode["spikes"].to_nwb(tmp_path / "new" / "folder" / "x.nwb")
    assert [path.name for path in made.parent.iterdir()] == ["x.nwb"]


def test_phases_are_trials(files: dict[str, Path], episode: dict[str, Trace]) -> None:
    trace = episode["spikes"]
    with opened(files["spikes"]) as file:
        table = file.trials.to_dataframe()
    assert table["phase"].tolist() == ["free", "negative", "positive"] * 6
    assert table["beta"].tolist() == [0.0, -0.25, 0.25] * 6
    assert table["sample"].tolist() == np.repeat(trace.index, 3).tolist()
    assert table["label"].tolist() == np.repeat(trace.label, 3).tolist()
    np.testing.assert_allclose(table["start_time"], 64 * DT * np.arange(18))
    np.testing.assert_allclose(table["stop_time"], 64 * DT * np.arange(1, 19))
    window = trace.schedule[1].window
    np.testing.assert_allclose(table["window_start_time"][4], (192 + 128 - window) * DT)


def test_notes_hold_the_origin(files: dict[str, Path], episode: dict[str, Trace]) -> None:
    with opened(files["spikes"]) as file:
        result = json.loads(file.notes)
        assert file.session_start_time.isoformat() == "2024-01-01T00:00:00+00:00"
        assert "not an animal" in file.subject.description
    origin = episode["spikes"].origin
    assert result["origin"]["command"] == origin.command
    assert result["origin"]["versions"] == origin.versions
    assert (result["dt"], result["complete"]) == (DT, True)


def check_rates(segments: list[Any], trace: Trace, *, absolute: bool) -> None:
    """Elephant's mean rates: ours in the windows, never above the maximum over a sample."""
    second = pytest.importorskip("quantities").s
    firing = pytest.importorskip("elephant.statistics").mean_firing_rate
    compared = 0
    for sample, segment in enumerate(segments):
        trains = {train.name: train for train in segment.spiketrains}
        for train in trains.values():
            if len(train):  # Elephant refuses the others.
                assert float(firing(train).rescale("Hz")) <= trace.max_rate * (1 + 1e-9)
        origin = 192 * DT * sample if absolute else 0.0
        for name, phase in product(("hidden", "output"), trace.schedule):
            _, window, stop = trace.span(phase.name)
            for unit, ours in enumerate(trace.rate(name, phase.name)[sample]):
                train = trains[f"{name}.{unit}"]
                if not len(train):
                    assert ours == 0.0
                    continue
                start, end = (origin + DT * k for k in (window, stop))
                theirs = float(firing(train, start * second, end * second).rescale("Hz"))
                assert theirs * DT == pytest.approx(ours, abs=1e-9)
                compared += bool(0.0 < ours < 1.0)
    assert compared > 100


@needs("neo", "elephant", "quantities")
def test_neo_reads_each_sample_as_a_segment_with_its_phases(
    files: dict[str, Path], episode: dict[str, Trace], caplog: pytest.LogCaptureFixture
) -> None:
    reader = pytest.importorskip("neo.io").NWBIO(str(files["spikes"]))
    (block,) = reader.read_all_blocks()
    reader._io_nwb.close()  # Neo leaves the file open.
    assert "unit" not in caplog.text  # of a unit that Neo does not know
    trace = episode["spikes"]
    assert [segment.name for segment in block.segments] == [f"sample {k}" for k in range(6)]
    for k, segment in enumerate(block.segments):
        (phases,) = segment.epochs
        assert list(phases.labels) == ["free", "negative", "positive"]
        np.testing.assert_allclose(phases.magnitude, DT * (192 * k + np.array([0, 64, 128])))
        np.testing.assert_allclose(phases.durations.magnitude, 64 * DT)
        voltage = segment.analogsignals[0].rescale("dimensionless").magnitude
        expected = trace.signals["output", "voltage"][192 * k : 192 * (k + 1)]
        np.testing.assert_allclose(voltage, expected)
    check_rates(block.segments, trace, absolute=True)


@needs("neo", "elephant", "quantities")
def test_a_block_of_neo_has_segments_that_start_at_zero(episode: dict[str, Trace]) -> None:
    trace = replace(episode["spikes"], targets=np.eye(10)[episode["spikes"].label])
    block = trace.to_neo()
    assert len(block.segments) == 6
    last = block.segments[5]
    assert (last.annotations["sample"], last.annotations["label"]) == (105, trace.label[5])
    np.testing.assert_array_equal(last.annotations["input"], trace.inputs[5])
    assert last.annotations["target"].argmax() == trace.label[5]
    assert list(last.epochs[0].labels) == ["free", "negative", "positive"]
    np.testing.assert_allclose(last.epochs[0].array_annotations["beta"], [0, -0.25, 0.25])
    np.testing.assert_allclose(last.analogsignals[0].times.magnitude, trace.time)
    check_rates(block.segments, trace, absolute=False)
    graded = episode["graded"].to_neo().segments[0].spiketrains
    assert any((train.array_annotations["payload"] < 0).any() for train in graded)
    rates = episode["rate"].to_neo().segments[0].analogsignals[0]
    assert rates.units.dimensionality.string == "Hz"
    assert 0 < rates.magnitude.max() <= 1000.0


def test_silence_and_an_unfinished_run_are_reported(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    pynwb = pytest.importorskip("pynwb")
    nothing = SpikeTrain(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 3)
    origin = Origin("lava", "", {}, 0, "", "")
    silent = replace(
        episode["spikes"], origin=origin, spikes={"hidden": nothing}, signals={}, complete=False
    )
    path = to_nwb(silent, tmp_path / "t.nwb", dt=0.5)
    assert pynwb.validate(path=str(path)) == []
    with opened(path) as file:
        assert [len(times) for times in file.units["spike_times"][:]] == [0, 0, 0] * 6
        assert file.session_start_time == UNKNOWN
        assert "did not finish" in file.session_description
        assert "its date is unknown" in file.session_description


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-03-01T10:20:30Z", "2026-03-01T10:20:30+00:00"),
        ("2026-03-01T10:20:30+02:00", "2026-03-01T10:20:30+02:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("yesterday", UNKNOWN.isoformat()),
    ],
)
def test_the_start_time_is_read(created: str, expected: str, episode: dict[str, Trace]) -> None:
    trace = replace(episode["rate"], origin=replace(episode["rate"].origin, created=created))
    assert start_time(trace).isoformat() == expected


@pytest.mark.parametrize(
    ("name", "dt", "message"),
    [
        ("t.h5", DT, r"t\.h5 does not end in \.nwb"),
        ("there.nwb", DT, "exists already"),
        ("t.nwb", 0.0, r"cannot take 0\.0 seconds"),
        ("t.nwb", float("nan"), "cannot take nan seconds"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    name: str, dt: float, message: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    (tmp_path / "there.nwb").write_text("precious")
    with pytest.raises(TraceError, match=message):
        to_nwb(episode["rate"], tmp_path / name, dt=dt)
    assert [p.name for p in tmp_path.iterdir()] == ["there.nwb"]
    assert (tmp_path / "there.nwb").read_text() == "precious"


def test_a_trace_without_samples_is_refused(episode: dict[str, Trace], tmp_path: Path) -> None:
    none = replace(episode["rate"], index=np.zeros(0, int), label=np.zeros(0, int))
    with pytest.raises(TraceError, match="no complete sample"):
        to_nwb(none, tmp_path / "t.nwb", dt=DT)


def test_an_error_on_the_way_leaves_nothing(
    episode: dict[str, Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(trace: Trace, *, dt: float) -> None:
        raise RuntimeError(f"no units for {dt} of {trace.origin.backend}")

    monkeypatch.setattr(nwb, "units", broken)
    with pytest.raises(RuntimeError, match="no units"):
        to_nwb(episode["spikes"], tmp_path / "t.nwb", dt=DT)
    assert list(tmp_path.iterdir()) == []


def test_without_pynwb_one_sentence_says_how_to_get_it(
    episode: dict[str, Trace],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / "t.h5", episode["spikes"], overwrite=False)
    monkeypatch.setitem(sys.modules, "pynwb", None)
    out = str(tmp_path / "t.nwb")
    words = ["traces", "export", str(tmp_path / "t.h5"), "--nwb", out, "--dt", "0.001"]
    assert main(words) == 1
    result = capsys.readouterr().err
    assert "pip install 'neuro_eqprop[nwb]'" in result
    assert result.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


@pytest.mark.parametrize(("extra", "rate"), [((), 1000.0), (("--dt", "0.01"), 100.0)])
def test_the_command_exports(
    extra: tuple[str, ...],
    rate: float,
    episode: dict[str, Trace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / "t.h5", episode["spikes"], overwrite=False)
    out = tmp_path / "t.nwb"
    words = ["traces", "export", str(tmp_path / "t.h5"), "--nwb", str(out), "--json", *extra]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["made"] == [str(out)]
    with opened(out) as file:
        assert file.acquisition["output.voltage.sample0"].rate == pytest.approx(rate)
        assert json.loads(file.notes)["dt"] == 1 / rate
    assert main([*words, "--npz", str(tmp_path / "t.npz")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert not (tmp_path / "t.npz").exists()


def test_export_asks_where_to(
    episode: dict[str, Trace], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t.h5", episode["rate"], overwrite=False)
    assert main(["traces", "export", str(tmp_path / "t.h5")]) == 1
    assert "--nwb OUT.nwb" in capsys.readouterr().err
