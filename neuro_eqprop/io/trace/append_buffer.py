"""Buffer of rows for the growing data sets of a trace file."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock, Timer

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.schema import Node, append

MAX_DELAY = 0.8
"""Seconds after which rows are written, even if no more arrive."""
MAX_BYTES = 2**25
"""Bytes buffered at most."""


class AppendBuffer:
    """Rows buffered for their data sets, written together and flushed.

    A timer writes them after `MAX_DELAY`, so that a pause of the simulator does not delay rows that
    it recorded before.
    """

    def __init__(self, file: Node) -> None:
        self._file = file
        self._lock = Lock()
        self._waiting: dict[str, list[Array | Ints]] = {}
        self._replaced: dict[str, Array] = {}
        self._bytes = 0
        self._timer: Timer | None = None
        self._failure: Exception | None = None
        self._interrupted = False

    def add(self, rows: Mapping[str, Array | Ints]) -> None:
        """Append rows by data set; they are written in this order."""
        with self._lock:
            self._raise_failure()
            for name, more in rows.items():
                self._waiting.setdefault(name, []).append(more)
                self._bytes += more.nbytes
            self._schedule()

    def put(self, values: Mapping[str, Array]) -> None:
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
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._raise_failure()
            if not self._interrupted:
                self._write()

    def _write_late(self) -> None:
        with self._lock:
            self._timer = None
            try:
                self._write()
            except (OSError, RuntimeError, ValueError) as error:
                # This thread has no caller: the next call raises the error.
                self._failure = error

    def _write(self) -> None:
        self._interrupted = True
        for name, parts in self._waiting.items():
            append(self._file[name], np.concatenate(parts))
        for name, values in self._replaced.items():
            self._file[name][...] = values
        self._file.flush()
        self._waiting, self._replaced, self._bytes, self._interrupted = {}, {}, 0, False

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
