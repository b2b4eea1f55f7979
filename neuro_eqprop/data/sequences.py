"""Sequences made by seed, each a classification of (tokens, width) zeros and ones.

parity     `length` bits; the class is whether the number of ones is odd. A token is the bit,
           one-hot (2).
addition   two numbers of `length` bits, a token for each place from the lowest: the two bits,
           one-hot (4), and the place (length). The class is the sum, 2^(length + 1) - 1 many.
copying    `length` letters of 8, a token for each: the letter (8) and its place (length); a
           last token asks, with a flag (1), for a place. The class is the letter there.
sorting    `length` numbers of 0..7, a token for each (8); a last token asks, with a flag (1),
           for a rank (length). The class is the number of that rank, 0 the smallest.
recall     `length` pairs of different keys (8) and any values (8); a last token shows one of
           the keys with a flag (1). The class is the value that was paired with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.data import sequence_encoding
from neuro_eqprop.data.dataset import DataError, Dataset, Split
from neuro_eqprop.data.sequence_encoding import LETTERS

TRAIN, TEST = 4000, 1000
ROOM = 4
"""Test sequences are other ones than those of the training where there are so many times more
different ones than are asked for."""

Drawing = Callable[[np.random.Generator, int, int], Ints]
"""Draws what makes up a sequence, (samples, numbers), for a length."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of sequence: how it is drawn, what a network sees of it, and what is asked."""

    length: int
    """If no other is asked for."""
    longest: int
    draw: Drawing
    see: Callable[[Ints], Array]
    ask: Callable[[Ints], Ints]
    classes: Callable[[int], int]
    different: Callable[[int], float]
    """How many sequences there are."""
    samples: int = TRAIN


def letters_many(length: int) -> float:
    """How many sequences of letters with a question there are."""
    return float(LETTERS) ** length * length


def pairs_many(length: int) -> float:
    """How many lists of pairs with a question there are."""
    return float(np.prod(np.arange(LETTERS, LETTERS - length, -1.0))) * letters_many(length)


def letters(_: int) -> int:
    """The classes of what asks for a letter."""
    return LETTERS


KINDS = {
    "parity": Kind(
        length=8,
        longest=512,
        draw=sequence_encoding.draw_bits,
        see=sequence_encoding.see_bits,
        ask=sequence_encoding.ask_parity,
        classes=lambda _: 2,
        different=lambda length: 2.0**length,
    ),
    "addition": Kind(
        length=4,
        longest=7,
        draw=sequence_encoding.draw_addends,
        see=sequence_encoding.see_addends,
        ask=sequence_encoding.ask_sum,
        classes=lambda length: 2 ** (length + 1) - 1,
        different=lambda length: 4.0**length,
    ),
    "copying": Kind(
        length=6,
        longest=128,
        draw=sequence_encoding.draw_letters,
        see=sequence_encoding.see_copying,
        ask=sequence_encoding.ask_letter,
        classes=letters,
        different=letters_many,
    ),
    "sorting": Kind(
        length=5,
        longest=128,
        draw=sequence_encoding.draw_letters,
        see=sequence_encoding.see_sorting,
        ask=sequence_encoding.ask_rank,
        classes=letters,
        different=letters_many,
    ),
    "recall": Kind(
        length=4,
        longest=LETTERS,
        draw=sequence_encoding.draw_pairs,
        see=sequence_encoding.see_pairs,
        ask=sequence_encoding.ask_value,
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
    """Sequences of a kind; `length` and `samples` have a default for each kind.

    Test sequences are never ones of the training, unless there are too few different ones: then
    both are drawn from all, and the data set's note says so.
    """
    if name not in KINDS:
        raise UnknownNameError("kind of sequence", name, KINDS)
    kind = KINDS[name]
    length = kind.length if length is None else length
    samples = kind.samples if samples is None else samples
    if not 1 <= length <= kind.longest:
        raise DataError(f"{name!r} of length {length}: it must lie between 1 and {kind.longest}")
    if min(samples, test) < 1:
        raise DataError(f"{name!r} needs at least one sample to learn from and one for the test")
    rng = np.random.default_rng(seed)
    train = kind.draw(rng, samples, length)
    few = kind.different(length) < ROOM * (samples + test)
    judge = kind.draw(rng, test, length) if few else unseen(kind.draw, train, rng, test, length)

    def split(rows: Ints) -> Split:
        return Split(kind.see(rows).reshape(len(rows), -1), kind.ask(rows))

    shape = kind.see(train[:1]).shape[1:]
    note = f"there are {kind.different(length):.0f} different sequences: the test holds seen ones"
    return Dataset(
        name, split(train), split(judge), kind.classes(length), shape, note=note if few else ""
    )


def unseen(draw: Drawing, seen: Ints, rng: np.random.Generator, count: int, length: int) -> Ints:
    """Sequences that are not among those seen."""
    known = {row.tobytes() for row in seen}
    found: list[Ints] = []
    while len(found) < count:
        found += [row for row in draw(rng, count, length) if row.tobytes() not in known]
    return np.array(found[:count])
