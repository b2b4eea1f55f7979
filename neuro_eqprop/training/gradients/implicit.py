"""The gradient at an equilibrium by the implicit function theorem (Bai et al. 2019).

`dynamics.adjoint` has the equation. The weight of a symmetric self-connection changes as a
symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.dynamics.adjoint import AdjointMap
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import Stop
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients.loss import loss


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

    The adjoint stops as `AdjointMap.solve` does, which raises NotSettledError.
    """
    leaves = {name: p.detach().clone().requires_grad_() for name, p in params.items()}
    rates = {name: s.detach().clone().requires_grad_() for name, s in state.items()}
    free = field(ops, network, leaves, x)
    image = free(rates)
    cost = loss(free, rates, target)
    direct = torch.autograd.grad(cost, list(rates.values()), retain_graph=True, allow_unused=True)
    source = {
        name: torch.zeros_like(s) if d is None else d
        for (name, s), d in zip(rates.items(), direct, strict=True)
    }
    adjoint = AdjointMap(free, image, rates, source).solve(stop)
    through = [(image[name], a) for name, a in adjoint.items() if image[name].requires_grad]
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
    return symmetrize(network, gradients)


def symmetrize(network: Network, gradients: dict[str, Values]) -> dict[str, Values]:
    """Gradients in which weights of symmetric self-connections stay symmetric."""
    for c in network.connections:
        if c.loops and c.symmetric and c.operator.matrix:
            g = gradients[c.name]
            gradients[c.name] = (g + g.T) / 2
    return gradients
