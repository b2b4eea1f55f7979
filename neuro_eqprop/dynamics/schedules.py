"""The phases of a training step, and their coefficients in the learning rule.

The same schedule is used to solve a rate network, to run a spiking network, to index a trace and to
compute the update.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite
from numbers import Integral
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class Phase:
    """`steps` at nudging strength `beta`; firing rates are averaged over the last `window`."""

    name: str
    beta: float
    steps: int
    window: int

    def __post_init__(self) -> None:
        if not isfinite(self.beta):
            raise ValueError(f"phase {self.name!r} has beta {self.beta}; it must be finite")
        check_steps(self.steps)
        if self.steps < 1:
            raise ValueError(f"phase {self.name!r} has {self.steps} steps; it needs at least one")
        if not 1 <= self.window <= self.steps:
            raise ValueError(
                f"phase {self.name!r}: window must be 1 to {self.steps} steps, not {self.window}"
            )


Schedule: TypeAlias = tuple[Phase, ...]

DT = 1e-3
"""Default duration of a step in seconds."""
TAIL = 0.75
"""Default share of a phase over which firing rates are averaged."""


class PhaseStep(NamedTuple):
    """One step of a schedule."""

    phase: int
    """Index of its phase."""
    beta: float
    in_window: bool
    """Whether firing rates are averaged over it."""


def phase_steps(schedule: Schedule) -> tuple[PhaseStep, ...]:
    """The steps of a schedule, in their order."""
    return tuple(
        PhaseStep(k, phase.beta, step >= phase.steps - phase.window)
        for k, phase in enumerate(schedule)
        for step in range(phase.steps)
    )


def check_steps(steps: object) -> None:
    """Raise ValueError unless the number of steps is an integer."""
    if not isinstance(steps, Integral):
        raise ValueError(f"steps must be an integer such as 32, not {steps!r}")


def tail(steps: int, part: float = TAIL) -> int:
    """Steps in the last `part` of a phase, at least one."""
    check_steps(steps)
    return max(1, ceil(steps * part))


def free_only(*, steps: int, window: int) -> Schedule:
    """One free phase, for inference."""
    return (Phase("free", 0.0, steps, window),)


def two_phase(*, beta: float, free: int, nudged: int, part: float = TAIL) -> Schedule:
    """One-sided nudging: a free phase, then one at beta (Scellier & Bengio 2017)."""
    return (
        Phase("free", 0.0, free, tail(free, part)),
        Phase("nudged", beta, nudged, tail(nudged, part)),
    )


def three_phase(*, beta: float, free: int, nudged: int, part: float = TAIL) -> Schedule:
    """Centered nudging: a free phase, then -beta, then +beta (Laborieux et al. 2021)."""
    return (
        Phase("free", 0.0, free, tail(free, part)),
        Phase("negative", -beta, nudged, tail(nudged, part)),
        Phase("positive", beta, nudged, tail(nudged, part)),
    )


def contrast(schedule: Schedule) -> dict[str, float]:
    """The coefficient c of each phase in the learning rule.

    With gap = highest beta - lowest beta, c is +1/gap for the highest, -1/gap for the lowest and 0
    for others: a finite difference of the update by beta. Phases of equal beta share their
    coefficient, so that the coefficients sum to zero.
    """
    names = [phase.name for phase in schedule]
    if len(set(names)) != len(names):
        raise ValueError(f"phase names are not unique: {names}")
    betas = [phase.beta for phase in schedule]
    high, low = max(betas), min(betas)
    if high == low:
        raise ValueError("a schedule needs phases with two different betas to have a contrast")
    up, down = (high - low) * betas.count(high), (high - low) * betas.count(low)
    return {
        phase.name: (phase.beta == high) / up - (phase.beta == low) / down for phase in schedule
    }
