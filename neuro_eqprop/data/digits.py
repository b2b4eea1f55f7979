"""Handwritten digits of scikit-learn, which need no download."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import EMBEDDED, DatasetInfo
from neuro_eqprop.data.split import Split

SPLIT = Path(__file__).with_name("digits_split.txt")
"""The samples in the order of train_test_split(test_size=360, stratify=y, random_state=0)."""
TEST = 360
"""Number of test samples."""


def load_digits() -> Dataset:
    """Load the 1797 digits of 8 x 8 pixels of scikit-learn, 360 of them as test samples.

    The file of scikit-learn is read directly, since importing scikit-learn takes a second.

    Returns
    -------
    Dataset
        Pixels (samples, 64) in 0..1; shape (1, 8, 8), 10 classes.
    """
    table, order = read_digits(), np.array(SPLIT.read_text().split(), dtype=np.int64)
    train, test = (
        Split(table[part, :-1] / 16.0, table[part, -1].astype(np.int64))
        for part in (order[:-TEST], order[-TEST:])
    )
    return Dataset.from_splits("digits", train, test, 10, (1, 8, 8))


def read_digits() -> Array:
    """Return scikit-learn's table (samples, 65): 64 pixels in 0..16 and the class."""
    spec = find_spec("sklearn")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder) / "datasets" / "data" / "digits.csv.gz"
        if path.is_file():
            with gzip.open(path, "rt", encoding="ascii") as file:
                return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits  # if a later version stores the file elsewhere

    x, y = load_digits(return_X_y=True)
    return np.column_stack([x, y])


DIGITS = DatasetInfo(
    "digits", "handwritten digits", load_digits, (1, 8, 8), 10, 1437, 360, origin=EMBEDDED
)
