"""The phases of an episode, and the contrast between them that learning uses.

The same schedule drives the solve of a rate network, the run of a spiking network, the columns
of a trace, and the sign of the learning rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of `steps` at one nudging strength; rates are measured in its last `window`."""

    name: str
    beta: float
    steps: int
    window: int

    def __post_init__(self) -> None:
        if not isfinite(self.beta):
            raise ValueError(f"phase {self.name!r} has a beta of {self.beta}; it must be finite")
        if self.steps < 1:
            raise ValueError(f"phase {self.name!r} has {self.steps} steps; it needs at least one")
        if not 1 <= self.window <= self.steps:
            raise ValueError(
                f"phase {self.name!r}: {self.window} is no window within {self.steps} steps"
            )


Schedule: TypeAlias = tuple[Phase, ...]

TAIL = 0.75
"""The part of a phase over which a firing rate is averaged, unless the schedule says otherwise."""


def tail(steps: int, part: float = TAIL) -> int:
    """The window of a phase: its last `part`, at least one step."""
    return max(1, ceil(steps * part))


def free_only(*, steps: int, window: int) -> Schedule:
    """Inference: one phase without a nudge."""
    return (Phase("free", 0.0, steps, window),)


def two_phase(*, beta: float, free: int, nudged: int, part: float = TAIL) -> Schedule:
    """One-sided nudging: free, then pulled towards the target (or away, for a negative beta)."""
    return (
        Phase("free", 0.0, free, tail(free, part)),
        Phase("nudged", beta, nudged, tail(nudged, part)),
    )


def three_phase(*, beta: float, free: int, nudged: int, part: float = TAIL) -> Schedule:
    """Centered nudging: free, then pulled away from the target, then towards it."""
    return (
        Phase("free", 0.0, free, tail(free, part)),
        Phase("negative", -beta, nudged, tail(nudged, part)),
        Phase("positive", beta, nudged, tail(nudged, part)),
    )


def contrast(schedule: Schedule) -> dict[str, float]:
    """The weight of each phase in the learning rule.

    With gap = highest beta - lowest beta: +1/gap for the highest, -1/gap for the lowest, 0 between.
    Phases of equal beta share their weight, so that the weights sum to zero.
    """
    names = [phase.name for phase in schedule]
    if len(set(names)) != len(names):
        raise ValueError(f"two phases share a name in {names}")
    betas = [phase.beta for phase in schedule]
    high, low = max(betas), min(betas)
    if high == low:
        raise ValueError("a schedule without two different betas has no contrast to learn from")
    up, down = (high - low) * betas.count(high), (high - low) * betas.count(low)
    return {
        phase.name: (phase.beta == high) / up - (phase.beta == low) / down for phase in schedule
    }
