"""CIFAR-10, binary version: records of a label and three colour planes."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import folder_of
from neuro_eqprop.data.split import DataError, Split
from neuro_eqprop.files.read import BoundedReader, file_size, read_bytes

NAME, ARCHIVE = "cifar10", "cifar-10-binary.tar.gz"
TRAIN = tuple(f"data_batch_{n}.bin" for n in range(1, 6))
TEST = ("test_batch.bin",)
FILES = (ARCHIVE, TRAIN[0], f"cifar-10-batches-bin/{TRAIN[0]}")
"""Files by which the folder of the data set is found, packed or unpacked."""
SHAPE, CLASSES = (3, 32, 32), 10
RECORD = 1 + 3 * 32 * 32
"""Size of a record in bytes."""
LARGEST = 10000 * RECORD
"""Size of one record file in bytes."""
ORIGINAL = "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
"""SHA-256 of the original test records."""
COPIES = {
    "JPEG copies, quality 75": {
        "data_batch_1.bin": "95bc40a96c189b4ae973b8e377256610c0b0865f59a76bf2e7b5f5d3b6a9cd51",
        "data_batch_2.bin": "5bb5b7448ab13050c953f52e49624887d937f2dbc737ba8308b771b88b6f5ced",
        "data_batch_3.bin": "ecc5c793ff8d4a06b657d4f9dfc1eb1e29f15f7e75fed9b9c34eb4df9459108d",
        "data_batch_4.bin": "9e28b99d5925a27d404ec940d84ec491ea1cd48e3ceb0e9db193afd19c93e65b",
        "data_batch_5.bin": "887c29d30b4a78aa9e3c200efd2298570173503aa557ab013e8e62afb37a242a",
        "test_batch.bin": "27510dceb090e887f9424124a1302375eea207f1debd1501081084547e6b732a",
    }
}
"""SHA-256 of known copies, whose images are JPEG-compressed and in another order."""
FETCH = f"fetch it again with `neuro-eqprop data get {NAME}`"
MOST_UNPACKED = 8 * LARGEST
"""Most bytes of the uncompressed archive, with room for its small files."""


def load_cifar10() -> Dataset:
    """Load 60 000 colour images of 32 x 32 pixels, 10 000 of them as test samples.

    Returns
    -------
    Dataset
        Pixels (samples, 3072) in 0..1, stored as bytes (180 MB); shape (3, 32, 32), 10 classes.
    """
    folder = folder_of(NAME, FILES, f"binary version ({ARCHIVE}, packed or not)")
    archive = folder / ARCHIVE
    raw = from_archive(archive) if archive.is_file() else from_folder(folder)
    train, test = (
        split([records(raw[name], f"{folder}: {name}") for name in names])
        for names in (TRAIN, TEST)
    )
    return Dataset.from_splits(NAME, train, test, CLASSES, SHAPE, note=copy_note(raw[TEST[0]]))


def copy_note(test: bytes) -> str:
    """Return the name of the copy that test records belong to; empty for the original."""
    found = hashlib.sha256(test).hexdigest()
    if found == ORIGINAL or len(test) < LARGEST:
        return ""
    other = "not the original files: the test records have another checksum"
    return CIFAR10.copy_with(TEST[0], found) or other


def from_archive(path: Path) -> dict[str, bytes]:
    """Read the record files from the archive, without unpacking it to disk."""
    found: dict[str, bytes] = {}
    file_size(path, DataError, empty=False)  # raises for a pipe, on which reading would block
    try:
        with gzip.open(path) as unpacked:
            packed = BoundedReader(unpacked, MOST_UNPACKED, path, DataError)
            with tarfile.open(fileobj=packed, mode="r|") as archive:  # type: ignore[call-overload]
                for member in archive:
                    name = Path(member.name).name
                    if not 0 <= member.size <= MOST_UNPACKED:
                        raise DataError(f"{path}: {name[:80]} claims {member.size} bytes")
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
    """Read the unpacked record files."""
    inner = folder / "cifar-10-batches-bin"
    place = inner if inner.is_dir() else folder
    try:
        return {name: read_bytes(place / name, LARGEST, DataError) for name in TRAIN + TEST}
    except DataError as error:
        raise DataError(f"{place} does not hold all of {NAME!r} ({error}); {FETCH}") from error


def records(raw: bytes, where: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return records (samples, 3073): a label and the red, green and blue planes."""
    if not raw or len(raw) % RECORD or len(raw) > LARGEST:
        raise DataError(
            f"{where} has {len(raw)} bytes, not a multiple of the record size {RECORD}, or more "
            f"than {LARGEST}; {FETCH}"
        )
    found = np.frombuffer(raw, np.uint8).reshape(-1, RECORD)
    if found[:, 0].max() >= CLASSES:
        raise DataError(f"{where} holds labels outside 0..{CLASSES - 1}; {FETCH}")
    return found


def split(files: Sequence[np.ndarray[tuple[int, int], np.dtype[np.uint8]]]) -> Split:
    """Join the records of files, and split them into images and labels."""
    labels = np.concatenate([rows[:, 0] for rows in files]).astype(np.int64)
    return Split(np.concatenate([rows[:, 1:] for rows in files]), labels)


CIFAR10 = DatasetInfo(
    NAME,
    "small photographs",
    load_cifar10,
    SHAPE,
    CLASSES,
    50000,
    10000,
    files=FILES,
    copies=COPIES,
)
