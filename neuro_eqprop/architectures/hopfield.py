"""Networks whose state is answered by memory units: the modern network, and one of three scales.

Memory units m = rho(W h + b) that act back on h by W^T minimise the energy
E(h, m) = G(h) + G(m) - m . W h - b . m. With tanh and m put in, that is the dense associative
memory G(h) - sum log cosh(W h + b), so nothing but layers and connections is needed for it.
"""

from __future__ import annotations

from itertools import pairwise

from neuro_eqprop.activations import LINEAR, Activation
from neuro_eqprop.networks import Connection, Cost, Layer, Network, Role
from neuro_eqprop.operators import LayerNorm


def ends(inputs: int, outputs: int, output_rate: Activation) -> tuple[Layer, Layer]:
    """The input and the output layer."""
    return (
        Layer("input", (inputs,), output_rate, Role.INPUT),
        Layer("output", (outputs,), output_rate, Role.OUTPUT),
    )


def modern(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    memory: int,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float,
) -> Network:
    """x -> h <-> memory, h <-> output: the tied-weight form of the notes' modern network."""
    first, last = ends(inputs, outputs, output_rate)
    layers = (
        first,
        Layer("hidden", (hidden,), hidden_rate),
        Layer("memory", (memory,), hidden_rate),
        last,
    )
    connections = (
        Connection("input", "hidden"),
        Connection("hidden", "memory", bound=bound),
        Connection("hidden", "output"),
    )
    return Network(layers, connections)


def modern_notes(
    inputs: int, hidden: int, outputs: int, *, memory: int, hidden_rate: Activation, bound: float
) -> Network:
    """h = W_2 rho(W_1 n(h)) + W_e x, read by a softmax: the notes' form, which has no energy."""
    first, last = ends(inputs, outputs, LINEAR)
    layers = (
        first,
        Layer("hidden", (hidden,), LINEAR),
        Layer("memory", (memory,), hidden_rate),
        last,
    )
    connections = (
        Connection("input", "hidden"),
        Connection("hidden", "memory", LayerNorm(), symmetric=False, bound=bound),
        Connection("memory", "hidden", symmetric=False, bound=bound),
        Connection("hidden", "output"),
    )
    return Network(layers, connections, Cost.CROSS_ENTROPY)


SCALES = ("coarse", "middle", "fine")


def multiscale(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float,
) -> Network:
    """Three states of H/4, H/2 and H units, each fed by x and with a memory, coupled in a chain.

    The bound is shared out so that what states and memory bring a layer stays within it.
    """
    if hidden < 4:
        raise ValueError(f"a state of {hidden} units has no quarter")
    first, last = ends(inputs, outputs, output_rate)
    sizes = dict(zip(SCALES, (hidden // 4, hidden // 2, hidden), strict=True))
    states = [Layer(name, (size,), hidden_rate) for name, size in sizes.items()]
    memories = [Layer(f"{name}-memory", (2 * size,), hidden_rate) for name, size in sizes.items()]
    part = bound / 3.0
    connections = [Connection("input", name) for name in SCALES]
    connections += [Connection(n, f"{n}-memory", bound=(bound * part) ** 0.5) for n in SCALES]
    connections += [Connection(a, b, bound=part) for a, b in pairwise(SCALES)]
    connections += [Connection(name, "output", bound=bound / 3.0**0.5) for name in SCALES]
    return Network((first, *states, *memories, last), tuple(connections))
