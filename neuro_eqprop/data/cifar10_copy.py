"""The JPEG copies of CIFAR-10, unpacked to the records of the binary version.

`cifar10-jpeg.tar.xz` holds the pictures as JPEG files of quality 75, in the folders train/CLASS and
test/CLASS. They become records in a fixed random order, so that everybody has the same files.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuro_eqprop.data.paths import folders
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.write import make_folder, write_bytes

FOLDER, ARCHIVE = "cifar10-jpeg", "cifar10-jpeg.tar.xz"
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PARTS = ("train", "test")
RECORDS = 10000
"""Pictures of a file."""
LARGEST = 1 << 16
"""Most bytes of a picture."""

Records = npt.NDArray[np.uint8]
"""Records (pictures, 3073): a label and the red, green and blue planes."""


def find_copy() -> Path | None:
    """The archive, in a folder cifar10-jpeg beside those of the data sets; None without one."""
    places = (folder / ARCHIVE for folder in folders(FOLDER))
    return next((place for place in places if place.is_file()), None)


def unpack_copy(
    archive: Path, folder: Path, on_bytes: Callable[[int], None], known: dict[str, str]
) -> list[Path]:
    """Write the record files of the archive into a folder; `known` has their SHA-256 by name."""
    rows: dict[str, list[Records]] = {part: [] for part in PARTS}
    for part, record in pictures(archive):
        rows[part].append(record)
        on_bytes(len(record))
    files = []
    for seed, part in enumerate(PARTS):
        order = np.random.default_rng(seed).permutation(len(rows[part]))
        ordered = np.stack(rows[part])[order] if len(order) else np.zeros((0, 1), np.uint8)
        for k, start in enumerate(range(0, len(ordered), RECORDS)):
            name = f"data_batch_{k + 1}.bin" if part == "train" else "test_batch.bin"
            files.append((name, ordered[start : start + RECORDS].tobytes()))
    wrong = [name for name, content in files if hashlib.sha256(content).hexdigest() != known[name]]
    if wrong or len(files) != len(known):
        raise DataError(
            f"{archive} does not unpack to the known copy "
            f"({', '.join(wrong) or 'files are missing'}); copy it again"
        )
    make_folder(folder)
    for name, content in files:
        write_bytes(folder / name, content)
    return [folder / name for name, _ in files]


def pictures(archive: Path) -> Iterator[tuple[str, Records]]:
    """The part and the record of each picture, in the order of the archive."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError("the JPEG copies need Pillow: pip install pillow") from error
    try:
        with tarfile.open(archive, "r:xz") as packed:
            for member in packed:
                if not member.isfile():
                    continue
                part, name, _ = member.name.split("/")
                content = packed.extractfile(member)
                if content is None or member.size > LARGEST or part not in PARTS:
                    raise DataError(f"{archive}: {member.name[:80]} is no picture of the copy")
                picture = Image.open(io.BytesIO(content.read())).convert("RGB")
                planes = np.asarray(picture).transpose(2, 0, 1).ravel()
                yield part, np.concatenate([[CLASSES.index(name)], planes]).astype(np.uint8)
    except (OSError, EOFError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{archive} cannot be read ({error}); copy it again") from error
