"""The gradient at an equilibrium by the implicit function theorem (Bai et al. 2019).

With s = f(s; theta) and J = df/ds there, the adjoint a solves a = J^T a + dC/ds, and
dC/dtheta = a . df/dtheta + the direct dependence of C on theta. The weight of a symmetric
self-connection changes as a symmetric matrix.
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
    """The adjoint has not converged."""


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

    The adjoint stops when no component changes by more than the tolerance times the largest
    component, else AdjointError; without a tolerance it takes `stop.max_steps` steps.
    """
    leaves = {name: p.detach().clone().requires_grad_() for name, p in params.items()}
    rates = {name: s.detach().clone().requires_grad_() for name, s in state.items()}
    free = field(ops, network, leaves, x)
    image = free(rates)
    cost = loss(free, rates, target)
    images, inputs = [image[n] for n in state], [rates[n] for n in state]
    direct = torch.autograd.grad(cost, inputs, retain_graph=True, allow_unused=True)
    source = [torch.zeros_like(s) if d is None else d for d, s in zip(direct, inputs, strict=True)]
    adjoint = solve_adjoint(images, inputs, source, stop)
    through = [(i, a) for i, a in zip(images, adjoint, strict=True) if i.requires_grad]
    found = torch.autograd.grad(
        [cost, *(i for i, _ in through)],
        list(leaves.values()),
        [torch.ones_like(cost), *(a for _, a in through)],
        allow_unused=True,
    )
    gradients = {
        name: torch.zeros_like(leaf) if g is None else g
        for (name, leaf), g in zip(leaves.items(), found, strict=True)
    }
    return symmetrise(network, gradients)


def solve_adjoint(
    images: list[torch.Tensor], inputs: list[torch.Tensor], source: list[torch.Tensor], stop: Stop
) -> list[torch.Tensor]:
    """The solution of a = J^T a + source by fixed-point iteration, J = d images / d inputs."""
    a = [each.clone() for each in source]
    change = 0.0
    for _ in range(stop.max_steps):
        through = [(i, b) for i, b in zip(images, a, strict=True) if i.requires_grad]
        back = torch.autograd.grad(
            [i for i, _ in through],
            inputs,
            [b for _, b in through],
            retain_graph=True,
            allow_unused=True,
        )
        new = [s if b is None else s + b for s, b in zip(source, back, strict=True)]
        if stop.tolerance is not None:
            change = max(float((n - o).abs().max()) for n, o in zip(new, a, strict=True))
            largest = max(1e-30, *(float(n.abs().max()) for n in new))
            if not isfinite(change):
                break
            if change <= stop.tolerance * largest:
                return new
        a = new
    if stop.tolerance is None:
        return a
    raise AdjointError(f"the adjoint has not converged: last change {change:.1e}")


def symmetrise(network: Network, gradients: dict[str, Values]) -> dict[str, Values]:
    """Gradients in which weights of symmetric self-connections stay symmetric."""
    for c in network.connections:
        if c.loops and c.symmetric and c.operator.matrix:
            g = gradients[c.name]
            gradients[c.name] = (g + g.T) / 2
    return gradients
