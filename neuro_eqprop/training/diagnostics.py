"""Diagnostics of learning on a few samples: how exact the update that ran is, and what it misses.

cosine     of the update with minus the implicit gradient, for each parameter whose gradient is not
           negligible. The update is the one that trains: the same rule, path, data type and
           batches. The gradient is that of the settled network in float64.
saturated  share of the rates of a hidden layer at which its activation is flat: no gradient passes
           them. A rectified layer may well have most of its rates at zero, but not all.
blocked    outputs that are wrong by more than 1/2 and that the nudge does not move, per sample.
           Their drive is outside the range of the activation, so they contribute nothing.
drift      |s' - s| / |s_nudged - s|, where s is the end of the free phase and s' the state after as
           many more free steps as a nudged phase has: settling that the free phase did not finish
           is part of the contrast. Displacements (`training.fast.chain`) do not contain it; there
           the drift is |o' - o| / |y - o|, of the output o with target y: how far the error that
           the nudge starts from is wrong. It is measured where the cosines are not good, to say
           why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import torch

from neuro_eqprop.common.arrays import cosine
from neuro_eqprop.dynamics.adjoint import NotSettledError
from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.dynamics.field import field as make_field
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.dynamics.solve import SolveStatus, Stop, solve
from neuro_eqprop.networks.feedback import own_feedback
from neuro_eqprop.networks.network import Cost, Network, Role
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import implicit_gradient, output_values
from neuro_eqprop.training.rules.asymmetric import one_way_connections
from neuro_eqprop.training.rules.base import Batch, UpdateRule
from neuro_eqprop.training.rules.contrastive import UpdatePath, path_of
from neuro_eqprop.training.rules.phases import plain_solvers, settle_phases, settling
from neuro_eqprop.training.settings import Nudging, Rule, RuleSettings

COSINE_LIMIT = 0.95
"""Cosine below which a warning is given."""
GOOD_COSINE = 0.9995
"""Cosine from which the drift is not measured."""
NEGLIGIBLE = 1e-3
"""Gradients that are smaller than this share of the largest one are left out."""
ROUNDING = 1e-12
"""Gradients of this size are zero but for rounding."""
DRIFT_LIMIT = 0.01
BLOCKED_LIMIT = 0.5
WRONG = 0.5
"""Smallest difference from the target at which an output counts as wrong."""
FLAT = 0.01
"""Slope of an activation below which a rate is saturated."""
SATURATED_LIMIT = 0.95
SETTLED = Stop(1e-10, 400)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What the module docstring defines; a measure that was not taken is None."""

    cosine: Mapping[str, float] | None = None
    drift: float | None = None
    blocked: float | None = None
    saturated: Mapping[str, float] = field(default_factory=dict)
    settles: bool = True
    """Whether the network and its adjoint settle, so that there is a gradient to compare with."""
    stuck: bool = False
    """Whether the outputs are wrong and the update is zero."""
    away: bool = False
    """Whether the nudge is away from the target, where a larger beta makes matters worse."""
    one_way: bool = False
    """Whether connections act in one direction under a rule that takes them for symmetric."""
    untied: bool = False
    """Whether feedback has weights of its own, which differ from the transposed ones."""

    @property
    def worst(self) -> str | None:
        """The parameter with the least cosine."""
        return min(self.cosine, key=self.cosine.__getitem__) if self.cosine else None

    @property
    def lost(self) -> bool:
        """Whether what is learnt cannot be of use: there is no update, or it climbs the cost."""
        return self.stuck or any(value < 0.0 for value in (self.cosine or {}).values())

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
        if not (blocked and self.away) and self._inexact is not None:
            return self._inexact
        if blocked:
            return (
                f"{self.blocked:.1f} outputs per sample are wrong and do not move under the nudge, "
                f"so nothing is learnt from them: their drive is outside the range of the "
                f"activation; {remedies}"
            )
        for name, share in self.saturated.items():
            if share > SATURATED_LIMIT:
                return (
                    f"layer {name!r} is saturated: {100 * share:.1f} % of its rates are where its "
                    f"activation is flat, so it hardly learns; use a smaller learning_rate, "
                    f"normalize=true, or another activation"
                )
        return None

    @property
    def _inexact(self) -> str | None:
        """Why the update is not minus the gradient; None if it is, or if that is not known."""
        unsettled = None
        if self.drift is not None and self.drift > DRIFT_LIMIT:
            unsettled = (
                f"the free phase had not settled: it drifts {self.drift:.2g} times as far as the "
                f"nudge moves it (above {DRIFT_LIMIT} updates are unreliable); use more "
                f"free_steps, a smaller bound or feedback, or a larger beta"
            )
        if not self.settles:
            return (
                f"the network does not settle within {SETTLED.max_steps} steps, so its update has "
                f"no gradient to agree with; use a smaller bound, feedback or learning_rate"
            )
        if self.cosine is None:
            return unsettled
        if self.worst is None or self.cosine[self.worst] >= COSINE_LIMIT:
            return None
        why = "use more nudged_steps or a smaller beta"
        if self.untied:
            why = "its feedback has weights of its own, which align while it trains, if they learn"
        elif self.one_way:
            why = "connections act in one direction alone; use rule 'asymmetric'"
        elif unsettled is not None:
            why = unsettled
        return (
            f"the update of {self.worst!r} has a cosine of {self.cosine[self.worst]:.2f} with "
            f"minus the true gradient (below {COSINE_LIMIT} it is unreliable): {why}"
        )


