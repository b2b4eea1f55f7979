"""Sequences made by seed: what is asked is worked out here once more, from what a network sees."""

from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.data import DataError
from sims.claims.data import load
from sims.claims.data.sequences import KINDS, make_sequences


def parity(tokens: Array) -> int:
    return int(tokens[:, 1].sum()) % 2


def addition(tokens: Array) -> int:
    assert np.array_equal(tokens[:, 4:], np.eye(len(tokens)))
    first, second = ("".join(str(bit) for bit in tokens[::-1, at].astype(int)) for at in (1, 3))
    return int(first, 2) + int(second, 2)


def copying(tokens: Array) -> int:
    assert tokens[:, -1].tolist() == [0] * (len(tokens) - 1) + [1]
    assert not tokens[-1, :8].any()
    place = tokens[-1, 8:-1]
    item = next(token for token in tokens[:-1] if np.array_equal(token[8:-1], place))
    return int(item[:8].argmax())


def sorting(tokens: Array) -> int:
    assert not tokens[:-1, 8:].any()
    assert not tokens[-1, :8].any()
    return sorted(int(token[:8].argmax()) for token in tokens[:-1])[tokens[-1, 8:-1].argmax()]


def recall(tokens: Array) -> int:
    assert tokens[:, -1].tolist() == [0] * (len(tokens) - 1) + [1]
    assert not tokens[-1, 8:16].any()
    pairs = {int(token[:8].argmax()): int(token[8:16].argmax()) for token in tokens[:-1]}
    assert len(pairs) == len(tokens) - 1, "keys differ"
    return pairs[int(tokens[-1, :8].argmax())]


ANSWERS = {
    "parity": parity,
    "addition": addition,
    "copying": copying,
    "sorting": sorting,
    "recall": recall,
}
ONES = {"parity": 1, "addition": 3, "copying": 2, "sorting": 1, "recall": 2}
"""How many ones the token of an item has."""


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("length", [1, 3, 6])
def test_the_class_is_what_the_tokens_say(name: str, length: int) -> None:
    found = make_sequences(name, length=length, samples=200, test=50, seed=3)
    assert (len(found.train), len(found.test)) == (200, 50)
    for split in (found.train, found.test):
        samples = split.x.reshape(-1, *found.shape)
        assert set(np.unique(samples)) <= {0.0, 1.0}
        assert (samples[:, :length].sum(axis=2) == ONES[name]).all()
        assert split.y.tolist() == [ANSWERS[name](tokens) for tokens in samples]


@pytest.mark.parametrize("name", KINDS)
def test_the_seed_makes_the_sequences(name: str) -> None:
    first, again, other = (
        make_sequences(name, samples=50, test=20, seed=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.train.x, again.train.x)
    assert np.array_equal(first.test.x, again.test.x)
    assert not np.array_equal(first.train.x, other.train.x)


@pytest.mark.parametrize("name", KINDS)
def test_every_class_occurs_and_none_prevails(name: str) -> None:
    found = load(name)
    shares = np.bincount(found.train.y, minlength=found.classes) / len(found.train)
    assert shares.min() > 0
    assert shares.max() < 2 / min(found.classes, 16) - 1e-9


@pytest.mark.parametrize(("name", "length"), [("parity", 14), ("copying", 4), ("recall", 3)])
def test_the_test_holds_no_sequence_of_the_training(name: str, length: int) -> None:
    found = make_sequences(name, length=length, samples=3000, test=1000, seed=0)
    seen = {row.tobytes() for row in found.train.x}
    assert not found.note
    assert not any(row.tobytes() in seen for row in found.test.x)


def test_where_there_are_too_few_sequences_it_is_said() -> None:
    found = make_sequences("parity", length=5)
    assert "only 32 sequences exist" in found.note
    distinct = np.unique(found.train.x, axis=0)
    assert len(distinct) == 32


def test_lengths_change_shape_and_classes() -> None:
    assert make_sequences("addition", length=3, samples=10, test=5).classes == 15
    assert make_sequences("addition", length=3, samples=10, test=5).shape == (3, 7)
    assert make_sequences("copying", length=9, samples=10, test=5).shape == (10, 18)
    assert make_sequences("recall", length=4, samples=10, test=5).shape == (5, 17)


@pytest.mark.parametrize(
    ("name", "length"),
    [("parity", 0), ("parity", 513), ("addition", 8), ("recall", 9), ("sorting", -1)],
)
def test_lengths_that_cannot_be_are_refused(name: str, length: int) -> None:
    with pytest.raises(DataError, match=f"{name!r} of length {length}"):
        make_sequences(name, length=length)


def test_other_wishes_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="'party'; known: parity"):
        make_sequences("party")
    for samples, test in ((0, 1), (1, 0)):
        with pytest.raises(DataError, match="at least one training sample"):
            make_sequences("parity", samples=samples, test=test)
