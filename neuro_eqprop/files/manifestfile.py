"""The manifests of data sets: which files they have, and the hashes of these."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from neuro_eqprop.data import IDX, DataError, one_file, place_of
from neuro_eqprop.files.profilefile import read_toml
from neuro_eqprop.files.shipped import shipped

SCHEMA = "neuro_eqprop.dataset/1"


def hashes(name: str) -> dict[str, str]:
    """The SHA-256 that each file of a data set should have when it is uncompressed."""
    path = shipped("datasets") / f"{name}.toml"
    told = read_toml(path)
    found = told.get("sha256")
    if told.get("schema") != SCHEMA or not isinstance(found, dict):
        raise DataError(f"{path} is no manifest of a data set ({SCHEMA})")
    return {str(stem): str(value) for stem, value in found.items()}


def digest(path: Path) -> str:
    """The SHA-256 of a file, uncompressed."""
    raw = path.read_bytes()
    return hashlib.sha256(gzip.decompress(raw) if path.suffix == ".gz" else raw).hexdigest()


def verify(name: str) -> list[str]:
    """The files of a data set that are as its manifest says; an error names one that is not."""
    if name not in IDX:
        return []
    checked = []
    for stem, expected in hashes(name).items():
        path = one_file(place_of(name), stem)
        if digest(path) != expected:
            raise DataError(f"{path} is not the {stem} of {name!r}: its SHA-256 differs")
        checked.append(str(path))
    return checked
