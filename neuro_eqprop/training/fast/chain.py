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
is at most g |W|^2 times the first one; between hidden layers it is left out where that is small
(`NEGLIGIBLE_TERM`). Connections of a layer to itself are in `loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from neuro_eqprop.training.fast.couplings import Tensor
from neuro_eqprop.training.fast.layer_state import LayerState, displace, settle, state_of
from neuro_eqprop.training.fast.loops import LoopAtRates
from neuro_eqprop.training.fast.structure import Chain, Node


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
        tuple([link.loop.at(state.rates) for link in node.loops])
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
        state, total = state_of(node.units), node.bias
        for link in node.entering:
            total = link.coupling.up(inputs, total)
        if not node.lower:
            state.drive(total)
        layers.append(state)
        entered.append(total)
    base = chain.params[chain.network.output.name]
    for link in chain.readouts:
        if link.other < 0:
            base = link.coupling.up(inputs, base)
    none: list[Tensor | None] = [None] * len(layers)
    return Rest(inputs, layers, entered, none, none.copy(), [], base, base)


def upwards(chain: Chain, rest: Rest, *, first: bool, last: bool) -> None:
    """New drives from below, from the first layer to the output."""
    solves = last or (chain.feeds_back_at_rest and not first)
    for k, node in enumerate(chain.nodes):
        if not (first or node.moves_upwards):
            continue
        if node.lower:
            total = rest.entered[k]
            for link in node.lower:
                total = link.coupling.up(rest.layers[link.other].rates, total)
            rest.layers[k].drive(total)
        if node.loops and not first:
            rest.around[k] = around(node, rest.layers[k].rates, rest.around[k])
        with_output = node.readout is not None and solves and chain.feeds_back_at_rest
        if not (with_output and chain.squared_block):
            settle_layer(chain, rest, k, last=last and not with_output)
    if solves:
        solve_output(chain, rest, last=last)


def around(node: Node, values: Tensor, out: Tensor | None = None) -> Tensor | None:
    """The drive of a layer by itself, written to `out` where possible."""
    total: Tensor | None = None
    for link in node.loops:
        total = link.loop.drive(values, total, out if total is None else None)
    return total


def settle_layer(chain: Chain, rest: Rest, k: int, *, last: bool) -> None:
    """New rates of a layer; `last` if they do not change again in this phase."""
    fed = plus(rest.held[k], rest.around[k])
    rest.layers[k].settle(with_feedback(chain.nodes[k], rest.output, fed), last=last)


def with_feedback(node: Node, y: Tensor | None, onto: Tensor | None) -> Tensor | None:
    """onto + the feedback of rates or displacements y of the output."""
    link = node.readout
    return onto if link is None or y is None else link.coupling.down(y, onto, link.gain)


def solve_output(chain: Chain, rest: Rest, *, last: bool) -> None:
    """New rates of the output and of the layers it reads, in turns."""
    if not chain.feeds_back_at_rest:
        rest.drive = read(chain, rest.output_base, [state.rates for state in rest.layers])
        return
    if chain.squared_block:
        state = rest.layers[chain.readers[0]]
        rest.drive, rest.output = chain.squared_block.settle(state, rest.output, last=last)
        return
    for left in reversed(range(chain.inner + 1)):
        rest.drive = read(chain, rest.output_base, [state.rates for state in rest.layers])
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
    for k, node in chain.downwards:
        total: Tensor | None = None
        for link in node.upper:
            total = link.coupling.down(rest.layers[link.other].full, total, link.gain)
        rest.held[k] = total
        if not node.attends:
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
        if chain.squared_block and rest.output is not None:
            state, at = rest.layers[chain.readers[0]], (rest.drive, rest.output)
            self.output = chain.squared_block.displace(state, at, nudge.target, nudge.beta)
        else:
            self.output = self.solve_output()

    def solve_output(self) -> Tensor:
        """Displacements of the output and of the layers it reads, in turns."""
        chain, rest, nudge = self.chain, self.rest, self.nudge
        if chain.softmax_block:
            k = chain.readers[0]
            known = rest.layers[k], rest.drive, nudge.target, nudge.beta
            return chain.softmax_block.displace(*known, self.below[k])
        found = self.output_shift()
        for left in reversed(range(chain.inner)):
            for k in reversed(chain.readers):
                self.displace_layer(k, found, self.held[k])
            if left:
                found = self.output_shift()
        return found

    def output_shift(self) -> Tensor:
        """The displacement of the output by those of the hidden layers."""
        shifts = [state.shift for state in self.rest.layers]
        beta, target, drive = self.nudge.beta, self.nudge.target, self.rest.drive
        if self.rest.output is None:
            drive = read(self.chain, drive, shifts)
            return (target - torch.softmax(drive, dim=-1)).mul_(beta)
        # rho((d + D_d + beta y) / (1 + beta)) - rho(d), with d the drive of the free phase
        change = read(self.chain, (target - drive) * beta, shifts) / (1.0 + beta)
        rate = self.chain.network.output.activation
        return displace(rate, change, self.rest.output, drive - self.rest.output)

    def displace_layer(self, k: int, output: Tensor, held: Tensor | None) -> None:
        """New displacements of a layer; `held` is overwritten unless the output reads the layer."""
        change = with_feedback(self.chain.nodes[k], output, held)
        self.rest.layers[k].displace(change, self.below[k])

    def downwards(self, *, keep: bool) -> None:
        """New changes of the feedback between hidden layers; `keep` them for another sweep."""
        for k, node in self.chain.downwards:
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
                        none = torch.zeros_like(node.bias)
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


def slopes(
    chain: Chain,
    rest: Rest,
    shifts: Sequence[Shifts],
    scale: float,
    spare: dict[str, Tensor],
) -> dict[str, Tensor]:
    """The contrast of the phases for each parameter, times `scale`.

    `shifts` has the displacements of one nudge, contrasted with the free phase, or those of a
    positive and a negative one. Rates and displacements are overwritten, and so are the arrays of
    `spare`, which are taken out of it.
    """
    release(rest)
    (delta, gap), output = difference(shifts), middle(rest, shifts)
    loops = rest.loops
    if len(shifts) > 1:  # contrasted with the phase of the lower beta, not with the free one
        loops = [
            tuple(link.loop.at(state.rates - 0.5 * d) for link in node.loops)
            for node, state, d in zip(chain.nodes, rest.layers, delta.rates, strict=True)
        ]
    output_layer = chain.network.output
    factor = scale / gap
    summed = delta.output.sum(dim=0).mul_(factor)
    found = {output_layer.name: chain.bias_gradient(output_layer, summed)}
    for link in chain.readouts:
        if link.other < 0:
            terms = [(delta.output, rest.x)]
        else:
            terms = [(delta.output, rest.layers[link.other].rates)]
            terms.append((output, delta.rates[link.other]))
        found[link.name] = link.coupling.slope(factor, *terms, out=spare.pop(link.name, None))
    # The largest weights, those from the input, come last: the optimizer finds them in the cache.
    for k in reversed(range(len(chain.nodes))):
        node, shift = chain.nodes[k], delta.full[k]
        factor = scale / gap * (node.layer.stiffness / output_layer.stiffness)
        found[node.layer.name] = chain.bias_gradient(node.layer, delta.bias[k].mul_(factor))
        for link in node.lower:
            terms = [(shift, rest.layers[link.other].rates)]
            if link.both_ways:
                terms.append((rest.layers[k].full, delta.rates[link.other]))
            found[link.name] = link.coupling.slope(factor, *terms, out=spare.pop(link.name, None))
        for around_link, loop in zip(node.loops, loops[k], strict=True):
            name, m = around_link.name, rest.layers[k].full
            found[name] = loop.slope(shift, m, factor, spare.pop(name, None))
        for link in node.entering:
            out = spare.pop(link.name, None)
            found[link.name] = link.coupling.slope(factor, (shift, rest.x), out=out)
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
    output = torch.zeros_like(rest.drive) if rest.output is None else rest.output
    for each in shifts:
        output = torch.add(output, each.output, alpha=0.5)
        for state, rates, full in zip(rest.layers, each.rates, each.full, strict=True):
            state.advance(rates, full, 0.5)
    return output


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
