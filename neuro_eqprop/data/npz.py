"""Data sets from NumPy files: `.npz` with arrays x and y, and optionally x_test and y_test."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.data.dataset import DataError, Dataset

Arrays = dict[str, npt.NDArray[Any]]


def is_npz(name: str) -> bool:
    """Whether a data set is named by the path of a .npz file."""
    return name.endswith(".npz")


def read_npz(path: Path) -> Arrays:
    """The arrays x, y, x_test and y_test of a file; pickled objects are refused."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise DataError(f"{path} is one array, not a .npz file; use np.savez")
            wanted = [key for key in ("x", "y", "x_test", "y_test") if key in found.files]
            names = list(found.files)
            arrays: Arrays = {key: np.asarray(found[key]) for key in wanted}
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; write it with np.savez") from None
    except DataError:
        raise
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read as arrays of numbers: {error}") from error
    missing = [key for key in ("x", "y") if key not in arrays]
    if missing or ("x_test" in arrays) != ("y_test" in arrays):
        raise DataError(
            f"{path} holds the arrays {', '.join(names) or '(none)'}; it needs x and y, and both "
            f"or neither of x_test and y_test: np.savez({path.name!r}, x=..., y=...)"
        )
    return arrays


def load_npz(path: Path) -> Dataset:
    """The data set in a `.npz` file; without test arrays, a stratified fifth is the test split."""
    given = read_npz(path)
    return Dataset(given["x"], given["y"], given.get("x_test"), given.get("y_test"), name=str(path))


def save_npz(data: Dataset, path: Path) -> None:
    """Write a data set as a `.npz` file that `load_npz` reads."""
    train, test = data.train, data.test
    images = [split.x.reshape(len(split), *data.shape) for split in (train, test)]
    np.savez(path, x=images[0], y=train.y, x_test=images[1], y_test=test.y)
