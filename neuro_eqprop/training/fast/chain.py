"""The free phase and the displaced nudged phase of any network of linear couplings.

Layers are ordered from the input to the output; every connection leads from an earlier layer to a
later one, or from a layer to itself by a symmetric matrix or by attention. A perceptron is the
simplest case; a pyramid, in which each scale is coupled to the input, to the next scale and to the
output, is another. With a_l the drive of layer l from below, g the feedback of a connection and o
the output:

    free(chain, x, pairs)              a half-sweep upwards, then (downwards, upwards) x pairs
    displaced(chain, rest, nudge)      the displacements D = s(beta) - s(0), by a half-sweep
                                       downwards, then (upwards, downwards) x (sweeps - 1)
    slopes(chain, rest, shifts)        the contrast of Hebbian products

A half-sweep computes each product of a connection once: upwards the drives a_l = b_l + sum W s,
downwards the feedback g W^T s, and the other term is kept from the half-sweep before. The output is
small, so it and the layers it reads are iterated together at the end of each half-sweep upwards but
the first, and at the start of each downwards (`Chain.inner` times).

The nudged phase is that of equilibrium propagation at a finite beta, not its linear response: the
activations are evaluated with their kinks (`layer_state.displace`). What is propagated is the
difference to the free phase, so a small beta loses no digits and one nudged phase is enough. With
D the displacement and m = s + D / 2, the contrast of a connection is exactly

    (s + D)_post (s + D)_pre^T - s_post s_pre^T = D_post m_pre^T + m_post D_pre^T

and with centered nudging the same with D = D_+ - D_- and m = s + (D_+ + D_-) / 2. The second term
is about g times the first one; between hidden layers it is left out where g is at most
`SMALL_FEEDBACK`. Connections of a layer to itself are in `loops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import torch

from neuro_eqprop.activations import ActivationKind
from neuro_eqprop.networks import Connection, Cost, Layer, Network, Role
from neuro_eqprop.operators.attention import Attention
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import shape_input
from neuro_eqprop.training.fast.couplings import (
    Coupling,
    DenseCoupling,
    Tensor,
    couple,
    is_of_images,
    pool_of,
)
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.layer_state import (
    Feedback,
    LayerState,
    OutputBlock,
    PlainState,
    PooledState,
    displace,
    feedback_of,
    output_block_of,
    settle,
)
from neuro_eqprop.training.fast.loops import (
    AttentionLoop,
    Loop,
    LoopAtRates,
    MatrixLoop,
)

INNER = 2
"""Iterations of the output with the layer it reads, in each half-sweep but the first.

