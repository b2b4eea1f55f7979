"""Test in a child process that reading a file ends: libraries can hang or crash on damaged files.

One child serves all files of a process. It is replaced after a file that it does not survive, and
ends with the process.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock, current_thread
from time import monotonic

from neuro_eqprop.checked_files import isolated
from neuro_eqprop.checked_files.read import FileFormatError, file_size, one_line

DEADLINE = 20.0
"""Seconds that a child may take, besides those for the size of the file."""
BYTES_PER_SECOND = 10e6
MAX_MEMORY = 2**34
"""Bytes of address space of the child."""
ENTRY = "neuro_eqprop.checked_files.probe:serve"


class LostError(RuntimeError):
    """A child did not survive reading a file; the message says how it ended."""


class Prober:
    """The child of this process that reads files first."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.child: subprocess.Popen[bytes] | None = None
        self.owner = 0
        self.starter = current_thread()
        self.known: dict[str, tuple[int, ...]] = {}

    def call(self, reader: str, arguments: Sequence[object], deadline: float) -> str:
        """Call `reader` ("module:function") in the child; the error that it raises, or nothing.

        Raises
        ------
        LostError
            The child did not come to an end, or crashed.
        """
        with self.lock:
            try:
                return self._call(reader, arguments, deadline)
            except LostError:
                if self.starter.is_alive():
                    raise
                # The child ended with the thread that had started it, not by the file.
                return self._call(reader, arguments, deadline)

    def _call(self, reader: str, arguments: Sequence[object], deadline: float) -> str:
        child = self.running()
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the child has no pipes")
        try:
            child.stdin.write(json.dumps([reader, *arguments]).encode() + b"\n")
            child.stdin.flush()
            line = read_line(child.stdout.fileno(), deadline)
        except TimeoutError:
            self.stop()
            raise LostError(
                f"reading it does not come to an end ({deadline:.0f} s were waited)"
            ) from None
        except BrokenPipeError:
            line = b""
        except BaseException:
            self.stop()  # else its late answer would be taken for that of the next file
            raise
        if not line:
            code = child.wait()
            self.stop()
            raise LostError(f"reading it ends the process that reads it (code {code})")
        return str(json.loads(line))

    def running(self) -> subprocess.Popen[bytes]:
        """The child, started if there is none; a copy of this process (fork) starts its own."""
        if self.owner != os.getpid():
            self.child, self.owner = None, os.getpid()
        if self.child is None or self.child.poll() is not None:
            self.starter = current_thread()
            self.child = subprocess.Popen(
                isolated.command(ENTRY),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self.child

    def stop(self) -> None:
        """End the child."""
        child, self.child = self.child, None
        if child is None or self.owner != os.getpid():
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def read_line(handle: int, deadline: float) -> bytes:
    """A line from a pipe, empty if it was closed; TimeoutError after `deadline` seconds."""
    line, until = b"", monotonic() + deadline
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([handle], [], [], max(0.0, until - monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(handle, 4096)
        if not part:
            return b""
        line += part
    return line


PROBER = Prober()
atexit.register(PROBER.stop)


def probe(
    path: Path,
    reader: str,
    *,
    deadline: float = DEADLINE,
    error: type[ValueError] = FileFormatError,
) -> None:
    """Raise `error` for a file that `reader` ("module:function") hangs or crashes on.

    Errors that the reader itself raises are left to the caller, who reads the file next. A file
    that has not changed since it passed is not read again.
    """
    if os.name != "posix":
        return
    size = file_size(path, error)
    status = path.stat()
    mark = (status.st_dev, status.st_ino, size, status.st_mtime_ns)
    key = f"{reader} {path.absolute()}"
    if PROBER.known.get(key) == mark:
        return
    try:
        PROBER.call(reader, [str(path.absolute())], deadline + size / BYTES_PER_SECOND)
    except LostError as reason:
        raise error(f"{path} is damaged: {one_line(reason)}; write it again") from None
    PROBER.known[key] = mark


def serve() -> None:
    """In the child: call the function of each line, and answer with the error that it raised."""
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        reader, path, *rest = json.loads(line)
        module, _, function = reader.partition(":")
        reply = ""
        try:
            getattr(import_module(module), function)(Path(path), *rest)
        except Exception as error:  # whatever a library raises on a damaged file
            reply = one_line(error) or type(error).__name__
        answers.write(json.dumps(reply).encode() + b"\n")
        answers.flush()
