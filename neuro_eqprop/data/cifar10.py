"""CIFAR-10 in its binary version: records of a label and three colour planes."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path

import numpy as np

from neuro_eqprop.checked_files.read import BoundedReader, read_bytes
from neuro_eqprop.data.dataset import DataError, Dataset, Split
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import find_any, not_here

NAME, ARCHIVE = "cifar10", "cifar-10-binary.tar.gz"
TRAIN = tuple(f"data_batch_{n}.bin" for n in range(1, 6))
TEST = ("test_batch.bin",)
FILES = (ARCHIVE, TRAIN[0], f"cifar-10-batches-bin/{TRAIN[0]}")
"""A folder with one of these holds the data set: as the downloaded archive, or unpacked."""
SHAPE, CLASSES = (3, 32, 32), 10
RECORD = 1 + 3 * 32 * 32
LARGEST = 10000 * RECORD
"""Bytes of one record file."""
MOST_UNPACKED = 8 * LARGEST
"""Bytes of the archive without compression, with room for its small files."""


def load_cifar10() -> Dataset:
    """60 000 colour images of 32 x 32 pixels, 10 000 of them as test samples; about 180 MB."""
    folder = find_any(NAME, FILES)
    if folder is None:
        raise not_here(NAME, f"binary version ({ARCHIVE}, packed or not)")
    archive = folder / ARCHIVE
    raw = from_archive(archive) if archive.is_file() else from_folder(folder)
    train = np.concatenate([records(raw[name], f"{folder}: {name}") for name in TRAIN])
    test = np.concatenate([records(raw[name], f"{folder}: {name}") for name in TEST])
    return Dataset.from_splits(NAME, split(train), split(test), CLASSES, SHAPE)


def from_archive(path: Path) -> dict[str, bytes]:
    """The record files in the archive, which is not unpacked to disk."""
    found: dict[str, bytes] = {}
    try:
        with gzip.open(path) as unpacked:
            packed = BoundedReader(unpacked, MOST_UNPACKED, path, DataError)
            with tarfile.open(fileobj=packed, mode="r|") as archive:  # type: ignore[call-overload]
                for member in archive:
                    name = Path(member.name).name
                    content = archive.extractfile(member) if member.isfile() else None
                    if name in TRAIN + TEST and content is not None:
                        found[name] = content.read(LARGEST + 1)
            while packed.read(1 << 20):  # to the end, where gzip stores its checksum
                pass
    except (OSError, EOFError, tarfile.TarError, zlib.error, OverflowError) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    missing = [name for name in TRAIN + TEST if name not in found]
    if missing:
        raise DataError(f"{path} holds no {missing[0]}; fetch it again")
    return found


def from_folder(folder: Path) -> dict[str, bytes]:
    """The unpacked record files."""
    inner = folder / "cifar-10-batches-bin"
    place = inner if inner.is_dir() else folder
    try:
        return {name: read_bytes(place / name, LARGEST, DataError) for name in TRAIN + TEST}
    except DataError as error:
        raise DataError(f"{place} does not hold all of {NAME!r} ({error})") from error


def records(raw: bytes, where: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Rows of a label and the values of red, green and blue."""
    if not raw or len(raw) % RECORD or len(raw) > LARGEST:
        raise DataError(f"{where} has {len(raw)} bytes, not a multiple of the record size {RECORD}")
    return np.frombuffer(raw, np.uint8).reshape(-1, RECORD)


def split(rows: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> Split:
    """Images and labels of records."""
    return Split(np.ascontiguousarray(rows[:, 1:]), rows[:, 0].astype(np.int64))


CIFAR10 = DatasetInfo(
    NAME, "small photographs", load_cifar10, SHAPE, CLASSES, 50000, 10000, files=FILES
)
