"""The hidden layers of a network with their couplings, as the displacement path takes them.

`chain_of` makes the `Chain` of a network and its parameters. It is made once for a training: the
optimizer updates parameters in place, and only couplings that store a weight in another layout copy
it anew for each batch (`Chain.refresh`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import torch

from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators.attention import Attention
from neuro_eqprop.networks.operators.delayed_feedback import DelayedFeedback
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.couplings import (
    Coupling,
    Tensor,
    couple,
    is_of_images,
    pool_of,
)
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.layer_state import Units, can_displace, units_of
from neuro_eqprop.training.fast.loops import AttentionLoop, LinearLoop, Loop
from neuro_eqprop.training.fast.output_block import (
    PlainBlock,
    PooledBlock,
    SoftmaxBlock,
    softmax_block_of,
    squared_block_of,
)

INNER = 2
"""Iterations of the output with the layer it reads, in each half-sweep but the first.

One more where it reads several layers.
"""
NEGLIGIBLE_TERM = 0.04
"""Largest g |W|^2 at which the second term of a contrast between hidden layers is left out.

That is its size relative to the first term at most, so that the cosine of the update stays above
0.999. `LARGEST_NORM` stands for |W| where the weight has no bound, and where the nudge reaches the
earlier layer by other connections, too: the bound does not limit these.
"""
LARGEST_NORM = 6.0


def is_supported(network: Network) -> bool:
    """Whether the displacement path settles and updates this network.

    All connections beyond the input are linear and symmetric, and lead from an earlier layer to a
    later one or from a hidden layer to itself, which may also be attention; rates are clipped, or
    their curve states its shift; the output is the last layer, clipped or a readout with
    cross-entropy cost, and reads a layer by one connection.
    """
    order = {layer.name: k for k, layer in enumerate(network.layers)}
    hidden = network.moving[:-1]
    clipped = network.output.activation.piecewise_linear
    reads = [c for c in network.connections if c.target == network.output.name]
    return (
        network.layers[0] is network.input
        and network.layers[-1] is network.output
        and bool(hidden)
        and (network.cost is Cost.CROSS_ENTROPY or clipped)
        and all(can_displace(x.activation) for x in hidden)
        and all(is_coupling(network, order, c) for c in network.connections)
        and len({c.source for c in reads}) == len(reads)
        and all(
            any(c.target == x.name and not c.loops for c in network.connections)
            for x in network.moving
        )
    )


def is_coupling(network: Network, order: Mapping[str, int], connection: Connection) -> bool:
    """Whether a connection acts both ways, linearly or by attention, or comes from the input."""
    entering = network[connection.source].role is Role.INPUT
    if connection.loops:
        operator = connection.operator
        known = operator.matrix or isinstance(operator, Attention | DelayedFeedback)
        return known and connection.symmetric and connection.source != network.output.name
    if not (connection.operator.linear or entering):
        return False
    forwards = order[connection.source] < order[connection.target]
    return forwards and (connection.symmetric or entering)


@dataclass(frozen=True, slots=True)
class Link:
    """A coupling to another layer, by its position among the hidden ones."""

    name: str
    """Of its weight."""
    coupling: Coupling
    other: int
    """-1 for the input and for the output."""
    gain: float
    """The feedback g of the connection."""
    both_ways: bool
    """Whether the contrast between hidden layers has its second term."""


@dataclass(frozen=True, slots=True)
class LoopLink:
    """A connection of a layer to itself."""

    name: str
    loop: Loop


@dataclass(frozen=True)
class Node:
    """A hidden layer with its couplings."""

    layer: Layer
    units: Units
    bias: Tensor
    """In the layout of the layer; one value per channel is a vector."""
    entering: tuple[Link, ...]
    """From the input."""
    lower: tuple[Link, ...]
    """From earlier hidden layers."""
    upper: tuple[Link, ...]
    """To later hidden layers."""
    loops: tuple[LoopLink, ...]
    readout: Link | None
    """To the output."""

    @cached_property
    def moves_upwards(self) -> bool:
        """Whether a half-sweep upwards changes its drive."""
        return bool(self.lower or self.loops)

    @cached_property
    def attends(self) -> bool:
        """Whether it has attention, and so is settled by half-sweeps upwards alone.

        It then takes the same steps as `solve.GaussSeidel`, so that it settles at the same
        equilibrium where strong attention has several.
        """
        return any(isinstance(link.loop, AttentionLoop) for link in self.loops)


@dataclass(frozen=True)
class Chain:
    """The couplings of a network with given parameters."""

    ops: TorchOps
    network: Network
    params: Mapping[str, Tensor]
    stored: bool
    """Whether images are stored channels last."""
    nodes: tuple[Node, ...]
    readouts: tuple[Link, ...]
    """To the output, from the hidden layers and, with other = -1, from the input."""
    couplings: tuple[Coupling, ...]
    """Of all connections but attention."""

    @cached_property
    def squared_block(self) -> PlainBlock | PooledBlock | None:
        """The output with the one layer it reads, where compiled code settles them."""
        return squared_block_of(self)

    @cached_property
    def softmax_block(self) -> SoftmaxBlock | None:
        """The readout with the one layer it reads, where compiled code displaces them."""
        return softmax_block_of(self)

    @cached_property
    def downwards(self) -> tuple[tuple[int, Node], ...]:
        """The layers with feedback of later hidden layers and their positions, the last first."""
        return tuple((k, node) for k, node in reversed(list(enumerate(self.nodes))) if node.upper)

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """Positions of the layers that the output reads."""
        return tuple(link.other for link in self.readouts if link.other >= 0)

    @cached_property
    def inner(self) -> int:
        """Iterations of the output with the layers it reads."""
        if not self.feeds_back_at_rest:
            return 1  # its displacement does not depend on theirs to first order in beta
        return INNER if len(self.readers) == 1 else INNER + 1

    @cached_property
    def feeds_back_at_rest(self) -> bool:
        """Whether the output feeds back in the free phase; a readout does not."""
        return self.network.cost is Cost.SQUARED

    def refresh(self) -> None:
        """Copy the weights that are stored in another layout than the parameters."""
        for coupling in self.couplings:
            coupling.refresh()

    def bias_gradient(self, layer: Layer, summed: Tensor) -> Tensor:
        """A sum over the batch, in the shape of the bias."""
        if layer.bias == layer.shape and len(layer.shape) == 1:
            return summed
        if summed.ndim == 1 and len(layer.shape) == 3:
            return (summed if layer.bias[0] > 1 else summed.sum()).reshape(layer.bias)
        first = summed.permute(2, 0, 1) if self.stored and summed.ndim == 3 else summed
        shared = [k for k, n in enumerate(layer.bias) if n == 1 and layer.shape[k] > 1]
        return (first.sum(dim=shared, keepdim=True) if shared else first).contiguous()

    def inputs(self, x: Tensor) -> Tensor:
        """Samples (samples, *input shape) in the layout of the input layer."""
        if not (self.stored and x.ndim == 4):
            return x
        # A copy, since torch takes images of one channel for channels-first ones.
        return x.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format)


def chain_of(ops: TorchOps, network: Network, params: Mapping[str, Tensor]) -> Chain:
    """The chain of a supported network, with the values that the parameters have now."""
    tensors = [params[name] for name in names_of(network)]
    if torch.is_grad_enabled():  # a copy of a weight belongs to one graph
        return build(ops, network, *tensors)
    chain = cached_build(ops, network, *tensors)
    chain.refresh()
    return chain


@keep_last
def names_of(network: Network) -> tuple[str, ...]:
    """The names of all parameters."""
    return (*(c.name for c in network.connections), *(layer.name for layer in network.moving))


def build(ops: TorchOps, network: Network, *tensors: Tensor) -> Chain:
    """The chain of a supported network with parameters in the order of `names_of`."""
    connections, hidden = network.connections, network.moving[:-1]
    params = dict(zip(names_of(network), tensors, strict=True))
    stored = all(is_of_images(c.operator) for c in connections)
    compiled = is_accessible(ops, tensors)
    pools = {layer.name: port_pool(network, layer, stored) for layer in hidden}
    place = {layer.name: k for k, layer in enumerate(hidden)}
    made = {
        c.name: couple(
            ops, network, c, params[c.name], stored=stored, source_pool=pools.get(c.source, 1)
        )
        for c in connections
        if not isinstance(c.operator, Attention)
    }

    def links(found: list[Connection], other: str) -> tuple[Link, ...]:
        """The couplings of connections to the layers at their end `other`."""
        return tuple(
            Link(
                c.name,
                made[c.name],
                place.get(getattr(c, other), -1),
                network.feedback(c),
                network.feedback(c) * limiting_norm(network, c) ** 2 > NEGLIGIBLE_TERM,
            )
            for c in found
        )

    nodes = []
    for layer in hidden:
        into = [c for c in connections if c.target == layer.name and not c.loops]
        out = [c for c in connections if c.source == layer.name and not c.loops]
        reads = [c for c in out if c.target == network.output.name]
        loops = [
            LoopLink(
                c.name,
                AttentionLoop(ops, c.operator, params[c.name])
                if isinstance(c.operator, Attention)
                else LinearLoop(ops, made[c.name], c.operator.matrix),
            )
            for c in connections
            if c.loops and c.source == layer.name
        ]
        lower = links([c for c in into if c.source in place], "source")
        both_ways = any(link.both_ways for link in lower)
        nodes.append(
            Node(
                layer,
                units_of(ops, layer.activation, pools[layer.name], both_ways, compiled),
                stored_bias(layer, params[layer.name], stored=stored),
                links([c for c in into if c.source not in place], "source"),
                lower,
                links([c for c in out if c not in reads], "target"),
                tuple(loops),
                links(reads, "target")[0] if reads else None,
            )
        )
    readouts = links([c for c in connections if c.target == network.output.name], "source")
    return Chain(ops, network, params, stored, tuple(nodes), readouts, tuple(made.values()))


cached_build = keep_last(build)


def limiting_norm(network: Network, connection: Connection) -> float:
    """What |W| is at most in `NEGLIGIBLE_TERM`."""
    ways = [c for c in network.connections if c.source == connection.source]
    return (len(ways) == 1 and connection.bound) or LARGEST_NORM


def is_accessible(ops: TorchOps, tensors: Sequence[Tensor]) -> bool:
    """Whether compiled code can access values: on the CPU, without autograd."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return ops.device == "cpu" and not recorded


def stored_bias(layer: Layer, values: Tensor, *, stored: bool) -> Tensor:
    """A view of a bias in the layout of the layer; one value per channel is a vector."""
    if not (stored and len(layer.shape) == 3):
        return values
    if layer.bias[1:] == (1, 1):
        return values.view(-1).expand(layer.shape[0])
    return values.permute(1, 2, 0)


def port_pool(network: Network, layer: Layer, stored: bool) -> int:
    """Side of the squares that every connection that leaves a layer averages over; else 1."""
    leaving = [c for c in network.connections if c.source == layer.name]
    image = stored and len(layer.shape) == 3 and layer.bias[1:] == (1, 1)
    if not image or not leaving or any(c.loops for c in leaving):
        return 1
    return gcd(*(pool_of(c) for c in leaving))
