"""Traces to and from HDF5."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.cli import main
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.files.hdf5 import Node
from neuro_eqprop.files.write import WriteError
from neuro_eqprop.simulators.recordings import Origin, Record, Recording, RecordingPlan, SpikeTrain
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.append_buffer import MAX_DELAY, AppendBuffer
from neuro_eqprop.traces.file import Writer, write
from neuro_eqprop.traces.lazy import read, read_progress
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

ORIGIN = Origin("reference", "abc", {"numpy": "1"}, 7, "2024-01-01", "neuro-eqprop simulate R")


def same(one: Trace, other: Trace) -> None:
    for name in ("origin", "schedule", "kinds", "connections", "counts", "complete"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("index", "label", "inputs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert set(one.spikes) == set(other.spikes)
    for name, events in one.spikes.items():
        assert events.size == other.spikes[name].size
        for column in ("step", "unit", "value"):
            mine, theirs = getattr(events, column), getattr(other.spikes[name], column)
            np.testing.assert_array_equal(mine, theirs)
    assert set(one.signals) == set(other.signals)
    for key, values in one.signals.items():
        np.testing.assert_array_equal(values, other.signals[key])


@pytest.mark.parametrize("kind", ["rate", "spikes", "graded"])
def test_there_and_back(kind: str, episode: dict[str, Trace], tmp_path: Path) -> None:
    write(tmp_path / "t.h5", episode[kind], overwrite=False)
    same(episode[kind], read(tmp_path / "t.h5"))
    assert [p.name for p in tmp_path.iterdir()] == ["t.h5"]


@settings(max_examples=25, deadline=None)
@given(
    samples=st.integers(1, 4),
    steps=st.integers(1, 9),
    size=st.integers(1, 5),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_any_there_and_back(
    samples: int,
    steps: int,
    size: int,
    share: float,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rng = np.random.default_rng(seed)
    sent = rng.normal(size=(samples * steps, size)) * (rng.random((samples * steps, size)) < share)
    step, unit = np.nonzero(sent)
    trace = Trace(
        ORIGIN,
        (Phase("free", 0.0, steps, 1),),
        {"größe": ActivityKind.GRADED},
        ("x->größe",),
        np.arange(samples),
        np.zeros(samples, int),
        rng.random((samples, 2)),
        {"größe": SpikeTrain(step, unit, sent[step, unit], size)},
        {("größe", "state"): sent},
        {},
    )
    path = tmp_path_factory.mktemp("any") / "t.h5"
    write(path, trace, overwrite=False)
    same(trace, read(path))


def test_every_data_set_has_a_unit_and_grows_packed(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    write(tmp_path / "t.h5", episode["spikes"], overwrite=False)
    seen: list[str] = []

    def look(name: str, node: Node) -> None:
        if isinstance(node, h5py.Dataset):
            seen.append(name)
            assert node.attrs["unit"], name
            if name.startswith(("signals", "spikes")):
                assert (node.compression, node.compression_opts, node.shuffle) == ("gzip", 1, True)

    with h5py.File(tmp_path / "t.h5") as file:
        file.visititems(look)
        assert file.attrs["schema"] == 2
        assert file["origin"].attrs["step_seconds"] == 1e-3
        assert file["time"].attrs["unit"] == "s"
        np.testing.assert_allclose(file["time"], (np.arange(192) + 0.5) * 1e-3)
        assert file["origin"].attrs["command"].startswith("neuro-eqprop simulate")
        assert file["phases/stop"][:].tolist() == [64, 128, 192]
        assert file["samples/start"][:].tolist() == [192 * k for k in range(6)]
    assert {"phases/beta", "samples/input", "spikes/hidden/step", "counts/free"} <= set(seen)


@pytest.mark.parametrize(("name", "seconds"), [("schema1", 1e-3), ("schema1-biology", 1e-2)])
def test_files_of_schema_1_open_with_the_time_base_they_had(name: str, seconds: float) -> None:
    trace = read(Path(__file__).parent / "golden" / f"{name}.h5")
    assert trace.step_seconds == seconds
    assert trace.max_rate == pytest.approx(1 / seconds)
    assert trace.targets is None
    assert trace.rate("hidden", "free").tolist() == [[0.0, 0.5], [0.0, 0.5]]
    assert trace.signals["hidden", "voltage"].shape == (48, 2)


def test_time_base_and_targets_come_back_from_a_file(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    whole = episode["spikes"]
    origin = replace(whole.origin, step_seconds=2.5e-4, steps_per_spike=4.0)
    targets = np.eye(10)[whole.label]
    trace = replace(whole, origin=origin, targets=targets)
    write(tmp_path / "t.h5", trace, overwrite=False)
    found = read(tmp_path / "t.h5")
    assert found.origin == origin
    assert found.max_rate == 1000.0
    np.testing.assert_array_equal(np.asarray(found.targets), targets)
    np.testing.assert_allclose(found.time[[0, -1]], [1.25e-4, 191.5 * 2.5e-4])
    # A unit at rate one fires once in four of these steps.
    np.testing.assert_allclose(found.rate("hidden"), 4 * whole.rate("hidden"))
    np.testing.assert_allclose(found.running_rate("hidden", "free")[:, -1], found.rate("hidden"))
    part = np.asarray(found.load(samples=slice(1, 3)).targets)
    np.testing.assert_array_equal(part, targets[1:3])


@pytest.mark.parametrize("seconds", [0.0, -1e-3, float("nan"), float("inf")])
def test_a_step_without_a_duration_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"step_seconds is .*; it must be above zero and finite"):
        replace(ORIGIN, step_seconds=seconds)


def plan(samples: int = 3) -> RecordingPlan:
    record = Record(frozenset({"p"}), frozenset({("p", "voltage")}))
    return RecordingPlan(
        ORIGIN,
        (Phase("free", 0.0, 8, 6),),
        {"p": ActivityKind.SPIKES},
        {"p": 4},
        ("input->p",),
        np.arange(samples),
        np.zeros(samples, int),
        np.zeros((samples, 2)),
        record,
    )


def sample(k: int) -> Recording:
    sent = np.zeros((8, 4))
    sent[k % 8, k % 4] = 1.0
    return Recording({"p": sent}, {("p", "voltage"): np.full((8, 4), float(k))})


def test_an_existing_file_stays_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    path.write_text("precious")
    with pytest.raises(TraceError, match="exists already"):
        Writer(path, plan(), overwrite=False)
    with pytest.raises(WriteError, match="was not written by this program"):
        Writer(path, plan(), overwrite=True)
    assert path.read_text() == "precious"
    path.unlink()
    for overwrite in (False, True):
        with Writer(path, plan(1), overwrite=overwrite) as writer:
            writer.sample(0, sample(0))
        assert read(path).complete


def test_an_error_leaves_nothing_under_the_final_name(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"

    def interrupted() -> None:
        with Writer(path, plan(), overwrite=False) as writer:
            writer.sample(0, sample(0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not path.exists()
    kept = read(tmp_path / "t.h5.partial")
    assert not kept.complete
    assert kept.index.tolist() == [0]


def test_an_error_before_the_first_sample_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Writer(tmp_path / "t.h5", plan(), overwrite=False):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_samples_that_do_not_come_are_missed(tmp_path: Path) -> None:
    with (
        pytest.raises(TraceError, match="1 of 3 announced samples"),
        Writer(tmp_path / "t.h5", plan(), overwrite=False) as writer,
    ):
        writer.sample(0, sample(0))


@pytest.mark.parametrize(
    ("index", "recording", "message"),
    [
        (1, sample(0), "sample 1 arrived where 0 was expected"),
        (
            0,
            Recording({"p": np.zeros((8, 5))}, sample(0).signals),
            r"has shape \(8, 5\), expected \(8, 4",
        ),
    ],
)
def test_a_sample_that_does_not_fit_is_refused(
    index: int, recording: Recording, message: str, tmp_path: Path
) -> None:
    with (
        pytest.raises(TraceError, match=message),
        Writer(tmp_path / "t.h5", plan(), overwrite=False) as writer,
    ):
        writer.sample(index, recording)


def test_more_samples_than_announced_are_refused(tmp_path: Path) -> None:
    def too_many() -> None:
        with Writer(tmp_path / "t.h5", plan(1), overwrite=False) as writer:
            for k in range(2):
                writer.sample(k, sample(k))

    with pytest.raises(TraceError, match="only 1 samples were announced"):
        too_many()


@pytest.mark.parametrize("name", ["a/b", "..", ""])
def test_names_that_mean_another_place_are_refused(name: str, tmp_path: Path) -> None:
    good = plan(1)
    bad = RecordingPlan(
        good.origin,
        good.schedule,
        {name: ActivityKind.SPIKES},
        {name: 4},
        (),
        good.index,
        good.label,
        good.inputs,
        Record(),
    )
    with pytest.raises(TraceError, match="cannot name a group"):
        Writer(tmp_path / "t.h5", bad, overwrite=False)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(TraceError, match="cannot be written"),
        Writer(tmp_path / "absent" / "t.h5", plan(), overwrite=False),
    ):
        pass


CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from neuro_eqprop.traces.file import Writer
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.simulators.recordings import Origin, RecordingPlan, Record, Recording
from neuro_eqprop.spiking.activity import ActivityKind
n = 100000
plan = RecordingPlan(Origin("child", "", {}, 0, "", ""), (Phase("free", 0.0, 16, 12),),
            {"p": ActivityKind.SPIKES}, {"p": 50}, (),
            np.arange(n), np.zeros(n, int), np.zeros((n, 1)),
            Record(frozenset({"p"}), frozenset({("p", "voltage")})))
with Writer(Path(sys.argv[1]), plan, overwrite=False) as writer:
    for k in range(n):
        sent = (np.arange(16 * 50).reshape(16, 50) + k) % 7 == 0
        writer.sample(k, Recording({"p": sent * 1.0}, {("p", "voltage"): np.full((16, 50), k / 2)}))
        if k == 20:
            print("going", flush=True)
"""


