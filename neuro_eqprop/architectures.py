"""The named networks, each a function that returns a description."""

from __future__ import annotations

from itertools import pairwise

from neuro_eqprop.activations import Activation
from neuro_eqprop.networks import Connection, Layer, Network, Role


def layered(
    inputs: int,
    hidden: tuple[int, ...],
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
) -> Network:
    """x -> h1 <-> h2 <-> ... <-> output: a multilayer perceptron whose connections act both ways.

    `bound` is kept on the spectral norm of every connection that acts both ways. `feedback` scales
    what comes back: each layer is that much less stiff than the one before it.
    """
    names = ["hidden"] if len(hidden) == 1 else [f"hidden{k + 1}" for k in range(len(hidden))]
    if not hidden:
        raise ValueError("a layered network needs at least one hidden layer")
    layers = [Layer("input", (inputs,), output_rate, Role.INPUT)]
    layers += [
        Layer(name, (size,), hidden_rate, stiffness=feedback**k)
        for k, (name, size) in enumerate(zip(names, hidden, strict=True))
    ]
    softest = feedback ** len(hidden)
    layers += [Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest)]
    connections = tuple(
        Connection(a.name, b.name, bound=None if a.role is Role.INPUT else bound)
        for a, b in pairwise(layers)
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
) -> Network:
    """x -> h <-> output, and h <-> h by a symmetric matrix of spectral norm at most `bound`."""
    plain = layered(inputs, (hidden,), outputs, hidden_rate=hidden_rate, output_rate=output_rate)
    loop = Connection("hidden", "hidden", bound=bound)
    return Network(plain.layers, (plain.connections[0], loop, *plain.connections[1:]))
