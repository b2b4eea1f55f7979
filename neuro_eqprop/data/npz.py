"""Data sets in `.npz` files with arrays x and y, and optionally x_test, y_test and vocabulary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files import arrays as files
from neuro_eqprop.files.arrays import Arrays

ARRAYS = ("x", "y", "x_test", "y_test", "vocabulary")
"""Names of the arrays of a file; all but x and y are optional."""


def read_npz(path: Path) -> Arrays:
    """Read the arrays that make a data set, without unpickling objects."""
    if not path.exists():
        raise DataError(f"there is no file {path}; write it with np.savez")
    arrays, names = files.read_npz(path, ARRAYS, error=DataError)
    missing = [key for key in ("x", "y") if key not in arrays]
    if missing or ("x_test" in arrays) != ("y_test" in arrays):
        raise DataError(
            f"{path} holds the arrays {', '.join(names) or '(none)'}; it needs x and y, and both "
            f"or neither of x_test and y_test: np.savez({path.name!r}, x=..., y=...)"
        )
    return arrays


def load_npz(path: Path) -> Dataset:
    """Load a data set from a `.npz` file.

    Parameters
    ----------
    path : Path
        File with `x` (samples, ...) and `y` (samples,), and optionally `x_test` and `y_test`;
        without these, a stratified fifth of the samples is the test split. A number `vocabulary`
        says that the samples are rows of token ids, and how many ids there are.

    Returns
    -------
    Dataset
        The data set, named by its path.
    """
    given = read_npz(path)
    return Dataset(
        *(given["x"], given["y"], given.get("x_test"), given.get("y_test")),
        name=str(path),
        vocabulary=vocabulary(given, path),
    )


def vocabulary(given: Arrays, path: Path) -> int:
    """Return the number of token ids that a file states; 0 if it states none."""
    stated = given.get("vocabulary")
    if stated is None:
        return 0
    if stated.shape or stated.dtype.kind not in "iu":
        raise DataError(
            f"vocabulary of {path} is the number of token ids, one integer, not {stated.dtype} of "
            f"shape {stated.shape}: np.savez({path.name!r}, x=x, y=y, vocabulary=5000)"
        )
    return int(stated)


def save_npz(data: Dataset, path: Path) -> None:
    """Save a data set as a `.npz` file for `load_npz`."""
    train, test = data.train, data.test
    images = [split.x.reshape(len(split), *data.shape) for split in (train, test)]
    ids = {"vocabulary": np.int64(data.vocabulary)} if data.vocabulary else {}
    arrays: dict[str, npt.ArrayLike]
    arrays = {"x": images[0], "y": train.y, "x_test": images[1], "y_test": test.y, **ids}
    files.write_npz(path, arrays)
