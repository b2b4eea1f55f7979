"""`Split`: labelled samples, and what is checked and drawn of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.common.equality import Comparable

LARGEST_BYTE = 255.0
"""Byte value that corresponds to 1.0."""


class DataError(ValueError):
    """A data set is missing or invalid; the message says how to fix it."""


@dataclass(frozen=True, slots=True, repr=False, init=False, eq=False)
class Split(Comparable):
    """Labelled samples.

    Parameters
    ----------
    x : array (samples, features)
        Samples. Bytes are stored as bytes, an eighth of the memory of floats, and divided by 255
        when `x` is read.
    y : array of int (samples,)
        Class numbers.

    Attributes
    ----------
    x : array of float (samples, features)
        Samples. For bytes, each access makes a new array: use `split.take(rows).x` for a few rows.
    y : array of int (samples,)
        Class numbers.
    stored : array (samples, features)
        Samples as stored: floats or bytes.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.load_data("digits").test.take(slice(5))
    Split(5 samples of 64 features)
    """

    stored: npt.NDArray[Any]
    y: Ints

    def __init__(self, x: npt.NDArray[Any], y: Ints) -> None:
        object.__setattr__(self, "stored", x)
        object.__setattr__(self, "y", y)

    @property
    def x(self) -> Array:
        """Samples as floats (samples, features)."""
        return self.stored / LARGEST_BYTE if self.in_bytes else self.stored

    @property
    def in_bytes(self) -> bool:
        """Whether the samples are stored as bytes."""
        return self.stored.dtype == np.uint8

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Split({len(self)} samples of {self.stored.shape[-1]} features)"

    def take(self, rows: Ints | slice) -> Split:
        """Return the split with these rows.

        Parameters
        ----------
        rows : array of int or slice
            Indices of samples.

        Returns
        -------
        Split
            The selected samples.
        """
        return Split(self.stored[rows], self.y[rows])

    def parts(self, at_once: int = 1000) -> Iterator[Split]:
        """Iterate over parts of at most `at_once` samples, to limit memory.

        Parameters
        ----------
        at_once : int
            Samples of a part.

        Yields
        ------
        Split
            The next samples.
        """
        for start in range(0, len(self), at_once):
            yield self.take(slice(start, start + at_once))


def check(split: Split, where: str, classes: int) -> None:
    """Raise DataError unless samples match their labels, are finite, and labels are in range."""
    x = split.stored
    if not len(x) and not len(split.y):
        raise DataError(f"{where}: there are no samples; at least one is needed")
    if x.ndim != 2 or split.y.shape != (len(x),):
        raise DataError(f"{where}: x {x.shape} and y {split.y.shape} do not match")
    if not split.in_bytes and not np.isfinite(x).all():
        rows = np.flatnonzero(~np.isfinite(x).all(axis=1))
        raise DataError(f"{where}: sample {rows[0]} holds values that are not finite")
    if split.y.min() < 0 or split.y.max() >= classes:
        raise DataError(f"{where}: labels are outside 0..{classes - 1}")


def check_ids(split: Split, where: str, vocabulary: int) -> None:
    """Raise DataError unless all samples are rows of token ids."""
    x = split.x
    if ((x != np.round(x)) | (x < 0) | (x >= vocabulary)).any():
        raise DataError(
            f"{where}: token ids are integers in 0..{vocabulary - 1}, 0 for padding, as vocabulary "
            f"is {vocabulary}"
        )


def one_hot(y: Ints, classes: int) -> Array:
    """Return one-hot targets (samples, classes)."""
    return np.asarray(np.eye(classes)[y])


def batches(split: Split, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield the indices of each batch, in random order; the last batch may be smaller."""
    order = rng.permutation(len(split))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def stratified(y: Ints, part: float, rng: np.random.Generator) -> Bits:
    """Return a mask (samples,) of held-out samples, the fraction `part` of each class.

    At least one sample of a class is held out and at least one is kept; the only sample of a class
    is kept.
    """
    aside = np.zeros(len(y), dtype=np.bool_)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        count = min(max(round(part * len(rows)), 1), len(rows) - 1)
        aside[rows[:count]] = True
    return aside
