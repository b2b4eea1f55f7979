"""Convert arrays to splits: check and flatten samples, number classes from 0."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, Shape
from neuro_eqprop.data.split import DataError, Split, stratified

TEST_PART, SEED = 0.2, 0
"""Fraction and seed of the test split of a file without test samples."""

USUAL = 10.0
"""Absolute value above which the note advises scaling; networks expect about -1 to 1."""

LARGEST = float(np.sqrt(np.finfo(np.float32).max))
"""Largest value whose square is finite in float32, the precision of training."""

INT64 = np.iinfo(np.int64)

Given = tuple[npt.ArrayLike | None, npt.ArrayLike | None]
"""Samples and labels."""


class ArraySplits(NamedTuple):
    """What `split_arrays` makes of arrays; the names are those of `Dataset`."""

    train: Split
    test: Split
    classes: int
    shape: Shape
    note: str


def split_arrays(train: Given, test: Given, name: str) -> ArraySplits:
    """Return the splits of arrays, with the shape of a sample and a note on labels and scale.

    Without test arrays, a seeded, stratified fifth of the training samples is the test split.
    """
    given_x, given_y = np.asarray(train[0]), np.asarray(train[1])
    x, y = numbers(given_x, f"x of {name!r}"), labels(given_y, f"y of {name!r}")
    if len(x) != len(y):
        raise DataError(f"{name!r}: x has {len(x)} samples, y has {len(y)} labels")
    if (test[0] is None) != (test[1] is None):
        raise DataError(f"{name!r}: give x_test and y_test, or neither")
    known = np.unique(y)
    if len(known) < 2:
        raise DataError(f"y of {name!r} holds a single label; a classification needs at least two")
    shape, samples = given_x.shape[1:], Split(x, renumber(y, known, f"y of {name!r}"))
    note = note_on(known, x)
    if test[0] is None or test[1] is None:
        return ArraySplits(*divide(samples, name), len(known), shape, note)
    test_x, there = np.asarray(test[0]), labels(np.asarray(test[1]), f"y_test of {name!r}")
    if there.dtype.kind != y.dtype.kind:
        raise DataError(f"{name!r}: y holds {y.dtype} but y_test {there.dtype}")
    if test_x.shape[1:] != shape:
        raise DataError(
            f"{name!r}: a sample of x has shape {shape}, one of x_test {test_x.shape[1:]}; both "
            f"need the same axes in the same order"
        )
    rows = numbers(test_x, f"x_test of {name!r}")
    tested = Split(rows, renumber(there, known, f"y_test of {name!r}"))
    return ArraySplits(samples, tested, len(known), shape, note)


def numbers(x: npt.NDArray[Any], where: str) -> Array:
    """Return samples as floats (samples, features)."""
    if x.ndim and not len(x):
        raise DataError(f"{where} holds no samples; give at least one")
    if x.ndim < 2 or not x.size:
        raise DataError(f"{where} has shape {x.shape}; it needs (samples, features) or more axes")
    if x.dtype.kind not in "fiub":
        raise DataError(f"{where} holds {x.dtype}, not numbers")
    rows = np.ascontiguousarray(x, dtype=np.float64).reshape(len(x), -1)
    large = np.isfinite(rows) & (np.abs(rows) > LARGEST)
    if large.any():
        raise DataError(
            f"{where} holds {rows[large][0]:.3g}, too large for float32, in which networks are "
            f"trained; scale it to about -1 to 1"
        )
    return rows


def labels(y: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    """Return labels as integers or strings (samples,)."""
    if y.ndim != 1:
        raise DataError(f"{where} has shape {y.shape}; it needs one label a sample: (samples,)")
    if y.dtype.kind not in "iubUS":
        raise DataError(f"{where} holds {y.dtype}; labels are integers or strings: {recast(y)}")
    if y.dtype.kind == "u" and y.size and y.max() > INT64.max:
        raise DataError(
            f"{where} holds label {y.max()}, above {INT64.max}; number the classes from 0, as "
            f"np.unique(y, return_inverse=True)[1] does, or save strings: y.astype(str)"
        )
    return y.astype(np.int64) if y.dtype.kind in "iub" else y.astype(np.str_)


def recast(y: npt.NDArray[Any]) -> str:
    """Return how to convert labels of another type."""
    if y.dtype.kind == "f" and np.array_equal(y, np.round(y)):
        return "save it as y.astype(int)"
    return "give each class a number, as np.unique(y, return_inverse=True)[1] does"


def renumber(y: npt.NDArray[Any], known: npt.NDArray[Any], where: str) -> Ints:
    """Return the index of each label in `known`."""
    strange = np.setdiff1d(y, known)
    if strange.size:
        raise DataError(f"{where} holds label {strange[0]!s}, which no training sample has")
    return np.asarray(np.searchsorted(known, y), dtype=np.int64)


def note_on(known: npt.NDArray[Any], x: Array) -> str:
    """Return a note on labels and scale."""
    notes = []
    if known.dtype.kind in "US" or not np.array_equal(known, np.arange(len(known))):
        names = [str(label) for label in known[:10]] + (["..."] if len(known) > 10 else [])
        notes.append(f"labels {', '.join(names)} are numbered 0..{len(known) - 1} in this order")
    low, high = float(x.min()), float(x.max())
    notes.append(f"x lies between {low:.4g} and {high:.4g}")
    if max(-low, high) > USUAL:
        notes[-1] += ": scale it, networks expect about -1 to 1"
    return "; ".join(notes)


def divide(whole: Split, name: str) -> tuple[Split, Split]:
    """Split samples into a training and a test split."""
    aside = stratified(whole.y, TEST_PART, np.random.default_rng(SEED))
    if not aside.any():
        raise DataError(f"{name!r} has one sample of each class: give x_test and y_test too")
    return whole.take(np.flatnonzero(~aside)), whole.take(np.flatnonzero(aside))
