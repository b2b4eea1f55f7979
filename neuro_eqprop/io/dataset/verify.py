"""Compare the files of a data set with the hashes in its manifest."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.data import DATASETS, IDX, DataError, find, one_file
from neuro_eqprop.io.dataset.manifest import Listed, manifest

SAME, UNKNOWN = "as in the manifest", "no checksum known"
PACKED = (".gz", ".zip")


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that is here, and what its hash said: `SAME` or `UNKNOWN`."""

    path: str
    verdict: str


def digest(path: Path, *, unpack: bool = False) -> str:
    """The SHA-256 of a file, of a gzipped one what is inside if asked for."""
    found = hashlib.sha256()
    try:
        with gzip.open(path) if unpack else path.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch it again") from error
    return found.hexdigest()


def agrees(path: Path, file: Listed) -> bool | None:
    """Whether the file is what was listed, packed or not; None if no hash can tell."""
    sole = next(iter(file.unpacked.values())) if len(file.unpacked) == 1 else ""
    if path.suffix not in PACKED:
        expected = file.unpacked.get(path.name, sole)
        return digest(path) == expected if expected else None
    if file.sha256 and digest(path) == file.sha256:
        return True
    if sole:  # the same content may be packed differently
        return digest(path, unpack=True) == sole
    return False if file.sha256 else None


def places(name: str, folder: Path, file: Listed) -> list[Path]:
    """The files in the folder that stand for a listed one: itself, or what is inside."""
    if name in IDX:
        return [one_file(folder, file.name.partition("-idx")[0])]
    if (folder / file.name).is_file():
        return [folder / file.name]
    inside = [next(iter(sorted(folder.rglob(part))), folder / part) for part in file.unpacked]
    missing = [path for path in inside if not path.is_file()]
    if missing:
        raise DataError(f"{folder} holds neither {file.name} nor {missing[0].name}")
    return inside


def verify(name: str) -> list[Checked]:
    """What the hashes say of the files of a data set; an error names a file that differs."""
    folder = find(name) if name in DATASETS and DATASETS[name].files else None
    if folder is None:
        return []
    checked = []
    for file in manifest(name).files:
        for path in places(name, folder, file):
            answer = agrees(path, file)
            if answer is False:
                raise DataError(
                    f"{path} is not the {file.name} of {name!r}: its SHA-256 differs; "
                    f"fetch it again with `neuro-eqprop data get {name}`"
                )
            checked.append(Checked(str(path), SAME if answer else UNKNOWN))
    return checked
