"""MNIST and other data sets of grey images in four IDX files, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np

from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import folder_of
from neuro_eqprop.data.split import DataError, Split
from neuro_eqprop.files.read import MAX_GZIP_RATIO, file_size

IDX = {"mnist": 10, "fashion-mnist": 10, "kmnist": 10}
"""Data sets in IDX files, and their numbers of classes."""

IMAGES = ("train-images*idx3-ubyte*",)
"""Pattern of the file by which the folder of a data set is found."""

LARGEST = 2**28
"""Most bytes of one file; MNIST has 47 million."""
MOST_DIMENSIONS = 4


def read_idx(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Read an IDX file of bytes, gzipped or not.

    The header has two zero bytes, the type (8: bytes), the number of dimensions, and each dimension
    as a big-endian 32-bit integer. It is checked against the size of the file before the rest is
    read.

    Parameters
    ----------
    path : Path
        The file; `.gz` if gzipped.

    Returns
    -------
    array of uint8
        Values with the shape of the header.

    Raises
    ------
    DataError
        If the file is damaged or not an IDX file.
    """
    size, packed = file_size(path, DataError, empty=False), path.suffix == ".gz"
    most = min(LARGEST, MAX_GZIP_RATIO * size if packed else size)
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            start = file.read(4)
            dimensions = file.read(4 * start[3]) if len(start) == 4 else b""
            if start[:3] != b"\x00\x00\x08" or not 0 < len(dimensions) == 4 * start[3]:
                raise DataError(f"{path} is not an IDX file of bytes")
            shape = tuple(int(n) for n in np.frombuffer(dimensions, ">u4"))
            if len(shape) > MOST_DIMENSIONS or not 0 < prod(shape) <= most:
                raise DataError(
                    f"{path} claims {shape} bytes, which it cannot hold; fetch it again"
                )
            body = np.frombuffer(file.read(prod(shape) + 1), np.uint8)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    if body.size != prod(shape):
        held = "more" if body.size > prod(shape) else body.size
        raise DataError(f"{path} claims {shape} bytes but holds {held}; fetch it again")
    return body.reshape(shape)


def one_file(folder: Path, stem: str) -> Path:
    """Return the file of a data set whose name starts with `stem`, gzipped or not."""
    found = sorted(folder.glob(f"{stem}*ubyte")) + sorted(folder.glob(f"{stem}*ubyte.gz"))
    if not found:
        raise DataError(f"{folder} holds no {stem} file of data set {folder.name!r}")
    return found[0]


def load_idx(name: str) -> Dataset:
    """Load a data set of images in four IDX files.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist", "kmnist"}
        Data set.

    Returns
    -------
    Dataset
        Pixels (samples, height * width) in 0..1; shape (1, height, width).
    """
    folder = folder_of(name, IMAGES, "IDX files")

    def split(part: str) -> tuple[Split, tuple[int, ...]]:
        images, labels = (read_idx(one_file(folder, f"{part}-{w}")) for w in ("images", "labels"))
        flat = Split(images.reshape(len(images), -1) / 255.0, labels.astype(np.int64))
        return flat, images.shape[1:]

    (train, shape), (test, _) = split("train"), split("t10k")
    return Dataset.from_splits(name, train, test, IDX[name], (1, *shape))


def images(name: str, what: str) -> DatasetInfo:
    """Return the registry entry of a data set with the format and sizes of MNIST."""
    return DatasetInfo(
        name, what, lambda: load_idx(name), (1, 28, 28), IDX[name], 60000, 10000, IMAGES
    )


MNIST = images("mnist", "handwritten digits")
FASHION_MNIST = images("fashion-mnist", "clothes")
KMNIST = images("kmnist", "cursive Japanese")
