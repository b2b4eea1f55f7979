"""Fetch the files of a data set from the mirrors in its manifest, each whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from neuro_eqprop.data import FOLDER, DataError
from neuro_eqprop.io.dataset.manifest import Listed, Manifest
from neuro_eqprop.io.dataset.verify import SAME, UNKNOWN, agrees

CHUNK = 1 << 16
TIMEOUT = 30.0
"""Seconds without a byte after which a mirror is given up."""

Watch = Callable[[str, int, int], None]
"""Told the file, how many bytes came more, and about how many it has."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is here now: where, from which address (none if it was here), its check."""

    path: str
    address: str | None
    verdict: str


def fetch(manifest: Manifest, folder: Path, watch: Watch) -> list[Fetched]:
    """Every file of the manifest into the folder; those that are here and right are kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be made ({error}); name another with --to") from error
    try:
        return [fetch_file(manifest, file, folder, watch) for file in manifest.files]
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


def fetch_file(manifest: Manifest, file: Listed, folder: Path, watch: Watch) -> Fetched:
    """One file, from the first mirror that serves it as it should be."""
    path = folder / file.name
    if path.is_file() and agrees(path, file):
        return Fetched(str(path), None, SAME)
    failures = []
    for mirror in manifest.mirrors:
        address = mirror + file.name
        try:
            return Fetched(str(path), address, download(address, file, path, watch))
        except (OSError, HTTPException, DataError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            failures.append(f"{address}: {reason}")
    raise DataError(
        f"{file.name} of data set {manifest.name!r} could not be fetched ({'; '.join(failures)}); "
        f"try again with a network, or bring the file from elsewhere into {folder} or into "
        f"{manifest.name}/ below a folder named by {FOLDER}"
    )


def download(address: str, file: Listed, path: Path, watch: Watch) -> str:
    """Fetch to a temporary name, compare the hash, rename; what the hash said."""
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{file.name}.", suffix=Path(file.name).suffix
    )
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            copy(address, file, out.write, watch)
            out.flush()
            os.fsync(out.fileno())
        answer = agrees(temporary, file)
        if answer is False:
            raise DataError("what came has another SHA-256 than the manifest says")
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return SAME if answer else UNKNOWN


def copy(address: str, file: Listed, write: Callable[[bytes], int], watch: Watch) -> None:
    """The bytes at an address, but not many more than the file has."""
    came, most = 0, 2 * file.bytes + CHUNK
    request = Request(address, headers={"User-Agent": "neuro-eqprop"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        promised = answer.headers.get("Content-Length")
        while chunk := answer.read(CHUNK):
            came += len(chunk)
            if came > most:
                raise DataError(f"more than {most} bytes came; the file has about {file.bytes}")
            write(chunk)
            watch(file.name, len(chunk), file.bytes)
    if promised is not None and came != int(promised):
        raise DataError(f"{came} of {promised} bytes came")
