"""Files of arrays: names and bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.files.arrays import read_npz, write_npz


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_any_name_come_back(tmp_path: Path, compressed: bool) -> None:
    """`file` and `allow_pickle` are arguments of `np.savez`, not names that it can write."""
    arrays = {"file": np.arange(3.0), "allow_pickle": np.zeros((2, 2)), "x": np.array(1.5)}
    write_npz(tmp_path / "a.npz", arrays, compressed=compressed)
    held, names = read_npz(tmp_path / "a.npz")
    assert names == list(arrays)
    assert all(np.array_equal(held[name], array) for name, array in arrays.items())


def test_a_file_has_the_bytes_that_numpy_writes(tmp_path: Path) -> None:
    arrays = {"x": np.arange(6.0).reshape(2, 3).T, "y": np.array([1, 2], dtype=np.uint8)}
    write_npz(tmp_path / "ours.npz", arrays)
    np.savez(tmp_path / "numpy.npz", **arrays)  # type: ignore[arg-type]
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "numpy.npz").read_bytes()
