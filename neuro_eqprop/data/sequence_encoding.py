"""Drawing, encoding and labelling of the sequences that `sequences` describes.

A sequence is a row of integers: `draw_...` draws rows, `encode_...` turns them into tokens
(samples, tokens, width), `label_...` returns their classes (samples,).
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.data.dataset import one_hot

LETTERS = 8
"""Letters of copying, numbers of sorting, keys and values of recall."""


def split_query(rows: Ints) -> tuple[Ints, Ints]:
    """The items of each sequence, and the index of the queried one from the last column."""
    return rows[:, :-1], rows[:, -1]


def with_query(items: Array, query: Array) -> Array:
    """Tokens of items followed by the query token; the last feature of a token is the flag."""
    tokens = np.concatenate([items, query[:, None]], axis=1)
    flag = np.zeros((*tokens.shape[:2], 1))
    flag[:, -1] = 1.0
    return np.concatenate([tokens, flag], axis=2)


def join(left: Array, right: Array) -> Array:
    """Features of both, along the last axis."""
    return np.concatenate([left, right], axis=-1)


def places(samples: int, length: int) -> Array:
    """One-hot places of the tokens, the same in every sample."""
    return np.broadcast_to(np.eye(length), (samples, length, length))


def draw_bits(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Random bits."""
    return rng.integers(0, 2, (samples, length))


def draw_addends(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """The bits of two numbers."""
    return rng.integers(0, 2, (samples, 2 * length))


def draw_letters(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Letters, and the index of the queried one."""
    query = rng.integers(0, length, (samples, 1))
    return np.concatenate([rng.integers(0, LETTERS, (samples, length)), query], axis=1)


def draw_pairs(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Distinct keys, their values, and the index of the queried pair."""
    keys = rng.permuted(np.tile(np.arange(LETTERS), (samples, 1)), axis=1)[:, :length]
    return np.concatenate([keys, draw_letters(rng, samples, length)], axis=1)


def encode_bits(rows: Ints) -> Array:
    """Tokens of parity."""
    return one_hot(rows, 2)


def encode_addends(rows: Ints) -> Array:
    """Tokens of addition."""
    first, second = np.split(rows, 2, axis=1)
    bits = join(one_hot(first, 2), one_hot(second, 2))
    return join(bits, places(len(rows), first.shape[1]))


def encode_copying(rows: Ints) -> Array:
    """Tokens of copying."""
    letters, query = split_query(rows)
    length = letters.shape[1]
    last = join(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    return with_query(join(one_hot(letters, LETTERS), places(len(rows), length)), last)


def encode_sorting(rows: Ints) -> Array:
    """Tokens of sorting."""
    numbers, query = split_query(rows)
    length = numbers.shape[1]
    last = join(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    blank = np.zeros((*numbers.shape, length))
    return with_query(join(one_hot(numbers, LETTERS), blank), last)


def encode_pairs(rows: Ints) -> Array:
    """Tokens of recall."""
    items, query = split_query(rows)
    keys, values = np.split(items, 2, axis=1)
    key = np.take_along_axis(keys, query[:, None], axis=1)[:, 0]
    last = join(one_hot(key, LETTERS), np.zeros((len(rows), LETTERS)))
    return with_query(join(one_hot(keys, LETTERS), one_hot(values, LETTERS)), last)


def label_parity(rows: Ints) -> Ints:
    """Whether the number of ones is odd."""
    return np.asarray(rows.sum(axis=1) % 2)


def label_sum(rows: Ints) -> Ints:
    """The sum of the two numbers."""
    weight = 2 ** np.arange(rows.shape[1] // 2)
    return np.asarray(rows @ np.concatenate([weight, weight]))


def label_letter(rows: Ints) -> Ints:
    """The letter at the queried place."""
    letters, query = split_query(rows)
    return np.take_along_axis(letters, query[:, None], axis=1)[:, 0]


def label_rank(rows: Ints) -> Ints:
    """The number of the queried rank."""
    numbers, query = split_query(rows)
    return np.take_along_axis(np.sort(numbers, axis=1), query[:, None], axis=1)[:, 0]


def label_value(rows: Ints) -> Ints:
    """The value of the queried key."""
    return label_letter(rows[:, (rows.shape[1] - 1) // 2 :])
