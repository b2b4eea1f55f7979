"""The map whose fixed points are a network's equilibria, the nudge included.

With rates s, target y, and drive d_l = b_l + sum of W s over what arrives at layer l (backwards
(k_target / k_source) W^T s, k being the stiffness of a layer):

    s_l = rho_l(d_l)                        a hidden layer
    s_o = rho_o(d_o + beta (y - s_o))       the output, pulled by the cost 1/2 |s_o - y|^2
    s_o = beta (y - softmax(d_o))           the output that only reads, with the cross-entropy

Where rho_o is straight (any but tanh), the second line is solved at once:
s_o = rho_o((d_o + beta y) / (1 + beta)). The cost is summed, not averaged, over the batch, so
beta is that of each sample. For symmetric connections these are the conditions of a minimum of
`neuro_eqprop.rate.energy` plus beta times the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from neuro_eqprop.activations import ActivationKind
from neuro_eqprop.arrays import Array, Bits
from neuro_eqprop.networks import Cost, DirectedEdge, Network, Role
from neuro_eqprop.ops.protocol import Ops, Values

State: TypeAlias = dict[str, Values]
"""Rates (batch, *layer) of the layers that move."""


@dataclass(frozen=True, slots=True)
class Field:
    """A network at work on a batch; make one with `field`, nudge it with `nudged`."""

    ops: Ops
    network: Network
    params: Mapping[str, Values]
    batch: int
    ways: Mapping[str, tuple[DirectedEdge, ...]]
    fed: Mapping[str, Values]
    """Bias plus what the input brings: constant while the network settles, so computed once."""
    target: Values = None
    beta: complex = 0.0

    def nudged(self, target: Values, beta: complex) -> Field:
        """The same field with the output pulled towards `target` by `beta`."""
        self.check_beta(beta)
        return replace(self, target=target, beta=beta)

    def check_beta(self, beta: complex) -> None:
        """Refuse a nudge at which nothing would settle."""
        if self.network.cost is Cost.SQUARED and beta.real <= -1.0:
            raise ValueError(f"beta {beta} makes the nudged energy unbounded; keep it above -1")

    def rest(self) -> State:
        """The state before settling: all rates zero."""
        zeros = self.ops.zeros
        return {layer.name: zeros((self.batch, *layer.shape)) for layer in self.network.moving}

    def drive(self, name: str, state: State) -> Values:
        """What the units of a layer receive, before nudge and activation; a fresh array."""
        ways = self.ways[name]
        if not ways:
            return self.fed[name] + self.ops.zeros((self.batch, *self.network[name].shape))
        total = self.fed[name]
        for way in ways:
            operator, weight = way.connection.operator, self.params[way.connection.name]
            s = state[way.source]
            if way.back is None:
                total = operator.forward(self.ops, weight, s, total)
            else:
                total = operator.backward(
                    self.ops, weight, s, total, gain=way.back, shape=way.shape
                )
        return total

    def answer(self, name: str, state: State) -> Values:
        """The rates of a layer that follow from the state of the others."""
        layer = self.network[name]
        if layer.role is not Role.OUTPUT:
            return self.ops.activate(layer.activation, self.drive(name, state))
        if self.network.cost is Cost.CROSS_ENTROPY:
            if not self.beta:
                return self.ops.zeros((self.batch, *layer.shape))
            return self.beta * (self.target - self.ops.softmax(self.drive(name, state)))
        u = self.drive(name, state)
        if self.beta:
            if layer.activation.curve is ActivationKind.TANH:
                u = u + self.beta * (self.target - state[name])
            else:
                u = (u + self.beta * self.target) / (1.0 + self.beta)
        return self.ops.activate(layer.activation, u)

    def __call__(self, state: State) -> State:
        """All layers at once, each from the old state of the others."""
        return {name: self.answer(name, state) for name in state}

    def sweep(self, state: State, backwards: bool, damping: float = 1.0) -> State:
        """One layer after another, each from the newest state of the others (Gauss-Seidel)."""
        newest = dict(state)
        for name in reversed(state) if backwards else state:
            to = self.answer(name, newest)
            newest[name] = to if damping == 1.0 else newest[name] + damping * (to - newest[name])
        return newest

    def change(self, new: State, old: State) -> Array:
        """For each sample, the largest change of any rate."""
        changes = [self.ops.largest(new[name] - old[name]) for name in new]
        return np.asarray(np.max(changes, axis=0))

    def dots(self, a: State, b: State) -> Array:
        """For each sample, the scalar product of two states, the first conjugated."""
        return np.asarray(np.sum([self.ops.dots(a[name], b[name]) for name in a], axis=0))

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """The state `yes` in the samples that `rows` marks, `no` in the others."""
        return {name: self.ops.choose(rows, yes[name], no[name]) for name in yes}

    def mix(self, parts: Array, states: list[State]) -> State:
        """For each sample, the sum of states, each times its part (samples, states)."""
        bring = self.ops.bring
        weights = [bring(parts[:, k]) for k in range(len(states))]
        return {
            name: sum(
                w.reshape(-1, *[1] * (s[name].ndim - 1)) * s[name]
                for w, s in zip(weights, states, strict=True)
            )
            for name in states[0]
        }


def field(ops: Ops, network: Network, params: Mapping[str, Values], x: Values) -> Field:
    """The free field of a network on the batch x (samples, features)."""
    fed: dict[str, Values] = {layer.name: params[layer.name] for layer in network.moving}
    x = shaped(network, x)
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            weight, before = params[connection.name], fed[connection.target]
            fed[connection.target] = connection.operator.forward(ops, weight, x, before)
    return Field(ops, network, params, len(x), network.wires, fed)


def shaped(network: Network, x: Values) -> Values:
    """Samples (samples, features) in the shape of the input layer."""
    shape = network.input.shape
    return x if tuple(x.shape[1:]) == shape else x.reshape(len(x), *shape)
