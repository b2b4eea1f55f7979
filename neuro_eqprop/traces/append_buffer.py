"""Buffer of rows for the growing data sets of a trace file."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import Node, leave_open
from neuro_eqprop.files.write import WriteError, check_space
from neuro_eqprop.traces.schema import append

MAX_DELAY = 0.8
"""Seconds after which rows are written, even if no more arrive."""
MAX_BYTES = 2**25
"""Bytes buffered at most."""
INDEX_BYTES = 2**13
"""Bytes that a write may add to the index of a data set."""

COUNTED_BY = ("samples/", "epochs/", "snapshots/sample")
"""Data sets by which a reader counts complete samples and epochs."""


class AppendBuffer:
    """Rows buffered for their data sets, written together and flushed.

    A timer writes them after `MAX_DELAY`, so that a pause of the simulator does not delay rows that
    it recorded before. The free space is checked before each write, because HDF5 cannot go on after
    a failed one; after a failure the file is not changed any more.
    """

    def __init__(self, file: Node, path: Path) -> None:
        self._file, self._path = file, path
        self._lock = Lock()
        self._data: dict[str, Node] = {}
        self._waiting: dict[str, list[Array | Ints]] = {}
        self._replaced: dict[str, Array | Ints] = {}
        self._bytes = 0
        self._timer: Timer | None = None
        self._failure: Exception | None = None
        self._interrupted = False
        self.broken = False
        """Whether HDF5 failed to write, and must not be called again for this file."""
        self.rows: dict[str, int] = {}
        """Number of rows written by data set."""
        self.contents: dict[str, Array | Ints] = {}
        """Last contents written of data sets that are replaced."""

    def add(self, rows: Mapping[str, Array | Ints]) -> None:
        """Append rows by data set; they are written in this order."""
        with self._lock:
            self._raise_failure()
            for name, more in rows.items():
                self._waiting.setdefault(name, []).append(more)
                self._bytes += more.nbytes
            self._schedule()

    def put(self, values: Mapping[str, Array | Ints]) -> None:
        """Replace the contents of data sets; before a write the last call counts."""
        with self._lock:
            self._raise_failure()
            self._replaced |= values
            self._schedule()

    def _schedule(self) -> None:
        if self._bytes > MAX_BYTES:
            self._write()
        elif self._timer is None:
            self._timer = Timer(MAX_DELAY, self._write_late)
            self._timer.daemon = True
            self._timer.start()

    def write(self) -> None:
        """Write the buffer now, unless an earlier write was interrupted halfway."""
        with self._lock:
            self._stop_timer()
            self._raise_failure()
            if not self._interrupted:
                self._write()

    def moved(self, path: Path) -> None:
        """Set the path of the file after it was renamed."""
        self._path = path

    def mark_complete(self) -> None:
        """Set the attribute `complete` of the file."""
        with self._lock:
            try:
                self._file.attrs.modify("complete", np.bool_(True))
                self._file.flush()
            except (OSError, RuntimeError, ValueError):
                self.broken = True
                leave_open(self._file, *self._data.values())
                raise

    def close(self) -> None:
        """Close the data sets; nothing is written after this."""
        with self._lock:
            self._stop_timer()
            self._data.clear()

    def drop(self) -> None:
        """Discard rows that could not be written."""
        with self._lock:
            self._stop_timer()
            self._waiting, self._replaced, self._bytes = {}, {}, 0

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write_late(self) -> None:
        with self._lock:
            self._timer = None
            try:
                self._write()
            except (OSError, RuntimeError, ValueError) as error:
                # This thread has no caller: the next call raises the error.
                self._failure = error

    def _write(self) -> None:
        waiting = {name: np.concatenate(parts) for name, parts in self._waiting.items()}
        for name in (*waiting, *self._replaced):
            # Kept open: HDF5 writes when a data set is closed, which must not happen unnoticed.
            if name not in self._data:
                self._data[name] = self._file[name]
        held = self._path.stat().st_size if self._path.exists() else 0
        check_space(self._path, self._most_bytes(waiting), held=held)
        self._interrupted = True
        try:
            for name, values in self._replaced.items():
                self._data[name][...] = values
            # Data sets that count samples and epochs are written after the data they count, so that
            # a write that fails or is cut off never counts a sample that is not there.
            last = {name for name in waiting if name.startswith(COUNTED_BY)}
            for part in (waiting.keys() - last, last):
                for name in sorted(part):
                    append(self._data[name], waiting[name])
                self._file.flush()
                for name in part:
                    self.rows[name] = self.rows.get(name, 0) + len(waiting[name])
        except (OSError, RuntimeError, ValueError):
            self.broken = True
            leave_open(self._file, *self._data.values())
            raise
        self.contents |= self._replaced
        self._waiting, self._replaced, self._bytes, self._interrupted = {}, {}, 0, False

    def _most_bytes(self, waiting: Mapping[str, npt.NDArray[Any]]) -> int:
        """Bytes that a write adds to the file at most: rows, and the chunks that they begin in."""
        total = INDEX_BYTES * (len(waiting) + len(self._replaced))
        for name, rows in waiting.items():
            chunks, kind = self._data[name].chunks, self._data[name].dtype
            total += rows.nbytes + prod(chunks) * kind.itemsize
        return int(total)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            # Raised at every call: after one failed write the file is not continued.
            raise type(self._failure)(*self._failure.args) from self._failure


WRITE_ERRORS = (WriteError, OSError, RuntimeError, ValueError)
"""Errors of a write that fails."""
