"""Rows on their way into a growing file: gathered for speed, but never kept long."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock, Timer

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.schema import Node, append

MAX_DELAY = 0.8
"""Seconds after which rows are on the disk, also if no more of them come."""
MAX_BYTES = 2**25
"""Bytes that wait at most."""


class AppendBuffer:
    """Rows waiting for their data sets, written together and flushed.

    A timer of its own writes them when nobody else does, so that a pause of the simulator does
    not keep back what it had done before.
    """

    def __init__(self, file: Node) -> None:
        self._file = file
        self._lock = Lock()
        self._waiting: dict[str, list[Array | Ints]] = {}
        self._whole: dict[str, Array] = {}
        self._bytes = 0
        self._timer: Timer | None = None
        self._failure: Exception | None = None
        self._torn = False

    def add(self, rows: Mapping[str, Array | Ints]) -> None:
        """Rows by data set; those given first are written first."""
        with self._lock:
            self._complain()
            for name, more in rows.items():
                self._waiting.setdefault(name, []).append(more)
                self._bytes += more.nbytes
            self._soon()

    def put(self, values: Mapping[str, Array]) -> None:
        """What whole data sets are to hold from now on; of several in a row the last is written."""
        with self._lock:
            self._complain()
            self._whole |= values
            self._soon()

    def _soon(self) -> None:
        if self._bytes > MAX_BYTES:
            self._write()
        elif self._timer is None:
            self._timer = Timer(MAX_DELAY, self._write_late)
            self._timer.daemon = True
            self._timer.start()

    def write(self) -> None:
        """Write what waits, now; nothing after a write that was torn apart."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._complain()
            if not self._torn:
                self._write()

    def _write_late(self) -> None:
        with self._lock:
            self._timer = None
            try:
                self._write()
            except (OSError, RuntimeError, ValueError) as error:
                # Nobody waits for this thread: the next one who comes is told.
                self._failure = error

    def _write(self) -> None:
        self._torn = True
        for name, parts in self._waiting.items():
            append(self._file[name], np.concatenate(parts))
        for name, values in self._whole.items():
            self._file[name][...] = values
        self._file.flush()
        self._waiting, self._whole, self._bytes, self._torn = {}, {}, 0, False

    def _complain(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
