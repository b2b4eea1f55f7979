"""Gradients of the cost, for baselines, diagnostics and tests.

By the implicit function theorem at an equilibrium (Bai et al. 2019; `dynamics.adjoint` has the
equation), by backpropagation through the steps of settling (BPTT; Rumelhart et al. 1986), and, from
`equilibrium` on, reference gradients in float64 of a network that has settled. The EqProp rules
need none of them. The weight of a symmetric self-connection changes as a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.adjoint import AdjointMap
from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.solve import GaussSeidel, Solver, SolveStatus, Stop, solve
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.base import Batch


def output_values(free: Field, state: State) -> Values:
    """The output that the cost depends on: its drive for cross-entropy, else its rates."""
    name = free.network.output.name
    return free.drive(name, state) if free.network.cost is Cost.CROSS_ENTROPY else state[name]


def cost_of(free: Field, output: Values, target: Values) -> Values:
    """The cost C of `output_values`, summed over the batch."""
    if free.network.cost is Cost.CROSS_ENTROPY:
        return -(target * free.ops.log_softmax(output)).sum()
    error = output - target
    return 0.5 * (error * error).sum()


def loss(free: Field, state: State, target: Values) -> Values:
    """The cost C at a state, summed over the batch."""
    return cost_of(free, output_values(free, state), target)


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
