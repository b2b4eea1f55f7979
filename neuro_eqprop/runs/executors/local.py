"""Run tasks in this process or in worker processes, with equal results.

A task that fails, crashes or exceeds the deadline gives a result with an error.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread, current_thread, main_thread
from types import FrameType

from neuro_eqprop.files.child import Child, ChildEndedError
from neuro_eqprop.files.deadlines import DeadlineError
from neuro_eqprop.runs.executors.task import Task, TaskResult, deadline_result, run_task

RUN = "neuro_eqprop.runs.executors.task:run_described"
"""What a worker process calls for a task."""


@dataclass(frozen=True, slots=True)
class Serial:
    """Runs tasks one after the other in the main thread of this process."""

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Yield the results in the order of the tasks."""
        if current_thread() is not main_thread():
            raise RuntimeError(
                "the deadline needs a signal in the main thread; use worker processes instead"
            )
        for task in tasks:
            try:
                with alarm(deadline):
                    done = run_task(task)
            except DeadlineError:
                done = deadline_result(task, deadline)
            yield done


class Alarm(BaseException):
    """Raised by the signal handler; a BaseException, so that tasks do not catch it."""


@contextmanager
def alarm(deadline: float) -> Iterator[None]:
    """Raise DeadlineError in the context after `deadline` seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, deadline)
    try:
        yield
    except Alarm:
        raise DeadlineError from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True, slots=True)
class Processes:
    """Runs tasks in parallel in `workers` processes."""

    workers: int

    def run(self, tasks: Sequence[Task], *, deadline: float) -> Iterator[TaskResult]:
        """Yield the results in order of completion."""
        waiting: SimpleQueue[Task] = SimpleQueue()
        results: SimpleQueue[TaskResult | BaseException] = SimpleQueue()
        for task in tasks:
            waiting.put(task)
        over = Event()
        threads = [
            Thread(target=drive, args=(waiting, results, deadline, over), daemon=True)
            for _ in range(min(self.workers, len(tasks)))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in tasks:
                done = results.get()
                if isinstance(done, BaseException):
                    raise done
                yield done
        finally:
            over.set()
            for thread in threads:
                thread.join()


def drive(
    waiting: SimpleQueue[Task],
    results: SimpleQueue[TaskResult | BaseException],
    deadline: float,
    over: Event,
) -> None:
    """Run waiting tasks in one worker process, and replace it if it crashes."""
    worker: Child | None = None
    try:
        while not over.is_set():
            task = waiting.get_nowait()
            worker = worker if worker is not None and worker.alive else start_worker()
            results.put(run_in(worker, task, deadline, over))
    except Empty:
        pass
    except BaseException as error:
        results.put(error)
    finally:
        if worker is not None:
            worker.stop()


def start_worker() -> Child:
    """A worker process that is ready."""
    worker = Child()
    try:
        worker.call("neuro_eqprop.files.child:started")
    except ChildEndedError as error:
        raise RuntimeError(
            "a worker process could not be started; see its messages on standard error"
        ) from error
    return worker


def run_in(worker: Child, task: Task, deadline: float, over: Event | None = None) -> TaskResult:
    """Run a task in a worker process; it ends if `over` is set."""
    try:
        outcome = worker.call(RUN, task.to_json(), deadline=deadline, over=over)
    except TimeoutError:
        return deadline_result(task, deadline)
    except ChildEndedError as ended:
        crashed = f"the worker process crashed (exit code {ended.code})"
        return TaskResult(task, {}, crashed, crashed=True)
    return TaskResult(task, **outcome)


def run_in_new_worker(task: Task, deadline: float) -> TaskResult:
    """Run a task in a new worker process."""
    worker = start_worker()
    try:
        return run_in(worker, task, deadline)
    finally:
        worker.stop()
