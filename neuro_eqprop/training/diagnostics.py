"""Diagnostics of learning on a few samples: how they settle, and how exact the update is.

drift    |s' - s| / |s_nudged - s|, where s is the end of the free phase and s' the state after as
         many more free steps as a nudged phase has. Above 0.1 the contrast of the phases contains
         settling that the free phase did not finish. Displacements (`training.fast.chain`) do not
         contain it; there the drift is |o' - o| / |y - o|, of the output o with target y: how far
         the error that the nudge starts from is wrong.
blocked  outputs that are wrong by more than 1/2 and that the nudge does not move, per sample. Their
         drive is outside the range of the activation, so they contribute nothing to the update.
cosine   of the update with minus the implicit gradient, for each parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite

import torch

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.dynamics.adjoint import NotSettledError
from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.dynamics.solve import SolveStatus, Stop, solve
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import implicit_gradient, output_values
from neuro_eqprop.training.rules.base import Batch, UpdateRule
from neuro_eqprop.training.rules.contrastive import Path, path_of
from neuro_eqprop.training.rules.phases import SettledPhases, plain_solvers, settle_phases, settling
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Nudging, Rule, RuleSettings

DRIFT_LIMIT = 0.1
BLOCKED_LIMIT = 0.5
WRONG = 0.5
"""Smallest difference from the target at which an output counts as wrong."""
SETTLED = Stop(1e-10, 400)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Drift, blocked outputs and update cosines, as the module docstring defines them.

    A measure is None if it was not computed, if the rule has no phases or if the network does not
    settle. The drift is also None if the nudge moved no rate at all, in which case `stuck` is true.
    """

    drift: float | None
    cosine: Mapping[str, float] | None
    stuck: bool = False
    blocked: float | None = None
    away: bool = False
    """Whether the nudge is away from the target, where a larger beta makes matters worse."""

    @property
    def warning(self) -> str | None:
        """The first problem found, with its remedy; None if there is none."""
        other = "nudging 'centered' or 'positive'" if self.away else "a larger beta"
        remedies = f"use {other}, a linear output, or a smaller learning_rate"
        blocked = self.blocked is not None and self.blocked > BLOCKED_LIMIT
        if self.stuck:
            return (
                f"the nudge moved no rate of the probe samples, so they contribute nothing to the "
                f"update: their outputs are outside the range of the activation; {remedies}"
            )
        # Outputs that a nudge away from the target blocks are not freed by more steps.
        unsettled = self.drift is not None and self.drift > DRIFT_LIMIT
        if unsettled and not (blocked and self.away):
            return (
                f"the free phase had not settled: it drifts {self.drift:.2f} times as far as the "
                f"nudge moves it (above {DRIFT_LIMIT} updates are unreliable); use more "
                f"free_steps, a smaller bound or feedback, or a larger beta"
            )
        if blocked:
            return (
                f"{self.blocked:.1f} outputs per sample are wrong and do not move under the nudge, "
                f"so nothing is learnt from them: their drive is outside the range of the "
                f"activation; {remedies}"
            )
        return None


@torch.no_grad()
def diagnose(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    target: Array,
    settings: RuleSettings,
    *,
    rule: UpdateRule | None = None,
    truth: bool = True,
) -> Diagnostics:
    """Diagnostics of a few samples in float64; `truth` adds the cosines, which take longest.

    `rule` is that of the settings by default.
    """
    rule = RULES[settings.name] if rule is None else rule
    ops = TorchOps(torch.float64)
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    batch = Batch(ops.from_numpy(x), ops.from_numpy(target), measured=True)
    drift = blocked = None
    contrasts = rule.compares_phases
    if contrasts or settings.name == Rule.SINGLE_PHASE:
        phases = settle_phases(field(ops, network, tensors, batch.x), batch, settings)
        blocked = blocked_outputs(phases, batch)
        if contrasts:
            displaced = path_of(ops, network, settings) is Path.DISPLACEMENT
            drift = (output_drift if displaced else drift_of)(phases, batch, settings)
    cosines = update_cosines(ops, network, tensors, batch, settings, rule) if truth else None
    stuck, away = drift == inf, settings.nudging == Nudging.NEGATIVE
    return Diagnostics(None if stuck else drift, cosines, stuck, blocked, away)


def drift_of(phases: SettledPhases, batch: Batch, settings: RuleSettings) -> float | None:
    """The drift; infinite if there is an error and the nudge moves nothing, None if undefined."""
    rest, nudged = phases.rest.state, phases.phases[phases.schedule[-1].name].state
    moved, name = distance(nudged, rest), phases.free.network.output.name
    if moved == 0.0:
        return inf if bool((rest[name] != batch.target).any()) else None
    solver, stop = settling(settings, measured=True).free, Stop(None, settings.nudged_steps)
    ratio = distance(solve(phases.free, rest, solver, stop).state, rest) / moved
    return ratio if isfinite(ratio) else None


def output_drift(phases: SettledPhases, batch: Batch, settings: RuleSettings) -> float | None:
    """The drift of the output relative to its error; infinite if the nudge moves nothing."""
    free, rest = phases.free, phases.rest.state
    nudged = phases.phases[phases.schedule[-1].name].state
    solver, stop = settling(settings, measured=True).free, Stop(None, settings.nudged_steps)
    later, now = (predictions(free, s) for s in (solve(free, rest, solver, stop).state, rest))
    error = float((batch.target - now).norm())
    if error == 0.0:
        return None
    if distance(nudged, rest) == 0.0:
        return inf
    ratio = float((later - now).norm()) / error
    return ratio if isfinite(ratio) else None


def predictions(free: Field, state: State) -> torch.Tensor:
    """The output that the target is compared with: rates, or probabilities of a readout."""
    found: torch.Tensor = output_values(free, state)
    return found.softmax(dim=-1) if free.network.cost is Cost.CROSS_ENTROPY else found


def blocked_outputs(phases: SettledPhases, batch: Batch) -> float | None:
    """Wrong outputs with equal rates in all contrasted phases, per sample; None for a readout."""
    if phases.free.network.cost is Cost.CROSS_ENTROPY:
        return None
    name = phases.free.network.output.name
    wrong = (phases.rest.state[name] - batch.target).abs() > WRONG
    first, *others = (phases.states[p][name] for p, c in contrast(phases.schedule).items() if c)
    still = torch.stack([other == first for other in others]).all(dim=0)
    return float((wrong & still).sum()) / len(batch.x)


def distance(a: State, b: State) -> float:
    """The Euclidean distance of two states, over all layers and samples."""
    squares = sum(float(((a[n] - b[n]) ** 2).sum()) for n in a)
    return float(squares**0.5)


def update_cosines(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, torch.Tensor],
    batch: Batch,
    settings: RuleSettings,
    rule: UpdateRule,
) -> dict[str, float] | None:
    """The cosine of the update with minus the gradient at the converged equilibrium.

    An update that is zero or not finite while the gradient is neither counts as orthogonal.
    """
    free = field(ops, network, params, batch.x)
    solver = plain_solvers(settings)[0]
    rest = solve(free, free.zero_state(), solver, SETTLED)
    if rest.status is not SolveStatus.CONVERGED:
        return None
    try:
        exact = implicit_gradient(
            ops, network, params, x=batch.x, target=batch.target, state=rest.state, stop=SETTLED
        )
    except NotSettledError:
        return None
    update = rule.update(ops, network, params, batch, settings).gradients
    return {
        name: cosine(ops.to_numpy(update[name]), ops.to_numpy(gradient)) or 0.0
        for name, gradient in exact.items()
        if gradient.any()
    }
