"""The digits are those of scikit-learn, split as its `train_test_split` splits them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.model_selection import train_test_split

from neuro_eqprop.data import digits


def test_digits_equal_the_stratified_split_of_scikit_learn() -> None:
    x, y = sklearn.datasets.load_digits(return_X_y=True)
    expected = train_test_split(x / 16.0, y, test_size=360, stratify=y, random_state=0)
    data = digits.load_digits()
    found = (data.train.x, data.test.x, data.train.y, data.test.y)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_digits_are_loaded_by_scikit_learn_where_its_file_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = digits.read_digits()
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    assert np.array_equal(digits.read_digits(), expected)
