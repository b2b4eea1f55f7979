"""Sequence classification tasks, generated from a seed; samples are binary (tokens, width).

parity     `length` bits; the class is whether the number of ones is odd. A token is the bit,
           one-hot (2).
addition   two numbers of `length` bits, a token for each place from the lowest: the two bits,
           one-hot (4), and the place (length). The class is the sum, 2^(length + 1) - 1 many.
copying    `length` letters of 8, a token for each: the letter (8) and its place (length); a
           last token names a place, with a flag (1). The class is the letter at that place.
sorting    `length` numbers of 0..7, a token for each (8); a last token names a rank (length),
           with a flag (1). The class is the number of that rank, 0 for the smallest.
recall     `length` pairs of distinct keys (8) and values (8); a last token repeats one of the
           keys, with a flag (1). The class is the value paired with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.split import DataError, Split
from sims.claims.data import sequence_encoding
from sims.claims.data.sequence_encoding import LETTERS

TRAIN, TEST = 4000, 1000
"""Default numbers of training and test samples."""
ROOM = 4
"""Test sequences differ from training sequences if at least this many times as many sequences exist
as are drawn."""

Drawing = Callable[[np.random.Generator, int, int], Ints]
"""Draws sequences from a generator, given samples and length: integers (samples, columns)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How the sequences of a task are drawn, encoded and labelled."""

    length: int
    """Default length."""
    longest: int
    draw: Drawing
    encode: Callable[[Ints], Array]
    label: Callable[[Ints], Ints]
    classes: Callable[[int], int]
    different: Callable[[int], float]
    """Number of distinct sequences of a length."""
    samples: int = TRAIN


def letters_many(length: int) -> float:
    """Return the number of distinct letter sequences with a query."""
    return float(LETTERS) ** length * length


def pairs_many(length: int) -> float:
    """Return the number of distinct lists of pairs with a query."""
    return float(np.prod(np.arange(LETTERS, LETTERS - length, -1.0))) * letters_many(length)


def letters(_: int) -> int:
    """Return the number of classes of tasks whose label is a letter."""
    return LETTERS


KINDS = {
    "parity": Kind(
        length=8,
        longest=512,
        draw=sequence_encoding.draw_bits,
        encode=sequence_encoding.encode_bits,
        label=sequence_encoding.label_parity,
        classes=lambda _: 2,
        different=lambda length: 2.0**length,
    ),
    "addition": Kind(
        length=4,
        longest=7,
        draw=sequence_encoding.draw_addends,
        encode=sequence_encoding.encode_addends,
        label=sequence_encoding.label_sum,
        classes=lambda length: 2 ** (length + 1) - 1,
        different=lambda length: 4.0**length,
    ),
    "copying": Kind(
        length=6,
        longest=128,
        draw=sequence_encoding.draw_letters,
        encode=sequence_encoding.encode_copying,
        label=sequence_encoding.label_letter,
        classes=letters,
        different=letters_many,
    ),
    "sorting": Kind(
        length=5,
        longest=128,
        draw=sequence_encoding.draw_letters,
        encode=sequence_encoding.encode_sorting,
        label=sequence_encoding.label_rank,
        classes=letters,
        different=letters_many,
    ),
    "recall": Kind(
        length=4,
        longest=LETTERS,
        draw=sequence_encoding.draw_pairs,
        encode=sequence_encoding.encode_pairs,
        label=sequence_encoding.label_value,
        classes=letters,
        different=pairs_many,
        samples=20000,
    ),
}


def make_sequences(
    name: str,
    *,
    length: int | None = None,
    samples: int | None = None,
    test: int = TEST,
    seed: int = 0,
) -> Dataset:
    """Generate the sequences of a task.

    Test sequences differ from all training sequences, unless too few distinct sequences exist; the
    note of the data set then says so.

    Parameters
    ----------
    name : {"parity", "addition", "copying", "sorting", "recall"}
        Task.
    length : int, optional
        Length of the sequences; default: that of the task.
    samples : int, optional
        Number of training samples; default: that of the task.
    test : int
        Number of test samples.
    seed : int
        Random seed.

    Returns
    -------
    Dataset
        Samples (samples, tokens * width) of shape (tokens, width).
    """
    if name not in KINDS:
        raise UnknownNameError("kind of sequence", name, KINDS)
    kind = KINDS[name]
    length = kind.length if length is None else length
    samples = kind.samples if samples is None else samples
    if not 1 <= length <= kind.longest:
        raise DataError(f"{name!r} of length {length}: it must be between 1 and {kind.longest}")
    if min(samples, test) < 1:
        raise DataError(f"{name!r} needs at least one training sample and one test sample")
    rng = np.random.default_rng(seed)
    train = kind.draw(rng, samples, length)
    few = kind.different(length) < ROOM * (samples + test)
    unknown = kind.draw(rng, test, length) if few else unseen(kind.draw, train, rng, test, length)

    def split(rows: Ints) -> Split:
        return Split(kind.encode(rows).reshape(len(rows), -1), kind.label(rows))

    shape = kind.encode(train[:1]).shape[1:]
    note = f"only {kind.different(length):.0f} sequences exist: training and test samples overlap"
    return Dataset.from_splits(
        name, split(train), split(unknown), kind.classes(length), shape, note=note if few else ""
    )


def unseen(draw: Drawing, seen: Ints, rng: np.random.Generator, count: int, length: int) -> Ints:
    """Draw sequences that do not occur in `seen`."""
    known = {row.tobytes() for row in seen}
    found: list[Ints] = []
    while len(found) < count:
        found += [row for row in draw(rng, count, length) if row.tobytes() not in known]
    return np.array(found[:count])


def task_info(name: str, what: str) -> DatasetInfo:
    """Return the registry entry of a task with the default length."""
    kind = KINDS[name]
    shape = kind.encode(kind.draw(np.random.default_rng(0), 1, kind.length)).shape[1:]
    classes = kind.classes(kind.length)
    return DatasetInfo(name, what, lambda: make_sequences(name), shape, classes, kind.samples, TEST)


PARITY = task_info("parity", "is the count odd?")
ADDITION = task_info("addition", "sum of two numbers")
COPYING = task_info("copying", "letter at a place")
SORTING = task_info("sorting", "number of a rank")
RECALL = task_info("recall", "value of a key")