One more where it reads several layers.
"""
SMALL_FEEDBACK = 0.05
"""Up to this feedback the second term of a contrast between hidden layers is left out."""


def is_supported(network: Network) -> bool:
    """Whether the displacement path settles and updates this network.

    All connections beyond the input are linear and symmetric, and lead from an earlier layer to a
    later one or from a hidden layer to itself, which may also be attention; rates are clipped or
    tanh; the output is the last layer, clipped or a readout with cross-entropy cost.
    """
    order = {layer.name: k for k, layer in enumerate(network.layers)}
    hidden = network.moving[:-1]
    clipped = network.output.activation.curve is ActivationKind.CLIP
    return (
        network.layers[0] is network.input
        and network.layers[-1] is network.output
        and bool(hidden)
        and (network.cost is Cost.CROSS_ENTROPY or clipped)
        and all(x.activation.curve in (ActivationKind.CLIP, ActivationKind.TANH) for x in hidden)
        and all(is_coupling(network, order, c) for c in network.connections)
        and all(any(c.target == x.name for c in network.connections) for x in network.moving)
    )


def is_coupling(network: Network, order: Mapping[str, int], connection: Connection) -> bool:
    """Whether a connection acts both ways, linearly or by attention, or comes from the input."""
    entering = network[connection.source].role is Role.INPUT
    if connection.loops:
        known = connection.operator.matrix or isinstance(connection.operator, Attention)
        return known and connection.symmetric and connection.source != network.output.name
    if not (connection.operator.linear or entering):
        return False
    forwards = order[connection.source] < order[connection.target]
    return forwards and (connection.symmetric or entering)


@dataclass(frozen=True, slots=True)
class Link:
    """A coupling to another layer, by its position among the hidden ones."""

    connection: Connection
    coupling: Coupling
    other: int
    gain: float
    """The feedback g of the connection."""


@dataclass(frozen=True, slots=True)
class LoopLink:
    """A connection of a layer to itself."""

    connection: Connection
    loop: Loop


@dataclass(frozen=True)
class Node:
    """A hidden layer with its couplings."""

    layer: Layer
    pool: int
    """Side of the squares over which all later layers see its rates."""
    entering: tuple[Link, ...]
    """From the input."""
    lower: tuple[Link, ...]
    """From earlier hidden layers."""
    upper: tuple[Link, ...]
    """To later hidden layers."""
    loops: tuple[LoopLink, ...]
    readout: Link | None
    """To the output."""

    @property
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
    """The couplings of a network for given parameters; `build` makes one."""

    ops: TorchOps
    network: Network
    params: Mapping[str, Tensor]
    stored: bool
    """Whether images are stored channels last."""
    nodes: tuple[Node, ...]
    readouts: tuple[Link, ...]
    """To the output, from the hidden layers and, with other = -1, from the input."""

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """Positions of the layers that the output reads."""
        return tuple(link.other for link in self.readouts if link.other >= 0)

    @property
    def inner(self) -> int:
        """Iterations of the output with the layers it reads."""
        if not self.feeds_back_at_rest:
            return 1  # its displacement does not depend on theirs to first order in beta
        return INNER if len(self.readers) == 1 else INNER + 1

    @property
    def feeds_back_at_rest(self) -> bool:
        """Whether the output feeds back in the free phase; a readout does not."""
        return self.network.cost is Cost.SQUARED

    def bias(self, layer: Layer) -> Tensor:
        """The bias in the layout of the layer; one value per channel stays a vector."""
        values = self.params[layer.name]
        if not (self.stored and len(layer.shape) == 3):
            return values
        stored = values.permute(1, 2, 0)
        return stored.reshape(-1) if layer.bias[1:] == (1, 1) else stored

    def bias_gradient(self, layer: Layer, summed: Tensor) -> Tensor:
        """A sum over the batch, in the shape of the bias."""
        if summed.ndim == 1 and len(layer.shape) == 3:
            return summed.reshape(layer.bias)
        first = summed.permute(2, 0, 1) if self.stored and summed.ndim == 3 else summed
        shared = [k for k, n in enumerate(layer.bias) if n == 1 and layer.shape[k] > 1]
        return (first.sum(dim=shared, keepdim=True) if shared else first).contiguous()

    def inputs(self, x: Tensor) -> Tensor:
        """The samples in the layout of the input layer."""
        shaped: Tensor = shape_input(self.network, x)
        if not (self.stored and shaped.ndim == 4):
            return shaped
        # A copy, since torch takes images of one channel for channels-first ones.
        return shaped.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format)


@dataclass(frozen=True, slots=True)
class Plan:
    """The structure of a network that a chain uses, without parameters.

    Connections are given by their positions in the network.
    """

    stored: bool
    pools: tuple[int, ...]
    """Of the sources of the connections."""
    ends: tuple[tuple[int, int], ...]
    """Source and target of each connection among the hidden layers, -1 for input and output."""
    nodes: tuple[NodePlan, ...]
    readouts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The connections of a hidden layer, as in `Node`."""

    layer: Layer
    pool: int
    entering: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    loops: tuple[int, ...]
    readout: int | None


@keep_last
def plan_of(network: Network) -> Plan:
    """The plan of a supported network."""
    connections = network.connections
    stored = all(is_of_images(c.operator) for c in connections)
    hidden = network.moving[:-1]
    place = {layer.name: k for k, layer in enumerate(hidden)}
    place |= {network.input.name: -1, network.output.name: -1}
    pools = {layer.name: port_pool(network, layer, stored) for layer in hidden}
    nodes = []
    for layer in hidden:
        into = [k for k, c in enumerate(connections) if c.target == layer.name and not c.loops]
        out = [k for k, c in enumerate(connections) if c.source == layer.name and not c.loops]
        reads = [k for k in out if connections[k].target == network.output.name]
        nodes.append(
            NodePlan(
                layer,
                pools[layer.name],
                tuple(k for k in into if connections[k].source == network.input.name),
                tuple(k for k in into if connections[k].source != network.input.name),
                tuple(k for k in out if k not in reads),
                tuple(k for k, c in enumerate(connections) if c.loops and c.source == layer.name),
                reads[0] if reads else None,
            )
        )
    return Plan(
        stored,
        tuple(pools.get(c.source, 1) for c in connections),
        tuple((place[c.source], place[c.target]) for c in connections),
        tuple(nodes),
        tuple(k for k, c in enumerate(connections) if c.target == network.output.name),
    )


