"""Tasks, their results, and the function that runs one task."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from neuro_eqprop.files.child import find_function

Json: TypeAlias = dict[str, Any]
PACKAGES = ("neuro_eqprop.", "sims.")
"""Prefixes of the modules that a task may name; `sims` stands beside the package in a clone."""


class ExecutorError(RuntimeError):
    """An executor can run no more tasks; the results already returned stay valid."""


@dataclass(frozen=True, slots=True)
class Task:
    """A call of a function with keyword arguments, all of them plain JSON values.

    Parameters
    ----------
    function : str
        "module:name" of a function, in this package or in `sims`, that returns a dict of JSON
        values.
    arguments : mapping
        Its keyword arguments.

    Examples
    --------
    >>> from neuro_eqprop.runs.executors import Task
    >>> task = Task("neuro_eqprop.runs.executors.probe:probe", {"do": "work", "seed": 1})
    >>> task.key == Task(task.function, {"seed": 1, "do": "work"}).key
    True
    """

    function: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """SHA-256 of function and arguments."""
        return sha256(canonical(self.to_json())).hexdigest()

    def to_json(self) -> Json:
        """The task as a JSON object."""
        return {"function": self.function, "arguments": dict(self.arguments)}


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The return value of a task, or its error."""

    task: Task
    values: Json = field(default_factory=dict)
    error: str | None = None
    seconds: float = 0.0
    """CPU time."""
    crashed: bool = False
    """Whether its process ended before the task did."""


class Executor(Protocol):
    """Interface of the executors."""

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Yield the results in order of completion; each task has `deadline` seconds."""
        ...


def canonical(values: Mapping[str, Any]) -> bytes:
    """Canonical JSON: equal content gives equal bytes."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def outcome_line(values: Json, error: str | None, seconds: float, **identity: Json) -> bytes:
    """The outcome of a task, with what identifies it, as a line of canonical JSON."""
    return canonical({**identity, "values": values, "error": error, "seconds": seconds}) + b"\n"


def run_task(task: Task) -> TaskResult:
    """Run a task on one thread, so that its result does not depend on other tasks.

    An exception becomes the error of the result, as "Type: message".
    """
    from threadpoolctl import threadpool_limits

    began, values, error = time.process_time(), Json(), None
    try:
        if not task.function.startswith(PACKAGES):
            raise ValueError(f"{task.function!r} is not a function of neuro_eqprop or sims")
        function = find_function(task.function)
        with threadpool_limits(limits=1), one_thread():
            values = function(**task.arguments)
            canonical(values)
    except Exception as fault:  # a failing task must not stop the others
        values, error = {}, f"{type(fault).__name__}: {fault}"
    return TaskResult(task, values, error, time.process_time() - began)


def run_described(described: Json) -> Json:
    """Run a task given as a JSON object; its values, error and CPU time."""
    done = run_task(Task(**described))
    return {"values": done.values, "error": done.error, "seconds": done.seconds}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, if it is imported.

    The module of the task has been imported before, and with it torch if the task needs it.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def deadline_result(task: Task, deadline: float) -> TaskResult:
    """The result of a task that exceeded the deadline."""
    reason = f"DeadlineError: it took longer than {deadline:g} s; use a longer deadline"
    return TaskResult(task, {}, reason, deadline)
