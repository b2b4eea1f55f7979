"""The map whose fixed points are the equilibria of a network, nudge included.

With rates s, target y, and drive d_l = b_l + sum of W s over the edges into layer l (backwards
(k_target / k_source) W^T s, with k the stiffness of a layer):

    s_l = rho_l(d_l)                        a hidden layer
    s_o = rho_o(d_o + beta (y - s_o))       the output, nudged by the cost 1/2 |s_o - y|^2
    s_o = beta (y - softmax(d_o))           a readout with cross-entropy cost

Where rho_o is piecewise linear (all but tanh), the second line is solved in closed form:
s_o = rho_o((d_o + beta y) / (1 + beta)). The cost is summed, not averaged, over the batch, so
beta applies to each sample. For symmetric connections these are the stationarity conditions of the
energy of `neuro_eqprop.dynamics.energy` plus beta times the cost (Scellier & Bengio 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.networks.network import Cost, DirectedEdge, Network, Role
from neuro_eqprop.networks.operators.convolution import MaxPooled
from neuro_eqprop.networks.operators.embedding import Embedding, PaddedOperator
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape

State: TypeAlias = dict[str, Values]
"""Rates (batch, *layer shape) of all layers but the input."""


@dataclass(frozen=True, slots=True)
class Field:
    """The fixed-point map of a network on a batch, created by `field` and nudged by `nudged`."""

    ops: Ops
    network: Network
    params: Mapping[str, Values]
    batch: int
    incoming: Mapping[str, tuple[DirectedEdge, ...]]
    input_drive: Mapping[str, Values]
    """Bias plus drive from the input; constant while the network settles, so computed once."""
    target: Values = None
    beta: complex = 0.0

    def nudged(self, target: Values, beta: complex) -> Field:
        """The same map with the output nudged towards `target` with strength `beta`."""
        if self.network.cost is Cost.SQUARED:
            check_beta(beta)
        return replace(self, target=target, beta=beta)

    def zero_state(self) -> State:
        """The state in which all rates are zero."""
        zeros = self.ops.zeros
        return {layer.name: zeros((self.batch, *layer.shape)) for layer in self.network.moving}

    def drive(self, name: str, state: State) -> Values:
        """The input to the activation of a layer, without the nudge; a new array."""
        edges = self.incoming[name]
        if not edges:
            return self.input_drive[name] + self.ops.zeros((self.batch, *self.network[name].shape))
        total = self.input_drive[name]
        for edge in edges:
            operator, weight = edge.connection.operator, self.params[edge.connection.name]
            s = state[edge.source]
            if edge.back is None:
                total = operator.forward(self.ops, weight, s, total)
            elif isinstance(operator, MaxPooled):
                total = total + edge.back * operator.vjp(self.ops, weight, state[name], s)
            else:
                total = operator.backward(
                    self.ops, weight, s, total, gain=edge.back, shape=edge.shape
                )
        return total

    def update_layer(self, name: str, state: State) -> Values:
        """The new rates of a layer, given the state of the others."""
        layer = self.network[name]
        if layer.role is not Role.OUTPUT:
            return self.ops.activate(layer.activation, self.drive(name, state))
        if self.network.cost is Cost.CROSS_ENTROPY:
            if not self.beta:
                return self.ops.zeros((self.batch, *layer.shape))
            return self.beta * (self.target - self.ops.softmax(self.drive(name, state)))
        u = self.drive(name, state)
        if self.beta:
            if layer.activation.piecewise_linear:
                u = (u + self.beta * self.target) / (1.0 + self.beta)
            else:
                u = u + self.beta * (self.target - state[name])
        return self.ops.activate(layer.activation, u)

    def __call__(self, state: State) -> State:
        """Update all layers at once from the old state (Jacobi)."""
        return {name: self.update_layer(name, state) for name in state}

    def sweep(self, state: State, backwards: bool, damping: float = 1.0) -> State:
        """Update one layer after another from the newest state (Gauss-Seidel)."""
        newest = dict(state)
        for name in reversed(state) if backwards else state:
            to = self.update_layer(name, newest)
            newest[name] = to if damping == 1.0 else newest[name] + damping * (to - newest[name])
        return newest

    def change(self, new: State, old: State) -> Array:
        """The largest change of any rate, for each sample."""
        changes = [self.ops.max_change(new[name], old[name]) for name in new]
        return np.asarray(np.max(changes, axis=0))

    def dots(self, a: State, b: State) -> Array:
        """The scalar product of two states for each sample; the first is conjugated."""
        return np.asarray(np.sum([self.ops.dots(a[name], b[name]) for name in a], axis=0))

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        return {name: self.ops.where(rows, yes[name], no[name]) for name in yes}

    def mix(self, parts: Array, states: list[State]) -> State:
        """The weighted sum of states for each sample; `parts` has the shape (samples, states)."""
        from_numpy = self.ops.from_numpy
        weights = [from_numpy(parts[:, k]) for k in range(len(states))]
        return {
            name: sum(
                reshape(w, (-1, *[1] * (s[name].ndim - 1))) * s[name]
                for w, s in zip(weights, states, strict=True)
            )
            for name in states[0]
        }


def check_beta(beta: complex) -> None:
    """Raise ValueError for a beta at which the energy nudged by squared error has no minimum."""
    if beta.real <= -1.0:
        raise ValueError(f"beta {beta} makes the nudged energy unbounded; keep it above -1")


def field(ops: Ops, network: Network, params: Mapping[str, Values], x: Values) -> Field:
    """The free (not nudged) map of a network on the batch x (samples, features)."""
    input_drive: dict[str, Values] = {layer.name: params[layer.name] for layer in network.moving}
    x = shape_input(network, x)
    network = with_padding_mask(ops, network, x)
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            weight, before = params[connection.name], input_drive[connection.target]
            input_drive[connection.target] = connection.operator.forward(ops, weight, x, before)
    return Field(ops, network, params, x.shape[0], network.incoming, input_drive)


def with_padding_mask(ops: Ops, network: Network, x: Values) -> Network:
    """The network with padding left out on the batch x; the same one if x are not token ids."""
    embeddings = [c.operator for c in network.connections if isinstance(c.operator, Embedding)]
    if not embeddings:
        return network
    mask = embeddings[0].mask(ops, x)
    return replace(
        network,
        connections=tuple(
            replace(c, operator=c.operator.with_mask(mask))
            if isinstance(c.operator, PaddedOperator)
            else c
            for c in network.connections
        ),
    )


def shape_input(network: Network, x: Values) -> Values:
    """Samples (samples, features) as (samples, *input shape)."""
    shape = network.input.shape
    return x if tuple(x.shape[1:]) == shape else reshape(x, (x.shape[0], *shape))
