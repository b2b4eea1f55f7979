"""A worker process that runs tasks: a line of JSON in, a line of JSON out.

It reads tasks from standard input until that ends. Output of tasks goes to standard error, so that
it cannot be mistaken for a result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO

from neuro_eqprop.checked_files import isolated
from neuro_eqprop.executors.task import Task, TaskResult, canonical, run_task

READY = b"ready\n"
"""The first line of a worker."""


def command() -> tuple[str, ...]:
    """The command that starts a worker of this process."""
    return tuple(isolated.command("neuro_eqprop.executors.worker:main", str(os.getpid())))


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


def main(parent: str) -> None:
    """Serve, with standard output reserved for results."""
    isolated.die_with_parent(int(parent))
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results.write(READY)
    results.flush()
    serve(sys.stdin.buffer, results)
