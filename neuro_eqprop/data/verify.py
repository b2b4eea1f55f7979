"""Comparison of the files of a data set with the checksums in its manifest."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.data.idx import IDX, one_file
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.manifest import MAX_BYTES, DatasetFile, load_manifest
from neuro_eqprop.data.registry import DATASETS, find
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.read import BoundedReader

SAME, UNKNOWN = "as in the manifest", "no checksum known"
PACKED = (".gz", ".zip")


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """A file of a data set, and the result of its checksum.

    `verdict` is `SAME`, `UNKNOWN`, or the name of the known copy that the file belongs to.
    """

    path: str
    verdict: str
    address: str | None = None
    """Where it was downloaded from; None if it was here already."""


def digest(path: Path, *, unpack: bool = False) -> str:
    """The SHA-256 of a file, or with `unpack` of the content of a gzipped one."""
    sha256 = hashlib.sha256()
    try:
        with gzip.open(path) if unpack else path.open("rb") as opened:
            file = BoundedReader(opened, MAX_BYTES, path, DataError)
            while chunk := file.read(1 << 20):
                sha256.update(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); download it again") from error
    return sha256.hexdigest()


def matches(path: Path, file: DatasetFile, name: str = "") -> bool | None:
    """Whether a file, packed or not, has the listed checksum; None if none is known.

    `name` is the name that the file will have, if another one than it has now.
    """
    suffix = Path(name or path.name).suffix
    content = next(iter(file.unpacked.values())) if len(file.unpacked) == 1 else ""
    if suffix not in PACKED:
        expected = file.unpacked.get(name or path.name, content)
        return digest(path) == expected if expected else None
    if file.sha256 and digest(path) == file.sha256:
        return True
    if content:  # servers pack the same content differently
        return digest(path, unpack=True) == content
    return False if file.sha256 else None


def local_files(name: str, folder: Path, file: DatasetFile) -> list[Path]:
    """The files in a folder that correspond to a listed one: itself, or its unpacked content."""
    if name in IDX:
        return [one_file(folder, file.name.partition("-idx")[0])]
    if (folder / file.name).is_file():
        return [folder / file.name]
    inside = [next(iter(sorted(folder.rglob(part))), folder / part) for part in file.unpacked]
    missing = [path for path in inside if not path.is_file()]
    if missing:
        raise DataError(f"{folder} contains neither {file.name} nor {missing[0].name}")
    return inside


def copy_of(entry: DatasetInfo) -> str:
    """Return which known copy of the original the files are; empty if none."""
    folder = find(entry.name) if entry.copies else None
    for files in entry.copies.values():
        name = next(iter(files))  # one file identifies a copy
        for path in sorted(folder.rglob(name)) if folder else ():
            if what := entry.copy_with(name, digest(path)):
                return what
    return ""


def verify(name: str) -> list[VerifiedFile]:
    """The files of a data set with the results of their checksums.

    Raises
    ------
    DataError
        A file is missing or has another checksum; the message names it.

    """
    entry = DATASETS.get(name)
    folder = find(name) if entry is not None and entry.files else None
    if entry is None or folder is None:
        return []
    verified = []
    for file in load_manifest(name).files:
        for path in local_files(name, folder, file):
            same = matches(path, file)
            verdict = SAME if same else UNKNOWN
            if same is False:
                verdict = entry.copy_with(path.name, digest(path)) if entry.copies else ""
            if not verdict:
                raise DataError(
                    f"{path} is not the {file.name} of {name!r}: its SHA-256 differs; "
                    f"download it again with `neuro-eqprop data get {name}`"
                )
            verified.append(VerifiedFile(str(path), verdict))
    return verified
