"""Read, check and batch data sets."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError


class DataError(ValueError):
    """A data set is not there or not as it should be; the message says the way out."""


@dataclass(frozen=True, slots=True)
class Split:
    """Samples: x (samples, features) between 0 and 1, y their class numbers."""

    x: Array
    y: Ints

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Ints | slice) -> Split:
        """Some of the samples."""
        return Split(self.x[rows], self.y[rows])


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples to learn from and samples to be judged by."""

    name: str
    train: Split
    test: Split
    classes: int

    def __post_init__(self) -> None:
        for part, split in (("train", self.train), ("test", self.test)):
            where = f"{part} samples of {self.name!r}"
            if split.x.ndim != 2 or split.y.shape != (len(split.x),) or not len(split):
                raise DataError(f"{where}: x {split.x.shape} and y {split.y.shape} do not match")
            if not np.isfinite(split.x).all():
                rows = np.flatnonzero(~np.isfinite(split.x).all(axis=1))
                raise DataError(f"{where}: sample {rows[0]} holds values that are not finite")
            if split.y.min() < 0 or split.y.max() >= self.classes:
                raise DataError(f"{where}: labels lie outside 0..{self.classes - 1}")
        if self.train.x.shape[1] != self.test.x.shape[1]:
            raise DataError(f"{self.name!r}: train and test samples differ in size")

    @property
    def features(self) -> int:
        """How many numbers a sample has."""
        return int(self.train.x.shape[1])


def digits() -> Dataset:
    """The 1797 handwritten digits of 8 x 8 pixels that scikit-learn ships; 360 are for the test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x / 16.0, y, test_size=360, stratify=y, random_state=0)
    train_x, test_x, train_y, test_y = parts
    train, test = (
        Split(np.ascontiguousarray(a, dtype=np.float64), np.asarray(b, dtype=np.int64))
        for a, b in ((train_x, train_y), (test_x, test_y))
    )
    return Dataset("digits", train, test, 10)


FOLDER = "NEURO_EQPROP_DATA"
"""The environment variable that names a folder with a sub-folder for each data set."""

IDX = {"mnist": 10, "fashion-mnist": 10}
"""Data sets kept as IDX files, and their numbers of classes."""

NAMES = ("digits", *IDX)


def folders(name: str) -> list[Path]:
    """Where the files of a data set are looked for, in this order."""
    named = os.environ.get(FOLDER)
    places = [Path(named) / name] if named else []
    return [*places, Path("datasets") / name, Path("/usr/share/datasets") / name]


def find(name: str) -> Path | None:
    """The folder that holds a data set, if one does."""
    for folder in folders(name):
        if any(folder.glob("train-images*idx3-ubyte*")):
            return folder
    return None


def read_idx(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """An IDX file of bytes, gzipped or not."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    if len(raw) < 8 or raw[:3] != b"\x00\x00\x08" or not 1 <= raw[3] <= (len(raw) - 4) // 4:
        raise DataError(f"{path} is not an IDX file of bytes")
    shape = tuple(int(n) for n in np.frombuffer(raw, ">u4", raw[3], 4))
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    if not body.size or body.size != prod(shape):
        raise DataError(f"{path} claims {shape} bytes but holds {body.size}; fetch it again")
    return body.reshape(shape)


def place_of(name: str) -> Path:
    """The folder that holds a data set, which has to be here."""
    folder = find(name)
    if folder is None:
        places = ", ".join(str(place) for place in folders(name))
        raise DataError(
            f"data set {name!r} is not here (looked in {places}); put its IDX files into a folder "
            f"{name}/ and name the folder above it in {FOLDER}"
        )
    return folder


def one_file(folder: Path, stem: str) -> Path:
    """The file of a data set whose name starts so, gzipped or not."""
    found = sorted(folder.glob(f"{stem}*ubyte")) + sorted(folder.glob(f"{stem}*ubyte.gz"))
    if not found:
        raise DataError(f"{folder} holds no {stem} file of data set {folder.name!r}")
    return found[0]


def idx(name: str) -> Dataset:
    """A data set of images kept as four IDX files."""
    folder = place_of(name)

    def split(part: str) -> Split:
        images, labels = (read_idx(one_file(folder, f"{part}-{w}")) for w in ("images", "labels"))
        return Split(images.reshape(len(images), -1) / 255.0, labels.astype(np.int64))

    return Dataset(name, split("train"), split("t10k"), IDX[name])


def load(name: str) -> Dataset:
    """The data set of that name."""
    if name == "digits":
        return digits()
    if name in IDX:
        return idx(name)
    raise UnknownNameError("data set", name, NAMES)


def one_hot(y: Ints, classes: int) -> Array:
    """Targets (samples, classes): one at the class, zero elsewhere."""
    return np.asarray(np.eye(classes)[y])


def batches(split: Split, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """The rows of each batch, in an order drawn from `rng`; the last may be smaller."""
    order = rng.permutation(len(split))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def summary() -> Mapping[str, str]:
    """For each data set, where it is, or that it is not here."""
    found = {name: find(name) for name in IDX}
    return {"digits": "embedded"} | {n: str(p) if p else "not here" for n, p in found.items()}
