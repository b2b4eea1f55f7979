"""Trial reading of files in a child process: libraries can hang or crash on damaged files.

One child serves all files of a process. It is replaced after a file that it does not survive, and
ends with the process.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock, current_thread
from typing import IO, Any

from neuro_eqprop.files.child import Child, ChildEndedError, find_function
from neuro_eqprop.files.read import FileFormatError, file_size, one_line
from neuro_eqprop.files.write import temporary_folder

DEADLINE = 120.0
"""Seconds that a child may take, plus those for the size of the file. On a busy computer its start
alone can take long."""
COMPUTING = 5.0
"""Seconds of processor time that a child may take, plus those for the size of the file. They do not
depend on the load of the computer, so that an infinite loop is found soon."""
BYTES_PER_SECOND = 10e6
MAX_MEMORY = 2**34
"""Bytes of address space of the child."""
MAX_MESSAGE = 2000
"""Characters of an error of the child."""
READ_FIRST = "neuro_eqprop.files.probe:read_first"


class ProbeError(RuntimeError):
    """An error that a reader raised in the child, as text.

    `own` says whether it is an error of this package, whose message needs no explanation.
    """

    def __init__(self, message: str, own: bool) -> None:
        super().__init__(message)
        self.own = own


class LostError(RuntimeError):
    """A child did not survive reading a file; the message says how it ended."""


class Prober:
    """The child of this process that reads files first."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.child: Child | None = None
        self.owner = 0
        self.starter = current_thread()
        self.known: dict[str, tuple[int, ...]] = {}
        """Files that passed, by reader and path: device, inode, size and times of change."""

    def call(
        self, reader: str, arguments: Sequence[object], deadline: float, computing: float
    ) -> None:
        """Call `reader` ("module:function") in the child.

        It gets `deadline` seconds, and `computing` seconds of processor time.

        Raises
        ------
        ProbeError
            The reader raised an error.
        LostError
            The child did not end, or crashed.
        """
        request = (READ_FIRST, reader, computing, *arguments)
        with self.lock:
            try:
                reply = self._call(request, deadline)
            except LostError:
                if self.starter.is_alive():
                    raise
                # The child ended with the thread that had started it, not by the file.
                reply = self._call(request, deadline)
        if reply is not None:
            raise ProbeError(*reply)

    def _call(self, request: tuple[Any, ...], deadline: float) -> tuple[str, bool] | None:
        try:
            reply = self.running().call(*request, deadline=deadline)
        except TimeoutError:
            raise LostError(f"reading it does not end (stopped after {deadline:.0f} s)") from None
        except ChildEndedError as ended:
            if ended.code == -signal.SIGPROF:
                raise LostError("reading it does not end (its processor time is used up)") from None
            raise LostError(f"reading it crashes (exit code {ended.code})") from None
        return reply and (str(reply[0]), bool(reply[1]))

    def running(self) -> Child:
        """The child, started if there is none; a copy of this process (fork) starts its own."""
        if self.owner != os.getpid():
            self.child, self.owner = None, os.getpid()
        if self.child is None or not self.child.alive:
            self.starter = current_thread()
            self.child = Child(quiet=True)
        return self.child

    def stop(self) -> None:
        """End the child."""
        if self.child is not None and self.owner == os.getpid():
            self.child.stop()
        self.child = None


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
    size = file_size(path, error, empty=False)
    status = path.stat()
    # The time of the last change of the inode cannot be set back, as that of the content can.
    mark = (status.st_dev, status.st_ino, size, status.st_mtime_ns, status.st_ctime_ns)
    key = f"{reader} {path.absolute()}"
    if PROBER.known.get(key) == mark:
        return
    with suppress(ProbeError):
        call_reader(path, reader, deadline=deadline, error=error)
    PROBER.known[key] = mark


def call_reader(
    path: Path,
    reader: str,
    *arguments: object,
    deadline: float = DEADLINE,
    error: type[ValueError] = FileFormatError,
) -> None:
    """Let a child call `reader` with a file; `error` if it hangs or crashes.

    Raises
    ------
    ProbeError
        The reader raised an error.
    """
    more = file_size(path, error, empty=False) / BYTES_PER_SECOND
    try:
        PROBER.call(reader, [str(path.absolute()), *arguments], deadline + more, COMPUTING + more)
    except LostError as reason:
        raise error(f"{path} is damaged: {one_line(reason)}; write it again") from None


@contextmanager
def memory_file() -> Iterator[Path]:
    """A context with the path of a file in memory, which a child can write and this process read.

    It takes no space on a disk, and nothing is left of it after a kill. Where the system has none,
    it is a temporary file.
    """
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("neuro_eqprop")
        try:
            yield Path(f"/proc/{os.getpid()}/fd/{handle}")
        finally:
            os.close(handle)
    else:
        with temporary_folder() as folder:
            yield folder / "copy"


def open_copy(path: Path) -> IO[bytes]:
    """In the child: open the file of `memory_file` for writing and reading."""
    return path.open("w+b")


PROCESSOR_TIME: list[float] = []
"""In the child: seconds of processor time for the current file."""


def allow_bytes(size: int) -> None:
    """In the child: allow more processor time, for data that unpack to `size` bytes."""
    if PROCESSOR_TIME:
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR_TIME[0] + size / BYTES_PER_SECOND / 5)


def read_first(
    reader: str, computing: float, path: str, *arguments: object
) -> tuple[str, bool] | None:
    """In the child: call a reader with a file; the error that it raised.

    The system ends the child (SIGPROF) when its processor time is used up, also inside a loop in
    C code.
    """
    limit_resources()
    try:
        call = find_function(reader)
        PROCESSOR_TIME[:] = [computing]
        allow_bytes(0)
        call(Path(path), *arguments)
    except Exception as error:  # whatever a library raises on a damaged file
        own = type(error).__module__.startswith("neuro_eqprop.")
        return one_line(error, MAX_MESSAGE) or type(error).__name__, own
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return None


@cache
def limit_resources() -> None:
    """In the child: limit its memory, and write no core files."""
    import resource

    for limit, most in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
