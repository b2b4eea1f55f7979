"""Manifests of data sets: their files, where these are served, and their checksums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.codec import Format, Text, with_names
from neuro_eqprop.files.package_data import data_folder
from neuro_eqprop.files.read import read_toml

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
HASH = re.compile(r"[0-9a-f]{64}")
MAX_BYTES = 2**31
"""Upper limit of the size of one file."""


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A file on the server, and the files packed in it; an empty hash means unknown."""

    name: str
    bytes: int
    sha256: str = ""
    unpacked: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by the name of a packed file."""

    def __post_init__(self) -> None:
        for name in (self.name, *self.unpacked):
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a file name")
        for sha256 in (self.sha256, *self.unpacked.values()):
            if sha256 and not HASH.fullmatch(sha256):
                raise ValueError(f"{sha256!r} is not a SHA-256")
        if not 0 < self.bytes < MAX_BYTES:
            raise ValueError(f"bytes is {self.bytes}; it must lie between 1 and {MAX_BYTES - 1}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A data set that consists of files."""

    name: Text
    what: Text
    licence: Text
    checksums: Text
    """Origin of the hashes."""
    mirrors: tuple[str, ...]
    """Base addresses; appending the name of a file gives its address."""
    files: tuple[DatasetFile, ...]

    def __post_init__(self) -> None:
        invalid = [mirror for mirror in self.mirrors if not (safe(mirror) and mirror[-1] == "/")]
        if invalid or not self.mirrors or not self.files:
            raise ValueError(
                f"it needs files, and mirrors with https addresses that end in /: {invalid}"
            )


FORMAT = Format(Manifest, "neuro_eqprop.dataset/2", error=DataError)


def safe(address: str) -> bool:
    """Whether downloads from an address cannot be tampered with: https, or this computer."""
    return bool(re.match(r"(https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/])\S*$", address))


def load_manifest(name: str) -> Manifest:
    """The manifest of a data set that ships with the package."""
    return read_manifest(data_folder("datasets") / f"{name}.toml")


def read_manifest(path: Path) -> Manifest:
    """The manifest in a TOML file, which has a table for each file."""
    content = read_toml(path, DataError)
    return FORMAT.decode(content | {"files": with_names(content.get("files"))}, path)
