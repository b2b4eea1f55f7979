"""Run tasks in this process or in worker processes, with equal results.

A task that fails, crashes or exceeds the deadline gives a result with an error.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread, Timer, current_thread, main_thread
from types import FrameType

from neuro_eqprop.files.deadlines import DeadlineError
from neuro_eqprop.runs.executors.task import Task, TaskResult, deadline_result, run_task
from neuro_eqprop.runs.executors.worker import READY, command, pack, unpack


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
    worker: Worker | None = None
    try:
        while not over.is_set():
            task = waiting.get_nowait()
            if worker is not None and not worker.alive:
                worker.stop()
                worker = None
            worker = worker or Worker.start()
            results.put(worker.work(task, deadline, over))
    except Empty:
        pass
    except BaseException as error:
        results.put(error)
    finally:
        if worker is not None:
            worker.stop()


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process."""

    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls) -> Worker:
        """Start a process in its own session, so that the parent handles keyboard interrupts."""
        piped = subprocess.PIPE
        made = cls(subprocess.Popen(command(), stdin=piped, stdout=piped, start_new_session=True))
        if made.process.stdout is None or made.process.stdout.readline() != READY:
            made.stop()
            raise RuntimeError(
                "a worker process could not be started; see its messages on standard error"
            )
        return made

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def work(self, task: Task, deadline: float, over: Event) -> TaskResult:
        """Run a task in the process."""
        timer, ended = Timer(deadline, self.process.kill), Event()
        Thread(target=self.kill_when_over, args=(over, ended), daemon=True).start()
        timer.start()
        line = b""
        try:
            if self.process.stdin is not None and self.process.stdout is not None:
                self.process.stdin.write(pack(task))
                self.process.stdin.flush()
                line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        finally:
            expired = not timer.is_alive()
            timer.cancel()
            ended.set()
        if line.endswith(b"\n"):
            return unpack(line, task)
        code = self.process.wait()
        if expired:
            return deadline_result(task, deadline)
        return TaskResult(task, {}, f"the worker process crashed (exit code {code})")

    def kill_when_over(self, over: Event, ended: Event) -> None:
        """Kill the process if `over` is set before the task has ended."""
        while not ended.wait(0.1):
            if over.is_set():
                self.process.kill()
                return

    def stop(self) -> None:
        """Kill the process and release its resources."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def run_in_new_worker(task: Task, deadline: float) -> TaskResult:
    """Run a task in a new worker process."""
    worker = Worker.start()
    try:
        return worker.work(task, deadline, Event())
    finally:
        worker.stop()