@torch.no_grad()
def diagnose(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, torch.Tensor],
    batches: Sequence[Batch],
    settings: RuleSettings,
    rule: UpdateRule,
    *,
    truth: bool = True,
) -> Diagnostics:
    """Diagnostics of the update of some batches; `truth` adds the cosines, which take longest.

    `ops` is what trains, with its precision and device.
    """
    exact = replace(ops, dtype=torch.float64)
    double = {name: value.to(exact.dtype) for name, value in params.items()}
    x, target = (
        torch.cat([getattr(batch, key) for batch in batches]).to(exact.dtype)
        for key in ("x", "target")
    )
    joined = Batch(x, target, measured=True, beta=batches[0].beta)
    free = make_field(exact, network, double, x)
    rest = solve(free, free.zero_state(), plain_solvers(settings)[0], SETTLED)
    update = mean_update(ops, network, params, batches, settings, rule)
    wrong = bool((output_values(free, rest.state) != target).any())
    gradient = None
    if truth and rest.status is SolveStatus.CONVERGED:
        with suppress(NotSettledError):
            gradient = implicit_gradient(
                exact, network, double, x=x, target=target, state=rest.state, stop=SETTLED
            )
    own = {back.name for _, back in own_feedback(network)}
    if gradient is not None:  # these weights are not to descend the cost
        gradient = {name: each for name, each in gradient.items() if name not in own}
    cosines = None if gradient is None else cosines_of(update, gradient)
    unsure = cosines is None or min(cosines.values(), default=1.0) < GOOD_COSINE
    return Diagnostics(
        cosines,
        drift_of(free, joined, settings, ops) if unsure and rule.compares_phases else None,
        None if rule.baseline else blocked_outputs(free, rest.state, joined, settings),
        saturated_rates(free, rest.state),
        settles=not truth or gradient is not None,
        stuck=wrong and not any(bool(each.any()) for each in update.values()),
        away=settings.nudging == Nudging.NEGATIVE,
        one_way=settings.name in (Rule.HEBBIAN, Rule.VECTOR_FIELD)
        and bool(one_way_connections(network)),
        untied=bool(own),
    )


def mean_update(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, torch.Tensor],
    batches: Sequence[Batch],
    settings: RuleSettings,
    rule: UpdateRule,
) -> dict[str, torch.Tensor]:
    """The update of the rule for each batch, averaged over their samples."""
    found: dict[str, torch.Tensor] = {}
    samples = sum(len(batch.x) for batch in batches)
    for batch in batches:
        update = rule.update(ops, network, params, batch, settings).gradients
        for name, values in update.items():
            part = values.detach().double() * (len(batch.x) / samples)
            found[name] = found[name] + part if name in found else part
    return found


def cosines_of(
    update: Mapping[str, torch.Tensor], gradient: Mapping[str, torch.Tensor]
) -> dict[str, float]:
    """The cosine of each parameter; an update that is zero or not finite counts as orthogonal."""
    sizes = {name: float(each.norm()) for name, each in gradient.items()}
    least = max(ROUNDING, NEGLIGIBLE * max(sizes.values()))
    return {
        name: cosine(update[name].cpu().numpy(), each.cpu().numpy()) or 0.0
        for name, each in gradient.items()
        if sizes[name] > least
    }


def saturated_rates(free: Field, rest: State) -> dict[str, float]:
    """The share of the rates of each hidden layer at which its activation is flat."""
    return {
        layer.name: float(
            (layer.activation.slope(free.ops.to_numpy(free.drive(layer.name, rest))) < FLAT).mean()
        )
        for layer in free.network.moving
        if layer.role is Role.HIDDEN
    }


def blocked_outputs(free: Field, rest: State, batch: Batch, settings: RuleSettings) -> float | None:
    """Wrong outputs that no contrasted phase moves, per sample; None for curves and readouts."""
    output = free.network.output
    rate = output.activation
    if free.network.cost is Cost.CROSS_ENTROPY or not rate.piecewise_linear:
        return None
    schedule, drive = settings.schedule(batch.beta), free.drive(output.name, rest)
    coefficients = contrast(schedule)
    first, *others = (
        ((drive + p.beta * batch.target) / (1.0 + p.beta)).clamp(rate.low, rate.high)
        for p in schedule
        if coefficients[p.name]
    )
    wrong = (rest[output.name] - batch.target).abs() > WRONG
    still = torch.stack([other == first for other in others]).all(dim=0)
    return float((wrong & still).sum()) / len(batch.x)


def drift_of(free: Field, batch: Batch, settings: RuleSettings, ops: TorchOps) -> float | None:
    """The drift; None if the nudge moves nothing, or if there is no error to move it."""
    phases = settle_phases(free, batch, settings)
    rest, nudged = phases.rest.state, phases.phases[phases.schedule[-1].name].state
    solver, stop = settling(settings, measured=True).free, Stop(None, settings.nudged_steps)
    later = solve(free, rest, solver, stop).state
    if path_of(ops, free.network, settings) is UpdatePath.DISPLACEMENT:
        now = predictions(free, rest)
        moved = float((batch.target - now).norm())
        far = float((predictions(free, later) - now).norm())
    else:
        moved, far = distance(nudged, rest), distance(later, rest)
    ratio = far / moved if moved else inf
    return ratio if isfinite(ratio) else None


def predictions(free: Field, state: State) -> torch.Tensor:
    """The output that the target is compared with: rates, or probabilities of a readout."""
    found: torch.Tensor = output_values(free, state)
    return found.softmax(dim=-1) if free.network.cost is Cost.CROSS_ENTROPY else found


def distance(a: State, b: State) -> float:
    """The Euclidean distance of two states, over all layers and samples."""
    squares = sum(float(((a[n] - b[n]) ** 2).sum()) for n in a)
    return float(squares**0.5)
