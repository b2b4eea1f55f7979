"""Comparison of the files of a data set with the checksums in its manifest."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.data import DATASETS, IDX, DataError, find, one_file
from neuro_eqprop.data.manifest import MAX_BYTES, DatasetFile, load_manifest
from neuro_eqprop.files.read import BoundedReader

SAME, UNKNOWN = "as in the manifest", "no checksum known"
PACKED = (".gz", ".zip")


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """A file of a data set, and the result of its checksum.

    `state` is `SAME`, `UNKNOWN`, or the name of the known copy that the file belongs to.
    """

    path: str
    state: str


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


def known_copy(name: str, path: Path) -> str | None:
    """The known copy of a data set that a file belongs to, see `DatasetInfo.copies`."""
    copies = {what: files.get(path.name) for what, files in DATASETS[name].copies.items()}
    found = digest(path) if any(copies.values()) else ""
    return next((what for what, sha256 in copies.items() if found and sha256 == found), None)


def verify(name: str) -> list[VerifiedFile]:
    """The files of a data set with the results of their checksums.

    Raises
    ------
    DataError
        A file is missing or has another checksum; the message names it.

    """
    folder = find(name) if name in DATASETS and DATASETS[name].files else None
    if folder is None:
        return []
    verified = []
    for file in load_manifest(name).files:
        for path in local_files(name, folder, file):
            same = matches(path, file)
            copy = None if same is not False else known_copy(name, path)
            if copy is not None:
                verified.append(VerifiedFile(str(path), copy))
                continue
            if same is False:
                raise DataError(
                    f"{path} is not the {file.name} of {name!r}: its SHA-256 differs; "
                    f"download it again with `neuro-eqprop data get {name}`"
                )
            verified.append(VerifiedFile(str(path), SAME if same else UNKNOWN))
    return verified
