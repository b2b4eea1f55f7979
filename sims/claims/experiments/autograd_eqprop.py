"""EqProp by automatic differentiation of the energy in every step, as most published code does.

For a chain of dense layers, with s_0 = x and o the output,

    Phi(s) = sum over l of s_l . (W_l s_(l-1) + b_l)
    s_l <- rho_l(dPhi/ds_l),   o <- rho_o((dPhi/do + beta y) / (1 + beta)),   all at once
    dtheta = sum over phases of c[phase] dPhi/dtheta

It has the same equilibria as `neuro_eqprop.training.rules.phases` and serves as a timing baseline
(Scellier & Bengio 2017; Ernoult et al. 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.one_hidden import is_chain

Tensors = dict[str, torch.Tensor]


def phi(network: Network, params: Tensors, x: torch.Tensor, state: Tensors) -> torch.Tensor:
    """Phi(s), summed over the batch."""
    rates = {network.input.name: x, **state}
    terms = [
        (rates[c.target] * (rates[c.source] @ params[c.name].T + params[c.target])).sum()
        for c in network.connections
    ]
    return torch.stack(terms).sum()


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
    """The state after `steps` synchronous steps, each with its own graph."""
    state = start
    for _ in range(steps):
        rates = {name: s.detach().requires_grad_() for name, s in state.items()}
        found = torch.autograd.grad(phi(network, params, x, rates), list(rates.values()))
        state = {}
        for name, drive in zip(rates, found, strict=True):
            layer = network[name]
            nudged = (drive + beta * y) / (1.0 + beta) if layer.role is Role.OUTPUT else drive
            with torch.no_grad():
                state[name] = ops.activate(layer.activation, nudged)
    return state


def prepare_autograd_step(
    network: Network, params: Mapping[str, Array], x: Array, y: Array, schedule: Schedule
) -> Callable[[], Tensors]:
    """A function that settles one batch in all phases and returns dtheta, by autograd."""
    if not is_chain(network) or any(layer.stiffness != 1.0 for layer in network.layers):
        raise ValueError("this experiment needs a chain of dense layers with stiffness one")
    ops = TorchOps()
    leaves: Tensors = {
        name: ops.from_numpy(value).requires_grad_() for name, value in params.items()
    }
    inputs, target = ops.from_numpy(x), ops.from_numpy(y)
    coefficients = contrast(schedule)

    def run() -> Tensors:
        with torch.enable_grad():
            start = {layer.name: ops.zeros((len(x), layer.size)) for layer in network.moving}
            total = torch.zeros(())
            for phase in schedule:
                beta = float(phase.beta.real)
                batch = {"x": inputs, "y": target, "start": start}
                end = settle(ops, network, leaves, **batch, beta=beta, steps=phase.steps)
                start = end if phase is schedule[0] else start
                if coefficients[phase.name]:
                    total = total + coefficients[phase.name] * phi(network, leaves, inputs, end)
            return dict(zip(leaves, torch.autograd.grad(total, list(leaves.values())), strict=True))

    return run
