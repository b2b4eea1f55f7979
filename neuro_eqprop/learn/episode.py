"""Let a network settle through the phases of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.rate.field import Field
from neuro_eqprop.rate.ops import Values
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, Solver, Stop, solve


@dataclass(frozen=True, slots=True)
class Settling:
    """How to settle: the solver, and the change below which a sample rests (None: all steps)."""

    solver: Solver
    tolerance: float | None


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
        nudged = free.nudged(target, phase.beta) if phase.beta else free
        stop = Stop(settling.tolerance, phase.steps)
        settled[phase.name] = solve(nudged, start, settling.solver, stop)
        start = settled[schedule[0].name].state
    return settled
