"""A data set: the corners of a square."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.data import Dataset, DatasetInfo


def load() -> Dataset:
    x = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (8, 1))
    y = np.tile(np.arange(4), 8)
    return Dataset(x, y, x, y, name="corners")


CORNERS = DatasetInfo("corners", "corners of a square", load, (2,), 4, 32, 32)
