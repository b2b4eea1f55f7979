"""Samples with labels: the types of all data sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from neuro_eqprop.arrays import Array, Ints, Shape


class DataError(ValueError):
    """A data set is not present or malformed; the message says how to fix it."""


@dataclass(frozen=True, slots=True, repr=False)
class Split:
    """Samples x (samples, features), images between 0 and 1, and their classes y (samples,)."""

    x: Array
    y: Ints

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Split({len(self)} samples of {self.x.shape[-1]} features)"

    def take(self, rows: Ints | slice) -> Split:
        """A subset of the samples."""
        return Split(self.x[rows], self.y[rows])


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """Training samples and test samples."""

    name: str
    train: Split
    test: Split
    classes: int
    shape: Shape = ()
    """Shape of one sample before flattening: (channels, height, width) of an image, (tokens, width)
    of a sequence, (features,) of a vector; (features,) if none is given."""
    validation: Split | None = None
    """Samples held out of training for validation; see `hold_out`."""
    note: str = ""
    """A note for the user: renumbered labels, an unusual scale."""

    def __post_init__(self) -> None:
        for part, split in self.parts.items():
            check(split, f"{part} samples of {self.name!r}", self.classes)
            if split.x.shape[1] != self.features:
                raise DataError(f"{self.name!r}: train and {part} samples differ in size")
        shape = tuple(int(n) for n in self.shape) or (self.features,)
        if prod(shape) != self.features:
            raise DataError(
                f"{self.name!r}: a sample of shape {shape} has {prod(shape)} numbers, "
                f"but there are {self.features}"
            )
        object.__setattr__(self, "shape", shape)

    def __repr__(self) -> str:
        counts = f"{len(self.train)} training and {len(self.test)} test samples"
        shape = "x".join(map(str, self.shape))
        return f"Dataset({self.name!r}, {counts} of {shape}, {self.classes} classes)"

    @property
    def parts(self) -> dict[str, Split]:
        """The splits by name."""
        held = {} if self.validation is None else {"validation": self.validation}
        return {"train": self.train, "test": self.test} | held

    @property
    def features(self) -> int:
        """Number of values of a sample."""
        return int(self.train.x.shape[1])


def check(split: Split, where: str, classes: int) -> None:
    """Refuse samples that do not match their labels, are not finite, or have an unknown class."""
    if not len(split.x) and not len(split.y):
        raise DataError(f"{where}: there are no samples, and at least one is needed")
    if split.x.ndim != 2 or split.y.shape != (len(split.x),):
        raise DataError(f"{where}: x {split.x.shape} and y {split.y.shape} do not match")
    if not np.isfinite(split.x).all():
        rows = np.flatnonzero(~np.isfinite(split.x).all(axis=1))
        raise DataError(f"{where}: sample {rows[0]} holds values that are not finite")
    if split.y.min() < 0 or split.y.max() >= classes:
        raise DataError(f"{where}: labels are outside 0..{classes - 1}")


def one_hot(y: Ints, classes: int) -> Array:
    """One-hot targets (samples, classes)."""
    return np.asarray(np.eye(classes)[y])


def batches(split: Split, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """The rows of each batch, in an order drawn from `rng`; the last may be smaller."""
    order = rng.permutation(len(split))
    for start in range(0, len(order), size):
        yield order[start : start + size]
