"""The command line: `neuro-eqprop COMMAND ...`.

This module imports nothing heavy, so that a signal ends the program from the first instruction on.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

MESSAGES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def main(argv: list[str] | None = None) -> int:
    """Run a command; exit code 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.

    Without arguments those of the process are taken, and signals end the process also before and
    after the work.
    """
    if argv is None:
        for number in MESSAGES:
            signal.signal(number, end_now)
    from neuro_eqprop.cli.program import run

    return run(sys.argv[1:] if argv is None else argv)


def end_now(number: int, frame: FrameType | None = None) -> None:
    """End the process at once, with the exit code of a signal."""
    end_process(MESSAGES[signal.Signals(number)], 128 + number)


def end_process(sentence: str, code: int) -> None:
    """Write a message to standard error, and end the process at once."""
    try:
        os.write(2, f"{sentence}\n".encode())
    finally:
        os._exit(code)
