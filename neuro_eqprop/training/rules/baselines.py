"""Baseline rules by automatic differentiation: backpropagation, BPTT, implicit differentiation."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import Stop, solve
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.forward import backpropagate
from neuro_eqprop.training.gradients import bptt_gradient, implicit_gradient
from neuro_eqprop.training.rules.base import ALL_NUDGINGS, Batch, BatchUpdate, UpdateRule
from neuro_eqprop.training.rules.phases import check_gradients, settling, summarize
from neuro_eqprop.training.settings import Rule, RuleSettings, SolverSettings, SweepSettings

ADJOINT_STEPS = 2
"""Iterations of the adjoint equation for each free step."""


def bptt(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """Gradient by BPTT through the free steps; through a single sweep for rule 'backprop'."""
    single = settings.name == Rule.BACKPROP
    steps = 1 if single else settings.free_steps
    images = backpropagate(ops, network, params, batch.x, batch.target) if single else None
    if images is not None:
        gradients, cost, output = images
        check_gradients(ops, network, {}, gradients)
        correct = (output.argmax(dim=1) == batch.target.argmax(dim=1)).sum()
        return BatchUpdate(gradients, correct, cost, steps=free_only(steps))
    unrolled = bptt_gradient(
        ops,
        network,
        params,
        batch,
        solver=settling(settings, measured=False).free,
        steps=steps,
        mean=True,
    )
    free, state = unrolled.free, unrolled.state
    check_gradients(ops, network, {"free": state}, unrolled.gradients)
    with torch.no_grad():
        measured = batch.measured and not single
        residual = float(free.change(state, unrolled.before).max()) if measured else 0.0
        return summarize(
            free, state, batch, unrolled.gradients, residual=residual, steps=free_only(steps)
        )


def implicit(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """Implicit gradient: settle without a graph, then solve the adjoint at the equilibrium."""
    free = field(ops, network, params, batch.x)
    stop = Stop(settings.tolerance or None, settings.free_steps, batch.measured)
    rest = solve(free, free.zero_state(), settling(settings, measured=batch.measured).free, stop)
    summed = implicit_gradient(
        ops,
        network,
        params,
        x=batch.x,
        target=batch.target,
        state=rest.state,
        stop=Stop(None, ADJOINT_STEPS * settings.free_steps),
    )
    gradients = {name: g / len(batch.x) for name, g in summed.items()}
    check_gradients(ops, network, {"free": rest.state}, gradients)
    residual = float(rest.residual.max()) if batch.measured else 0.0
    steps = free_only(rest.steps.mean())
    return summarize(free, rest.state, batch, gradients, residual=residual, steps=steps)


def free_only(steps: float) -> dict[str, float]:
    """Steps by phase of a rule without nudged phases."""
    return {"free": float(steps), "nudged": 0.0}


BACKPROP = UpdateRule(
    "backprop",
    "backpropagation through the network without feedback",
    bptt,
    RuleSettings,
    nudgings=ALL_NUDGINGS,
    baseline=True,
    feed_forward=True,
)
BPTT = UpdateRule(
    "bptt",
    "backpropagation through the steps of the free phase",
    bptt,
    SweepSettings,
    nudgings=ALL_NUDGINGS,
    baseline=True,
)
IMPLICIT = UpdateRule(
    "implicit",
    "implicit gradient at the equilibrium, as in deep equilibrium models",
    implicit,
    SolverSettings,
    nudgings=ALL_NUDGINGS,
    baseline=True,
)
