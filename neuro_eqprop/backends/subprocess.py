"""A command in a watched child process: its silence, errors and death become one exception.

Parent and child share a folder. Of the child, `progress` is a sign of life whenever its bytes
change, `error.txt` is what went wrong, and `log.txt` is all it printed. The child leads a process
group of its own, of which nothing outlives `run`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import NamedTuple, TypeAlias

import numpy as np

from neuro_eqprop.arrays import Ints

PROGRESS, ERROR, LOG = "progress", "error.txt", "log.txt"
POLL = 0.02
"""Seconds between two looks at the child."""
PATIENCE = 2.0
"""Seconds of silence after which the dead are sought."""
GRACE = 5.0
"""Seconds a group has to end after it was told to."""


PollCallback: TypeAlias = Callable[[], None]
"""Called again and again while the child runs."""


def idle() -> None:
    """Does nothing meanwhile."""


class ChildError(RuntimeError):
    """The child failed: the first line says how, the rest is its traceback or what it printed."""


class SilenceError(ChildError):
    """The child showed no sign of life for too long."""


def run(
    command: Sequence[str],
    folder: Path,
    *,
    deadline: float,
    environment: Mapping[str, str],
    on_poll: PollCallback = idle,
) -> None:
    """Run the command until it ends well; raise ChildError if not, or at `deadline` s of silence.

    The folder is also where the command puts its temporary files.
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
        watch(child, folder, deadline=deadline, on_poll=on_poll)
    finally:
        end(child)


def watch(
    child: subprocess.Popen[bytes],
    folder: Path,
    *,
    deadline: float,
    on_poll: PollCallback = idle,
) -> None:
    """Wait for the child to end; raise ChildError as soon as it is known to have failed."""
    seen, since, sought = b"", monotonic(), monotonic()
    while True:
        code = wait(child, POLL)
        on_poll()
        if (folder / ERROR).exists():
            told = (folder / ERROR).read_text(errors="replace").strip()
            raise ChildError(f"{last_line(told)}\n{told}")
        if code == 0:
            return
        if code is not None:
            printed = log(folder)
            raise ChildError(f"{last_line(printed) or f'it ended with code {code}'}\n{printed}")
        now = look(folder)
        if now != seen:
            seen, since, sought = now, monotonic(), monotonic()
        if monotonic() - sought > PATIENCE:
            if dead(child.pid):
                raise ChildError(f"one of its processes died\n{log(folder)}")
            sought = monotonic()
        if monotonic() - since > deadline:
            raise SilenceError(f"no sign of life for {deadline:g} s\n{log(folder)}")


def wait(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The child's exit code, or None if it still runs after so long."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def look(folder: Path) -> bytes:
    """The bytes that change with the child's progress."""
    path = folder / PROGRESS
    return path.read_bytes() if path.exists() else b""


def log(folder: Path) -> str:
    """What the child printed."""
    return (folder / LOG).read_text(errors="replace").strip()


def last_line(text: str) -> str:
    """The last line, where Python puts what was raised."""
    return text.splitlines()[-1] if text else ""


class Process(NamedTuple):
    """A process as the system lists it: Z is the state of the dead that nobody has buried."""

    state: str
    ended_with: int


def members(group: int) -> dict[int, Process]:
    """The processes of a group, by their number; one that vanishes meanwhile is none."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            # State, parent and group follow the name in brackets; the exit code comes last of 50.
            fields = path.read_bytes().rpartition(b")")[2].split()
            if int(fields[2]) == group:
                found[int(path.parent.name)] = Process(fields[0].decode(), int(fields[49]))
    return found


def dead(group: int) -> bool:
    """Whether a process of the group came to a bad end while its leader goes on."""
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
    """End the child's whole group: ask, wait, insist.

    Python's tracker of shared memory is in the group: it outlives the question, to remove what the
    others left behind, and then goes by itself.
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
    """Send a signal to a group that may be gone."""
    with suppress(ProcessLookupError):
        os.killpg(group, demand)


def guard(folder: Path) -> None:
    """In the child: when the parent is gone, remove the folder and end the group.

    Standard input is a pipe from the parent, which ends with it however it ends.
    """

    def wait_for_parent() -> None:
        while os.read(0, 1):
            pass
        shutil.rmtree(folder, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGTERM)

    Thread(target=wait_for_parent, daemon=True).start()


def report(folder: Path, text: str) -> None:
    """In the child: say what went wrong, whole or not at all; what went wrong first remains."""
    draft = folder / f"{ERROR}.{os.getpid()}"
    draft.write_text(text)
    with suppress(FileExistsError):
        os.link(draft, folder / ERROR)
    draft.unlink()


def progress(folder: Path) -> Ints:
    """In the child: the numbers in the progress file; to write one is a sign of life."""
    return np.asarray(np.memmap(folder / PROGRESS, dtype=np.int64, mode="r+"))
