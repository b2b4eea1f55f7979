"""Estimates of time, memory and disk before a run; requests beyond the limits are refused.

Estimated times of simulations are for a slow machine; those of trainings are lower bounds. A
request that is estimated to take longer than a week must be confirmed (`--yes`, `allow_large`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from neuro_eqprop.files import deadlines
from neuro_eqprop.files.write import readable_bytes
from neuro_eqprop.simulators.base import STEP_COST
from neuro_eqprop.simulators.registry import BACKENDS
from neuro_eqprop.spiking.ir import SpikingNetwork

MAX_SECONDS = 7 * 86400.0
"""Longest estimated time of an unconfirmed request: a week."""
MAX_STEPS = 10**8
"""Most steps of a sample in an unconfirmed request."""
SLOWEST_RATE_STEP, UNIT_STEPS_PER_SECOND = 1e-3, 1e8
"""Overhead of a step of rates in seconds, and unit updates per second, on a slow machine."""
PRODUCTS_PER_SECOND = 1e12
"""MACs of a rate network per second, an upper bound."""

SHORTEST_DEADLINE, DEADLINE_FACTOR = 600.0, 10.0
"""Default deadline of a simulation: these seconds plus this multiple of its estimated time."""
DEADLINE_HELP = (
    "end a simulation after this many seconds (default: ten minutes and ten times the time "
    "estimated from samples, steps, neurons and synapses)"
)

ALLOWED: ContextVar[bool] = ContextVar("allowed", default=False)
"""Whether requests of any estimated time may run."""


class TooLargeError(ValueError):
    """A request exceeds the limits of time, steps or memory."""


@contextmanager
def allow_large(allowed: bool = True) -> Iterator[None]:
    """Allow requests of any estimated time in a context (`--yes`); memory stays limited."""
    token = ALLOWED.set(allowed)
    try:
        yield
    finally:
        ALLOWED.reset(token)


def memory() -> float:
    """Return the memory of this computer in bytes; inf if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def check_request(what: str, *, seconds: float = 0.0, held: float = 0.0, steps: int = 0) -> None:
    """Raise TooLargeError for a request beyond the limits.

    `what` names it in the message, `seconds` is its estimated time, `held` its estimated memory in
    bytes, `steps` the steps of a sample.
    """
    most = memory()
    if held > most:
        raise TooLargeError(
            f"{what} needs at least {readable_bytes(held)} of memory, and this computer has "
            f"{readable_bytes(most)}; request less"
        )
    if ALLOWED.get():
        return
    if steps > MAX_STEPS:
        raise TooLargeError(
            f"{what} has {steps:.3g} steps, more than {MAX_STEPS:.0e}; request fewer, or use "
            f"--yes (allow_large() in Python)"
        )
    if seconds > MAX_SECONDS:
        raise TooLargeError(
            f"{what} is estimated to take {duration(seconds)}, more than a week; request less, or "
            f"use --yes (allow_large() in Python)"
        )


def duration(seconds: float) -> str:
    """Format a time in days or years."""
    days = seconds / 86400
    return f"{days:.0f} days" if days < 1000 else f"{days / 365:.3g} years"


def rate_deadline(given: float | None) -> AbstractContextManager[object]:
    """Return a context with a deadline for settling rates, if one is given or requested."""
    seconds = given or deadlines.REQUESTED.get()
    return nullcontext() if seconds is None else deadlines.deadline(seconds, "settling the rates")


def estimated_seconds(name: str, network: SpikingNetwork, steps: float) -> float:
    """Estimate the seconds of a backend on a slow machine; `steps` are those of all samples."""
    constant, each = BACKENDS[name].step_cost if name in BACKENDS else STEP_COST
    size = sum(p.size for p in network.populations)
    size += sum(int(p.fan_out.sum()) for p in network.projections)
    return steps * (constant + each * size)


def simulation_deadline(
    name: str, network: SpikingNetwork, steps: float, given: float | None
) -> AbstractContextManager[object]:
    """Return a context with a deadline for a simulation.

    The default is `SHORTEST_DEADLINE` plus `DEADLINE_FACTOR` times the estimated time.
    """
    seconds = given or deadlines.REQUESTED.get()
    if seconds is None:
        if deadlines.CURRENT.get() is not None:  # set by an enclosing simulation
            return nullcontext()
        seconds = SHORTEST_DEADLINE + DEADLINE_FACTOR * estimated_seconds(name, network, steps)
    return deadlines.deadline(seconds, f"the simulation on {name}")


def check_simulation(name: str, network: SpikingNetwork, samples: int, steps: int) -> None:
    """Raise TooLargeError for a simulation that is too large for a backend."""
    seconds = estimated_seconds(name, network, float(samples) * steps)
    # The schedule has a row of 8 bytes for each step.
    check_request(f"the simulation on {name}", seconds=seconds, held=8.0 * steps, steps=steps)


def check_rates(samples: int, steps: int, units: int) -> None:
    """Raise TooLargeError for a recording of rates that is too large."""
    seconds = steps * (SLOWEST_RATE_STEP + samples * units / UNIT_STEPS_PER_SECOND)
    check_request("the recording of rates", seconds=seconds, held=8.0 * steps, steps=steps)


def check_epochs(
    epochs: int, batches: int, samples: int, products: float, *, held: float = 0.0
) -> None:
    """Raise TooLargeError for a training that is too long; `products` are the MACs of a sample.

    `held` are the bytes of its parameters.
    """
    seconds = epochs * samples * products / PRODUCTS_PER_SECOND
    # The learning rates of all batches are computed in advance.
    held += 32.0 * epochs * batches
    check_request(f"a training of {epochs} epochs", seconds=seconds, held=held)
