"""Perceptrons whose connections act both ways, with and without a loop."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from neuro_eqprop.activations import Activation
from neuro_eqprop.networks import Connection, Layer, Network, Role
from neuro_eqprop.operators import DelayedFeedback


def layered(
    inputs: int,
    hidden: tuple[int, ...],
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
    stem: int = 0,
) -> Network:
    """x -> h1 <-> h2 <-> ... <-> output: a multilayer perceptron whose connections act both ways.

    `bound` is kept on the spectral norm of every connection that acts both ways. `feedback` scales
    what comes back: each layer is that much less stiff than the one before it. Nothing comes back
    to the first `stem` hidden layers, which learn by backprop in the hybrid rule.
    """
    names = ["hidden"] if len(hidden) == 1 else [f"hidden{k + 1}" for k in range(len(hidden))]
    if not hidden:
        raise ValueError("a layered network needs at least one hidden layer")
    if not 0 <= stem < len(hidden):
        raise ValueError(f"a stem of {stem} leaves no hidden layer of {len(hidden)} to settle")
    layers = [Layer("input", (inputs,), output_rate, Role.INPUT)]
    layers += [
        Layer(name, (size,), hidden_rate, stiffness=feedback**k)
        for k, (name, size) in enumerate(zip(names, hidden, strict=True))
    ]
    softest = feedback ** len(hidden)
    layers += [Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest)]
    connections = tuple(
        Connection(a.name, b.name, symmetric=k == 0 or k > stem, bound=bound if k > stem else None)
        for k, (a, b) in enumerate(pairwise(layers))
    )
    return Network(tuple(layers), connections)


def looped(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None,
    symmetric: bool = True,
) -> Network:
    """x -> h <-> output, and h -> h by a matrix of spectral norm at most `bound`.

    A matrix that is not `symmetric` leaves the network without an energy.
    """
    plain = layered(inputs, (hidden,), outputs, hidden_rate=hidden_rate, output_rate=output_rate)
    loop = Connection("hidden", "hidden", symmetric=symmetric, bound=bound)
    return Network(plain.layers, (plain.connections[0], loop, *plain.connections[1:]))


ECHO = DelayedFeedback((0.9, 0.81, 0.729))
"""The past that a torus hears: three steps, each fainter."""
ECHO_PART = 0.25
"""How much of a torus's bound its echo may take."""


def toroidal(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float,
) -> Network:
    """As `looped`, and h also hears its last three states, with one gain for all.

    The two loops share the bound: at equilibrium their sum is what has to contract.
    """
    echo = Connection("hidden", "hidden", ECHO, bound=bound * ECHO_PART, label="echo")
    plain = looped(
        inputs,
        hidden,
        outputs,
        hidden_rate=hidden_rate,
        output_rate=output_rate,
        bound=bound * (1.0 - ECHO_PART),
    )
    return replace(plain, connections=(*plain.connections, echo))


def feed_forward(network: Network) -> Network:
    """The twin for backprop: nothing acts back, no loops, so that one sweep is its equilibrium.

    Bounds stay where they are, though nothing needs them in order to settle.
    """
    order = [layer.name for layer in network.layers]
    forwards = tuple(
        replace(c, symmetric=False)
        for c in network.connections
        if order.index(c.source) < order.index(c.target)
    )
    return replace(network, connections=forwards)
