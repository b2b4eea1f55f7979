"""A monitored child process: a timeout, an error or a crash raises one exception.

Parent and child share a folder. The child changes the bytes of `progress` as it advances,
writes errors to `error.txt`, and prints to `log.txt`. The child leads a new process group, which
`run` ends completely. `capture` runs any other command, in a group that ends with this process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import NamedTuple, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.files.isolated import outlive_parent

PROGRESS, ERROR, LOG = "progress", "error.txt", "log.txt"
POLL = 0.02
"""Seconds between two polls of the child."""
PATIENCE = 2.0
"""Seconds without progress after which to check for crashed processes."""
GRACE = 5.0
"""Seconds to wait for a group to end after a signal."""


CANNOT_RUN = 127
"""Exit code of a command that cannot be started."""
GUARD = """
import os, signal, sys
from threading import Thread
watched, command = int(sys.argv[1]), sys.argv[2:]
os.set_inheritable(watched, False)
def end_with_parent():
    os.read(watched, 1)
    os.killpg(0, signal.SIGKILL)
Thread(target=end_with_parent, daemon=True).start()
try:
    child = os.posix_spawnp(command[0], command, os.environ)
except OSError:
    os._exit(127)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(0, signal.SIGTERM)
os._exit(code if code >= 0 else 128 - code)
"""
"""Program that runs a command, and ends it and what it started when the other end of a pipe closes,
as it does when this process ends in any way."""


PollCallback: TypeAlias = Callable[[], None]
"""Called at every poll while the child runs."""


def idle() -> None:
    """No-op poll callback."""


class ChildError(RuntimeError):
    """The child failed: the first line is the error, the rest its traceback or output."""


class SilenceError(ChildError):
    """The child made no progress before the deadline."""


def run(
    command: Sequence[str],
    folder: Path,
    *,
    deadline: float,
    environment: Mapping[str, str],
    on_poll: PollCallback = idle,
    cores: set[int] | None = None,
) -> None:
    """Run the command; raise ChildError if it fails or makes no progress for `deadline` seconds.

    The folder also holds the temporary files of the command. It runs on `cores`, or on all.
    """
    with (folder / LOG).open("wb") as output:
        child = subprocess.Popen(
            command,
            env={**os.environ, "TMPDIR": str(folder), **environment},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        if cores is not None:
            with suppress(OSError):  # it may have ended already
                os.sched_setaffinity(child.pid, cores)
        monitor(child, folder, deadline=deadline, on_poll=on_poll)
    finally:
        end(child)


def capture(
    command: Sequence[str],
    *,
    deadline: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its exit code and what it printed. TimeoutError at the deadline.

    It runs in the root folder, since linkers and interpreters look for files in the current one,
    so its arguments name files by absolute paths. OSError if it cannot be started.
    """
    program = command[0]
    if os.path.dirname(program):
        command = [os.path.abspath(program), *command[1:]]
    if os.name != "posix":
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=deadline,
            env=environment,
            cwd=os.path.abspath(os.sep),
            check=False,
        )
    watched, held = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", GUARD, str(watched), *command],
            env=environment,
            cwd=os.sep,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[watched],
            start_new_session=True,
        )
        with child:
            try:
                output, errors = child.communicate(timeout=deadline)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"{command[0]} took over {deadline:.0f} s") from None
            finally:
                send(child.pid, signal.SIGKILL)
    finally:
        os.close(watched)
        os.close(held)
    if child.returncode == CANNOT_RUN:
        raise OSError(f"{command[0]} cannot be run")
    return subprocess.CompletedProcess(command, child.returncode, output, errors)


