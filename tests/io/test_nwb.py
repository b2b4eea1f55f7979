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
from neuro_eqprop.io import nwb
from neuro_eqprop.io.nwb import UNKNOWN, start_time, to_nwb
from neuro_eqprop.io.trace.file import write
from neuro_eqprop.io.trace.schema import TraceError
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.traces import Origin, SpikeTrain

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


@needs("nwbinspector")
@pytest.mark.parametrize("kind", ["rate", "graded"])
def test_the_inspector_finds_nothing_critical(kind: str, files: dict[str, Path]) -> None:
    inspector = pytest.importorskip("nwbinspector")
    found = list(inspector.inspect_nwbfile(nwbfile_path=str(files[kind])))
    assert found, "it always misses the experimenter"
    violation = inspector.Importance.BEST_PRACTICE_VIOLATION.value
    assert violation < inspector.Importance.CRITICAL.value
    # A network has no species, and we do not make one up.
    severe = {m.check_function_name for m in found if m.importance.value >= violation}
    assert severe == {"check_subject_species_exists"}


@pytest.mark.parametrize("kind", ["spikes", "graded"])
def test_units_are_the_spike_trains(
    kind: str, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    trace = episode[kind]
    with opened(files[kind]) as file:
        assert file.units.resolution == DT
        table = file.units.to_dataframe()
    assert len(table) == 24 + 10
    assert set(table["backend"]) == {"reference"}
    for _, row in table.iterrows():
        train = trace.spikes[row["population"]]
        mine = train.unit == row["unit"]
        np.testing.assert_array_equal(row["spike_times"], train.step[mine] * DT)
        np.testing.assert_allclose(row["obs_intervals"], [[0.0, 6 * 192 * DT]])
        if kind == "graded":
            np.testing.assert_array_equal(row["payload"], train.value[mine])
    assert ("payload" in table) == (kind == "graded")
    assert table["_name"].tolist()[23:25] == ["hidden.23", "output.0"]
    assert table["unit"].tolist() == [*range(24), *range(10)]


@pytest.mark.parametrize("kind", KINDS)
def test_signals_are_series_with_a_rate(
    kind: str, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    with opened(files[kind]) as file:
        assert set(file.acquisition) == {".".join(key) for key in episode[kind].signals}
        assert file.acquisition
        for (name, variable), values in episode[kind].signals.items():
            series = file.acquisition[f"{name}.{variable}"]
            assert (series.rate, series.starting_time) == (1000.0, 0.0)
            np.testing.assert_array_equal(series.data, values)
        assert (file.units is None) == (kind == "rate")


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


def test_notes_tell_where_it_comes_from(files: dict[str, Path], episode: dict[str, Trace]) -> None:
    with opened(files["spikes"]) as file:
        told = json.loads(file.notes)
        assert file.session_start_time.isoformat() == "2024-01-01T00:00:00+00:00"
        assert "not an animal" in file.subject.description
    origin = episode["spikes"].origin
    assert told["origin"]["command"] == origin.command
    assert told["origin"]["versions"] == origin.versions
    assert (told["dt"], told["complete"]) == (DT, True)


@needs("neo", "elephant", "quantities")
def test_elephant_computes_our_rates_from_what_neo_reads(
    files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    second = pytest.importorskip("quantities").s
    firing = pytest.importorskip("elephant.statistics").mean_firing_rate
    reader = pytest.importorskip("neo.io").NWBIO(str(files["spikes"]))
    (block,) = reader.read_all_blocks()
    reader._io_nwb.close()  # Neo leaves the file open.
    segment = block.segments[0]
    trace = episode["spikes"]
    voltage = segment.analogsignals[0].magnitude
    np.testing.assert_array_equal(voltage, trace.signals["output", "voltage"])
    trains = {train.name: train for train in segment.spiketrains}
    compared = 0
    for name, phase in product(("hidden", "output"), trace.schedule):
        _, window, stop = trace.span(phase.name)
        for (sample, unit), ours in np.ndenumerate(trace.rate(name, phase.name)):
            train = trains[f"{name}.{unit}"]
            if not len(train):  # Elephant refuses these.
                assert ours == 0.0
                continue
            # Elephant counts the spikes at both ends, so the ends lie between steps.
            start, end = (DT * (k + 192 * sample - 0.5) for k in (window, stop))
            theirs = float(firing(train, start * second, end * second).rescale("Hz"))
            assert theirs * DT == pytest.approx(ours, abs=1e-9)
            compared += bool(0.0 < ours < 1.0)
    assert compared > 100


def test_silence_and_an_unfinished_run_are_told(episode: dict[str, Trace], tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    nothing = SpikeTrain(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 3)
    origin = Origin("lava", "", {}, 0, "", "")
    silent = replace(
        episode["spikes"], origin=origin, spikes={"hidden": nothing}, signals={}, complete=False
    )
    path = to_nwb(silent, tmp_path / "t.nwb", dt=0.5)
    assert pynwb.validate(path=str(path)) == []
    with opened(path) as file:
        assert [len(times) for times in file.units["spike_times"][:]] == [0, 0, 0]
        assert file.session_start_time == UNKNOWN
        assert "did not finish" in file.session_description
        assert "its date is unknown" in file.session_description


@pytest.mark.parametrize(
    ("created", "told"),
    [
        ("2026-03-01T10:20:30Z", "2026-03-01T10:20:30+00:00"),
        ("2026-03-01T10:20:30+02:00", "2026-03-01T10:20:30+02:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("yesterday", UNKNOWN.isoformat()),
    ],
)
def test_the_start_is_read_as_it_was_told(
    created: str, told: str, episode: dict[str, Trace]
) -> None:
    trace = replace(episode["rate"], origin=replace(episode["rate"].origin, created=created))
    assert start_time(trace).isoformat() == told


@pytest.mark.parametrize(
    ("name", "dt", "told"),
    [
        ("t.h5", DT, r"t\.h5 does not end in \.nwb"),
        ("there.nwb", DT, "exists already"),
        ("t.nwb", 0.0, r"cannot take 0\.0 seconds"),
        ("t.nwb", float("nan"), "cannot take nan seconds"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    name: str, dt: float, told: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    (tmp_path / "there.nwb").write_text("precious")
    with pytest.raises(TraceError, match=told):
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
    told = capsys.readouterr().err
    assert "pip install 'neuro_eqprop[nwb]'" in told
    assert told.count("\n") == 1
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
        assert file.acquisition["output.voltage"].rate == pytest.approx(rate)
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
