"""The manifests of data sets: which files they have, where these are served, their hashes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.data import DataError
from neuro_eqprop.io.package_data import shipped
from neuro_eqprop.io.profile.load import read_toml

SCHEMA = "neuro_eqprop.dataset/2"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
HASH = re.compile(r"[0-9a-f]{64}")
LARGEST = 2**31
"""Bytes of a file; no data set here has a larger one."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as it is served, and what is inside; an empty hash is one that is not known."""

    name: str
    bytes: int
    sha256: str
    unpacked: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A data set that is kept in files."""

    name: str
    what: str
    licence: str
    checksums: str
    """Where the hashes are from."""
    mirrors: tuple[str, ...]
    """Addresses that become those of files when the name of a file is added."""
    files: tuple[Listed, ...]


def manifest(name: str) -> Manifest:
    """The manifest that comes with the package."""
    return read_manifest(shipped("datasets") / f"{name}.toml")


def read_manifest(path: Path) -> Manifest:
    """A manifest, checked: it says what is fetched and under which name it is kept."""
    told = read_toml(path)
    if told.get("schema") != SCHEMA:
        raise DataError(f"{path} is no manifest of a data set ({SCHEMA})")
    try:
        words = {key: str(told[key]) for key in ("name", "what", "licence", "checksums")}
        mirrors = tuple(str(mirror) for mirror in told["mirrors"])
        files = tuple(listed(name, entry) for name, entry in told["files"].items())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is no whole manifest of a data set: {error}") from error
    strange = [mirror for mirror in mirrors if not re.match(r"https?://\S+/$", mirror)]
    if strange or not mirrors or not files:
        raise DataError(
            f"{path} needs files and mirrors with http addresses ending in /: {strange}"
        )
    return Manifest(**words, mirrors=mirrors, files=files)


def listed(name: str, entry: Mapping[str, Any]) -> Listed:
    """One file of a manifest."""
    sha256, inside = str(entry.get("sha256", "")), dict(entry.get("unpacked", {}))
    for each in (name, *inside):
        if not NAME.fullmatch(each):
            raise ValueError(f"{each!r} is no name of a file")
    for each in (sha256, *inside.values()):
        if each and not HASH.fullmatch(each):
            raise ValueError(f"{each!r} is no SHA-256")
    size = int(entry["bytes"])
    if not 0 < size < LARGEST:
        raise ValueError(f"{name} cannot have {size} bytes")
    return Listed(name, size, sha256, inside)