def monitor(
    child: subprocess.Popen[bytes],
    folder: Path,
    *,
    deadline: float,
    on_poll: PollCallback = idle,
) -> None:
    """Wait for the child to end; raise ChildError once it has failed."""
    seen, since, checked = b"", monotonic(), monotonic()
    while True:
        code = wait(child, POLL)
        check_deadline()
        on_poll()
        if (folder / ERROR).exists():
            error = (folder / ERROR).read_text(errors="replace").strip()
            raise ChildError(f"{last_line(error)}\n{error}")
        if code == 0:
            return
        if code is not None:
            printed = log(folder)
            raise ChildError(f"{last_line(printed) or f'it ended with code {code}'}\n{printed}")
        now = read_progress(folder)
        if now != seen:
            seen, since, checked = now, monotonic(), monotonic()
        if monotonic() - checked > PATIENCE:
            if dead(child.pid):
                raise ChildError(f"one of its processes died\n{log(folder)}")
            checked = monotonic()
        if monotonic() - since > deadline:
            raise SilenceError(f"no progress for {deadline:g} s\n{log(folder)}")


def wait(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The child's exit code, or None if it still runs after that time."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def read_progress(folder: Path) -> bytes:
    """The bytes that change with the child's progress."""
    path = folder / PROGRESS
    return path.read_bytes() if path.exists() else b""


def log(folder: Path) -> str:
    """The output of the child."""
    return (folder / LOG).read_text(errors="replace").strip()


def last_line(text: str) -> str:
    """The last line, where Python prints the exception."""
    return text.splitlines()[-1] if text else ""


class Process(NamedTuple):
    """State and exit code of a process in /proc; state Z is a zombie."""

    state: str
    ended_with: int


def members(group: int) -> dict[int, Process]:
    """The processes of a group by process id; one that ends meanwhile is left out."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            # State, parent and group follow the name in brackets; the exit code comes last of 50.
            fields = path.read_bytes().rpartition(b")")[2].split()
            if int(fields[2]) == group:
                found[int(path.parent.name)] = Process(fields[0].decode(), int(fields[49]))
    return found


def dead(group: int) -> bool:
    """Whether a process of the group other than its leader has failed."""
    others = (process for pid, process in members(group).items() if pid != group)
    return any(process.state == "Z" and process.ended_with for process in others)


def alive(group: int) -> bool:
    """Whether any process of the group still runs."""
    if Path("/proc/self/stat").exists():
        return any(process.state not in "ZX" for process in members(group).values())
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def end(child: subprocess.Popen[bytes]) -> None:
    """End the child's process group: SIGTERM, wait, then SIGKILL.

    Python's resource tracker is in the group: it ignores SIGTERM, frees the shared memory of the
    other processes, and then exits.
    """
    for demand in (signal.SIGTERM, signal.SIGKILL):
        if not alive(child.pid):
            break
        send(child.pid, demand)
        send(child.pid, signal.SIGCONT)
        since = monotonic()
        while alive(child.pid) and monotonic() - since < GRACE:
            child.poll()
            sleep(POLL)
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def send(group: int, demand: signal.Signals) -> None:
    """Send a signal to a group that may have ended."""
    with suppress(ProcessLookupError):
        os.killpg(group, demand)


def guard(folder: Path) -> None:
    """In the child: when the parent has ended, remove the folder and end the group.

    Standard input is a pipe from the parent, which closes when the parent ends for any reason.
    """

    def wait_for_parent() -> None:
        while os.read(0, 1):
            pass
        shutil.rmtree(folder, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGTERM)

    Thread(target=wait_for_parent, daemon=True).start()
    outlive_parent()  # the thread ends the whole group instead


def report(folder: Path, text: str) -> None:
    """In the child: write the error file atomically; the first error is kept."""
    draft = folder / f"{ERROR}.{os.getpid()}"
    draft.write_text(text)
    with suppress(FileExistsError):
        os.link(draft, folder / ERROR)
    draft.unlink()


def create_progress(folder: Path, counters: int) -> None:
    """Make the progress file with its counters at zero, before the child starts."""
    np.zeros(counters, dtype=np.int64).tofile(folder / PROGRESS)


def progress(folder: Path) -> Ints:
    """In the child: the memory-mapped progress file; a write to it counts as progress."""
    return np.asarray(np.memmap(folder / PROGRESS, dtype=np.int64, mode="r+"))
