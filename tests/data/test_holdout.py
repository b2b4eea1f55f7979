"""A part held out: every class in its share, each sample once, the same by the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.data import DataError, Dataset, Split, hold_out, load_data
from neuro_eqprop.data.split import stratified


def made(y: Ints) -> Dataset:
    split = Split(np.arange(len(y), dtype=np.float64)[:, None], y)
    return Dataset.from_splits("made", split, split, int(y.max()) + 1)


def test_each_class_gives_its_share_and_no_sample_is_lost() -> None:
    whole = load_data("digits")
    found = hold_out(whole, 0.25, seed=3)
    assert found.validation is not None
    counts, held = np.bincount(whole.train.y), np.bincount(found.validation.y)
    assert np.abs(held - counts / 4).max() <= 0.5
    assert len(found.train) + len(found.validation) == len(whole.train)
    both = np.concatenate([found.train.x, found.validation.x])
    assert np.array_equal(np.sort(both, axis=0), np.sort(whole.train.x, axis=0))
    assert found.test is whole.test
    assert found.shape == whole.shape


def test_the_seed_chooses_the_samples() -> None:
    data = made(np.repeat(np.arange(3), 20))
    taken = [hold_out(data, 0.3, seed).validation for seed in (0, 0, 1)]
    first, again, other = (split.x.ravel().tolist() for split in taken if split is not None)
    assert first == again
    assert first != other
    assert first == sorted(first), "samples keep their order"


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_no_class_is_emptied(labels: list[int], part: float) -> None:
    y = np.array(labels)
    aside = stratified(y, part, np.random.default_rng(0))
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        taken = int(aside[y == label].sum())
        assert taken == min(max(round(part * count), 1), count - 1)
        assert taken < count


@pytest.mark.parametrize("part", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_part_must_be_a_part(part: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        hold_out(made(np.repeat(np.arange(2), 5)), part, 0)


def test_what_cannot_be_held_out_is_said() -> None:
    with pytest.raises(DataError, match=r"one training sample of each class.*use validation=0"):
        hold_out(made(np.arange(4)), 0.5, 0)
    once = hold_out(made(np.repeat(np.arange(2), 5)), 0.5, 0)
    with pytest.raises(DataError, match="validation samples already"):
        hold_out(once, 0.5, 0)