def build(ops: TorchOps, network: Network, params: Mapping[str, Tensor]) -> Chain:
    """The chain of a supported network."""
    plan = plan_of(network)
    below, above, loops = dict[int, Link](), dict[int, Link](), dict[int, LoopLink]()
    ends = zip(network.connections, plan.pools, plan.ends, strict=True)
    for k, (c, pool, (source, target)) in enumerate(ends):
        weight = params[c.name]
        if c.loops and isinstance(c.operator, Attention):
            loops[k] = LoopLink(c, AttentionLoop(ops, c.operator, weight))
            continue
        made = couple(ops, network, c, weight, stored=plan.stored, source_pool=pool)
        if c.loops:
            loops[k] = LoopLink(c, MatrixLoop(ops, made))
        else:
            gain = network.feedback(c)
            below[k], above[k] = Link(c, made, source, gain), Link(c, made, target, gain)
    nodes = tuple(
        Node(
            node.layer,
            node.pool,
            tuple(below[k] for k in node.entering),
            tuple(below[k] for k in node.lower),
            tuple(above[k] for k in node.upper),
            tuple(loops[k] for k in node.loops),
            None if node.readout is None else above[node.readout],
        )
        for node in plan.nodes
    )
    readouts = tuple(below[k] for k in plan.readouts)
    return Chain(ops, network, params, plan.stored, nodes, readouts)


def port_pool(network: Network, layer: Layer, stored: bool) -> int:
    """Side of the squares that every connection that leaves a layer averages over; else 1."""
    leaving = [c for c in network.connections if c.source == layer.name]
    image = stored and len(layer.shape) == 3 and layer.bias[1:] == (1, 1)
    if not image or any(c.loops for c in leaving):
        return 1
    return gcd(*(pool_of(c) for c in leaving))


@dataclass(frozen=True, slots=True)
class Nudge:
    """The cost 1/2 |s_o - y|^2 (or the cross-entropy) of the target y, times beta."""

    target: Tensor
    beta: float


@dataclass(slots=True)
class Rest:
    """The free equilibrium of a batch."""

    x: Tensor
    """In the layout of the input layer."""
    layers: list[LayerState]
    entered: list[Tensor]
    """Bias, plus the drive from the input, of layers that other hidden layers drive."""
    held: list[Tensor | None]
    """Feedback of later hidden layers, by layer."""
    around: list[Tensor | None]
    """Drive of a layer by itself."""
    loops: list[tuple[LoopAtRates, ...]]
    """The loops of each layer at its settled rates."""
    output_base: Tensor
    """Bias of the output, and its drive from the input if there is one."""
    drive: Tensor
    """Drive of the output."""
    output: Tensor | None = None
    """Rates of the output; None for a readout, where they are zero."""
    block: OutputBlock | None = None
    """The output with the one layer it reads, where compiled code settles them."""
    residual: Tensor | None = None
    """Largest change of a rate in the last pair of half-sweeps, if measured."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """The displacements of a batch by one nudge, by hidden layer."""

    rates: list[Tensor]
    """As later layers see them."""
    full: list[Tensor]
    """Of each unit."""
    bias: list[Tensor]
    """Sums over the batch, and over the pixels of an image."""
    output: Tensor
    beta: float


def plus(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum, with None for zero."""
    return b if a is None else (a if b is None else a + b)


def free(chain: Chain, x: Tensor, pairs: int, *, measured: bool = False) -> Rest:
    """Settle a batch without nudge: a half-sweep upwards, then (downwards, upwards) x pairs."""
    rest, before = start(chain, x), list[Tensor]()
    upwards(chain, rest, first=True, last=not pairs)
    for k in range(pairs):
        last = k == pairs - 1
        before = rates_of(rest) if measured and last else before
        downwards(chain, rest, last=last)
        upwards(chain, rest, first=False, last=last)
    for k, state in enumerate(rest.layers):
        if not state.finished:
            settle_layer(chain, rest, k, last=True)
    rest.loops = [
        tuple(link.loop.at(state.rates) for link in node.loops)
        for node, state in zip(chain.nodes, rest.layers, strict=True)
    ]
    if measured:
        now = rates_of(rest)
        # The output comes last; it has no earlier rates where there was one pair alone.
        changes = [a - b for a, b in zip(now, before, strict=False)] if pairs else now
        rest.residual = torch.stack([change.abs().amax() for change in changes]).amax()
    return rest


