"""A worker process that runs tasks: a line of JSON in, a line of JSON out.

It reads tasks from standard input until that ends. Output of tasks goes to standard error, so that
it cannot be mistaken for a result.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import IO

from neuro_eqprop.executors.task import Task, TaskResult, canonical, run_task

READY = b"ready\n"
"""The first line of a worker."""
START = (
    "import sys; sys.path = [place for place in sys.path if place]; "
    "from neuro_eqprop.executors.worker import main; main(int(sys.argv[1]))"
)
"""The program of a worker. The current folder is not on its path, so no code from there runs."""
PR_SET_PDEATHSIG = 1


def command() -> tuple[str, ...]:
    """The command that starts a worker of this process."""
    return (sys.executable, "-c", START, str(os.getpid()))


def pack(task: Task) -> bytes:
    """A task as a line of JSON."""
    return canonical(task.to_json()) + b"\n"


def unpack(line: bytes, task: Task) -> TaskResult:
    """The result in a line of JSON."""
    reply = json.loads(line)
    return TaskResult(task, reply["values"], reply["error"], reply["seconds"])


def serve(tasks: IO[bytes], results: IO[bytes]) -> None:
    """Run one task after another."""
    for line in tasks:
        done = run_task(Task(**json.loads(line)))
        reply = {"values": done.values, "error": done.error, "seconds": done.seconds}
        results.write(canonical(reply) + b"\n")
        results.flush()


def end_with(parent: int) -> None:
    """End this process when its parent ends, even while it computes (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def main(parent: int) -> None:
    """Serve, with standard output reserved for results."""
    end_with(parent)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results.write(READY)
    results.flush()
    serve(sys.stdin.buffer, results)
