"""Let a network settle through the phases of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.rate.field import Field
from neuro_eqprop.rate.ops import Values
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, GaussSeidel, Solver, Stop, solve


@dataclass(frozen=True, slots=True)
class Settling:
    """How to settle.

    A sample rests when no rate changes more than `tolerance` in a step (None: take all steps);
    the last change is `measured` or not.
    """

    free: Solver
    nudged: Solver
    tolerance: float | None = None
    measured: bool = True


SWEEPS = Settling(GaussSeidel(), GaussSeidel(backwards=True))
"""News comes from the input in the free phase, from the output in nudged ones."""


def relax(
    free: Field, target: Values, schedule: Schedule, settling: Settling
) -> dict[str, Equilibrium]:
    """An equilibrium for each phase, at most `steps` of its phase away from its start.

    The first phase starts at rest, the others where the first one ended, so that a nudge is all
    that lies between them.
    """
    settled: dict[str, Equilibrium] = {}
    start = free.rest()
    for phase in schedule:
        stop = Stop(settling.tolerance, phase.steps, settling.measured)
        at = free.nudged(target, phase.beta) if phase.beta else free
        solver = settling.nudged if phase.beta else settling.free
        settled[phase.name] = solve(at, start, solver, stop)
        start = settled[schedule[0].name].state
    return settled
