"""Carry out cells here, in worker processes, or on a Dask cluster: the same results everywhere.

Each cell runs on one thread, so its bits depend on nothing but its configuration. A cell that
fails, dies or takes longer than the deadline becomes an outcome with an error.
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

from neuro_eqprop.claims.claim import Cell, Outcome
from neuro_eqprop.claims.registry import perform
from neuro_eqprop.claims.worker import READY, pack, unpack

WORKER = (sys.executable, "-m", "neuro_eqprop.claims.worker")


class Executor(Protocol):
    """Something that carries out cells."""

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[Outcome]:
        """The outcomes as they come, in any order; `deadline` is in seconds for each cell."""
        ...


class DeadlineError(RuntimeError):
    """A cell took too long."""


def late(cell: Cell, deadline: float) -> Outcome:
    """What is recorded of a cell that took too long."""
    words = f"DeadlineError: the cell took longer than {deadline:g} s; give it more or ask for less"
    return Outcome(cell, {}, words, deadline)


@dataclass(frozen=True, slots=True)
class Serial:
    """One after the other, in this process and its main thread."""

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[Outcome]:
        """The outcomes in the order of the cells."""
        if current_thread() is not main_thread():
            raise RuntimeError("cells are stopped by a signal here; use worker processes instead")
        for cell in cells:
            try:
                with alarm(deadline):
                    done = perform(cell)
            except DeadlineError:
                done = late(cell, deadline)
            yield done


class Alarm(BaseException):
    """Passes through every `except Exception` of the work it interrupts."""


@contextmanager
def alarm(deadline: float) -> Iterator[None]:
    """Stop what is inside after `deadline` seconds."""

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
    """Side by side in so many worker processes of this machine."""

    workers: int

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[Outcome]:
        """The outcomes as they come."""
        orders: SimpleQueue[Cell] = SimpleQueue()
        results: SimpleQueue[Outcome | BaseException] = SimpleQueue()
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
    results: SimpleQueue[Outcome | BaseException],
    deadline: float,
    over: Event,
) -> None:
    """Hand cells to one worker process until none is left; a dead worker is replaced."""
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
        """A new one; interrupts from the keyboard are its parent's to handle."""
        piped = subprocess.PIPE
        made = cls(subprocess.Popen(WORKER, stdin=piped, stdout=piped, start_new_session=True))
        if made.process.stdout is None or made.process.stdout.readline() != READY:
            made.stop()
            raise RuntimeError("a worker process could not be started; standard error says why")
        return made

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def work(self, cell: Cell, deadline: float, over: Event) -> Outcome:
        """Have a cell carried out."""
        timer, ended = Timer(deadline, self.process.kill), Event()
        Thread(target=self.follow, args=(over, ended), daemon=True).start()
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
            rang = not timer.is_alive()
            timer.cancel()
            ended.set()
        if line.endswith(b"\n"):
            return unpack(line, cell)
        code = self.process.wait()
        if rang:
            return late(cell, deadline)
        return Outcome(cell, {}, f"the worker process died (code {code}) in this cell")

    def follow(self, over: Event, ended: Event) -> None:
        """End the process if all is over while it works."""
        while not ended.wait(0.1):
            if over.is_set():
                self.process.kill()
                return

    def stop(self) -> None:
        """End it, and take it off the books."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def alone(cell: Cell, deadline: float) -> Outcome:
    """Carry out a cell in a worker process of its own."""
    worker = Worker.start()
    try:
        return worker.work(cell, deadline, Event())
    finally:
        worker.stop()


@dataclass(frozen=True, slots=True)
class Dask:
    """On the Dask cluster whose scheduler has this address; it needs the extra `cluster`."""

    scheduler: str

    def run(self, cells: Sequence[Cell], *, deadline: float) -> Iterator[Outcome]:
        """The outcomes as they come."""
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            raise RuntimeError(
                "a cluster needs Dask; install it with `pip install neuro_eqprop[cluster]`, or "
                "leave --scheduler out"
            ) from error
        with Client(self.scheduler) as client:
            futures = {client.submit(alone, cell, deadline, pure=False): cell for cell in cells}
            for future in as_completed(list(futures)):
                if future.status == "finished":
                    yield future.result()
                else:
                    words = f"the cluster lost the cell: {future.exception()}"
                    yield Outcome(futures[future], {}, words)
