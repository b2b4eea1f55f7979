"""Verification of a written trace: it is marked complete only if it can be read as written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from math import ceil, prod
from pathlib import Path

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import Node, open_unprobed
from neuro_eqprop.files.probe import ProbeError, call_reader
from neuro_eqprop.traces.schema import TraceError

READ_WHOLE = 2**30
"""Bytes of a file up to which all data are read; of a larger one the end of each data set."""
ENTRY = "neuro_eqprop.traces.verify:verify_file"
BLOCK = 2**24
"""Bytes read at a time."""


def verify_written(
    path: Path, rows: Mapping[str, int], contents: Mapping[str, Array | Ints]
) -> None:
    """Raise TraceError unless the file on the disk holds these rows and contents.

    Another process reads it, because this one would read from its own buffers. Every chunk must be
    there and have the right checksum.
    """
    digests = {name: digest(values) for name, values in contents.items()}
    try:
        if os.name == "posix":
            call_reader(path, ENTRY, dict(rows), digests, error=TraceError)
        else:
            verify_file(path, rows, digests)
    except (ProbeError, TraceError) as error:
        raise TraceError(f"{path} cannot be read as it was written: {error}") from None


def digest(values: Array | Ints) -> str:
    """The SHA-256 of the values of an array."""
    return sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def verify_file(path: Path, rows: Mapping[str, int], digests: Mapping[str, str]) -> None:
    """Raise TraceError unless a file holds these rows, and contents with these digests."""
    whole = path.stat().st_size <= READ_WHOLE
    with open_unprobed(path, TraceError) as file:
        for name, count in rows.items():
            verify_rows(name, file[name], count, whole=whole)
        for name, expected in digests.items():
            if digest(file[name][()]) != expected:
                raise TraceError(f"{name} differs from what was written")


def verify_rows(name: str, data: Node, count: int, *, whole: bool) -> None:
    """Raise TraceError unless a growing data set has `count` rows, all of them on the disk."""
    held, chunk = data.shape[0], data.chunks[0]
    if held != count:
        raise TraceError(f"{name} holds {held} rows, but {count} were written")
    grid = zip(data.shape, data.chunks, strict=True)
    if data.id.get_num_chunks() != prod(ceil(size / part) for size, part in grid):
        raise TraceError(f"part of {name} is not on the disk")
    at_once = max(1, BLOCK // max(1, data.dtype.itemsize * int(np.prod(data.shape[1:]))))
    for start in range(0 if whole else max(0, count - chunk), count, at_once):
        data[start : start + at_once]
