"""EqProp as it is mostly published: one scalar, differentiated by torch's graph in every step.

For a chain of dense layers, with s_0 = x and o the output,

    Phi(s) = sum over l of s_l . (W_l s_(l-1) + b_l)
    s_l <- rho_l(dPhi/ds_l),   o <- rho_o((dPhi/do + beta y) / (1 + beta)),   all at once
    dtheta = sum over phases of c[phase] dPhi/dtheta

It settles where the sweeps of `neuro_eqprop.training.relax` do, and is here to be timed against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Network, Role
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.training.fast.layered import is_chain

Tensors = dict[str, torch.Tensor]


def phi(network: Network, params: Tensors, x: torch.Tensor, state: Tensors) -> torch.Tensor:
    """Minus the energy, but for what rates cost by themselves."""
    rates = {network.input.name: x, **state}
    told = [
        (rates[c.target] * (rates[c.source] @ params[c.name].T + params[c.target])).sum()
        for c in network.connections
    ]
    return torch.stack(told).sum()


def settle(
    ops: TorchOps,
    network: Network,
    params: Tensors,
    *,
    x: torch.Tensor,
    y: torch.Tensor,
    start: Tensors,
    beta: float,
    steps: int,
) -> Tensors:
    """So many steps of all layers at once, each by a graph of its own."""
    state = start
    for _ in range(steps):
        leaves = {name: s.detach().requires_grad_() for name, s in state.items()}
        found = torch.autograd.grad(phi(network, params, x, leaves), list(leaves.values()))
        state = {}
        for name, drive in zip(leaves, found, strict=True):
            layer = network[name]
            pulled = (drive + beta * y) / (1.0 + beta) if layer.role is Role.OUTPUT else drive
            with torch.no_grad():
                state[name] = ops.activate(layer.activation, pulled)
    return state


def graph_step(
    network: Network, params: Mapping[str, Array], x: Array, y: Array, plan: Schedule
) -> Callable[[], Tensors]:
    """One episode, ready to be run, as `neuro_eqprop.claims.experiments.kernel.step`."""
    if not is_chain(network) or any(layer.stiffness != 1.0 for layer in network.layers):
        raise ValueError("this form is written for chains of dense layers with full feedback")
    ops = TorchOps()
    ready: Tensors = {
        name: ops.from_numpy(value).requires_grad_() for name, value in params.items()
    }
    given, target = ops.from_numpy(x), ops.from_numpy(y)
    part = contrast(plan)

    def run() -> Tensors:
        with torch.enable_grad():
            start = {layer.name: ops.zeros((len(x), layer.size)) for layer in network.moving}
            total = torch.zeros(())
            for phase in plan:
                beta = float(phase.beta.real)
                told = {"x": given, "y": target, "start": start}
                ended = settle(ops, network, ready, **told, beta=beta, steps=phase.steps)
                start = ended if phase is plan[0] else start
                if part[phase.name]:
                    total = total + part[phase.name] * phi(network, ready, given, ended)
            return dict(zip(ready, torch.autograd.grad(total, list(ready.values())), strict=True))

    return run
