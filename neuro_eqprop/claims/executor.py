"""Run cells in this process, in worker processes or on a Dask cluster, with equal results.

Each cell runs on one thread, so its result depends on its configuration alone. A cell that fails,
crashes or exceeds the deadline gives a result with an error.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread, Timer, current_thread, main_thread
from types import FrameType
from typing import Protocol

from neuro_eqprop.claims.claim import Cell, CellResult
from neuro_eqprop.claims.registry import run_cell
from neuro_eqprop.claims.worker import READY, pack, unpack

WORKER = (sys.executable, "-m", "neuro_eqprop.claims.worker")


class Executor(Protocol):
    """Runs cells."""

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[CellResult]:
        """The results in order of completion; `deadline` is in seconds for each cell."""
        ...


class DeadlineError(RuntimeError):
    """A cell exceeded the deadline."""


def deadline_result(cell: Cell, deadline: float) -> CellResult:
    """The result of a cell that exceeded the deadline."""
    words = (
        f"DeadlineError: the cell took longer than {deadline:g} s; use a longer deadline or a "
        f"smaller budget"
    )
    return CellResult(cell, {}, words, deadline)


@dataclass(frozen=True, slots=True)
class Serial:
    """Runs cells one after the other in the main thread of this process."""

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[CellResult]:
        """The results in the order of the cells."""
        if current_thread() is not main_thread():
            raise RuntimeError(
                "the deadline needs a signal in the main thread; use worker processes instead"
            )
        for cell in cells:
            try:
                with alarm(deadline):
                    done = run_cell(cell)
            except DeadlineError:
                done = deadline_result(cell, deadline)
            yield done


class Alarm(BaseException):
    """Raised by the signal; not caught by `except Exception` in the interrupted code."""


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
    """Runs cells in parallel in `workers` processes."""

    workers: int

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[CellResult]:
        """The results in order of completion."""
        orders: SimpleQueue[Cell] = SimpleQueue()
        results: SimpleQueue[CellResult | BaseException] = SimpleQueue()
        for cell in cells:
            orders.put(cell)
        over = Event()
        threads = [
            Thread(target=drive, args=(orders, results, deadline, over), daemon=True)
            for _ in range(min(self.workers, len(cells)))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in cells:
                done = results.get()
                if isinstance(done, BaseException):
                    raise done
                yield done
        finally:
            over.set()
            for thread in threads:
                thread.join()


def drive(
    orders: SimpleQueue[Cell],
    results: SimpleQueue[CellResult | BaseException],
    deadline: float,
    over: Event,
) -> None:
    """Feed one worker process until no cell is left; a crashed worker is replaced."""
    worker: Worker | None = None
    try:
        while not over.is_set():
            cell = orders.get_nowait()
            if worker is not None and not worker.alive:
                worker.stop()
                worker = None
            worker = worker or Worker.start()
            results.put(worker.work(cell, deadline, over))
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
        made = cls(subprocess.Popen(WORKER, stdin=piped, stdout=piped, start_new_session=True))
        if made.process.stdout is None or made.process.stdout.readline() != READY:
            made.stop()
            raise RuntimeError("a worker process could not be started; standard error says why")
        return made

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def work(self, cell: Cell, deadline: float, over: Event) -> CellResult:
        """Run a cell in the process."""
        timer, ended = Timer(deadline, self.process.kill), Event()
        Thread(target=self.kill_when_over, args=(over, ended), daemon=True).start()
        timer.start()
        line = b""
        try:
            if self.process.stdin is not None and self.process.stdout is not None:
                self.process.stdin.write(pack(cell))
                self.process.stdin.flush()
                line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        finally:
            expired = not timer.is_alive()
            timer.cancel()
            ended.set()
        if line.endswith(b"\n"):
            return unpack(line, cell)
        code = self.process.wait()
        if expired:
            return deadline_result(cell, deadline)
        return CellResult(cell, {}, f"the worker process crashed in this cell (exit code {code})")

    def kill_when_over(self, over: Event, ended: Event) -> None:
        """Kill the process if `over` is set before the cell has ended."""
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


def run_in_new_worker(cell: Cell, deadline: float) -> CellResult:
    """Run a cell in a new worker process."""
    worker = Worker.start()
    try:
        return worker.work(cell, deadline, Event())
    finally:
        worker.stop()


@dataclass(frozen=True, slots=True)
class Dask:
    """Runs cells on a Dask cluster with this scheduler address; needs the extra `cluster`."""

    scheduler: str

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[CellResult]:
        """The results in order of completion."""
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            raise RuntimeError(
                "a cluster needs Dask; install it with `pip install neuro_eqprop[cluster]`, or "
                "leave --scheduler out"
            ) from error
        with Client(self.scheduler) as client:
            futures = {
                client.submit(run_in_new_worker, cell, deadline, pure=False): cell for cell in cells
            }
            for future in as_completed(list(futures)):
                if future.status == "finished":
                    yield future.result()
                else:
                    words = f"the cluster lost the cell: {future.exception()}"
                    yield CellResult(futures[future], {}, words)