def check_child(trace: Trace) -> None:
    samples = len(trace.index)
    assert not trace.complete
    assert samples >= 20
    np.testing.assert_array_equal(
        trace.signals["p", "voltage"][:, 3], np.arange(samples * 16) // 16 / 2
    )
    for k in (0, samples - 1):
        wanted = (np.arange(16 * 50).reshape(16, 50) + k) % 7 == 0
        np.testing.assert_array_equal(trace.recording(k).spikes["p"], wanted)


@pytest.mark.parametrize("wait", [1.0, 1.13])
def test_readable_while_written_and_after_kill(wait: float, tmp_path: Path) -> None:
    path = tmp_path / "live.h5"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "going\n"
        time.sleep(wait)
        deadline = time.monotonic() + 60  # on a busy machine the writer may need longer
        while len(read(path).index) < 20:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        check_child(read(path))
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    check_child(read(path))


def test_rows_reach_the_file_within_a_second(tmp_path: Path) -> None:
    assert MAX_DELAY < 1.0
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        rows = file.create_dataset("x", (0,), maxshape=(None,), dtype=float)
        buffer = AppendBuffer(file, tmp_path / "rows.h5")
        buffer.add({"x": np.ones(1)})
        began = time.monotonic()
        while not len(rows):
            assert time.monotonic() - began < MAX_DELAY + 1.0  # and a timer that comes late
            time.sleep(0.02)


