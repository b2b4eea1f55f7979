"""True gradients of the cost at equilibrium, by ways that share nothing with the local rule.

The cost C is that of the network at the free equilibrium s = f(s), summed over the batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import GaussSeidel, SolveStatus, Stop, solve
from neuro_eqprop.training.gradients.implicit import implicit_gradient, symmetrise

TIGHT = Stop(1e-13, 20_000)


def equilibrium(network: Network, params: Mapping[str, Array], x: Array) -> State:
    """The free equilibrium in float64, to the last digits."""
    free = field(NumpyOps(), network, params, x)
    settled = solve(free, free.zero_state(), GaussSeidel(), TIGHT)
    if settled.status is not SolveStatus.CONVERGED:
        raise ValueError(f"there is no gradient at a state that has not settled: {settled}")
    return settled.state


def cost(network: Network, params: Mapping[str, Array], x: Array, target: Array) -> float:
    """C at the free equilibrium."""
    state, name = equilibrium(network, params, x), network.output.name
    if network.cost is Cost.CROSS_ENTROPY:
        drive = field(NumpyOps(), network, params, x).drive(name, state)
        return float(np.sum(np.logaddexp.reduce(drive, axis=1)) - np.sum(target * drive))
    return float(0.5 * np.sum((state[name] - target) ** 2))


def implicit(
    network: Network, params: Mapping[str, Array], x: Array, target: Array
) -> dict[str, Array]:
    """dC/dtheta by the implicit function theorem, in float64 to the last digits."""
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
