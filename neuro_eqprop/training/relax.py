"""Let a network settle through the phases of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.rate.field import Field, State
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, GaussSeidel, Solver, Stop, solve
from neuro_eqprop.training.fast.layered import is_chain, relax_chain
from neuro_eqprop.training.fast.one_hidden import is_worth_compiling, relax_one_hidden


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


def swept(network: Network, schedule: Schedule, settling: Settling) -> bool:
    """Whether a chain goes through a free phase and nudged ones by plain sweeps alone."""
    usual = settling.free == SWEEPS.free and settling.nudged == SWEEPS.nudged
    free, *nudged = (phase.beta for phase in schedule)
    return usual and settling.tolerance is None and not free and all(nudged) and is_chain(network)


Turn = Callable[[Field, State], Field]
"""What makes the field of nudged phases from the free one and where that settled."""


def relax(
    free: Field,
    target: Values,
    schedule: Schedule,
    settling: Settling,
    turn: Turn | None = None,
) -> dict[str, Equilibrium]:
    """An equilibrium for each phase, at most `steps` of its phase away from its start.

    The first phase starts at rest, the others where the first one ended, so that a nudge is all
    that lies between them, unless the rule gives nudged phases a field of their own by `turn`.
    """
    if turn is None and swept(free.network, schedule, settling):
        if is_worth_compiling(free):
            quick = relax_one_hidden(free, target, schedule, measured=settling.measured)
            if quick is not None:
                return quick
        return relax_chain(free, target, schedule, measured=settling.measured)
    settled: dict[str, Equilibrium] = {}
    start = free.zero_state()
    pulled = free
    for phase in schedule:
        stop = Stop(settling.tolerance, phase.steps, settling.measured)
        at = pulled.nudged(target, phase.beta) if phase.beta else free
        solver = settling.nudged if phase.beta else settling.free
        settled[phase.name] = solve(at, start, solver, stop)
        if not settled.keys() - {phase.name}:
            start = settled[phase.name].state
            pulled = turn(free, start) if turn else free
    return settled