def rates_of(rest: Rest) -> list[Tensor]:
    """Copies of all rates, as later layers see them."""
    rates = [state.rates.clone() for state in rest.layers]
    return rates if rest.output is None else [*rates, rest.output.clone()]


def start(chain: Chain, x: Tensor) -> Rest:
    """The drives from the input."""
    inputs = chain.inputs(x)
    layers: list[LayerState] = []
    entered: list[Tensor] = []
    for node in chain.nodes:
        rate = node.layer.activation
        state: LayerState = (
            PooledState(chain.ops, rate, node.pool, keeps=contrasts_both_ways(node))
            if node.pool > 1
            else PlainState(chain.ops, rate)
        )
        total = chain.bias(node.layer)
        for link in node.entering:
            total = link.coupling.up(inputs, total)
        if not node.lower:
            state.drive(total)
        layers.append(state)
        entered.append(total)
    base = chain.bias(chain.network.output)
    for link in chain.readouts:
        if link.other < 0:
            base = link.coupling.up(inputs, base)
    none: list[Tensor | None] = [None] * len(layers)
    rest = Rest(inputs, layers, entered, none, list(none), [], base, base)
    rest.block = output_block(chain, layers)
    return rest


def contrasts_both_ways(node: Node) -> bool:
    """Whether the contrast with an earlier hidden layer has its second term."""
    return any(link.gain > SMALL_FEEDBACK for link in node.lower)


def output_block(chain: Chain, layers: Sequence[LayerState]) -> OutputBlock | None:
    """The output with the one layer that it reads, if compiled code settles them."""
    link = chain.readouts[0]
    node, state = chain.nodes[link.other], layers[link.other]
    if not (
        chain.feeds_back_at_rest
        and len(chain.readouts) == 1
        and link.other >= 0
        and isinstance(link.coupling, DenseCoupling)
        and isinstance(state, PlainState)
        and len(node.layer.shape) == 1
        and node.layer.activation.piecewise_linear
        and not (node.upper or node.loops)
        and chain.ops.numpy_view(link.coupling.weight) is not None
    ):
        return None
    rate = chain.network.output.activation
    return output_block_of(state, link.coupling.weight, rate, link.gain, chain.inner)


def upwards(chain: Chain, rest: Rest, *, first: bool, last: bool) -> None:
    """New drives from below, from the first layer to the output."""
    for k, node in enumerate(chain.nodes):
        state = rest.layers[k]
        if not (first or node.moves_upwards):
            continue
        if node.lower:
            total = rest.entered[k]
            for link in node.lower:
                total = link.coupling.up(rest.layers[link.other].rates, total)
            state.drive(total)
        if not first:
            rest.around[k] = around(node, state.rates, rest.around[k])
        with_output = node.readout and chain.feeds_back_at_rest and (last or not first)
        if not (with_output and rest.block):
            settle_layer(chain, rest, k, last=last and not with_output)
    if last or (chain.feeds_back_at_rest and not first):
        solve_output(chain, rest, last=last)


def around(node: Node, values: Tensor, out: Tensor | None = None) -> Tensor | None:
    """The drive of a layer by itself, written to `out` where possible."""
    total: Tensor | None = None
    for link in node.loops:
        total = link.loop.drive(values, total, out if total is None else None)
    return total


def settle_layer(chain: Chain, rest: Rest, k: int, *, last: bool) -> None:
    """New rates of a layer; `last` if they do not change again in this phase."""
    held = plus(rest.held[k], rest.around[k])
    rest.layers[k].settle(held, output_feedback(chain.nodes[k], rest.output), last=last)


def output_feedback(node: Node, y: Tensor | None) -> Feedback:
    """The feedback of rates or displacements y of the output."""
    link = node.readout
    return (
        feedback_of(None, None, 0.0) if link is None else feedback_of(link.coupling, y, link.gain)
    )


def solve_output(chain: Chain, rest: Rest, *, last: bool) -> None:
    """New rates of the output and of the layers it reads, in turns."""
    if rest.block:
        rest.drive, rest.output = rest.block.settle(rest.output_base, rest.output, last=last)
        return
    for left in reversed(range(chain.inner + 1)):
        rest.drive = read(chain, rest.output_base, [state.rates for state in rest.layers])
        if not chain.feeds_back_at_rest:
            return
        rest.output = settle(chain.network.output.activation, rest.drive)
        for k in reversed(chain.readers if left else ()):
            settle_layer(chain, rest, k, last=last and left == 1)