def test_a_pause_keeps_nothing_back(tmp_path: Path) -> None:
    path = tmp_path / "live.h5"
    pausing = CHILD.replace("print(", "print(1) or time.sleep(600) or print(")
    child = subprocess.Popen([sys.executable, "-c", pausing, str(path)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not path.exists() or len(read(path).index) < 21:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        child.kill()
        child.wait()
    assert len(read(path).index) == 21


def test_a_failure_of_the_writer_thread_is_raised(tmp_path: Path) -> None:
    class Broken:
        def __getitem__(self, name: str) -> None:
            raise OSError("disk full")

    tail = AppendBuffer(Broken(), tmp_path / "none.h5")
    tail.add({"x": np.zeros(1)})
    time.sleep(3 * MAX_DELAY)
    with pytest.raises(OSError, match="disk full"):
        tail.add({})


def test_look_reads_the_last_samples_only(episode: dict[str, Trace], tmp_path: Path) -> None:
    write(tmp_path / "t.h5", episode["spikes"], overwrite=False)
    seen = read_progress(tmp_path / "t.h5", last=2)
    recent = seen.trace
    assert (seen.taken, seen.announced, seen.epochs) == (6, 6, 0)
    assert recent.index.tolist() == [104, 105]
    np.testing.assert_array_equal(
        recent.time_course("hidden"), episode["spikes"].time_course("hidden")[4:]
    )
    whole = episode["spikes"].signals["output", "voltage"]
    np.testing.assert_array_equal(recent.signals["output", "voltage"], whole[-2 * 192 :])


def test_watch_follows_to_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "live.h5"
    slowly = CHILD.replace("100000", "25").replace(
        "if k == 20:", "time.sleep(0.02)\n        if k == 9:"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", slowly, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "going\n"
    assert main(["traces", "watch", str(path), "--json"]) == 0
    assert child.wait() == 0
    child.stdout.close()
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["complete"], outcome["samples"]) == (True, 25)


def test_a_binary_spike_has_no_other_value(episode: dict[str, Trace], tmp_path: Path) -> None:
    louder = replace(
        episode["spikes"].spikes["hidden"], value=0.5 * episode["spikes"].spikes["hidden"].value
    )
    spoilt = replace(episode["spikes"], spikes={**episode["spikes"].spikes, "hidden": louder})
    with pytest.raises(TraceError, match="a binary spike of 'hidden' has a payload, not a number"):
        write(tmp_path / "t.h5", spoilt, overwrite=False)


def test_watch_waits_for_a_file_that_is_to_come(
    tmp_path: Path, episode: dict[str, Trace], capsys: pytest.CaptureFixture[str]
) -> None:
    later = Timer(0.3, write, (tmp_path / "t.h5", episode["rate"]), {"overwrite": False})
    later.start()
    assert main(["traces", "watch", str(tmp_path / "t.h5"), "--json"]) == 0
    later.join()
    assert json.loads(capsys.readouterr().out)["samples"] == 6
    assert main(["traces", "watch", str(tmp_path / "never.h5"), "--patience", "0.2"]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_watch_gives_up_on_a_dead_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def dies() -> None:
        with Writer(tmp_path / "t.h5", plan(), overwrite=False) as writer:
            writer.sample(0, sample(0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dies()
    words = ["traces", "watch", str(tmp_path / "t.h5.partial"), "--patience", "0.1"]
    assert main(words) == 1
    assert "has not grown for 0.1 s" in capsys.readouterr().err


def spoil(change: Callable[[Node], None], path: Path, trace: Trace) -> None:
    write(path, trace, overwrite=False)
    with h5py.File(path, "r+") as file:
        change(file)


def claim_huge(file: Node) -> None:
    del file["signals/output/voltage"]
    make = file["signals/output"].create_dataset
    make("voltage", shape=(2**40, 10), maxshape=(None, 10), chunks=(64, 10), dtype="f8")


def link_elsewhere(file: Node) -> None:
    del file["samples/input"]
    file["samples/input"] = h5py.ExternalLink("/etc/passwd", "/")


def many_phases(file: Node) -> None:
    file["phases/stop"][:] = [64, 128, 2**50]


def set_attribute(name: str, value: object) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        file.attrs[name] = value

    return change


def put(name: str, place: int, value: int) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        file[name][place] = value

    return change


def drop(name: str) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        del file[name]

    return change


def shorten(name: str, rows: int) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        file[name].resize(rows, axis=0)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_attribute("schema", 3), "schema 3 and this program reads up to 2: update"),
        (set_attribute("format", "other"), "not a trace of this program"),
        (set_attribute("populations", "[]"), "not a dict"),
        (set_attribute("populations", "{"), "is damaged"),
        (claim_huge, "claims 87960930222080 bytes"),
        (many_phases, "inconsistent"),
        (link_elsewhere, "samples/input is missing or lies in another file"),
        (drop("spikes/hidden/unit"), "spikes/hidden/unit is missing"),
        (drop("origin"), "is damaged"),
        (shorten("signals/output/voltage", 10), "different samples"),
        (shorten("spikes/hidden/value", 3), "different samples"),
        (put("spikes/hidden/unit", 0, 24), "beyond its 24"),
        (put("spikes/hidden/unit", 0, -1), "beyond its 24"),
        (put("spikes/hidden/step", 0, 900), "out of order"),
        (put("spikes/hidden/step", -1, 2**30), "lie outside their samples"),
        (put("spikes/hidden/stop", 2, -5), "spike counts of .hidden. decrease"),
        (put("phases/start", 1, 60), "not contiguous"),
        (put("phases/window", 1, 600), "window must be 1 to 64 steps"),
    ],
)
def test_a_spoilt_file_gets_one_sentence(
    change: Callable[[Node], None], message: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    spoil(change, tmp_path / "t.h5", episode["spikes"])
    with pytest.raises(TraceError, match=message) as caught:
        read(tmp_path / "t.h5")
    assert "t.h5" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_foreign_truncated_and_missing_files_have_different_errors(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    path = tmp_path / "t.h5"
    with pytest.raises(TraceError, match="there is no file"):
        read(path)
    path.write_text("hello")
    with pytest.raises(TraceError, match="is no HDF5 file"):
        read(path)
    path.unlink()
    write(path, episode["spikes"], overwrite=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="cut short"):
        read(path)


def test_no_byte_flip_escapes_as_another_error(episode: dict[str, Trace], tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["graded"], overwrite=False)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        with suppress(TraceError):
            read(path)
