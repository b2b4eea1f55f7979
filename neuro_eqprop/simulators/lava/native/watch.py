"""Runs of Lava graphs that end with an error, where Lava itself would wait for ever.

Lava does not notice a process that failed or that waits for a message which nobody sends. Before
the processes start, `watching` lets every process model count its steps in memory that all of them
share. A run that makes no step for a while is ended, and the error names the process that stands
still. At the end of a program, networks that still run are stopped. This module needs lava-nc
alone.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

import atexit
import gc
import mmap
import multiprocessing.util  # noqa: F401  (registers its handler, before which ours must run)
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from threading import Lock, Thread
from typing import Any

import numpy as np

RUNTIME = "lava.magma.runtime.runtime"
SILENCE = 60.0
"""Seconds without a step after which a run is ended."""
GRACE = 5.0
"""Seconds that a graph has to stop by itself when the program ends."""
POLL = 0.1
"""Seconds between two looks at a run."""
FOLLOWED = ("stop", "get_var", "set_var")
"""Methods of a runtime that wait for its processes, for ever if one has failed."""
STEPS, BUSY, WAITS = range(3)
"""Columns of the shared memory: steps begun, whether a step is under way, whether it waits."""


class StepCounts:
    """Steps of each process of a graph, in memory that the processes share."""

    def __init__(self, processes: int) -> None:
        self.rows = np.frombuffer(mmap.mmap(-1, 24 * max(1, processes)), np.int64).reshape(-1, 3)
        self.own: Any = None
        """The row of the process that this is."""

    def counted(self, spike: Callable[[Any], None], first: int) -> Callable[[Any], None]:
        """Lava's step of a process model, which is counted; `first` is the least process id."""

        def counted_step(model: Any) -> None:  # noqa: ANN401
            self.own = self.rows[model.model_id - first]
            self.own[STEPS] += 1
            self.own[BUSY] = 1
            spike(model)
            self.own[BUSY] = 0

        return counted_step

    def marked(self, get: Callable[..., Any]) -> Callable[..., Any]:
        """Lava's wait for a message, which is marked."""

        def marked_wait(queue: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            if self.own is None:
                return get(queue, *arguments, **options)
            self.own[WAITS] += 1
            try:
                return get(queue, *arguments, **options)
            finally:
                self.own[WAITS] -= 1

        return marked_wait


@contextmanager
def watching(executable: Any) -> Iterator[StepCounts]:  # noqa: ANN401
    """Count the steps of processes that are started meanwhile."""
    from lava.magma.compiler.channels.pypychannel import CspRecvQueue
    from lava.magma.core.model.py.model import PyLoihiProcessModel

    ids = [process.id for process in executable.proc_builders]
    counts = StepCounts(max(ids) - min(ids) + 1)
    spike, get = PyLoihiProcessModel._spike, CspRecvQueue.get
    PyLoihiProcessModel._spike = counts.counted(spike, min(ids))
    CspRecvQueue.get = counts.marked(get)
    try:
        yield counts
    finally:
        PyLoihiProcessModel._spike, CspRecvQueue.get = spike, get


def run_watched(
    process: Any,  # noqa: ANN401
    condition: Any,  # noqa: ANN401
    run_cfg: Any = None,  # noqa: ANN401
    compile_config: Any = None,  # noqa: ANN401
    *,
    timeout: float | None = SILENCE,
) -> None:
    """Run the graph of a process as `process.run` does, and end it where it stands still."""
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be above zero, not {timeout}")
    end_networks_at_exit()
    runtime = process.runtime
    if runtime is None:
        if run_cfg is None:
            raise ValueError("the first run of a graph needs run_cfg, a run configuration of Lava")
        executable = process.compile(run_cfg, compile_config)
        with watching(executable) as counts:
            process.create_runtime(executable=executable)
        runtime = process.runtime
        runtime.step_counts = counts
        for name in FOLLOWED:
            setattr(runtime, name, partial(follow, runtime, getattr(runtime, name)))
    elif has_stopped(runtime):
        raise RuntimeError(
            "this graph was stopped, and Lava cannot start it again; make its processes anew"
        )
    for actor in actors_of(runtime):
        if not hasattr(actor, "joining"):
            actor.joining = Lock()
            actor.join = partial(join_alone, actor, actor.join)
    follow(runtime, runtime.start, condition, timeout=timeout)


def has_stopped(runtime: Any) -> bool:  # noqa: ANN401
    """Whether `stop` was called on a runtime."""
    return any(actor._is_done for actor in actors_of(runtime))


def actors_of(runtime: Any) -> list[Any]:  # noqa: ANN401
    """The operating-system processes of a runtime."""
    infrastructure = runtime._messaging_infrastructure
    return [] if infrastructure is None else list(infrastructure.actors)


def follow(
    runtime: Any,  # noqa: ANN401
    call: Callable[..., Any],
    *arguments: Any,  # noqa: ANN401
    timeout: float | None = None,
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Call a method of a runtime in a thread; end it if a process fails, or none makes a step."""
    if sys.is_finalizing() or has_stopped(runtime):  # no thread starts while Python ends
        return call(*arguments, **options)
    results: list[Any] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call(*arguments, **options))
        except BaseException as error:
            failures.append(error)

    running = Thread(target=run, daemon=True)
    running.start()
    counts: StepCounts | None = getattr(runtime, "step_counts", None)
    done, since = -1, time.monotonic()
    while True:
        running.join(POLL)
        failed = [actor for actor in actors_of(runtime) if has_failed(actor)]
        if failed:
            message = reason_of(runtime, failed[0])
            end_runtime(runtime)
            raise RuntimeError(message)
        if not running.is_alive():
            break
        steps = done if counts is None else int(counts.rows[:, STEPS].sum())
        if steps != done:
            done, since = steps, time.monotonic()
        elif timeout is not None and counts is not None and time.monotonic() - since > timeout:
            message = standing_still(runtime, counts, timeout)
            end_runtime(runtime)
            raise TimeoutError(message)
    if failures:
        raise failures[0]
    return results[0]


def join_alone(actor: Any, join: Callable[[], None]) -> None:  # noqa: ANN401
    """Join a process while no other thread asks for its end."""
    with actor.joining:
        join()


def has_failed(actor: Any) -> bool:  # noqa: ANN401
    """Whether a process of the graph raised an error or was killed."""
    if not actor.joining.acquire(blocking=False):  # the thread of `follow` joins it now
        return False
    try:
        return not actor._is_done and (
            actor.exception is not None or actor.exitcode not in (None, 0)
        )
    finally:
        actor.joining.release()


def processes_of(runtime: Any) -> dict[int, Any]:  # noqa: ANN401
    """The Lava processes of a runtime by their number."""
    return {process.id: process for process in runtime._executable.proc_builders}


def described(process: Any) -> str:  # noqa: ANN401
    """A process by its name and class."""
    return f"{process.name} ({type(process).__name__})"


def reason_of(runtime: Any, actor: Any) -> str:  # noqa: ANN401
    """Which process failed, and why."""
    # Lava starts the processes in this order, and those of its runtime after them.
    processes, place = list(processes_of(runtime).values()), actors_of(runtime).index(actor)
    known = place < len(processes)
    name = described(processes[place]) if known else "a process of Lava's runtime"
    if actor.exception is None:
        return (
            f"{name} was ended by signal {-actor.exitcode}"
            if (actor.exitcode < 0)
            else f"{name} ended with code {actor.exitcode}"
        )
    error, trace = actor.exception
    return f"{name} failed: {type(error).__name__}: {error}\n{trace}"


def standing_still(runtime: Any, counts: StepCounts, timeout: float) -> str:  # noqa: ANN401
    """The sentence for a run in which nothing moves."""
    processes = processes_of(runtime)
    first = min(processes)
    rows = {process: counts.rows[number - first] for number, process in processes.items()}
    busy = [p for p, row in rows.items() if row[BUSY] and not row[WAITS]]
    waiting = [p for p, row in rows.items() if row[BUSY] and row[WAITS]]
    begun = max(int(row[STEPS]) for row in rows.values())
    behind = [p for p, row in rows.items() if not row[BUSY] and row[STEPS] < begun]
    where = f"no step for {timeout:g} s, in step {begun}: "
    if busy:
        return where + f"{names(busy)} does not finish its step"
    if waiting:
        return where + f"{names(waiting)} waits for a message that does not come"
    return where + (f"{names(behind)} did not begin" if behind else "the runtime waits")


def names(processes: list[Any]) -> str:
    """The names of processes in a sentence."""
    return ", ".join(map(described, processes))


def watch(process: Any, timeout: float | None = SILENCE) -> Any:  # noqa: ANN401
    """Let `process.run` end with an error where a graph of Lava stands still or fails.

    Parameters
    ----------
    process : AbstractProcess
        Any process of a Lava graph; runs that it starts are watched.
    timeout : float, optional
        Seconds without a step after which a run is ended with a `TimeoutError` that names the
        process that stands still; None waits for ever. A process that fails ends the run at once,
        with a `RuntimeError`.

    Returns
    -------
    AbstractProcess
        The process.

    Examples
    --------
    >>> from neuro_eqprop.lava import watch
    >>> watch(sink, timeout=10).run(RunSteps(100), Loihi2SimCfg())  # doctest: +SKIP
    """
    process.run = partial(run_watched, process, timeout=timeout)
    return process


def is_own(actor: Any) -> bool:  # noqa: ANN401
    """Whether a process of a network is a child of this one, and was not joined yet."""
    return actor._parent_pid == os.getpid() and not actor._is_done


def end_runtime(runtime: Any, *, stop_first: bool = False, grace: float = GRACE) -> None:  # noqa: ANN401
    """End the processes of a runtime: by its `stop` where that works, else by killing them."""
    actors = [actor for actor in actors_of(runtime) if is_own(actor)]
    if not actors:
        return
    if stop_first and runtime._is_started and all(actor.is_alive() for actor in actors):
        stopping = Thread(target=stop_quietly, args=(runtime,), daemon=True)
        stopping.start()
        stopping.join(grace)
    runtime._is_started = runtime._is_running = False  # else it is stopped again
    for actor in filter(is_own, actors):
        with suppress(Exception):  # the runtime may join it, too
            actor.kill()
            actor.join()
    with suppress(Exception):  # it has ended, or its process was killed
        runtime._messaging_infrastructure.smm.shutdown()


def stop_quietly(runtime: Any) -> None:  # noqa: ANN401
    """Stop a runtime; what goes wrong is of no interest any more."""
    with suppress(Exception):
        type(runtime).stop(runtime)


@cache
def end_networks_at_exit() -> None:
    """Register `end_networks` for the end of the program, once."""
    atexit.register(end_networks)


def end_networks() -> None:
    """Stop the Lava networks of this process that still run, and kill what does not stop.

    Without this a program that ends between `run` and `stop`, by an error or by `sys.exit`, waits
    for ever: multiprocessing joins the processes of the network, and they wait for a message.
    """
    for runtime in runtimes():
        end_runtime(runtime, stop_first=True)


def runtimes() -> list[Any]:
    """Every runtime of Lava in this process whose processes were started."""
    module = sys.modules.get(RUNTIME)
    if module is None:
        return []
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is module.Runtime and thing._messaging_infrastructure is not None
    ]
