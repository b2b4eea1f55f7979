"""A trace that stays open: read when indexed, and as tables."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import neuro_eqprop
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.simulators.recordings import Origin, Record, Recording, RecordingPlan
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.file import Writer, write
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

ROOT = Path(__file__).parents[2]
KINDS = ["rate", "spikes", "graded"]
tables = pytest.mark.skipif(
    find_spec("pandas") is None or find_spec("xarray") is None,
    reason="pandas and xarray are not installed",
)


@pytest.fixture(scope="module")
def files(episode: dict[str, Trace], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file of each kind of trace."""
    folder = tmp_path_factory.mktemp("views")
    for kind, trace in episode.items():
        write(folder / f"{kind}.h5", trace, overwrite=False)
    return {kind: folder / f"{kind}.h5" for kind in episode}


def same(one: Trace, other: Trace) -> None:
    for name in ("origin", "schedule", "kinds", "connections", "counts", "complete"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("index", "label", "inputs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert set(one.signals) == set(other.signals)
    for key, values in one.signals.items():
        np.testing.assert_array_equal(values, other.signals[key])
    assert set(one.spikes) == set(other.spikes)
    for name, events in one.spikes.items():
        for column in ("step", "unit", "value", "size"):
            mine, theirs = getattr(events, column), getattr(other.spikes[name], column)
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_is_what_read_gives(kind: str, files: dict[str, Path]) -> None:
    with neuro_eqprop.open_trace(str(files[kind])) as trace:
        whole = read(files[kind])
        same(trace.load(), whole)
        assert trace.announced == len(trace.index) == 6
        np.testing.assert_array_equal(trace.inputs, whole.inputs)
        for key, rows in trace.signals.items():
            assert rows.shape == whole.signals[key].shape
            np.testing.assert_array_equal(rows, whole.signals[key])
        for name, events in trace.spikes.items():
            assert len(events) == len(whole.spikes[name].step)
            np.testing.assert_array_equal(events.step, whole.spikes[name].step)
            np.testing.assert_array_equal(events.value[3:9], whole.spikes[name].value[3:9])
        for name in whole.layers_with_rates:
            for phase in whole.schedule:
                mine = trace.rate(name, phase.name)
                np.testing.assert_array_equal(mine, whole.rate(name, phase.name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [slice(2, 4), slice(-1, None), slice(4, 2)])
def test_some_samples_are_those_of_the_whole(
    kind: str, part: slice, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    whole = episode[kind]
    with neuro_eqprop.open_trace(files[kind]) as trace:
        some = trace.load(samples=part)
    chosen = range(6)[part]
    assert some.index.tolist() == whole.index[part].tolist()
    for k, sample in enumerate(chosen):
        mine, theirs = some.recording(k), whole.recording(sample)
        for name, sent in theirs.spikes.items():
            np.testing.assert_array_equal(mine.spikes[name], sent)
        for key, values in theirs.signals.items():
            np.testing.assert_array_equal(mine.signals[key], values)


def test_samples_in_strides_are_refused(files: dict[str, Path]) -> None:
    with (
        neuro_eqprop.open_trace(files["rate"]) as trace,
        pytest.raises(ValueError, match="in steps of 2"),
    ):
        trace.load(samples=slice(None, None, 2))


def test_nothing_is_read_before_it_is_indexed(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []
    plain = h5py.Dataset.__getitem__

    def spy(data: Any, key: Any, **new: Any) -> Any:  # noqa: ANN401
        found = plain(data, key, **new)
        seen.append((data.name, np.size(found)))
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", spy)
    with neuro_eqprop.open_trace(files["spikes"]) as trace:
        columns = ("/signals", "/samples/input", "/spikes/hidden/step", "/spikes/hidden/value")
        assert seen
        assert not [name for name, _ in seen if name.startswith(columns)]
        seen.clear()
        assert trace.signals["output", "voltage"][70:72, 1:4].shape == (2, 3)
        assert seen == [("/signals/output/voltage", 6)]


@pytest.mark.parametrize(
    "key",
    [0, -1, np.int64(3), slice(2, 9, 3), (slice(-4, None), 2), (..., 1), [1, 5], (5, slice(0, 2))],
)
def test_rows_index_like_an_array(
    key: Any,  # noqa: ANN401
    files: dict[str, Path],
    episode: dict[str, Trace],
) -> None:
    with neuro_eqprop.open_trace(files["spikes"]) as trace:
        rows = trace.signals["output", "voltage"]
        whole: Array = episode["spikes"].signals["output", "voltage"]
        np.testing.assert_array_equal(rows[key], whole[key])
        np.testing.assert_array_equal(rows[whole[:, 0] > 0.5], whole[whole[:, 0] > 0.5])
        with pytest.raises(IndexError):
            rows[len(whole)]


def plan(samples: int) -> RecordingPlan:
    return RecordingPlan(
        Origin("reference", "abc", {}, 0, "", ""),
        (Phase("free", 0.0, 8, 6),),
        {"p": ActivityKind.SPIKES},
        {"p": 4},
        ("input->p",),
        np.arange(samples),
        np.zeros(samples, int),
        np.zeros((samples, 2)),
        Record(frozenset({"p"}), frozenset({("p", "voltage")})),
    )


def sample(k: int) -> Recording:
    sent = np.zeros((8, 4))
    sent[k, k] = 1.0
    return Recording({"p": sent}, {("p", "voltage"): np.full((8, 4), float(k))})


def test_of_a_cut_off_run_only_whole_samples_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"

    def stopped() -> None:
        with Writer(path, plan(4), overwrite=False) as writer:
            for k in range(3):
                writer.sample(k, sample(k))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    partial = tmp_path / "t.h5.partial"
    with h5py.File(partial, "r+") as file:
        # As if it had been killed while it wrote the third sample.
        for name in ("start", "stop"):
            file[f"samples/{name}"].resize(2, axis=0)
        file["signals/p/voltage"].resize(21, axis=0)
    with neuro_eqprop.open_trace(partial) as trace:
        assert not trace.complete
        assert (trace.announced, len(trace.index)) == (4, 2)
        voltage = trace.signals["p", "voltage"]
        assert voltage.shape == (16, 4)
        assert len(voltage[:]) == 16
        assert voltage[-1].tolist() == [1.0] * 4
        assert trace.spikes["p"].step[:].tolist() == [0, 9]
        assert trace.inputs.shape == (2, 2)
        same(trace.load(), read(partial))


def test_a_run_can_be_opened_while_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    look = "import sys, neuro_eqprop\nt = neuro_eqprop.open_trace(sys.argv[1])\n"
    look += "print(len(t.index), t.announced, t.complete, t.signals['p', 'voltage'].shape)"
    with Writer(path, plan(2), overwrite=False) as writer:
        writer.sample(0, sample(0))
        writer.counts({})
        words = [sys.executable, "-c", look, str(path)]
        result = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        writer.sample(1, sample(1))
    assert result.split(maxsplit=3) == ["1", "2", "False", "(8, 4)\n"]


def test_a_closed_trace_says_so(files: dict[str, Path]) -> None:
    trace = neuro_eqprop.open_trace(files["spikes"])
    trace.close()
    for read_it in (
        lambda: trace.signals["output", "voltage"][0],
        lambda: trace.signals["output", "voltage"].shape,
        trace.load,
    ):
        with pytest.raises(TraceError, match=r"was closed; open it again"):
            read_it()
    assert len(trace.index) == 6


def test_what_goes_wrong_in_the_block_is_not_called_damage(files: dict[str, Path]) -> None:
    with pytest.raises(ValueError, match=r"^mine$"), neuro_eqprop.open_trace(files["rate"]):
        raise ValueError("mine")


def newer(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["schema"] = 99


def foreign(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4000])


def text(path: Path) -> None:
    path.write_text("no HDF5")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (newer, "schema 99"),
        (foreign, "not a trace"),
        (cut, "cut short"),
        (text, "no HDF5 file"),
        (Path.unlink, "there is no file"),
    ],
)
def test_a_file_that_is_no_trace_gets_one_sentence(
    spoil: Callable[[Path], None], message: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["spikes"], overwrite=False)
    spoil(path)
    with pytest.raises(TraceError, match=message) as caught:
        neuro_eqprop.open_trace(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_chunk_is_named_when_it_is_read(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["spikes"], overwrite=False)
    with h5py.File(path) as file:
        chunk = file["signals/output/voltage"].id.get_chunk_info(0)
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"\xff" * chunk.size)
    with (
        neuro_eqprop.open_trace(path) as trace,
        pytest.raises(TraceError, match=r"t\.h5 is damaged"),
    ):
        trace.signals["output", "voltage"][:]


def test_spikes_of_units_that_do_not_exist_are_refused(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["spikes"], overwrite=False)
    with h5py.File(path, "r+") as file:
        file["spikes/hidden/unit"][0] = 10_000
    with (
        neuro_eqprop.open_trace(path) as trace,
        pytest.raises(TraceError, match="name units beyond its 24"),
    ):
        trace.rate("hidden", "free")


@tables
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hidden2", "spikes"), r"layer with spikes in .* 'hidden2'; known: hidden, output"),
        (("output", "volts"), r"'output:volts'; known: output:voltage"),
    ],
)
def test_what_is_not_there_is_named(
    words: tuple[str, str], message: str, files: dict[str, Path]
) -> None:
    with neuro_eqprop.open_trace(files["spikes"]) as trace:
        for view in (trace.to_pandas, trace.to_xarray):
            with pytest.raises(ValueError, match=message):
                view(*words)
        with pytest.raises(ValueError, match="unknown phase 'fre'; known: free"):
            trace.rate("hidden", "fre")


@tables
def test_a_table_of_spikes_counts_to_the_rate(files: dict[str, Path]) -> None:
    with neuro_eqprop.open_trace(files["spikes"]) as trace:
        table = trace.to_pandas("hidden", "spikes")
        assert list(table) == ["sample", "label", "phase", "step", "time", "unit", "value"]
        np.testing.assert_allclose(table["time"], (table["step"] + 0.5) * 1e-3)
        assert table.attrs["units"] == {"time": "s"}
        assert (table["label"].to_numpy() == trace.label[table["sample"] - 100]).all()
        for phase in trace.schedule:
            stop = sum(p.steps for p in trace.schedule[: trace.schedule.index(phase) + 1])
            inside = table[(table["phase"] == phase.name) & (table["step"] >= stop - phase.window)]
            counted = inside.groupby(["sample", "unit"])["value"].sum().unstack(fill_value=0)
            counted = counted.reindex(trace.index, columns=range(24), fill_value=0.0)
            rate = trace.rate("hidden", phase.name)
            assert rate.max() > 0
            np.testing.assert_allclose(counted / phase.window, rate, rtol=0, atol=1e-12)


@tables
def test_a_table_of_a_signal_has_a_row_for_each_step(
    files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    values = episode["rate"].signals["hidden", "rate"]
    with neuro_eqprop.open_trace(files["rate"]) as trace:
        table = trace.to_pandas("hidden", "rate", slice(1, 3))
    np.testing.assert_array_equal(table, values[192 : 3 * 192])
    assert table.columns.name == "unit"
    last = table.loc[(102, "negative", 127)]
    np.testing.assert_array_equal(last.squeeze(), episode["rate"].rate("hidden", "negative")[2])
    assert last.index.tolist() == [pytest.approx(0.1275)]


@tables
@pytest.mark.parametrize("kind", ["rate", "spikes"])
def test_an_array_with_labels_selects_by_them(
    kind: str, files: dict[str, Path], episode: dict[str, Trace]
) -> None:
    with neuro_eqprop.open_trace(files[kind]) as trace:
        array = trace.to_xarray("output", kind)
    assert array.dims == ("sample", "step", "unit")
    backend = episode[kind].origin.backend
    units = {"step_seconds": 1e-3, "units": "1"}
    assert array.attrs == {"population": "output", "backend": backend} | units
    assert array.time.attrs["units"] == "s"
    np.testing.assert_allclose(array.time, (np.arange(192) + 0.5) * 1e-3)
    np.testing.assert_array_equal(array, episode[kind].time_course("output"))
    np.testing.assert_array_equal(array.label, episode[kind].label)
    nudged = array.sel(sample=103).where(array.beta == 0.25, drop=True)
    assert set(nudged.phase.values) == {"positive"}
    np.testing.assert_array_equal(nudged, episode[kind].time_course("output")[3, 128:192])


@pytest.mark.parametrize("name", ["pandas", "xarray"])
def test_a_missing_package_is_reported_with_the_way_to_get_it(
    name: str, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with (
        neuro_eqprop.open_trace(files["spikes"]) as trace,
        pytest.raises(
            TraceError, match=rf"^{name} is needed .* pip install 'neuro_eqprop\[nwb\]'$"
        ),
    ):
        getattr(trace, f"to_{name}")("hidden", "spikes")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = """
import sys, neuro_eqprop
assert not {"numpy", "h5py", "neuro_eqprop.traces"} & set(sys.modules)
assert callable(neuro_eqprop.open_trace)
import neuro_eqprop.traces.nwb
heavy = {"torch", "pynwb", "hdmf", "pandas", "xarray", "h5py"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'open_trase'"):
        getattr(neuro_eqprop, "open_trase")  # noqa: B009


def test_the_stub_names_what_the_package_offers() -> None:
    stub = ast.parse((ROOT / "neuro_eqprop" / "__init__.pyi").read_text())
    named: set[str] = set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.add(node.target.id)
    assert named == set(neuro_eqprop.__all__)
    assert all(hasattr(neuro_eqprop, name) for name in named)


@tables
@pytest.mark.skipif(find_spec("pynwb") is None, reason="pynwb is not installed")
def test_the_examples_of_the_docs_run(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "reference" / "traces.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_empty_trace_opens(episode: dict[str, Trace], tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    whole = episode["spikes"]
    none = replace(
        whole,
        index=whole.index[:0],
        label=whole.label[:0],
        inputs=whole.inputs[:0],
        spikes={},
        signals={key: values[:0] for key, values in whole.signals.items()},
        counts={},
    )
    write(path, none, overwrite=False)
    with neuro_eqprop.open_trace(path) as trace:
        assert trace.signals["output", "voltage"].shape == (0, 10)
        assert trace.load().signals["output", "voltage"].shape == (0, 10)
