"""The public trace: the same interface in memory and in a file."""

from __future__ import annotations

import doctest
import gc
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.traces import lazy, trace
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace


@pytest.fixture(scope="module")
def path(episode: dict[str, Trace], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of the trace of spikes."""
    file = tmp_path_factory.mktemp("trace") / "t.h5"
    write(file, episode["spikes"], overwrite=False)
    return file


def test_an_array_stays_readable_after_its_trace_is_gone(path: Path) -> None:
    voltage = neuro_eqprop.open_trace(str(path)).signals["output", "voltage"]
    gc.collect()
    assert voltage[:].shape == (6 * 192, 10)
    assert neuro_eqprop.open_trace(path).spikes["hidden"].step[:3].tolist() != []


def test_a_lazy_array_computes_like_an_array(path: Path, episode: dict[str, Trace]) -> None:
    lazy_array = neuro_eqprop.open_trace(path).signals["output", "voltage"]
    values = episode["spikes"].signals["output", "voltage"]
    np.testing.assert_array_equal(2 * lazy_array + 1, 2 * values + 1)
    np.testing.assert_array_equal(lazy_array @ np.ones(10), values @ np.ones(10))
    assert lazy_array.mean() == values.mean()
    assert lazy_array.T.shape == (10, 6 * 192)
    assert not hasattr(lazy_array, "_private")


@pytest.mark.parametrize("where", ["memory", "file"])
def test_memory_and_file_have_one_interface(
    where: str, path: Path, episode: dict[str, Trace], tmp_path: Path
) -> None:
    found = episode["spikes"] if where == "memory" else neuro_eqprop.open_trace(path)
    assert isinstance(found, neuro_eqprop.Trace)
    assert found.layers == ("hidden", "output")
    assert found.phases == ("free", "negative", "positive")
    assert (found.samples, len(found), found.steps) == (6, 6, 192)
    assert dict(found.sizes) == {"hidden": 24, "output": 10}
    whole = episode["spikes"]
    np.testing.assert_array_equal(found.rate("hidden"), whole.rate("hidden", "free"))
    np.testing.assert_array_equal(found.time_course("output"), whole.time_course("output"))
    np.testing.assert_array_equal(
        found.running_rate("output", "positive"), whole.running_rate("output", "positive")
    )
    np.testing.assert_array_equal(
        found.recording(2).spikes["hidden"], whole.recording(2).spikes["hidden"]
    )
    np.testing.assert_array_equal(
        found.weights["hidden->output"].before, whole.weights["hidden->output"].before
    )
    again = neuro_eqprop.open_trace(found.save(tmp_path / "again.h5"))
    np.testing.assert_array_equal(again.rate("output"), whole.rate("output"))
    with pytest.raises(TraceError, match="exists already"):
        found.save(str(tmp_path / "again.h5"))
    found.save(tmp_path / "again.h5", overwrite=True)
    assert found.to_npz(str(tmp_path / "t.npz")).is_file()
    assert len(found.to_pandas("hidden", "spikes")) == len(whole.spikes["hidden"])
    assert found.to_xarray("output", "voltage", slice(0, 2)).shape == (2, 192, 10)
    two = found.load(samples=slice(1, 3))
    assert two.index.tolist() == whole.index[1:3].tolist()
    np.testing.assert_array_equal(two.rate("hidden"), whole.rate("hidden")[1:3])
    for wrong in (found.rate, found.time_course):
        with pytest.raises(UnknownNameError, match="layer 'hiden'; known: hidden"):
            wrong("hiden")


def test_the_repr_is_short_and_the_html_names_the_layers(
    path: Path, episode: dict[str, Trace]
) -> None:
    said = repr(episode["spikes"])
    assert said == (
        "<Trace from reference: 6 samples of 192 steps (free 64, negative 64, positive 64), "
        "layers hidden, output>"
    )
    assert str(path) in repr(neuro_eqprop.open_trace(path))
    html = episode["spikes"]._repr_html_()
    assert "<td>output</td><td>spikes</td><td>10</td><td>spikes, voltage</td>" in html


def test_former_names_warn(path: Path) -> None:
    found = neuro_eqprop.open_trace(path)
    with pytest.warns(DeprecationWarning, match="Trace.to_pandas"):
        found.pandas("hidden", "spikes")
    with pytest.warns(DeprecationWarning, match="Trace.to_xarray"):
        found.xarray("hidden", "spikes")


def test_the_examples_of_the_docstrings_run(path: Path) -> None:
    for module in (trace, lazy):
        done = doctest.testmod(module, extraglobs={"example_trace": path})
        assert done.attempted
        assert not done.failed
