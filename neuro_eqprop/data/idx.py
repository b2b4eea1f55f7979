"""MNIST and data sets of its format: grey images in four IDX files, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np

from neuro_eqprop.data.dataset import DataError, Dataset, Split
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import find_any, not_here

IDX = {"mnist": 10, "fashion-mnist": 10, "kmnist": 10}
"""Data sets in IDX files, and their numbers of classes."""

IMAGES = ("train-images*idx3-ubyte*",)
"""Pattern of a file in every folder of such a data set."""


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
    """The folder of a data set of IDX files; an error if it is not present."""
    folder = find_any(name, IMAGES)
    if folder is None:
        raise not_here(name, "IDX files")
    return folder


def one_file(folder: Path, stem: str) -> Path:
    """The file of a data set whose name starts with `stem`, gzipped or not."""
    found = sorted(folder.glob(f"{stem}*ubyte")) + sorted(folder.glob(f"{stem}*ubyte.gz"))
    if not found:
        raise DataError(f"{folder} holds no {stem} file of data set {folder.name!r}")
    return found[0]


def load_idx(name: str) -> Dataset:
    """A data set of images in four IDX files."""
    folder = place_of(name)

    def split(part: str) -> tuple[Split, tuple[int, ...]]:
        images, labels = (read_idx(one_file(folder, f"{part}-{w}")) for w in ("images", "labels"))
        flat = Split(images.reshape(len(images), -1) / 255.0, labels.astype(np.int64))
        return flat, images.shape[1:]

    (train, shape), (test, _) = split("train"), split("t10k")
    return Dataset.from_splits(name, train, test, IDX[name], (1, *shape))


def images(name: str, what: str) -> DatasetInfo:
    """A data set of the format and the sizes of MNIST."""
    return DatasetInfo(
        name, what, lambda: load_idx(name), (1, 28, 28), IDX[name], 60000, 10000, IMAGES
    )


MNIST = images("mnist", "handwritten digits")
FASHION_MNIST = images("fashion-mnist", "clothes")
KMNIST = images("kmnist", "cursive Japanese")
