"""Signal handling: SIGTERM and SIGINT end a command within seconds.

Both raise an exception in the main thread, so that files are closed and the state to resume from is
kept; compiled loops of the simulators return early. If the command does not end, because a library
hangs or swallows the exception, a second thread ends the process; the run can still be resumed. A
deadline is handled in the same way.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

from neuro_eqprop.cli import MESSAGES, end_now, end_process
from neuro_eqprop.files import deadlines

GRACE = 4.0
"""Seconds between a signal and the forced end of the process."""


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM; a KeyboardInterrupt, so that the same handlers catch it."""


def raise_terminated(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: raise `TerminatedError`."""
    raise TerminatedError


def exit_code(error: KeyboardInterrupt) -> int:
    """Write why the command ended, and return its exit code: 130 (SIGINT) or 143 (SIGTERM)."""
    number = signal.SIGTERM if isinstance(error, TerminatedError) else signal.SIGINT
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{MESSAGES[number]}\n")
        sys.stderr.flush()
    return 128 + number


@contextmanager
def ending_by_signals(grace: float = GRACE) -> Iterator[None]:
    """Raise `TerminatedError` on SIGTERM, and end the process `grace` seconds after a signal."""
    if current_thread() is not main_thread() or os.name != "posix":
        yield
        return
    end, start = os.pipe()
    os.set_blocking(start, False)
    over = Event()
    before = {number: signal.getsignal(number) for number in MESSAGES}
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: raise_terminated}
    before = {n: h for n, h in before.items() if h in (signal.SIG_DFL, end_now)}
    for number in before:
        signal.signal(number, handlers[number])
    woken = signal.set_wakeup_fd(start, warn_on_full_buffer=False)
    thread = Thread(target=end_after_signal, args=(end, over, grace), daemon=True)
    thread.start()
    deadlines.end_process.append(end_at_deadline)
    try:
        yield
    finally:
        over.set()
        deadlines.end_process.remove(end_at_deadline)
        deadlines.stop_compiled_loops(False)
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(start)  # ends the thread, which reads from the pipe
        thread.join(1.0)


def end_after_signal(end: int, over: Event, grace: float) -> None:
    """End the process if it does not end by itself within `grace` seconds after a signal."""
    while True:
        received = os.read(end, 1)
        if not received:
            os.close(end)
            return
        number = received[0]
        if number not in (signal.SIGINT, signal.SIGTERM):
            continue
        deadlines.stop_compiled_loops()
        if not over.wait(grace):
            end_now(number)


def end_at_deadline(sentence: str) -> None:
    """End a process whose simulator does not return after a deadline."""
    end_process(f"neuro-eqprop: {sentence.replace('`deadline`', '--deadline')}", 1)
