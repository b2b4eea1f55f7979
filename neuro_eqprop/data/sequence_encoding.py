"""How sequences are drawn, what a network sees of them, and what is asked of it.

A sequence is a row of whole numbers; `draw` makes rows, `see` turns them into tokens
(samples, tokens, width), `ask` tells the classes. See `sequences` for the meaning of each.
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.data.dataset import one_hot

LETTERS = 8
"""Letters of copying, numbers of sorting, keys and values of recall."""


def asked(rows: Ints) -> tuple[Ints, Ints]:
    """The items of each sequence and, from the last column, which of them is asked for."""
    return rows[:, :-1], rows[:, -1]


def with_query(items: Array, query: Array) -> Array:
    """Tokens of items and a last one that asks; the last number of a token is the flag."""
    tokens = np.concatenate([items, query[:, None]], axis=1)
    flag = np.zeros((*tokens.shape[:2], 1))
    flag[:, -1] = 1.0
    return np.concatenate([tokens, flag], axis=2)


def beside(left: Array, right: Array) -> Array:
    """The numbers of one after those of the other."""
    return np.concatenate([left, right], axis=-1)


def places(samples: int, length: int) -> Array:
    """One-hot places of the tokens, the same in every sample."""
    return np.broadcast_to(np.eye(length), (samples, length, length))


def draw_bits(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Bits."""
    return rng.integers(0, 2, (samples, length))


def draw_addends(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """The bits of one number and those of another."""
    return rng.integers(0, 2, (samples, 2 * length))


def draw_letters(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Letters, and which of them is asked for."""
    query = rng.integers(0, length, (samples, 1))
    return np.concatenate([rng.integers(0, LETTERS, (samples, length)), query], axis=1)


def draw_pairs(rng: np.random.Generator, samples: int, length: int) -> Ints:
    """Different keys, their values, and which of them is asked for."""
    keys = rng.permuted(np.tile(np.arange(LETTERS), (samples, 1)), axis=1)[:, :length]
    return np.concatenate([keys, draw_letters(rng, samples, length)], axis=1)


def see_bits(rows: Ints) -> Array:
    """Tokens of parity."""
    return one_hot(rows, 2)


def see_addends(rows: Ints) -> Array:
    """Tokens of addition."""
    first, second = np.split(rows, 2, axis=1)
    bits = beside(one_hot(first, 2), one_hot(second, 2))
    return beside(bits, places(len(rows), first.shape[1]))


def see_copying(rows: Ints) -> Array:
    """Tokens of copying."""
    letters, query = asked(rows)
    length = letters.shape[1]
    asking = beside(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    return with_query(beside(one_hot(letters, LETTERS), places(len(rows), length)), asking)


def see_sorting(rows: Ints) -> Array:
    """Tokens of sorting."""
    numbers, query = asked(rows)
    length = numbers.shape[1]
    asking = beside(np.zeros((len(rows), LETTERS)), one_hot(query, length))
    blank = np.zeros((*numbers.shape, length))
    return with_query(beside(one_hot(numbers, LETTERS), blank), asking)


def see_pairs(rows: Ints) -> Array:
    """Tokens of recall."""
    items, query = asked(rows)
    keys, values = np.split(items, 2, axis=1)
    key = np.take_along_axis(keys, query[:, None], axis=1)[:, 0]
    asking = beside(one_hot(key, LETTERS), np.zeros((len(rows), LETTERS)))
    return with_query(beside(one_hot(keys, LETTERS), one_hot(values, LETTERS)), asking)


def ask_parity(rows: Ints) -> Ints:
    """Whether the number of ones is odd."""
    return np.asarray(rows.sum(axis=1) % 2)


def ask_sum(rows: Ints) -> Ints:
    """The sum of the two numbers."""
    weight = 2 ** np.arange(rows.shape[1] // 2)
    return np.asarray(rows @ np.concatenate([weight, weight]))


def ask_letter(rows: Ints) -> Ints:
    """The letter at the place that is asked for."""
    letters, query = asked(rows)
    return np.take_along_axis(letters, query[:, None], axis=1)[:, 0]


def ask_rank(rows: Ints) -> Ints:
    """The number of the rank that is asked for."""
    numbers, query = asked(rows)
    return np.take_along_axis(np.sort(numbers, axis=1), query[:, None], axis=1)[:, 0]


def ask_value(rows: Ints) -> Ints:
    """The value of the key that is asked for."""
    return ask_letter(rows[:, (rows.shape[1] - 1) // 2 :])
