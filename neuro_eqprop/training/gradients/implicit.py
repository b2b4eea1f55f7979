"""The gradient at an equilibrium by the implicit function theorem, as deep equilibrium models do.

With s = f(s; theta) and J = df/ds there, the adjoint a solves a = J^T a + dC/ds, and
dC/dtheta = a . df/dtheta, plus what theta does to C directly. The weight of a symmetric loop moves
as a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import torch

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import Stop
from neuro_eqprop.training.gradients.loss import loss


class AdjointError(ValueError):
    """The adjoint has not settled."""


@torch.enable_grad()
def implicit_gradient(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    *,
    x: Values,
    target: Values,
    state: State,
    stop: Stop,
) -> dict[str, Values]:
    """dC/dtheta at the equilibrium `state`, summed over the batch.

    The adjoint stops when no part of it moves more than the tolerance times its largest; without
    a tolerance, after all steps. Not having settled by then is an error.
    """
    leaves = {name: p.detach().clone().requires_grad_() for name, p in params.items()}
    rates = {name: s.detach().clone().requires_grad_() for name, s in state.items()}
    at = field(ops, network, leaves, x)
    image, names = at(rates), list(state)
    cost = loss(at, rates, target)
    images, inputs = [image[n] for n in names], [rates[n] for n in names]
    pull = torch.autograd.grad(cost, inputs, retain_graph=True, allow_unused=True)
    given = [torch.zeros_like(s) if p is None else p for p, s in zip(pull, inputs, strict=True)]
    a = settle_adjoint(images, inputs, given, stop)
    keys = list(leaves)
    through = [(i, b) for i, b in zip(images, a, strict=True) if i.requires_grad]
    outputs = [cost, *[i for i, _ in through]]
    weights = [torch.ones_like(cost), *[b for _, b in through]]
    slopes = torch.autograd.grad(outputs, [leaves[k] for k in keys], weights, allow_unused=True)
    found = {
        k: torch.zeros_like(leaves[k]) if g is None else g
        for k, g in zip(keys, slopes, strict=True)
    }
    return symmetrise(network, found)


def settle_adjoint(
    images: list[torch.Tensor], inputs: list[torch.Tensor], pull: list[torch.Tensor], stop: Stop
) -> list[torch.Tensor]:
    """a = J^T a + pull, iterated."""
    a = [p.clone() for p in pull]
    moved = 0.0
    for _ in range(stop.max_steps):
        live = [(i, b) for i, b in zip(images, a, strict=True) if i.requires_grad]
        back = torch.autograd.grad(
            [i for i, _ in live],
            inputs,
            [b for _, b in live],
            retain_graph=True,
            allow_unused=True,
        )
        new = [p if b is None else p + b for p, b in zip(pull, back, strict=True)]
        if stop.tolerance is not None:
            moved = max(float((n - o).abs().max()) for n, o in zip(new, a, strict=True))
            largest = max(1e-30, *(float(n.abs().max()) for n in new))
            if not isfinite(moved):
                break
            if moved <= stop.tolerance * largest:
                return new
        a = new
    if stop.tolerance is None:
        return a
    raise AdjointError(f"the adjoint has not settled: last change {moved:.1e}")


def symmetrise(network: Network, gradient: dict[str, Values]) -> dict[str, Values]:
    """The gradient as seen by loops whose weight stays symmetric."""
    for c in network.connections:
        if c.loops and c.symmetric and c.operator.matrix:
            g = gradient[c.name]
            gradient[c.name] = (g + g.T) / 2
    return gradient
