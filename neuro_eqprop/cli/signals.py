"""SIGTERM and SIGINT end a command within seconds, whatever it is doing.

Both raise an exception in the main thread, so that files are closed and the state to resume from is
kept. Where that does not end the command, since compiled code runs or a library swallows the
exception, a second thread ends the process; what is on the disk can be resumed then too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

GRACE = 4.0
"""Seconds after a signal before the process is ended."""
LABELS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM; handled wherever an interrupt is."""


def raise_terminated(number: int, frame: FrameType | None) -> None:
    """Signal handler of SIGTERM."""
    raise TerminatedError


def exit_code(error: KeyboardInterrupt) -> int:
    """Write why the command ended, and return its exit code: 130 (SIGINT) or 143 (SIGTERM)."""
    number = signal.SIGTERM if isinstance(error, TerminatedError) else signal.SIGINT
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{LABELS[number]}\n")
        sys.stderr.flush()
    return 128 + number


@contextmanager
def ending_by_signals(grace: float = GRACE) -> Iterator[None]:
    """A context in which SIGTERM raises `TerminatedError`, and both signals end within `grace`."""
    if current_thread() is not main_thread() or os.name != "posix":
        yield
        return
    end, start = os.pipe()
    os.set_blocking(start, False)
    over = Event()
    before = signal.getsignal(signal.SIGTERM)
    if before == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, raise_terminated)
    woken = signal.set_wakeup_fd(start, warn_on_full_buffer=False)
    watcher = Thread(target=watch, args=(end, over, grace), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(woken)
        if before == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, before)
        os.close(start)  # the thread reads the end of the pipe, and ends
        watcher.join(1.0)


def watch(end: int, over: Event, grace: float) -> None:
    """End the process if it does not end by itself within `grace` seconds after a signal."""
    while True:
        received = os.read(end, 1)
        if not received:
            os.close(end)
            return
        number = received[0]
        if number in (signal.SIGINT, signal.SIGTERM) and not over.wait(grace):
            with suppress(OSError):
                os.write(2, f"{LABELS[signal.Signals(number)]}\n".encode())
            os._exit(128 + number)
