"""Teachers by torch's graph, to be compared with: backprop, through time, implicit."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.solve import Stop, solve
from neuro_eqprop.training.config import Batch, BatchUpdate, Rule, TrainingConfig
from neuro_eqprop.training.gradients.implicit import implicit_gradient, symmetrise
from neuro_eqprop.training.gradients.loss import loss
from neuro_eqprop.training.rules.base import EVERY, UpdateRule
from neuro_eqprop.training.rules.contrastive import check, count_correct, residual, settling
from neuro_eqprop.training.settings import RuleSettings, SolverSettings, SweepSettings

ADJOINT_STEPS = 2
"""Steps of the adjoint for each free step."""


def bptt(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """Backprop through the free steps; through one sweep if nothing acts back."""
    once = recipe.rule == Rule.BACKPROP
    with torch.enable_grad():
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        free = field(ops, network, leaves, lesson.x)
        state = before = free.zero_state()
        solver, steps = settling(recipe, measured=False).free, 1 if once else recipe.free_steps
        for _ in range(steps):
            before, state = state, solver.step(free, state)
        cost = loss(free, state, lesson.y) / len(lesson.x)
        keys = list(leaves)
        found = torch.autograd.grad(cost, [leaves[k] for k in keys], allow_unused=True)
    whole = {
        k: torch.zeros_like(params[k]) if g is None else g for k, g in zip(keys, found, strict=True)
    }
    slopes = symmetrise(network, whole)
    rest = {name: s.detach() for name, s in state.items()}
    check(network, {"free": rest}, slopes)
    with torch.no_grad():
        moved = 0.0 if once or not lesson.measured else float(free.change(rest, before).max())
        return BatchUpdate(slopes, count_correct(free, rest, lesson), moved, free_steps_only(steps))


def free_steps_only(steps: float) -> dict[str, float]:
    """The steps of each phase where there is no nudged one."""
    return {"free": float(steps), "nudged": 0.0}


def implicit(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """Settle without a graph, then iterate the adjoint."""
    free = field(ops, network, params, lesson.x)
    way = settling(recipe, measured=lesson.measured)
    stop = Stop(recipe.tolerance, recipe.free_steps, lesson.measured)
    rest = solve(free, free.zero_state(), way.free, stop)
    summed = implicit_gradient(
        ops,
        network,
        params,
        x=lesson.x,
        target=lesson.y,
        state=rest.state,
        stop=Stop(None, ADJOINT_STEPS * recipe.free_steps),
    )
    slopes = {name: g / len(lesson.x) for name, g in summed.items()}
    check(network, {"free": rest.state}, slopes)
    found, steps = count_correct(free, rest.state, lesson), free_steps_only(rest.steps.mean())
    return BatchUpdate(slopes, found, residual(rest, lesson), steps)


BACKPROP = UpdateRule(
    "backprop",
    "backpropagation through the network without feedback",
    bptt,
    RuleSettings,
    nudgings=EVERY,
    baseline=True,
    feed_forward=True,
)
BPTT = UpdateRule(
    "bptt",
    "backpropagation through the steps of the free phase",
    bptt,
    SweepSettings,
    nudgings=EVERY,
    baseline=True,
)
IMPLICIT = UpdateRule(
    "implicit",
    "implicit gradient at the equilibrium, as in deep equilibrium models",
    implicit,
    SolverSettings,
    nudgings=EVERY,
    baseline=True,
)
