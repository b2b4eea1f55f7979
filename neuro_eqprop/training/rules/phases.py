"""The phases of a batch, shared by the update rules: settle, check, summarize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite

import torch

from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.dynamics.solve import (
    Anderson,
    Damped,
    Equilibrium,
    GaussSeidel,
    Inner,
    Solver,
    Stop,
    solve,
)
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.one_hidden import is_worth_compiling, relax_one_hidden
from neuro_eqprop.training.gradients import cost_of, output_values
from neuro_eqprop.training.rules.asymmetric import adjoint_field
from neuro_eqprop.training.rules.base import (
    DIVERGENCE_ADVICE,
    Batch,
    BatchUpdate,
    TrainingError,
    Update,
)
from neuro_eqprop.training.settings import SYNCHRONOUS, Rule, RuleSettings


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


def plain_solvers(settings: RuleSettings) -> tuple[Inner, Inner]:
    """The solvers of the free phase and of nudged ones, without Anderson mixing."""
    if settings.order == SYNCHRONOUS:
        return Damped(settings.damping), Damped(settings.damping)
    return GaussSeidel(False, settings.damping), GaussSeidel(True, settings.damping)


def settling(settings: RuleSettings, *, measured: bool) -> Settling:
    """The solvers that the settings name."""
    inner = plain_solvers(settings)
    free, nudged = (Anderson(i, settings.anderson) for i in inner) if settings.anderson else inner
    return Settling(free, nudged, settings.tolerance or None, measured)


RESOLVED = 2e-2
"""Smallest displacement of a rate by the nudge that a difference of float32 rates resolves.

That is `smallest_displacement`, which does not know how much the weights attenuate the nudge.
"""
RESOLVED_IN_DOUBLE = 1e-12
"""The same for float64."""
TOLERATED = 1e-4
"""Largest tolerance of settling, relative to that displacement."""


def smallest_displacement(network: Network, settings: RuleSettings) -> float:
    """Beta times the feedback from the output to the layer that it reaches least.

    A nudge moves the output by about beta, and a layer below by that times the feedback.
    """
    reached = [x for x in network.moving if x.name not in network.layers_without_feedback]
    stiffest = max(layer.stiffness for layer in reached)
    beta = min(abs(settings.beta_at(0.0)), abs(settings.beta_at(1.0)))
    return beta * network.output.stiffness / stiffest


def tolerance_of(network: Network, settings: RuleSettings) -> float | None:
    """The tolerance of settling: that of the settings, or less if the nudge moves rates less."""
    if not settings.tolerance:
        return None
    return min(settings.tolerance, TOLERATED * smallest_displacement(network, settings))


def resolving(update: Update) -> Update:
    """An update that subtracts settled rates, in a precision that resolves their difference.

    Raises TrainingError where float64 does not.
    """

    def computed(
        ops: Ops,
        network: Network,
        params: Mapping[str, Values],
        batch: Batch,
        settings: RuleSettings,
    ) -> BatchUpdate:
        moved = smallest_displacement(network, settings)
        if moved < RESOLVED_IN_DOUBLE:
            raise TrainingError(
                f"the nudge moves a layer by about {moved:.0e}, which no data type resolves as a "
                f"difference of rates; use a larger feedback or beta, or rule 'hebbian' with the "
                f"order 'sequential' and without damping, anderson and tolerance"
            )
        if not isinstance(ops, TorchOps) or ops.dtype != torch.float32 or moved >= RESOLVED:
            return update(ops, network, params, batch, settings)
        double = replace(ops, dtype=torch.float64)
        exact = {name: value.to(double.dtype) for name, value in params.items()}
        x, target = batch.x.to(double.dtype), batch.target.to(double.dtype)
        found = update(double, network, exact, replace(batch, x=x, target=target), settings)
        return replace(found, gradients={n: g.to(ops.dtype) for n, g in found.gradients.items()})

    return computed


@dataclass(frozen=True, slots=True)
class SettledPhases:
    """The equilibria of a batch in its phases, of which the first is free."""

    free: Field
    schedule: Schedule
    phases: Mapping[str, Equilibrium]
    reference: State | None = None
    """What nudged phases are contrasted with, if not with the free equilibrium."""

    @property
    def states(self) -> dict[str, State]:
        """The states that the rule contrasts, by phase."""
        found = {name: settled.state for name, settled in self.phases.items()}
        return found if self.reference is None else found | {self.schedule[0].name: self.reference}

    @property
    def rest(self) -> Equilibrium:
        """The free equilibrium."""
        return self.phases[self.schedule[0].name]

    @property
    def steps(self) -> dict[str, float]:
        """Mean steps of a sample in the free phase and in a nudged one."""
        free, *nudged = [float(settled.steps.mean()) for settled in self.phases.values()]
        return {"free": free, "nudged": sum(nudged) / len(nudged)}

    def update(
        self, gradients: Mapping[str, Values], batch: Batch, settings: RuleSettings
    ) -> BatchUpdate:
        """The batch update with these gradients and the statistics of the phases."""
        return summarize(
            self.free,
            self.rest.state,
            batch,
            gradients,
            residual=float(self.rest.residual.max()) if batch.measured else 0.0,
            steps=self.steps if settings.tolerance else None,
        )


def settle_phases(free: Field, batch: Batch, settings: RuleSettings) -> SettledPhases:
    """Settle a batch in the free phase and in the nudged ones."""
    schedule, solvers = settings.schedule(batch.beta), settling(settings, measured=batch.measured)
    tolerance = tolerance_of(free.network, settings)
    solvers = replace(solvers, tolerance=tolerance)
    nudge = adjoint_field if settings.name == Rule.ASYMMETRIC else None
    phases = relax(free, batch.target, schedule, solvers, nudge)
    rest, *others = schedule
    if tolerance is not None or not contrast(schedule)[rest.name]:
        return SettledPhases(free, schedule, phases)
    # The nudged phase is compared with as many more steps without a nudge, so that settling that
    # the free phase did not finish is equal in both.
    stop = Stop(None, max(phase.steps for phase in others), measured=False)
    later = solve(free, phases[rest.name].state, solvers.nudged, stop).state
    return SettledPhases(free, schedule, phases, later)


def summarize(
    free: Field,
    rest: State,
    batch: Batch,
    gradients: Mapping[str, Values],
    *,
    residual: float = 0.0,
    steps: Mapping[str, float] | None = None,
) -> BatchUpdate:
    """Gradients with the loss and the correct predictions at the free equilibrium `rest`.

    For the squared error the prediction is read from the output rates: a free sweep updates the
    output last, so they rank the classes as the drive does, except where clipping makes ties.
    """
    ops, output = free.ops, output_values(free, rest)
    loss = float(cost_of(free, output, batch.target)) / len(batch.x)
    correct = int((ops.argmax(output) == ops.argmax(batch.target)).sum())
    return BatchUpdate(gradients, correct, loss, residual, steps)


def check_gradients(
    ops: Ops, network: Network, states: Mapping[str, State], gradients: Mapping[str, Values]
) -> None:
    """Raise TrainingError if the gradients are not finite, naming the first layer that is not."""
    # This array is small, and its sum is NaN or inf if any output rate is.
    if isfinite(float(gradients[network.output.name].sum())):
        return
    diverged = (
        f"layer {layer.name!r} in the {phase} phase"
        for phase, state in states.items()
        for layer in network.moving
        if not ops.is_finite(state[layer.name])
    )
    raise TrainingError(
        f"the rates diverged (NaN or inf), first {next(diverged, 'in the update')}; "
        f"{DIVERGENCE_ADVICE}"
    )
