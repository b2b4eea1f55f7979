"""The user's own arrays: read, checked, split, and refused with a sentence."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import neuro_eqprop as ne
from neuro_eqprop.cli import main
from neuro_eqprop.data import DataError, load_data

RNG = np.random.default_rng(0)
X, Y = RNG.random((40, 3)), np.repeat(np.arange(4), 10)
GRID = RNG.random((40, 3, 4))
VAST = Y.astype(np.uint64) + np.uint64(2**64 - 4)


def save(folder: Path, **arrays: npt.ArrayLike) -> str:
    path = folder / "my.npz"
    np.savez(path, **cast(dict[str, Any], arrays))
    return str(path)


def test_without_test_arrays_a_stratified_fifth_is_the_test(tmp_path: Path) -> None:
    name = save(tmp_path, x=X, y=Y)
    found, again = load_data(name), load_data(name)
    assert (found.name, found.features, found.classes, found.shape) == (name, 3, 4, (3,))
    assert np.bincount(found.train.y).tolist() == [8] * 4
    assert np.bincount(found.test.y).tolist() == [2] * 4
    assert np.array_equal(found.test.x, again.test.x)
    both = {tuple(row) for split in (found.train, found.test) for row in split.x}
    assert both == {tuple(row) for row in X}
    for split in (found.train, found.test):
        for row, label in zip(split.x, split.y, strict=True):
            assert Y[np.flatnonzero((row == X).all(axis=1))[0]] == label


def test_test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    found = load_data(save(tmp_path, x=X, y=Y, x_test=X[::3], y_test=Y[::3]))
    assert np.array_equal(found.train.x, X)
    assert np.array_equal(found.test.x, X[::3])
    assert np.array_equal(found.test.y, Y[::3])


def test_samples_of_more_axes_keep_their_shape(tmp_path: Path) -> None:
    pictures = RNG.integers(0, 256, (40, 2, 4, 5), dtype=np.uint8)
    found = load_data(save(tmp_path, x=pictures, y=Y, x_test=pictures, y_test=Y))
    assert (found.shape, found.features) == ((2, 4, 5), 40)
    assert np.array_equal(found.train.x.reshape(pictures.shape), pictures)
    assert "scale it" in found.note


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (np.array([3, 5, 9, 12]), "labels 3, 5, 9, 12 are numbered 0..3"),
        (np.array(["cat", "dog", "emu", "fox"]), "labels cat, dog, emu, fox are numbered 0..3"),
        (np.array([b"a", b"b", b"c", b"d"]), "labels a, b, c, d are numbered 0..3"),
        (np.array([-1, 0, 1, 2]), "labels -1, 0, 1, 2 are numbered 0..3"),
    ],
    ids=["gaps", "words", "bytes", "negative"],
)
def test_other_labels_are_numbered_and_it_is_noted(
    tmp_path: Path, names: npt.NDArray[Any], message: str
) -> None:
    found = load_data(save(tmp_path, x=X, y=names[Y], x_test=X, y_test=names[Y]))
    assert np.array_equal(found.train.y, Y)
    assert np.array_equal(found.test.y, Y)
    assert message in found.note


def test_labels_from_zero_are_kept_and_the_scale_is_noted(tmp_path: Path) -> None:
    note = load_data(save(tmp_path, x=np.linspace(-1, 0.5, 120).reshape(40, 3), y=Y)).note
    assert note == "x lies between -1 and 0.5"


BAD: dict[str, tuple[dict[str, npt.NDArray[Any]], str]] = {
    "no y": ({"x": X}, "holds the arrays x; it needs x and y"),
    "nothing": ({"X": X, "Y": Y}, r"holds the arrays X, Y; it needs x and y, .*np\.savez"),
    "half a test": ({"x": X, "y": Y, "x_test": X}, "both or neither"),
    "flat x": ({"x": X[:, 0], "y": Y}, "x of .* has shape"),
    "empty x": ({"x": X[:0], "y": Y[:0]}, "x of .* holds no samples"),
    "complex x": ({"x": X + 1j, "y": Y}, "holds complex128"),
    "words as x": ({"x": X.astype(str), "y": Y}, "not numbers"),
    "fewer labels": ({"x": X, "y": Y[:-1]}, "x has 40 samples, y has 39 labels"),
    "targets": ({"x": X, "y": np.eye(4)[Y]}, "one label a sample"),
    "real labels": ({"x": X, "y": Y / 2}, "integers or strings: give each class a number"),
    "whole real labels": (
        {"x": X, "y": Y / 1},
        r"integers or strings: save it as y\.astype\(int\)",
    ),
    "vast labels": ({"x": X, "y": VAST}, "holds label 18446744073709551615, above"),
    "one class": ({"x": X, "y": 0 * Y}, "a single label; a classification needs at least two"),
    "strange label": ({"x": X, "y": Y, "x_test": X, "y_test": Y + 1}, "label 4, which no"),
    "mixed labels": ({"x": X, "y": Y, "x_test": X, "y_test": Y.astype(str)}, "but y_test"),
    "other size": ({"x": X, "y": Y, "x_test": X[:, :2], "y_test": Y}, "of x_test \\(2,\\)"),
    "other axes": (
        {"x": GRID, "y": Y, "x_test": GRID.transpose(0, 2, 1), "y_test": Y},
        r"x has shape \(3, 4\), one of x_test \(4, 3\)",
    ),
    "vast x": ({"x": X * 1e200, "y": Y}, r"x of .*e\+.*, too large .*; scale it"),
    "vast x_test": ({"x": X, "y": Y, "x_test": -X * 1e30, "y_test": Y}, "x_test of .* too large"),
    "not finite": ({"x": np.where(X > 0.9, np.nan, X), "y": Y}, "not finite"),
    "one of each": ({"x": X[:4], "y": np.arange(4)}, "give x_test and y_test"),
}


@pytest.mark.parametrize("kind", BAD)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, kind: str) -> None:
    arrays, match = BAD[kind]
    with pytest.raises(DataError, match=match):
        load_data(save(tmp_path, **arrays))


def test_objects_are_not_unpacked(tmp_path: Path) -> None:
    path = save(tmp_path, x=X, y=np.array([{"a": 1}] * 40, dtype=object))
    with pytest.raises(DataError, match="cannot be read as arrays of numbers"):
        load_data(path)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        load_data(str(tmp_path / "none.npz"))
    path = tmp_path / "my.npz"
    whole = Path(save(tmp_path, x=X, y=Y)).read_bytes()
    for content in (b"", b"nonsense", whole[: len(whole) // 2], whole[:200] + b"\0" + whole[201:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"my\.npz"):
            load_data(str(path))
    with path.open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match="one array or no array, not a"):
        load_data(str(path))


def call(*words: str) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main([*words, "--json"]) == 0, err.getvalue()
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def test_a_network_is_trained_on_them_and_opened_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'a "b"'
    folder.mkdir()
    save(folder, x=np.eye(4)[Y] * 0.8 + 0.1 * RNG.random((40, 4)), y=Y)
    monkeypatch.chdir(folder)
    result = call("data", "check", "my.npz")
    assert (result["train"], result["test"], result["shape"], result["classes"]) == (32, 8, [4], 4)
    assert "x lies between" in result["note"]
    run = str(tmp_path / "run")
    quick = ["--hidden", "8", "--epochs", "6", "--batch", "8", "--learning-rate", "0.05"]
    result = call("train", "--dataset", "my.npz", *quick, "--out", run)
    assert result["test_accuracy"] >= 0.9
    monkeypatch.chdir(tmp_path)
    assert call("evaluate", run)["accuracy"] == result["test_accuracy"]


def test_a_file_states_that_its_samples_are_token_ids(tmp_path: Path) -> None:
    ids = RNG.integers(0, 9, (40, 5))
    path = save(tmp_path, x=ids, y=Y, vocabulary=9)
    assert load_data(path).vocabulary == 9
    assert load_data(save(tmp_path, x=ids, y=Y)).vocabulary == 0
    for wrong, match in (
        (4, r"integers in 0\.\.3"),
        (9.0, "the number of token ids, one integer"),
        (np.arange(3), "the number of token ids, one integer"),
        (-1, "the number of token ids"),
    ):
        with pytest.raises(DataError, match=match):
            load_data(save(tmp_path, x=ids, y=Y, vocabulary=wrong))


def test_a_run_keeps_token_ids_that_were_given_as_arrays(tmp_path: Path) -> None:
    ids = RNG.integers(0, 9, (40, 5))
    options: dict[str, Any] = {"width": 4, "hidden": 3, "epochs": 1}
    first = ne.train("text", ne.Dataset(ids, Y, vocabulary=9), out=tmp_path / "run", **options)
    assert ne.open_run(tmp_path / "run").data.vocabulary == 9
    again = ne.train(tmp_path / "run" / "study.toml")
    for name, value in first.params.items():
        np.testing.assert_array_equal(again.params[name], value)