def read(chain: Chain, onto: Tensor, values: Sequence[Tensor | None]) -> Tensor:
    """onto + the drive of the output by the hidden layers."""
    for link in chain.readouts:
        value = values[link.other] if link.other >= 0 else None
        if value is not None:
            onto = link.coupling.up(value, onto)
    return onto


def downwards(chain: Chain, rest: Rest, *, last: bool) -> None:
    """New feedback between hidden layers, from the last to the first."""
    for k, node in reversed(list(enumerate(chain.nodes))):
        if node.upper:
            total: Tensor | None = None
            for link in node.upper:
                total = link.coupling.down(rest.layers[link.other].full, total, link.gain)
            rest.held[k] = total
            if node.attends:
                continue
            ends = last and not node.moves_upwards and node.readout is None
            settle_layer(chain, rest, k, last=ends)


def displaced(chain: Chain, rest: Rest, nudge: Nudge, sweeps: int = 1) -> Shifts:
    """The displacements of all rates by a nudge: the nudged phase minus the free one.

    A half-sweep downwards from the output, then (upwards, downwards) x (sweeps - 1).
    """
    work = Displacement(chain, rest, nudge)
    work.downwards(keep=sweeps > 1)
    for left in reversed(range(sweeps - 1)):
        work.upwards()
        work.downwards(keep=left > 0)
    return work.result()


class Displacement:
    """The displacements of a batch while they settle."""

    def __init__(self, chain: Chain, rest: Rest, nudge: Nudge) -> None:
        self.chain, self.rest, self.nudge = chain, rest, nudge
        self.held: list[Tensor | None] = [None] * len(chain.nodes)
        self.below: list[Tensor | None] = [None] * len(chain.nodes)
        for state in rest.layers:
            state.clear()
        error = nudge.target - rest.drive
        self.pull = error * nudge.beta
        output = rest.output
        self.excess = None if output is None else rest.drive - output
        if rest.block and output is not None:
            self.output = rest.block.displace(self.pull, nudge.beta, (rest.drive, output))
        else:
            self.output = self.solve_output()

    def solve_output(self) -> Tensor:
        """Displacements of the output and of the layers it reads, in turns."""
        found = self.output_shift()
        for left in reversed(range(self.chain.inner)):
            for k in reversed(self.chain.readers):
                self.displace_layer(k, found, self.held[k])
            if left:
                found = self.output_shift()
        return found

    def output_shift(self) -> Tensor:
        """The displacement of the output by those of the hidden layers."""
        shifts = [state.shift for state in self.rest.layers]
        beta, target = self.nudge.beta, self.nudge.target
        if self.rest.output is None:
            drive = read(self.chain, self.rest.drive, shifts)
            return (target - torch.softmax(drive, dim=-1)).mul_(beta)
        # rho((d + D_d + beta y) / (1 + beta)) - rho(d), with d the drive of the free phase
        change = read(self.chain, self.pull, shifts) / (1.0 + beta)
        rate = self.chain.network.output.activation
        return displace(rate, change, self.rest.output, self.excess)

    def displace_layer(self, k: int, output: Tensor, held: Tensor | None) -> None:
        """New displacements of a layer; `held` is overwritten unless the output reads the layer."""
        change = output_feedback(self.chain.nodes[k], output)(held, None)
        self.rest.layers[k].displace(change, self.below[k])

    def downwards(self, *, keep: bool) -> None:
        """New changes of the feedback between hidden layers; `keep` them for another sweep."""
        for k, node in reversed(list(enumerate(self.chain.nodes))):
            if node.upper:
                total: Tensor | None = None
                for link in node.upper:
                    shift = self.rest.layers[link.other].full_shift
                    if shift is not None:
                        total = link.coupling.down(shift, total, link.gain)
                self.held[k] = total.clone() if keep and total is not None else None
                self.displace_layer(k, self.output, total)

    def upwards(self) -> None:
        """New changes of the drives from below, then of the output."""
        for k, node in enumerate(self.chain.nodes):
            if node.moves_upwards:
                moved = self.rest.layers[k].shift
                total: Tensor | None = None
                for loop in self.rest.loops[k]:
                    total = plus(total, None if moved is None else loop.change(moved))
                for link in node.lower:
                    shift = self.rest.layers[link.other].shift
                    if shift is not None:
                        none = torch.zeros_like(self.chain.bias(node.layer))
                        total = link.coupling.up(shift, none if total is None else total)
                self.below[k] = total
                if node.readout is None:  # else the output's iterations do it
                    held = self.held[k]
                    self.displace_layer(k, self.output, None if held is None else held.clone())
        self.output = self.solve_output()

    def result(self) -> Shifts:
        """The displacements."""
        rates, full, bias = list[Tensor](), list[Tensor](), list[Tensor]()
        for state in self.rest.layers:
            if state.shift is None:  # too few sweeps for the nudge to reach this layer
                state.stay()
            assert state.shift is not None
            assert state.full_shift is not None
            rates.append(state.shift)
            full.append(state.full_shift)
            bias.append(state.bias_shift())
        return Shifts(rates, full, bias, self.output, self.nudge.beta)


