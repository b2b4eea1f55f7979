"""Backpropagation through the steps of settling (BPTT; Rumelhart et al. 1986)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.solve import Solver
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.batch import Batch
from neuro_eqprop.training.gradients.implicit import symmetrize
from neuro_eqprop.training.gradients.loss import loss


@dataclass(frozen=True, slots=True)
class Unrolled:
    """The result of `bptt_gradient`: gradients, and the states at the end of the unrolled steps."""

    gradients: dict[str, Values]
    free: Field
    state: State
    before: State
    """The state before the last step."""
    cost: float
    """Cost of the last state, summed or averaged over the batch as the gradients are."""


@torch.enable_grad()
def bptt_gradient(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    *,
    solver: Solver,
    steps: int,
    start: State | None = None,
    mean: bool = False,
) -> Unrolled:
    """dC/dtheta through `steps` of the solver from `start` (all rates zero if None).

    The cost is summed over the batch, or averaged if `mean`. From a settled `start` these are
    phantom gradients (Geng et al. 2021).
    """
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    free = field(ops, network, leaves, batch.x)
    state = before = free.zero_state() if start is None else start
    for _ in range(steps):
        before, state = state, solver.step(free, state)
    cost = loss(free, state, batch.target)
    cost = cost / len(batch.x) if mean else cost
    found = torch.autograd.grad(cost, list(leaves.values()), allow_unused=True)
    gradients = {
        name: torch.zeros_like(params[name]) if g is None else g
        for name, g in zip(leaves, found, strict=True)
    }
    return Unrolled(
        symmetrize(network, gradients),
        free,
        {name: s.detach() for name, s in state.items()},
        {name: s.detach() for name, s in before.items()},
        float(cost.detach()),
    )
