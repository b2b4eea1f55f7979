"""The cosine of two arrays, and its policy where the angle is undefined."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from neuro_eqprop.common import arrays
from neuro_eqprop.common.arrays import UnknownNameError, cosine, defined_cosine


def test_the_cosine_does_not_depend_on_size_or_shape() -> None:
    a, b = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    assert cosine(a, 3.0 * a) == pytest.approx(1.0)
    assert cosine(a, -a) == pytest.approx(-1.0)
    assert cosine(a, b) == pytest.approx(0.5)
    assert cosine(a.ravel(), b) == cosine(a, b)


@pytest.mark.parametrize("bad", [np.zeros(2), np.array([np.nan, 1.0]), np.array([np.inf, 1.0])])
def test_the_cosine_is_none_where_an_array_is_zero_or_not_finite(bad: arrays.Array) -> None:
    assert cosine(np.ones(2), bad) is None
    with pytest.raises(ValueError, match="undefined"):
        defined_cosine(bad, np.ones(2))


def test_norms_up_to_the_floor_count_as_zero() -> None:
    small = np.array([1e-8, 0.0])
    assert cosine(small, np.ones(2)) is not None
    assert cosine(small, np.ones(2), floor=1e-7) is None


def test_examples_in_docstrings_hold() -> None:
    assert doctest.testmod(arrays).failed == 0


def test_a_name_that_is_almost_known_is_suggested() -> None:
    assert str(UnknownNameError("code", "Grade", ["rate", "graded"])).endswith(
        "known: graded, rate; did you mean 'graded'?"
    )
    assert "mean" not in str(UnknownNameError("code", "xyz", ["rate", "graded"]))
    hinted = UnknownNameError("code", "rat", ["rate"], "see `--help`")
    assert str(hinted).endswith("did you mean 'rate'?; see `--help`")
