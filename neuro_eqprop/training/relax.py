"""Settle a batch in the phases of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.dynamics.solve import Equilibrium, GaussSeidel, Solver, Stop, solve
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.training.fast.one_hidden import is_worth_compiling, relax_one_hidden


@dataclass(frozen=True, slots=True)
class Settling:
    """The solvers of the phases.

    A sample stops when no rate changes by more than `tolerance` in a step (None: take all steps);
    the last change is computed if `measured`.
    """

    free: Solver
    nudged: Solver
    tolerance: float | None = None
    measured: bool = True


SWEEPS = Settling(GaussSeidel(), GaussSeidel(backwards=True))
"""Sweeps from the input in the free phase, from the output in nudged phases."""


def uses_plain_sweeps(schedule: Schedule, settling: Settling) -> bool:
    """Whether all phases, a free one and then nudged ones, settle by undamped `SWEEPS`."""
    plain = settling.free == SWEEPS.free and settling.nudged == SWEEPS.nudged
    free, *nudged = (phase.beta for phase in schedule)
    return plain and settling.tolerance is None and not free and all(nudged)


NudgedField = Callable[[Field, State], Field]
"""From the free map and the free equilibrium to the map of the nudged phases."""


def relax(
    free: Field,
    target: Values,
    schedule: Schedule,
    settling: Settling,
    nudged_field: NudgedField | None = None,
) -> dict[str, Equilibrium]:
    """The equilibrium of each phase.

    The first phase starts at zero rates, the others at the end of the first, so that they differ by
    the nudge alone. `nudged_field` replaces the map of the nudged phases, for the adjoint nudge.
    """
    plain = nudged_field is None and uses_plain_sweeps(schedule, settling)
    if plain and is_worth_compiling(free):
        compiled = relax_one_hidden(free, target, schedule, measured=settling.measured)
        if compiled is not None:
            return compiled
    settled: dict[str, Equilibrium] = {}
    start, base = free.zero_state(), free
    for phase in schedule:
        stop = Stop(settling.tolerance, phase.steps, settling.measured)
        at = base.nudged(target, phase.beta) if phase.beta else free
        solver = settling.nudged if phase.beta else settling.free
        settled[phase.name] = solve(at, start, solver, stop)
        if len(settled) == 1:
            start = settled[phase.name].state
            base = nudged_field(free, start) if nudged_field else free
    return settled
