"""`Dataset`: labelled samples for training and test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, Named, Shape
from neuro_eqprop.common.html import html_table

LARGEST_BYTE = 255.0
"""Byte value that corresponds to 1.0."""


class DataError(ValueError):
    """A data set is missing or invalid; the message says how to fix it."""


@dataclass(frozen=True, slots=True, repr=False, init=False, eq=False)
class Split:
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


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Dataset:
    """Labelled training and test samples.

    Parameters
    ----------
    x_train : array (samples, features) or (samples, *shape)
        Training samples, scaled to about -1 to 1.
    y_train : array (samples,)
        Class labels, integers or strings. Labels other than 0..n-1 are renumbered in sorted order.
    x_test, y_test : arrays, optional
        Test samples and labels; default: a seeded, stratified fifth of the training samples.
    name : str
        Name of the data set.
    vocabulary : int
        Number of token ids if samples are rows of ids (tokens,), 0 otherwise; id 0 is padding.

    Attributes
    ----------
    train, test, validation : Split
        Samples `x` (samples, features) and class numbers `y` (samples,); validation may be None.
    classes : int
        Number of classes.
    shape : tuple of int
        Shape of a sample before flattening: (channels, height, width) of an image, (tokens, width)
        of a sequence, (features,) of a vector.
    note : str
        Remarks on the data, for example renumbered labels or an unusual scale.
    vocabulary : int
        Number of token ids if samples are rows of ids, 0 otherwise; id 0 is padding.

    Examples
    --------
    >>> import numpy as np
    >>> import neuro_eqprop as ne
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.random((100, 4)), rng.integers(0, 2, 100)
    >>> data = ne.Dataset(x[:80], y[:80], x[80:], y[80:])
    >>> data
    Dataset('arrays', 80 training and 20 test samples of 4, 2 classes)
    >>> data.test.x.shape
    (20, 4)
    """

    name: str
    train: Split
    test: Split
    classes: int
    shape: Shape
    validation: Split | None
    note: str
    vocabulary: int

    def __init__(
        self,
        x_train: npt.ArrayLike,
        y_train: npt.ArrayLike,
        x_test: npt.ArrayLike | None = None,
        y_test: npt.ArrayLike | None = None,
        *,
        name: str = "arrays",
        vocabulary: int = 0,
    ) -> None:
        from neuro_eqprop.data.from_arrays import split_arrays

        train, test = (x_train, y_train), (x_test, y_test)
        self._fill(name, *split_arrays(train, test, name), vocabulary=vocabulary)

    @classmethod
    def from_splits(
        cls,
        name: str,
        train: Split,
        test: Split,
        classes: int,
        shape: Shape = (),
        *,
        validation: Split | None = None,
        note: str = "",
        vocabulary: int = 0,
    ) -> Dataset:
        """Make a data set from splits.

        Parameters
        ----------
        name : str
            Name of the data set.
        train, test, validation : Split
            Samples (samples, features), with classes numbered from 0; validation is optional.
        classes : int
            Number of classes.
        shape : tuple of int
            Shape of a sample; empty for (features,).
        note : str
            Remarks on the data.
        vocabulary : int
            Number of token ids if samples are rows of ids, 0 otherwise.

        Returns
        -------
        Dataset
            The checked data set.
        """
        made = cls.__new__(cls)
        made._fill(name, train, test, classes, shape, note, validation, vocabulary)
        return made

    def _fill(
        self,
        name: str,
        train: Split,
        test: Split,
        classes: int,
        shape: Shape,
        note: str,
        validation: Split | None = None,
        vocabulary: int = 0,
    ) -> None:
        shape = tuple(int(n) for n in shape) or (int(train.stored.shape[-1]),)
        if not isinstance(vocabulary, int | np.integer) or vocabulary < 0:
            raise DataError(
                f"vocabulary of {name!r} is {vocabulary!r}; it is the number of token ids, or 0 if "
                f"samples are numbers"
            )
        values = (name, train, test, classes, shape, validation, note, vocabulary)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)
        for part, split in self.parts.items():
            check(split, f"{part} samples of {name!r}", classes)
            if vocabulary:
                check_ids(split, f"{part} samples of {name!r}", vocabulary)
            if split.stored.shape[1] != self.features:
                raise DataError(f"{name!r}: train and {part} samples differ in size")
        if prod(shape) != self.features:
            raise DataError(
                f"{name!r}: a sample of shape {shape} has {prod(shape)} numbers, "
                f"but there are {self.features}"
            )

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            part: f"{len(split)} samples" for part, split in self.parts.items()
        }
        rows |= {"shape": self.shape, "classes": self.classes}
        return html_table(f"Dataset {self.name}", rows | ({"note": self.note} if self.note else {}))

    def __repr__(self) -> str:
        counts = f"{len(self.train)} training and {len(self.test)} test samples"
        shape = "x".join(map(str, self.shape))
        return f"Dataset({self.name!r}, {counts} of {shape}, {self.classes} classes)"

    @property
    def parts(self) -> dict[str, Split]:
        """Splits by name."""
        held = {} if self.validation is None else {"validation": self.validation}
        return Named("split", {"train": self.train, "test": self.test} | held)

    @property
    def features(self) -> int:
        """Number of features of a sample."""
        return int(self.train.stored.shape[1])


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
