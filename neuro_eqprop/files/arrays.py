"""Arrays in `.npz` and `.npy` files: written completely, and read with checks.

Before an array is read, the size that its header states is compared with that of the file.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.files.read import MAX_GZIP_RATIO, FileFormatError, file_size, one_line
from neuro_eqprop.files.write import new_file

MAX_ARRAYS = 2**33
"""Bytes of all arrays of a file that are read into memory."""
MAX_HEADER = 2**16
"""Bytes of the header of an array."""

Arrays = dict[str, npt.NDArray[Any]]


def read_npz(
    path: Path,
    names: Iterable[str] | None = None,
    *,
    most: int = MAX_ARRAYS,
    error: type[ValueError] = FileFormatError,
) -> tuple[Arrays, list[str]]:
    """The named arrays of a `.npz` file (all if None), and the names of all that it holds.

    Pickled objects are refused, and so is an array that claims more bytes than its file can hold.
    """
    size = file_size(path, error, empty=False)
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise error(f"{path} is one array or no array, not a .npz file; use np.savez")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return read_members(
                    archive, path, names, most=min(most, largest_content(size)), error=error
                )
    except error:
        raise
    except (
        *(OSError, ValueError, EOFError, MemoryError, OverflowError, KeyError, RuntimeError),
        *(NotImplementedError, zipfile.BadZipFile, zlib.error, SyntaxError, RecursionError),
    ) as reason:
        raise error(f"{path}: cannot be read as arrays of numbers: {one_line(reason)}") from reason


def write_npz(path: Path, arrays: Mapping[str, npt.ArrayLike], *, compressed: bool = False) -> None:
    """Write named arrays to a `.npz` file that appears complete or not at all."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    size = 0 if compressed else sum(np.asarray(array).nbytes for array in arrays.values())
    # np.savez takes the names as keywords, and has keywords of its own.
    with new_file(path, size=size) as file, zipfile.ZipFile(file, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.save(member, array, allow_pickle=False)


def write_npy(path: Path, array: npt.ArrayLike) -> None:
    """Write an array to a `.npy` file that appears complete or not at all."""
    with new_file(path, size=np.asarray(array).nbytes) as file:
        np.save(file, array, allow_pickle=False)


def npz_bytes(arrays: Iterable[npt.ArrayLike]) -> bytes:
    """Arrays as the content of a `.npz` file."""
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def largest_content(size: int) -> int:
    """Largest number of bytes that a compressed file of `size` bytes can unpack to."""
    return MAX_GZIP_RATIO * size + MAX_HEADER


def read_members(
    archive: zipfile.ZipFile,
    path: Path,
    names: Iterable[str] | None,
    *,
    most: int,
    error: type[ValueError],
) -> tuple[Arrays, list[str]]:
    """The arrays of an open archive."""
    held = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    wanted = [name for name in (held if names is None else names) if name in held]
    if len(held) != len(archive.infolist()):
        raise error(f"{path}: two arrays share a name")
    total, arrays = 0, Arrays()
    for name in wanted:
        total += held[name].file_size
        if total > most:
            raise error(f"{path}: {name}: unpacks to more than {most} bytes")
        with archive.open(held[name]) as member:
            arrays[name] = read_array(member, held[name].file_size, f"{path}: {name}", error)
    return arrays, list(held)


def read_array(
    file: IO[bytes], size: int, where: str, error: type[ValueError] = FileFormatError
) -> npt.NDArray[Any]:
    """The array in a `.npy` stream of `size` bytes; its header must state exactly that size."""
    start = file.read(min(size, MAX_HEADER))
    header = io.BytesIO(start)
    version = np.lib.format.read_magic(header)  # type: ignore[no-untyped-call]
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise error(f"{where}: version {version} of the array format is not known")
    try:
        shape, by_columns, kind = readers[version](header)  # type: ignore[no-untyped-call]
    # NumPy parses the header as Python, whose parser raises errors of many types.
    except Exception as reason:
        raise error(f"{where}: its header cannot be read: {one_line(reason)}") from reason
    if kind.hasobject:
        raise error(f"{where}: cannot be read as arrays of numbers, it holds Python objects")
    if any(n < 0 for n in shape):
        raise error(f"{where}: has the shape {shape}")
    claimed = prod(shape) * kind.itemsize
    if claimed != size - header.tell():
        raise error(
            f"{where}: claims {claimed} bytes as {kind} {one_line(shape, 80)}, but holds "
            f"{size - header.tell()}"
        )
    content = start[header.tell() :] + file.read(size - len(start) + 1)
    array: npt.NDArray[Any] = np.frombuffer(content, dtype=kind, count=prod(shape)).copy()
    return array.reshape(shape, order="F" if by_columns else "C")
