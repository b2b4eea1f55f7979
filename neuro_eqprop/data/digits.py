"""The handwritten digits of scikit-learn, which need no files."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.data.dataset import Dataset, Split
from neuro_eqprop.data.info import EMBEDDED, DatasetInfo


def load_digits() -> Dataset:
    """The 1797 digits of 8 x 8 pixels in scikit-learn, 360 of them as test samples."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x / 16.0, y, test_size=360, stratify=y, random_state=0)
    train_x, test_x, train_y, test_y = parts
    train, test = (
        Split(np.ascontiguousarray(a, dtype=np.float64), np.asarray(b, dtype=np.int64))
        for a, b in ((train_x, train_y), (test_x, test_y))
    )
    return Dataset.from_splits("digits", train, test, 10, (1, 8, 8))


DIGITS = DatasetInfo(
    "digits", "handwritten digits", load_digits, (1, 8, 8), 10, 1437, 360, origin=EMBEDDED
)
