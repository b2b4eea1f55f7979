"""Whether learning can be trusted: how a probe batch settles, and what it asks for against truth.

drift   = |s' - s| / |s_nudged - s|, with s where the free phase ended, s' where as many more
free steps as a nudged phase has would lead it: above 0.1 what looks like a nudge is
partly settling that was not done
cosine  = of the asked-for change with minus the implicit gradient, for each parameter
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite

import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import SolveStatus, Stop, solve
from neuro_eqprop.training.config import Batch, TrainingConfig
from neuro_eqprop.training.gradients.implicit import AdjointError, implicit_gradient
from neuro_eqprop.training.rules.contrastive import settle_phases, settling
from neuro_eqprop.training.rules.registry import RULES

DRIFT_LIMIT = 0.1
SETTLED = Stop(1e-10, 400)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """What a probe found; None where it was not looked for, the rule has no phases or the network
    does not settle. The drift is also None where the nudge moved nothing, which is `stuck`.
    """

    drift: float | None
    cosine: Mapping[str, float] | None
    stuck: bool = False

    @property
    def warning(self) -> str | None:
        """What is wrong, with the cure."""
        if self.stuck:
            return (
                "the nudge moved no rate of the probe, so nothing is learnt from it: its outputs "
                "are cut off by their activation; use a linear output, a smaller learning_rate, "
                "or a larger beta"
            )
        if self.drift is None or self.drift <= DRIFT_LIMIT:
            return None
        return (
            f"the free phase had not settled: it drifts {self.drift:.2f} as far as the nudge goes "
            f"(above {DRIFT_LIMIT} updates are unsound); use more free_steps, a smaller bound or "
            f"feedback, or a larger beta"
        )


@torch.no_grad()
def diagnose(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    target: Array,
    recipe: TrainingConfig,
    *,
    truth: bool = True,
) -> Diagnostics:
    """Look at a few samples, in float64; without `truth` at the drift alone, which is soon had."""
    ops = TorchOps(torch.float64)
    brought = {name: ops.from_numpy(value) for name, value in params.items()}
    lesson = Batch(ops.from_numpy(x), ops.from_numpy(target), measured=True)
    drift = drift_of(ops, network, brought, lesson, recipe)
    found = cosines(ops, network, brought, lesson, recipe) if truth else None
    return Diagnostics(None if drift == inf else drift, found, stuck=drift == inf)


def drift_of(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, torch.Tensor],
    lesson: Batch,
    recipe: TrainingConfig,
) -> float | None:
    """How far a free state goes on by itself against how far the nudge takes it.

    Infinite where there is an error and the nudge moves nothing, None where there is none, or
    where a state is not finite.
    """
    if not RULES[recipe.rule].compares_phases:
        return None
    episode = settle_phases(field(ops, network, params, lesson.x), lesson, recipe)
    rest, nudged = episode.rest.state, episode.phases[episode.schedule[-1].name].state
    pulled, name = distance(nudged, rest), network.output.name
    if pulled == 0.0:
        return inf if bool((rest[name] != lesson.y).any()) else None
    way, stop = settling(recipe, measured=True).free, Stop(None, recipe.nudged_steps)
    ratio = distance(solve(episode.free, rest, way, stop).state, rest) / pulled
    return ratio if isfinite(ratio) else None


def distance(a: State, b: State) -> float:
    """Between two states, over all layers and samples."""
    squares = sum(float(((a[n] - b[n]) ** 2).sum()) for n in a)
    return float(squares**0.5)


def cosines(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, torch.Tensor],
    lesson: Batch,
    recipe: TrainingConfig,
) -> dict[str, float] | None:
    """Of what the rule asks for with minus the gradient at the settled equilibrium."""
    free = field(ops, network, params, lesson.x)
    way = settling(replace(recipe, anderson=0), measured=True).free
    rest = solve(free, free.zero_state(), way, SETTLED)
    if rest.status is not SolveStatus.CONVERGED:
        return None
    try:
        slopes = implicit_gradient(
            ops, network, params, x=lesson.x, target=lesson.y, state=rest.state, stop=SETTLED
        )
    except AdjointError:
        return None
    told = RULES[recipe.rule].update(ops, network, params, lesson, recipe).slopes
    return {name: cosine(told[name], slope) for name, slope in slopes.items() if slope.any()}


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of two tensors; zero if one is zero everywhere or not finite: as wrong as a right angle."""
    sizes = float(a.norm() * b.norm())
    return float((a * b).sum()) / sizes if 0.0 < sizes < inf else 0.0
