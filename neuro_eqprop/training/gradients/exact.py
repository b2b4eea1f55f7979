"""Reference gradients of the cost at equilibrium, in float64, to compare update rules with.

The cost C is that of the network at the free equilibrium s = f(s), summed over the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import GaussSeidel, SolveStatus, Stop, solve
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients.implicit import implicit_gradient, symmetrize
from neuro_eqprop.training.gradients.loss import loss

TIGHT = Stop(1e-13, 20_000)


def equilibrium(network: Network, params: Mapping[str, Array], x: Array) -> State:
    """The free equilibrium, converged to 1e-13."""
    free = field(NumpyOps(), network, params, x)
    settled = solve(free, free.zero_state(), GaussSeidel(), TIGHT)
    if settled.status is not SolveStatus.CONVERGED:
        raise ValueError(f"the free phase has not settled, so there is no gradient: {settled}")
    return settled.state


def cost(network: Network, params: Mapping[str, Array], x: Array, target: Array) -> float:
    """C at the free equilibrium."""
    state = equilibrium(network, params, x)
    return float(loss(field(NumpyOps(), network, params, x), state, target))


def implicit(
    network: Network, params: Mapping[str, Array], x: Array, target: Array
) -> dict[str, Array]:
    """dC/dtheta by the implicit function theorem."""
    ops = TorchOps(torch.float64)
    state = {name: ops.from_numpy(s) for name, s in equilibrium(network, params, x).items()}
    found = implicit_gradient(
        ops,
        network,
        {name: ops.from_numpy(value) for name, value in params.items()},
        x=ops.from_numpy(x),
        target=ops.from_numpy(target),
        state=state,
        stop=Stop(1e-14, TIGHT.max_steps),
    )
    return {name: ops.to_numpy(g) for name, g in found.items()}


def finite_difference(
    network: Network, params: Mapping[str, Array], x: Array, *, target: Array, epsilon: float
) -> dict[str, Array]:
    """dC/dtheta by central differences of each parameter; slow, for small networks."""
    gradients: dict[str, Array] = {}
    for name, value in params.items():
        gradient = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            moved = [value.copy(), value.copy()]
            moved[0][index] += epsilon
            moved[1][index] -= epsilon
            up, down = (cost(network, {**params, name: m}, x, target) for m in moved)
            gradient[index] = (up - down) / (2 * epsilon)
        gradients[name] = gradient
    return symmetrize(network, gradients)
