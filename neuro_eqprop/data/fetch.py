"""Download the files of a data set from the mirrors in its manifest."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from neuro_eqprop.data.manifest import DatasetFile, Manifest, safe
from neuro_eqprop.data.paths import FOLDER
from neuro_eqprop.data.split import DataError
from neuro_eqprop.data.verify import SAME, UNKNOWN, VerifiedFile, matches
from neuro_eqprop.files.write import make_folder, new_file, remove_empty

CHUNK = 1 << 16
TIMEOUT = 30.0
"""Seconds without data after which a mirror counts as failed."""

OnBytes = Callable[[int], None]
"""Called with the bytes received since the last call."""


def fetch(manifest: Manifest, folder: Path, on_bytes: OnBytes) -> list[VerifiedFile]:
    """Download every file of a manifest into a folder; files with the right checksum are kept."""
    try:
        make_folder(folder)
    except OSError as error:
        raise DataError(f"cannot create {folder} ({error}); choose another folder") from error
    try:
        return [fetch_file(manifest, file, folder, on_bytes) for file in manifest.files]
    finally:
        remove_empty(folder)


def fetch_file(
    manifest: Manifest, file: DatasetFile, folder: Path, on_bytes: OnBytes
) -> VerifiedFile:
    """Download one file from the first mirror that serves it with the right checksum."""
    path = folder / file.name
    if path.is_file() and matches(path, file):
        return VerifiedFile(str(path), SAME)
    failures = []
    for mirror in manifest.mirrors:
        address = mirror + file.name
        try:
            verdict = download(address, file, path, on_bytes)
            return VerifiedFile(str(path), verdict, address)
        except (OSError, HTTPException, DataError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            failures.append(f"{address}: {reason}")
    raise DataError(
        f"{file.name} of data set {manifest.name!r} could not be downloaded "
        f"({'; '.join(failures)}); try again with a network, or copy the file into {folder} or "
        f"into {manifest.name}/ below a folder named by {FOLDER}"
    )


def download(address: str, file: DatasetFile, path: Path, on_bytes: OnBytes) -> str:
    """Download to a temporary name, compare the checksum, rename; the result of the checksum."""
    same: bool | None = None

    def verify(temporary: Path) -> None:
        nonlocal same
        same = matches(temporary, file, name=path.name)
        if same is False:
            raise DataError("the download has another SHA-256 than the manifest states")

    with new_file(path, size=file.bytes, verify=verify) as out:
        copy(address, file, out.write, on_bytes)
    return SAME if same else UNKNOWN


class SafeRedirects(HTTPRedirectHandler):
    """Redirect handler that refuses addresses without https."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request to the new address."""
        if not safe(newurl):
            raise DataError(f"the server redirects the download to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def https_only() -> OpenerDirector:
    """URL opener that follows redirects only to addresses that `safe` accepts."""
    return build_opener(SafeRedirects)


def copy(address: str, file: DatasetFile, write: Callable[[bytes], int], on_bytes: OnBytes) -> None:
    """Copy the bytes at an address; a response much larger than the file is an error.

    Only https is used, also after a redirect.
    """
    if not safe(address):
        raise DataError(f"{address} is not an https address")
    received, most = 0, 2 * file.bytes + CHUNK
    request = Request(address, headers={"User-Agent": "neuro-eqprop"})
    with https_only().open(request, timeout=TIMEOUT) as answer:
        promised = answer.headers.get("Content-Length")
        if promised is not None and not (promised.isdecimal() and int(promised) <= most):
            raise DataError(f"the server announces {promised} bytes; the file has {file.bytes}")
        while chunk := answer.read(CHUNK):
            received += len(chunk)
            if received > most:
                raise DataError(f"received more than {most} bytes; the file has {file.bytes}")
            write(chunk)
            on_bytes(len(chunk))
    if promised is not None and received != int(promised):
        raise DataError(f"received {received} of {promised} bytes")
