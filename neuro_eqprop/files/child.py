"""A child process that calls functions by name, and ends with this process.

Each call and each answer is a line of JSON. The child is an isolated interpreter, see `isolated`.
What its functions print goes to standard error, so that it cannot be mistaken for an answer.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from math import inf
from threading import Event
from time import monotonic
from typing import Any

from neuro_eqprop.files import isolated

POLL = 0.1
"""Seconds between two looks at whether a call is to be stopped."""
BLOCK = 2**16
"""Bytes that are read from a child at a time."""
GRACE = 2.0
"""Seconds that a child that closed its output has to end by itself."""


class ChildEndedError(RuntimeError):
    """A child ended during a call."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the process crashed (exit code {code})")
        self.code = code


class Child:
    """A child process; it has its own session, so that this process handles interrupts.

    The system ends it also when the thread that started it ends.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.process = subprocess.Popen(
            isolated.command("neuro_eqprop.files.child:serve"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def call(
        self, function: str, *arguments: object, deadline: float = inf, over: Event | None = None
    ) -> Any:  # noqa: ANN401
        """Call "module:function" in the child with JSON values; what it returns.

        Raises
        ------
        ChildEndedError
            The child crashed.
        TimeoutError
            The call took longer than `deadline` seconds, or `over` was set. The child is ended, as
            after any other error, so that a late answer is not taken for that of the next call.
        """
        request = json.dumps([function, *arguments]).encode() + b"\n"
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
            line = self._read_line(monotonic() + deadline, over)
        except BrokenPipeError:
            line = b""
        except BaseException:
            self.stop()
            raise
        if not line:
            raise ChildEndedError(self.stop(GRACE))
        return json.loads(line)

    def _read_line(self, until: float, over: Event | None) -> bytes:
        """A line of the child; empty if it closed its output."""
        assert self.process.stdout is not None
        handle, parts = self.process.stdout.fileno(), [b""]
        while not parts[-1].endswith(b"\n"):
            left = min(max(0.0, until - monotonic()), POLL)
            if select.select([handle], [], [], left)[0]:
                parts.append(os.read(handle, BLOCK))
                if not parts[-1]:
                    return b""
            elif monotonic() >= until or (over is not None and over.is_set()):
                raise TimeoutError
        return b"".join(parts)

    def stop(self, grace: float = 0.0) -> int:
        """End the process, which has `grace` seconds to end by itself; its exit code."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        return code


def find_function(name: str) -> Callable[..., Any]:
    """The function with the name "module:function"."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def serve() -> None:
    """In the child: call the function named in each line, and write what it returns."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        name, *arguments = json.loads(line)
        answers.write(json.dumps(find_function(name)(*arguments)).encode() + b"\n")
        answers.flush()


def started() -> bool:
    """In the child: say that it runs, so that its start does not count for the first deadline."""
    return True
