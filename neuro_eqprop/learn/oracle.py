"""True gradients of the cost at equilibrium, by ways that share nothing with the local rule.

The cost is C = 1/2 |s_o - y|^2 at the free equilibrium s = f(s), summed over the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Network
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.rate.numpy_ops import NumpyOps
from neuro_eqprop.rate.torch_ops import TorchOps
from neuro_eqprop.solve import GaussSeidel, Outcome, Stop, solve

TIGHT = Stop(1e-13, 20_000)


def equilibrium(network: Network, params: Mapping[str, Array], x: Array) -> State:
    """The free equilibrium in float64, to the last digits."""
    free = field(NumpyOps(), network, params, x)
    settled = solve(free, free.rest(), GaussSeidel(), TIGHT)
    if settled.outcome is not Outcome.CONVERGED:
        raise ValueError(f"there is no gradient at a state that has not settled: {settled}")
    return settled.state


def cost(network: Network, params: Mapping[str, Array], x: Array, target: Array) -> float:
    """C at the free equilibrium."""
    error = equilibrium(network, params, x)[network.output.name] - target
    return float(0.5 * np.sum(error**2))


def implicit(
    network: Network, params: Mapping[str, Array], x: Array, target: Array
) -> dict[str, Array]:
    """dC/dtheta by the implicit function theorem.

    With J = df/ds at the equilibrium, the adjoint a solves a = J^T a + dC/ds, and
    dC/dtheta = a . df/dtheta. The weight of a symmetric loop moves as a symmetric matrix.
    """
    ops = TorchOps(torch.float64)
    state = {n: ops.bring(s) for n, s in equilibrium(network, params, x).items()}
    names = list(state)
    leaves = {name: ops.bring(value).requires_grad_() for name, value in params.items()}
    rates = {name: s.clone().requires_grad_() for name, s in state.items()}
    image = field(ops, network, leaves, ops.bring(x))(rates)
    images, inputs = [image[n] for n in names], [rates[n] for n in names]
    pull = [torch.zeros_like(state[n]) for n in names]
    out = names.index(network.output.name)
    pull[out] = state[network.output.name] - ops.bring(target)
    adjoint = [p.clone() for p in pull]
    for _ in range(TIGHT.max_steps):
        back = torch.autograd.grad(images, inputs, adjoint, retain_graph=True, allow_unused=True)
        new = [p if b is None else p + b for p, b in zip(pull, back, strict=True)]
        moved = max(float((a - b).abs().max()) for a, b in zip(new, adjoint, strict=True))
        adjoint = new
        if moved <= 1e-14 * max(1.0, *(float(a.abs().max()) for a in adjoint)):
            break
    else:
        raise ValueError(f"the adjoint has not settled: last change {moved:.1e}")
    keys = list(leaves)
    slopes = torch.autograd.grad(images, [leaves[k] for k in keys], adjoint)
    gradient = {k: ops.numpy(g) for k, g in zip(keys, slopes, strict=True)}
    return symmetrise(network, gradient)


def symmetrise(network: Network, gradient: dict[str, Array]) -> dict[str, Array]:
    """The gradient as seen by loops whose weight stays symmetric."""
    for connection in network.connections:
        if connection.loops and connection.symmetric:
            g = gradient[connection.name]
            gradient[connection.name] = (g + g.T) / 2
    return gradient


def finite_difference(
    network: Network, params: Mapping[str, Array], x: Array, *, target: Array, epsilon: float
) -> dict[str, Array]:
    """dC/dtheta by moving each parameter a little both ways; slow, for small networks."""
    gradient: dict[str, Array] = {}
    for name, value in params.items():
        slope = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            moved = [value.copy(), value.copy()]
            moved[0][place] += epsilon
            moved[1][place] -= epsilon
            up, down = (cost(network, {**params, name: m}, x, target) for m in moved)
            slope[place] = (up - down) / (2 * epsilon)
        gradient[name] = slope
    return symmetrise(network, gradient)


def cosine(a: Array, b: Array) -> float:
    """The cosine of the angle between two arrays; an array of zeros has none and is an error."""
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not min(sizes) > 0.0:
        raise ValueError("one of the two is zero everywhere, so they have no angle")
    return float(np.sum(a * b) / (sizes[0] * sizes[1]))
