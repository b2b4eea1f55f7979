"""Lengths of the learning phases, and their schedule."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from neuro_eqprop.dynamics.schedules import Phase, Schedule


@dataclass(frozen=True, slots=True)
class PhaseLengths:
    """Number of steps of the learning phases of one sample.

    Centered nudging (Laborieux et al. 2021): `free` steps, then two phases, nudged away from the
    target and towards it, of `settle` steps and a window. One-sided nudging (Scellier & Bengio
    2017): `free` steps and a window, then `settle` steps and a window nudged towards the target.
    Tags accumulate in the windows.
    """

    free: int
    settle: int
    window: int

    def schedule(self, *, beta: float, centered: bool) -> Schedule:
        """The phases of one sample: nudged by -beta and +beta if centered, else by +beta only."""
        nudged = self.settle + self.window
        if centered:
            return (
                Phase("free", 0.0, self.free, min(self.window, self.free)),
                Phase("negative", -beta, nudged, self.window),
                Phase("positive", beta, nudged, self.window),
            )
        return (
            Phase("free", 0.0, self.free + self.window, self.window),
            Phase("nudged", beta, nudged, self.window),
        )


@dataclass(frozen=True, slots=True)
class PhasePolicy:
    """How a code divides the learning phases.

    A nudged phase has `steps` steps unless the caller chooses another number; its last
    floor(window steps) steps are the window. The free phase has ceil(free steps) steps before its
    window.
    """

    steps: int
    window: float
    free: float

    def lengths(self, steps: int | None = None) -> PhaseLengths:
        """The phase lengths for nudged phases of `steps` steps."""
        steps = self.steps if steps is None else steps
        if steps < 2:
            raise ValueError(
                f"steps is {steps}; a phase needs 2 or more, to settle and to accumulate tags"
            )
        window = max(1, floor(self.window * steps))
        return PhaseLengths(ceil(self.free * steps), steps - window, window)


def is_centered(nudging: str) -> bool:
    """Whether nudging is centered; raises ValueError unless it is centered or positive."""
    if nudging not in ("positive", "centered"):
        raise ValueError(f"nudging {nudging!r} has no phases on a chip; use positive or centered")
    return nudging == "centered"
