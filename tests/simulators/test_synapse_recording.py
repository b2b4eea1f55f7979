"""Watched synapses and weights: chosen, written, read, exported."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from neuro_eqprop import open_trace
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.files.hdf5 import Node
from neuro_eqprop.simulators.recordings import (
    LAYOUT_BYTES,
    Origin,
    Record,
    Recording,
    RecordingPlan,
    parse_record,
)
from neuro_eqprop.simulators.synapse_recording import COLUMNS, SynapseLog, strongest_synapses
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.export import to_csv, to_npz
from neuro_eqprop.traces.file import Writer, write
from neuro_eqprop.traces.lazy import read, read_progress
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

KINDS = {"hidden": ActivityKind.SPIKES, "output": ActivityKind.SPIKES}
WEIGHTS = {
    "input->hidden": np.linspace(-1, 1, 4 * 3).reshape(4, 3),
    "hidden->output": np.array([[0.1, -0.9, 0.0, 0.2], [0.3, 0.0, 0.0, -0.1]]),
}
SCHEDULE = three_phase(beta=0.5, free=4, nudged=4)
SAMPLES = 3


def plan(*words: str, learns: bool = True) -> RecordingPlan:
    return RecordingPlan(
        Origin("by hand", "abc", {}, 0, "2024-01-01", ""),
        SCHEDULE,
        KINDS,
        {"hidden": 4, "output": 2},
        tuple(WEIGHTS),
        np.arange(SAMPLES),
        np.zeros(SAMPLES, int),
        np.zeros((SAMPLES, 3)),
        parse_record(words, KINDS, WEIGHTS),
        WEIGHTS,
        learns,
    )


def recordings(laid: RecordingPlan) -> list[Recording]:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(SAMPLES):
        spikes = {
            n: (rng.random((laid.steps, s)) < 0.4).astype(np.float64) for n, s in laid.sizes.items()
        }
        logs = {
            name: SynapseLog(pairs, *rng.normal(size=(5, laid.steps, len(pairs))))
            for name, pairs in laid.record.hebbian.items()
        }
        made.append(Recording(spikes, {}, logs))
    return made


AFTER = {name: weight + 0.25 for name, weight in WEIGHTS.items()}


@pytest.fixture
def trace() -> Trace:
    laid = plan("hidden->output[1,3;0,1]:hebbian", "input->hidden:hebbian")
    return Trace.from_recordings(laid, recordings(laid), {}, AFTER)


def same(one: Trace, other: Trace) -> None:
    assert set(one.weights) == set(other.weights)
    for name, weights in one.weights.items():
        np.testing.assert_array_equal(weights.before, other.weights[name].before)
        after = other.weights[name].after
        assert weights.after is not None
        assert after is not None
        np.testing.assert_array_equal(weights.after, after)
    assert set(one.hebbian) == set(other.hebbian)
    for name, log in one.hebbian.items():
        assert log.synapses == other.hebbian[name].synapses
        for column in COLUMNS:
            mine, theirs = getattr(log, column), getattr(other.hebbian[name], column)
            np.testing.assert_array_equal(mine, theirs)


def test_synapses_are_chosen_by_name() -> None:
    record = parse_record(
        ["hidden->output[1,3]:hebbian", "hidden->output[0,1]:hebbian"], KINDS, WEIGHTS
    )
    assert record.hebbian == {"hidden->output": ((1, 3), (0, 1))}
    assert record.spikes == set(KINDS)
    again = parse_record(
        ["hidden->output[1,3]:hebbian", "hidden->output[1,3; 0,1]:hebbian"], KINDS, WEIGHTS
    )
    assert again.hebbian == record.hebbian
    few = parse_record(["hidden->output:hebbian", "output:voltage"], KINDS, WEIGHTS)
    assert few.hebbian == {"hidden->output": ((0, 1), (1, 0))}
    assert few.signals == {("output", "voltage")}


def test_a_few_are_picked_from_targets_evenly_apart() -> None:
    weight = np.zeros((100, 30))
    weight[np.arange(100), np.arange(100) % 30] = -2.0
    picked = strongest_synapses(weight, 5)
    assert picked == ((0, 0), (24, 24), (49, 19), (74, 14), (99, 9))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("hiden->output:hebbian", "'hiden->output'; known: hidden->output, input->hidden"),
        ("hidden->output:weight", "unknown variable of 'hidden->output' 'weight'; known: hebbian"),
        ("hidden->output[2,0]:hebbian", r"connects 4 to 2 units: it has no synapse \[2, 0\]"),
        ("hidden->output[0]:hebbian", r"names no synapse; write hidden->output\[target,source\]"),
        ("hidden->output[0,-1]:hebbian", "names no synapse"),
        ("hidden->output[]:hebbian", "names no synapse"),
        ("conv->output:hebbian", "for dense connections only"),
    ],
)
def test_unknown_synapses_are_refused(word: str, message: str) -> None:
    known = {**WEIGHTS, "conv->output": np.zeros((2, 2, 3, 3))}
    if "conv" not in word:
        known.pop("conv->output")
    with pytest.raises(ValueError, match=message):
        parse_record([word], KINDS, known)


def test_a_plan_refuses_synapses_that_are_not_there() -> None:
    good = plan()
    with pytest.raises(ValueError, match="has no synapse"):
        replace(good, record=Record(hebbian={"hidden->output": ((5, 0),)}))
    with pytest.raises(UnknownNameError, match="connection to record 'a->b'"):
        replace(good, record=Record(hebbian={"a->b": ((5, 0),)}))
    watched = replace(good, record=Record(hebbian={"hidden->output": ((0, 0), (1, 1))}))
    beside = LAYOUT_BYTES + good.inputs.nbytes + 8 * good.steps
    assert watched.most_bytes == beside + 2 * 40 * 12 * 3 + 2 * 8 * (12 + 8)


def test_there_and_back(trace: Trace, tmp_path: Path) -> None:
    write(tmp_path / "t.h5", trace, overwrite=False)
    same(trace, read(tmp_path / "t.h5"))
    recent = read_progress(tmp_path / "t.h5", last=1).trace
    whole = trace.hebbian["hidden->output"].tag
    np.testing.assert_array_equal(recent.hebbian["hidden->output"].tag, whole[-12:])
    units: list[str] = []

    def note(name: str, node: Node) -> None:
        if isinstance(node, h5py.Dataset) and name.startswith(("weights", "hebbian")):
            units.append(str(node.attrs["unit"]))

    with h5py.File(tmp_path / "t.h5") as file:
        file.visititems(note)
        assert file["hebbian/hidden->output/target"][:].tolist() == [1, 0]
        assert file["hebbian/hidden->output/weight"].compression == "gzip"
    assert len(units) == 2 * 2 + 2 * 7
    assert all(units)


def test_weights_after_the_run_are_unknown_until_given(trace: Trace, tmp_path: Path) -> None:
    path, laid = tmp_path / "t.h5", plan("hidden->output:hebbian")
    made = recordings(laid)
    with Writer(path, laid, overwrite=False) as writer:
        for k, each in enumerate(made):
            writer.sample(k, each)
        writer.weights({"hidden->output": AFTER["hidden->output"]})
        assert read(path).weights["input->hidden"].after is None
    found = read(path)
    assert found.complete
    assert found.weights["input->hidden"].after is None
    result = found.weights["hidden->output"].after
    assert result is not None
    np.testing.assert_array_equal(result, AFTER["hidden->output"])
    np.testing.assert_array_equal(found.weights["input->hidden"].before, WEIGHTS["input->hidden"])


def test_a_run_that_does_not_learn_has_no_weights_after_it(tmp_path: Path) -> None:
    laid = plan(learns=False)
    with Writer(tmp_path / "t.h5", laid, overwrite=False) as writer:
        for k, each in enumerate(recordings(laid)):
            writer.sample(k, each)
        with pytest.raises(TraceError, match="no change of the weights"):
            writer.weights(AFTER)
    with h5py.File(tmp_path / "t.h5") as file:
        assert list(file["weights/hidden->output"]) == ["before"]


def test_weights_that_cannot_be_are_refused(tmp_path: Path) -> None:
    laid = plan()
    with Writer(tmp_path / "t.h5", laid, overwrite=False) as writer:
        for k, each in enumerate(recordings(laid)):
            writer.sample(k, each)
        for bad in (np.zeros((2, 3)), np.full((2, 4), np.inf)):
            with pytest.raises(TraceError, match="another shape or are not finite"):
                writer.weights({"hidden->output": bad})
        with pytest.raises(TraceError, match="no change"):
            writer.weights({"output->hidden": np.zeros((4, 2))})


def test_a_sample_without_its_synapses_is_refused(tmp_path: Path) -> None:
    laid = plan("hidden->output:hebbian")
    good = recordings(laid)[0]
    log = good.hebbian["hidden->output"]
    short = {"hidden->output": replace(log, tag=log.tag[:-1])}
    other = {"hidden->output": replace(log, synapses=((0, 0), (1, 1)))}
    for message, logs in (("without", {}), ("without", other), ("tag of 'hidden->output'", short)):
        with (
            pytest.raises(TraceError, match=message),
            Writer(tmp_path / "t.h5", laid, overwrite=True) as writer,
        ):
            writer.sample(0, replace(good, hebbian=logs))


def drop(name: str) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        del file[name]

    return change


def put(name: str, value: float) -> Callable[[Node], None]:
    def change(file: Node) -> None:
        file[name][(0,) * file[name].ndim] = value

    return change


def shorten(file: Node) -> None:
    file["hebbian/hidden->output/tag"].resize(13, axis=0)


def reshape(file: Node) -> None:
    del file["weights/hidden->output/after"]
    file["weights/hidden->output/after"] = np.zeros((4, 2))


def fewer(file: Node) -> None:
    for end in ("target", "source"):
        del file[f"hebbian/hidden->output/{end}"]
        file[f"hebbian/hidden->output/{end}"] = np.array([0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("hebbian/hidden->output/product"), "product is missing"),
        (drop("hebbian/hidden->output/source"), "source is missing"),
        (drop("weights/hidden->output/before"), "before is missing"),
        (put("weights/hidden->output/before", np.nan), "are not finite"),
        (put("hebbian/hidden->output/target", -1), "no pairs of units"),
        (shorten, "different samples"),
        (reshape, "change their shape during the run"),
        (fewer, "no column for each of 1 synapses"),
    ],
)
def test_a_spoilt_file_gets_one_sentence(
    change: Callable[[Node], None], message: str, trace: Trace, tmp_path: Path
) -> None:
    write(tmp_path / "t.h5", trace, overwrite=False)
    with h5py.File(tmp_path / "t.h5", "r+") as file:
        change(file)
    with pytest.raises(TraceError, match=message):
        read(tmp_path / "t.h5")


def test_open_trace_reads_them_lazily_and_in_part(trace: Trace, tmp_path: Path) -> None:
    write(tmp_path / "t.h5", trace, overwrite=False)
    log = trace.hebbian["hidden->output"]
    with open_trace(tmp_path / "t.h5") as opened:
        watched = opened.hebbian["hidden->output"]
        assert watched.synapses == ((1, 3), (0, 1))
        assert watched.tag.shape == (36, 2)
        np.testing.assert_array_equal(watched.tag[5:7], log.tag[5:7])
        same(trace, opened.load())
        second = opened.load(samples=slice(1, 2)).hebbian["hidden->output"]
        np.testing.assert_array_equal(second.pre, log.pre[12:24])
        only = opened.load(Record(hebbian={"hidden->output": ()}))
        assert set(only.hebbian) == {"hidden->output"}
        with pytest.raises(UnknownNameError, match="connection with recorded synapses"):
            opened.load(Record(hebbian={"output->hidden": ()}))


@pytest.mark.skipif(find_spec("xarray") is None, reason="xarray is not installed")
def test_tables_and_labelled_arrays(trace: Trace, tmp_path: Path) -> None:
    write(tmp_path / "t.h5", trace, overwrite=False)
    log = trace.hebbian["hidden->output"]
    with open_trace(tmp_path / "t.h5") as opened:
        table: Any = opened.to_pandas("hidden->output", "hebbian")
        array: Any = opened.to_xarray("hidden->output", "hebbian")
    np.testing.assert_array_equal(table[0, 1, "tag"], log.tag[:, 1])
    assert table.index.names == ["sample", "phase", "step", "time"]
    here = array.sel(value="tag", sample=2).isel(synapse=1)
    np.testing.assert_array_equal(here, log.tag[24:, 1])
    assert (int(here.target), int(here.source)) == (0, 1)


def test_exports_hold_them(trace: Trace, tmp_path: Path) -> None:
    log = trace.hebbian["hidden->output"]
    with np.load(to_npz(trace, tmp_path / "t.npz")) as held:
        np.testing.assert_array_equal(held["hebbian/hidden->output/tag"], log.tag)
        assert held["hebbian/hidden->output/source"].tolist() == [3, 1]
        np.testing.assert_array_equal(held["weights/input->hidden/after"], AFTER["input->hidden"])
    to_csv(trace, tmp_path / "tables")
    with (tmp_path / "tables" / "weights.hidden-to-output.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["target", "source", "before", "after"]
    assert rows[2] == ["0", "1", "-0.9", "-0.65"]
    with (tmp_path / "tables" / "hebbian.hidden-to-output.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["step", "target", "source", *COLUMNS]
    assert rows[4][:3] == ["1", "0", "1"]
    assert float(rows[4][6]) == log.tag[1, 1]


@pytest.mark.skipif(find_spec("pynwb") is None, reason="pynwb is not installed")
def test_nwb_holds_them_in_a_processing_module(trace: Trace, tmp_path: Path) -> None:
    pynwb = pytest.importorskip("pynwb")
    from neuro_eqprop.traces.nwb import to_nwb

    path = to_nwb(trace, tmp_path / "t.nwb", dt=1e-3)
    assert pynwb.validate(path=str(path)) == []
    with pynwb.NWBHDF5IO(str(path), "r") as file:
        module = file.read().processing["learning"]
        table = module["hidden->output.weights"].to_dataframe()
        strongest = table[(table.target_unit == 0) & (table.source_unit == 1)]
        assert strongest.weight_before.tolist() == [-0.9]
        assert strongest.weight_after.tolist() == [-0.65]
        tag = module["hidden->output.tag"]
        np.testing.assert_array_equal(tag.data[:], trace.hebbian["hidden->output"].tag)
        assert tag.rate == 1000.0
        assert module["hidden->output.synapses"]["source_unit"].data[:].tolist() == [3, 1]


@pytest.mark.skipif(find_spec("nwbinspector") is None, reason="nwbinspector is not installed")
def test_the_inspector_finds_nothing_critical(trace: Trace, tmp_path: Path) -> None:
    inspector = pytest.importorskip("nwbinspector")
    from neuro_eqprop.traces.nwb import to_nwb

    path = to_nwb(trace, tmp_path / "t.nwb", dt=1e-3)
    found = inspector.inspect_nwbfile(nwbfile_path=str(path))
    violation = inspector.Importance.BEST_PRACTICE_VIOLATION.value
    severe = {m.check_function_name for m in found if m.importance.value >= violation}
    assert severe == {"check_subject_species_exists"}


@pytest.mark.skipif(find_spec("neo") is None, reason="neo is not installed")
def test_neo_still_opens_it(trace: Trace, tmp_path: Path) -> None:
    neo = pytest.importorskip("neo")
    from neuro_eqprop.traces.nwb import to_nwb

    path = to_nwb(trace, tmp_path / "t.nwb", dt=1e-3)
    block = neo.io.NWBIO(str(path)).read_all_blocks()[0]
    assert [len(segment.spiketrains) for segment in block.segments if segment.spiketrains] != []
