"""A worker process: reads tasks from standard input and writes results to standard output.

Each task and each result is a line of JSON. The process ends with its standard input. What tasks
print goes to standard error, so that it cannot be mistaken for a result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO

from neuro_eqprop.files import isolated
from neuro_eqprop.runs.executors.task import Task, TaskResult, canonical, outcome_line, run_task

READY = b"ready\n"
"""The first line that a worker writes."""


def command() -> tuple[str, ...]:
    """The command that starts a worker, which ends with this process."""
    return tuple(isolated.command("neuro_eqprop.runs.executors.worker:main", str(os.getpid())))


def pack(task: Task) -> bytes:
    """A task as a line of JSON."""
    return canonical(task.to_json()) + b"\n"


def unpack(line: bytes, task: Task) -> TaskResult:
    """The result of a task from a line of JSON."""
    reply = json.loads(line)
    return TaskResult(task, reply["values"], reply["error"], reply["seconds"])


def serve(tasks: IO[bytes], results: IO[bytes]) -> None:
    """Run the tasks one by one and write their results."""
    for line in tasks:
        done = run_task(Task(**json.loads(line)))
        results.write(outcome_line(done.values, done.error, done.seconds))
        results.flush()


def main(parent: str) -> None:
    """Run a worker, with standard output reserved for results."""
    isolated.die_with_parent(int(parent))
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results.write(READY)
    results.flush()
    serve(sys.stdin.buffer, results)
