"""Deadlines of simulations: one that hangs or takes too long ends with an error.

A simulator calls `check` between steps. A compiled loop reads `stop_flag` instead, which a timer
sets at the deadline and the command line at a signal; it returns early, and its caller checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from weakref import WeakSet

import numpy as np

from neuro_eqprop.common.arrays import Ints

GRACE = 4.0
"""Seconds from a deadline until a process that does not end by itself is terminated."""


class DeadlineError(RuntimeError):
    """A simulation took longer than its deadline."""


@dataclass(eq=False, frozen=True)
class Deadline:
    """A time limit of a simulation or training."""

    seconds: float
    what: str
    until: float
    flag: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """Set to one when a compiled loop has to return."""

    @property
    def sentence(self) -> str:
        """The message of its error."""
        return (
            f"{self.what} was ended at its deadline of {self.seconds:.3g} s; request less, or give "
            "a longer `deadline`"
        )


CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
REQUESTED: ContextVar[float | None] = ContextVar("requested", default=None)
"""Seconds for each simulation without a deadline argument, as `--deadline` sets them."""
WITHOUT = Deadline(float("inf"), "work without a deadline", float("inf"))
ACTIVE: WeakSet[Deadline] = WeakSet((WITHOUT,))
end_process: list[Callable[[str], None]] = []
"""Functions that the command line calls for a process that does not end at its deadline."""


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[Deadline]:
    """A context that has to end within `seconds`; an earlier deadline of an outer context holds."""
    if not seconds > 0:
        raise ValueError(f"`deadline` must be above zero, not {seconds}")
    outer = CURRENT.get()
    until = monotonic() + seconds
    if outer is not None and outer.until <= until:
        yield outer
        return
    made, over = Deadline(seconds, what, until), Event()
    ACTIVE.add(made)
    token = CURRENT.set(made)
    timer = Thread(target=wait, args=(made, over), daemon=True)
    timer.start()
    try:
        yield made
    finally:
        over.set()
        CURRENT.reset(token)
        ACTIVE.discard(made)


def wait(limit: Deadline, over: Event) -> None:
    """Stop compiled loops at the deadline; in a command, end a process that hangs after it."""
    if over.wait(min(limit.seconds, 1e8)):
        return
    limit.flag[0] = 1
    if not over.wait(GRACE):
        for end in end_process:
            end(limit.sentence)


def current() -> Deadline:
    """The deadline of this context; `WITHOUT` if there is none."""
    return CURRENT.get() or WITHOUT


def check(limit: Deadline | None = None) -> None:
    """Raise DeadlineError after the deadline, and KeyboardInterrupt after a signal."""
    limit = limit or current()
    if monotonic() >= limit.until:
        raise DeadlineError(limit.sentence)
    if limit.flag[0]:
        raise KeyboardInterrupt


def stop_compiled_loops(stop: bool = True) -> None:
    """Make the compiled loops of all threads return, as after a signal; False undoes it."""
    for limit in list(ACTIVE):
        limit.flag[0] = int(stop)
