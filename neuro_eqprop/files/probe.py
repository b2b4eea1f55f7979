"""Trial reading of files in a child process: libraries can hang or crash on damaged files.

One child serves all files of a process. It is replaced after a file that it does not survive, and
ends with the process.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, current_thread
from time import monotonic

from neuro_eqprop.files import isolated
from neuro_eqprop.files.read import FileFormatError, file_size, one_line

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
ENTRY = "neuro_eqprop.files.probe:serve"


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
        self.child: subprocess.Popen[bytes] | None = None
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
        request = json.dumps([reader, computing, *arguments]).encode() + b"\n"
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

    def _call(self, request: bytes, deadline: float) -> tuple[str, bool] | None:
        child = self.running()
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the child has no pipes")
        try:
            child.stdin.write(request)
            child.stdin.flush()
            line = read_line(child.stdout.fileno(), deadline)
        except TimeoutError:
            self.stop()
            raise LostError(f"reading it does not end (stopped after {deadline:.0f} s)") from None
        except BrokenPipeError:
            line = b""
        except BaseException:
            self.stop()  # else its late answer would be taken for that of the next file
            raise
        if not line:
            code = self.stop(grace=2.0)
            if code == -signal.SIGPROF:
                raise LostError("reading it does not end (its processor time is used up)")
            raise LostError(f"reading it crashes (exit code {code})")
        reply = json.loads(line)
        return reply and (str(reply[0]), bool(reply[1]))

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

    def stop(self, grace: float = 0.0) -> int | None:
        """End the child, which has `grace` seconds to end by itself; its exit code."""
        child, self.child = self.child, None
        if child is None or self.owner != os.getpid():
            return None
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
        child.kill()
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        return code


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
    more = file_size(path, error) / BYTES_PER_SECOND
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
        with TemporaryDirectory() as folder:
            yield Path(folder) / "copy"


SERVING: list[float] = []
"""In the child: seconds of processor time for the current file."""


def allow_bytes(size: int) -> None:
    """In the child: allow more processor time, for data that unpack to `size` bytes."""
    if SERVING:
        signal.setitimer(signal.ITIMER_PROF, SERVING[0] + size / BYTES_PER_SECOND / 5)


def serve() -> None:
    """In the child: call the function named in each line, and reply with the error it raised.

    The system ends the child (SIGPROF) when its processor time is used up, also inside a loop in
    C code.
    """
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        reader, computing, path, *rest = json.loads(line)
        module, _, function = reader.partition(":")
        reply: tuple[str, bool] | None = None
        try:
            call = getattr(import_module(module), function)
            SERVING[:] = [computing]
            allow_bytes(0)
            call(Path(path), *rest)
        except Exception as error:  # whatever a library raises on a damaged file
            own = type(error).__module__.startswith("neuro_eqprop.")
            reply = one_line(error, MAX_MESSAGE) or type(error).__name__, own
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answers.write(json.dumps(reply).encode() + b"\n")
        answers.flush()
