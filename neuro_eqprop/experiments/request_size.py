"""Estimates of time, memory and disk before a run; requests beyond the limits are refused.

The estimates are lower bounds: a request that is refused would not have ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from neuro_eqprop.checked_files.write import readable_bytes

MAX_SECONDS = 7 * 86400.0
"""Longest estimated time of a request: a week."""
MAX_STEPS = 10**9
"""Most steps of a sample."""
UNIT_STEPS_PER_SECOND = 1e9
"""Steps of a neuron that the fastest simulator computes in a second, rounded up."""
PRODUCTS_PER_SECOND = 1e12
"""Multiplications of a rate network in a second, rounded up."""

ALLOWED: ContextVar[bool] = ContextVar("allowed", default=False)


class TooLargeError(ValueError):
    """A request would take longer, or more memory, than the limits allow."""


@contextmanager
def allow_large(allowed: bool = True) -> Iterator[None]:
    """A context in which requests of any estimated time run (`--yes`); memory stays limited."""
    token = ALLOWED.set(allowed)
    try:
        yield
    finally:
        ALLOWED.reset(token)


def memory() -> float:
    """Bytes of memory of this computer."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def check_request(what: str, *, seconds: float = 0.0, held: float = 0.0, steps: int = 0) -> None:
    """Raise TooLargeError for a request beyond the limits.

    `seconds` is its estimated time, `held` its estimated memory in bytes, `steps` those of
    a sample.
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
            f"{what} takes at least {duration(seconds)}, more than a week; request less, or use "
            f"--yes (allow_large() in Python)"
        )


def duration(seconds: float) -> str:
    """A time in days or years."""
    days = seconds / 86400
    return f"{days:.0f} days" if days < 1000 else f"{days / 365:.3g} years"


def check_simulation(samples: int, steps: int, units: int, recorded: int = 0) -> None:
    """Refuse samples of too many steps and neurons; `recorded` bytes are kept."""
    seconds = samples * steps * units / UNIT_STEPS_PER_SECOND
    held = recorded + 8.0 * steps  # a row of the schedule a step
    check_request("the simulation", seconds=seconds, held=held, steps=steps)


def check_epochs(epochs: int, batches: int, samples: int, products: float) -> None:
    """Refuse a training of too many epochs; `products` are the multiplications of a sample."""
    seconds = epochs * samples * products / PRODUCTS_PER_SECOND
    # The learning rates of all batches are computed first.
    check_request(f"a training of {epochs} epochs", seconds=seconds, held=32.0 * epochs * batches)