def slopes(chain: Chain, rest: Rest, shifts: Sequence[Shifts], scale: float) -> dict[str, Tensor]:
    """The contrast of the phases for each parameter, times `scale`.

    `shifts` has the displacements of one nudge, contrasted with the free phase, or those of a
    positive and a negative one. Rates and displacements are overwritten, and so is the gradient
    that the optimiser left with a parameter: getting fresh memory for each batch takes time.
    """
    release(rest)
    (delta, gap), output = difference(shifts), middle(rest, shifts)
    loops = rest.loops
    if len(shifts) > 1:  # contrasted with the phase of the lower beta, not with the free one
        loops = [
            tuple(link.loop.at(state.rates - 0.5 * d) for link in node.loops)
            for node, state, d in zip(chain.nodes, rest.layers, delta.rates, strict=True)
        ]
    network = chain.network
    per = scale / gap / network.output.stiffness
    found: dict[str, Tensor] = {}
    factor = per * network.output.stiffness
    found[network.output.name] = delta.output.sum(dim=0) * factor
    for link in chain.readouts:
        pre = rest.x if link.other < 0 else rest.layers[link.other].rates
        slope = link.coupling.slope(delta.output, pre, factor)
        if link.other >= 0:
            slope += link.coupling.slope(output, delta.rates[link.other], factor)
        found[link.connection.name] = slope
    # The largest weights, those from the input, come last: the optimiser finds them in the cache.
    for k, node in reversed(list(enumerate(chain.nodes))):
        layer, factor = node.layer, per * node.layer.stiffness
        found[layer.name] = chain.bias_gradient(layer, delta.bias[k] * factor)
        for link in node.entering:
            out = chain.params[link.connection.name].grad
            found[link.connection.name] = link.coupling.slope(delta.full[k], rest.x, factor, out)
        for link in node.lower:
            pre = rest.layers[link.other].rates
            out = chain.params[link.connection.name].grad
            slope = link.coupling.slope(delta.full[k], pre, factor, out)
            if link.gain > SMALL_FEEDBACK:
                post = rest.layers[k].full
                slope += link.coupling.slope(post, delta.rates[link.other], factor)
            found[link.connection.name] = slope
        for around_link, loop in zip(node.loops, loops[k], strict=True):
            out, m = chain.params[around_link.connection.name].grad, rest.layers[k].full
            found[around_link.connection.name] = loop.slope(delta.full[k], m, factor, out)
    return found


def release(rest: Rest) -> None:
    """Free the drives, which slopes do not need, before gradients take memory."""
    for state in rest.layers:
        state.release()
    rest.entered.clear()
    rest.held.clear()
    rest.around.clear()


def middle(rest: Rest, shifts: Sequence[Shifts]) -> Tensor:
    """Move the hidden rates to m, half-way between the contrasted phases; that of the output."""
    output = 0.5 * sum((each.output for each in shifts[1:]), shifts[0].output)
    for each in shifts:
        for state, rates, full in zip(rest.layers, each.rates, each.full, strict=True):
            state.advance(rates, full, 0.5)
    return output if rest.output is None else rest.output + output


def difference(shifts: Sequence[Shifts]) -> tuple[Shifts, float]:
    """D of one nudge, or D_+ - D_- of two; and the difference of the contrasted betas."""
    if len(shifts) == 1:
        return shifts[0], shifts[0].beta
    high, low = sorted(shifts, key=lambda each: -each.beta)
    full = [a - b for a, b in zip(high.full, low.full, strict=True)]
    rates = [
        full[k] if high.rates[k] is high.full[k] else high.rates[k] - low.rates[k]
        for k in range(len(full))
    ]
    bias = [a - b for a, b in zip(high.bias, low.bias, strict=True)]
    gap = high.beta - low.beta
    return Shifts(rates, full, bias, high.output - low.output, gap), gap
