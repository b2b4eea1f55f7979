"""The forward pass of networks of images, for backpropagation: no feedback, one sweep upwards.

It multiplies by the couplings of the displacement path, which store images channels last, and
autograd records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast import couplings
from neuro_eqprop.training.fast.couplings import Tensor, is_of_images
from neuro_eqprop.training.fast.displacement import on_batch
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.layer_state import settle
from neuro_eqprop.training.fast.structure import Chain, chain_of, is_supported


@keep_last
def coupled(network: Network) -> Network | None:
    """The network with connections that act both ways, as a chain takes it; None without images."""
    both = replace(
        network, connections=tuple(replace(c, symmetric=True) for c in network.connections)
    )
    images = any(len(layer.shape) == 3 for layer in network.moving)
    stored = images and all(is_of_images(c.operator) for c in network.connections)
    return both if stored and is_supported(both) else None


def forward_output(
    ops: TorchOps, network: Network, params: Mapping[str, Tensor], x: Tensor
) -> Tensor | None:
    """What the cost depends on after one sweep from the input; None without images."""
    plain, inputs = on_batch(ops, network, x)
    both = coupled(plain)
    if both is None:
        return None
    drive = output_drive(chain_of(ops, both, params), inputs)
    crossed = network.cost is Cost.CROSS_ENTROPY
    return drive if crossed else settle(network.output.activation, drive)


def output_drive(chain: Chain, x: Tensor) -> Tensor:
    """The drive of the output, layer by layer from the input."""
    inputs, rates = chain.inputs(x), list[Tensor]()
    for node in chain.nodes:
        drive = node.bias
        for link in node.entering:
            drive = link.coupling.up(inputs, drive)
        for link in node.lower:
            drive = link.coupling.up(rates[link.other], drive)
        rate = settle(node.layer.activation, drive)
        rates.append(couplings.pooled(rate, node.units.pool) if node.units.pool > 1 else rate)
    drive = chain.params[chain.network.output.name]
    for link in chain.readouts:
        drive = link.coupling.up(inputs if link.other < 0 else rates[link.other], drive)
    return drive


@torch.enable_grad()
def backpropagate(
    ops: TorchOps, network: Network, params: Mapping[str, Tensor], x: Tensor, target: Tensor
) -> tuple[dict[str, Tensor], Tensor, Tensor] | None:
    """Gradients of the mean cost, the cost and the output; None for networks without images."""
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    output = forward_output(ops, network, leaves, x)
    if output is None:
        return None
    if network.cost is Cost.CROSS_ENTROPY:
        cost = -(target * torch.log_softmax(output, dim=-1)).sum() / len(x)
    else:
        cost = 0.5 * (output - target).square().sum() / len(x)
    gradients = torch.autograd.grad(cost, list(leaves.values()))
    return dict(zip(leaves, gradients, strict=True)), cost.detach(), output.detach()
