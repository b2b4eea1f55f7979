"""Opening of HDF5 files that may be damaged, and handling of files that HDF5 failed to write."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from neuro_eqprop.files.probe import probe
from neuro_eqprop.files.read import FileFormatError, one_line

Node: TypeAlias = Any
"""A file, group or data set of h5py, which has no type hints."""

READ_ATTEMPTS = 20
"""Attempts to read metadata of a file that is being written. HDF5 doubles its pause after each, so
that with its default of 100 it never returns if the metadata are damaged."""
MOST_OBJECTS = 20_000
"""Largest number of objects that `walk` visits."""
DEEPEST = 12
"""Largest depth of nested groups."""
READ_BYTES = 2**25
"""Bytes of data that `walk` reads; of further data sets it reads only the index of chunks."""
FILTERS = frozenset({1, 2, 3})
"""Filters of data that are accepted: deflate, shuffle and fletcher32."""


def open_hdf5(path: Path, error: type[ValueError] = FileFormatError) -> Node:
    """Open a file for reading, even while it is being written or after its writer was killed.

    A child process reads it first, see `probe`.
    """
    probe(path, "neuro_eqprop.files.hdf5:walk", error=error)
    return open_unprobed(path, error)


def create_hdf5(target: Path | IO[bytes], *, libver: str | None = None) -> Node:
    """Open a new, empty file for writing, by its path or an open file."""
    import h5py

    return h5py.File(target, "w", libver=libver)


def open_unprobed(path: Path, error: type[ValueError] = FileFormatError) -> Node:
    """Open a file without letting a child read it first."""
    import h5py

    try:
        return h5py.File(path, "r", locking="best-effort")
    except OSError as first:
        try:
            if not h5py.is_hdf5(path):
                raise error(f"{path} is no HDF5 file, so no trace") from None
            if "truncated" in str(first) and not was_being_written(path):
                raise error(f"{path} is cut short: part of the file is missing") from None
            # A file being written, or whose writer was killed, opens in SWMR mode only.
            return open_swmr(path)
        except (OSError, RuntimeError) as second:
            raise error(f"{path} cannot be opened: {one_line(second)}") from None
    except (RuntimeError, ValueError, KeyError) as reason:
        raise error(f"{path} cannot be opened: {one_line(reason)}") from None


def was_being_written(path: Path) -> bool:
    """Whether a file was not closed by its writer (superblock 3 with the flag of SWMR writing)."""
    with path.open("rb") as file:
        start = file.read(12)
    return len(start) == 12 and start[8] == 3 and bool(start[11] & 4)


def open_swmr(path: Path) -> Node:
    """Open a file that a writer may be changing (single writer, multiple readers)."""
    import h5py

    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)
    limit_read_attempts(access.id)
    flags = h5py.h5f.ACC_RDONLY | h5py.h5f.ACC_SWMR_READ
    return h5py.File(h5py.h5f.open(os.fsencode(path), flags, fapl=access))


def limit_read_attempts(access: int) -> None:
    """Limit the attempts to read metadata, which h5py has no function for."""
    import h5py

    with suppress(OSError, AttributeError):
        set_attempts = ctypes.CDLL(h5py.h5p.__file__).H5Pset_metadata_read_attempts
        set_attempts.argtypes = [ctypes.c_int64, ctypes.c_uint]
        set_attempts(access, READ_ATTEMPTS)


def walk(path: Path) -> None:
    """Visit all objects, attributes and chunk indices of a file, and read the first data.

    It runs in a child process, where only hangs and crashes matter. Exceptions in single objects
    are ignored, since the reader of the file raises them again.
    """
    import h5py

    left = READ_BYTES
    with open_unprobed(path) as file:
        waiting: list[tuple[Node, int]] = [(file, 0)]
        seen = 0
        while waiting:
            node, depth = waiting.pop()
            seen += 1
            if seen > MOST_OBJECTS or depth > DEEPEST:
                return
            with suppress(Exception):
                for name in node.attrs:
                    node.attrs.get(name)
            if isinstance(node, h5py.Group):
                with suppress(Exception):
                    for name in node:
                        within = isinstance(node.get(name, getlink=True), h5py.HardLink)
                        waiting += [(node[name], depth + 1)] if within else []
            elif isinstance(node, h5py.Dataset):
                with suppress(Exception):
                    left -= visit(node, left)


def visit(data: Node, left: int) -> int:
    """Read a data set of at most `left` bytes, else only its index of chunks; return bytes read."""
    if data.is_virtual or data.external or not known_filters(data):
        return 0
    if data.chunks is not None:
        data.id.chunk_iter(lambda _: None)
    claimed = int(data.size or 0) * max(1, int(data.dtype.itemsize))
    if claimed > left:
        return 0
    data[()]
    return claimed


def known_filters(data: Node) -> bool:
    """Whether a data set uses no filters but those that this package writes."""
    created = data.id.get_create_plist()
    return all(created.get_filter(k)[0] in FILTERS for k in range(created.get_nfilters()))


LEFT: list[object] = []
"""Files whose writing failed; they stay open, since HDF5 crashes when it closes them."""


def leave_open(*objects: object) -> None:
    """Keep objects of a file whose writing failed until the end of the process.

    HDF5 cannot close such a file: it tries to write again, and crashes. What it wrote before can be
    read, as after a crash. The process then ends without running the exit handlers of HDF5.
    """
    if not LEFT:
        atexit.register(exit_without_handlers)
    LEFT.extend(objects)


def exit_without_handlers() -> None:
    """End the process with exit code 1."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)
