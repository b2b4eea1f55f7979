"""Draw, encode and label the sequences of the tasks in `sequences`.

A sequence is a row of integers: `draw_...` draws rows, `encode_...` turns them into tokens
(samples, tokens, width), `label_...` returns their classes (samples,).
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data.split import one_hot

LETTERS = 8
"""Number of different letters (copying), numbers (sorting), and keys and values (recall)."""


def split_query(rows: Ints) -> tuple[Ints, Ints]:
    """Split rows into items and the index of the queried item, the last column."""
    return rows[:, :-1], rows[:, -1]


def with_query(items: Array, query: Array) -> Array:
    """Append the query token to the items, and a last feature that marks it."""
    tokens = np.concatenate([items, query[:, None]], axis=1)
    flag = np.zeros((*tokens.shape[:2], 1))
    flag[:, -1] = 1.0
    return np.concatenate([tokens, flag], axis=2)


def join(left: Array, right: Array) -> Array:
    """Concatenate features along the last axis."""
    return np.concatenate([left, right], axis=-1)


def places(samples: int, length: int) -> Array:
    """Return one-hot positions of the tokens (samples, length, length)."""
    return np.broadcast_to(np.eye(length), (samples, length, length))


def draw_bits(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Draw random bits (samples, length)."""
    return rng.integers(0, 2, (samples, length))


def draw_addends(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Draw the bits of two numbers (samples, 2 * length)."""
    return rng.integers(0, 2, (samples, 2 * length))


def draw_letters(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Draw letters, and the index of the queried one (samples, length + 1)."""
    query = rng.integers(0, length, (samples, 1))
    return np.concatenate([rng.integers(0, LETTERS, (samples, length)), query], axis=1)


def draw_pairs(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Draw distinct keys, their values, and the index of the queried pair."""
    keys = rng.permuted(np.tile(np.arange(LETTERS), (samples, 1)), axis=1)[:, :length]
    return np.concatenate([keys, draw_letters(rng, samples, length)], axis=1)


def encode_bits(rows: Ints) -> Array:
    """Encode sequences of parity as tokens."""
    return one_hot(rows, 2)


def encode_addends(rows: Ints) -> Array:
    """Encode sequences of addition as tokens."""
    first, second = np.split(rows, 2, axis=1)
    bits = join(one_hot(first, 2), one_hot(second, 2))
    return join(bits, places(len(rows), first.shape[1]))


def encode_copying(rows: Ints) -> Array:
    """Encode sequences of copying as tokens."""
    letters, query = split_query(rows)
    length = letters.shape[1]
    last = join(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    return with_query(join(one_hot(letters, LETTERS), places(len(rows), length)), last)


def encode_sorting(rows: Ints) -> Array:
    """Encode sequences of sorting as tokens."""
    numbers, query = split_query(rows)
    length = numbers.shape[1]
    last = join(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    blank = np.zeros((*numbers.shape, length))
    return with_query(join(one_hot(numbers, LETTERS), blank), last)


def encode_pairs(rows: Ints) -> Array:
    """Encode sequences of recall as tokens."""
    items, query = split_query(rows)
    keys, values = np.split(items, 2, axis=1)
    key = np.take_along_axis(keys, query[:, None], axis=1)[:, 0]
    last = join(one_hot(key, LETTERS), np.zeros((len(rows), LETTERS)))
    return with_query(join(one_hot(keys, LETTERS), one_hot(values, LETTERS)), last)


def label_parity(rows: Ints) -> Ints:
    """Return the parity: 1 if the number of ones is odd."""
    return np.asarray(rows.sum(axis=1) % 2)


def label_sum(rows: Ints) -> Ints:
    """Return the sum of the two numbers."""
    weight = 2 ** np.arange(rows.shape[1] // 2)
    return np.asarray(rows @ np.concatenate([weight, weight]))


def label_letter(rows: Ints) -> Ints:
    """Return the letter at the queried position."""
    letters, query = split_query(rows)
    return np.take_along_axis(letters, query[:, None], axis=1)[:, 0]


def label_rank(rows: Ints) -> Ints:
    """Return the number of the queried rank."""
    numbers, query = split_query(rows)
    return np.take_along_axis(np.sort(numbers, axis=1), query[:, None], axis=1)[:, 0]


def label_value(rows: Ints) -> Ints:
    """Return the value of the queried key."""
    return label_letter(rows[:, (rows.shape[1] - 1) // 2 :])
