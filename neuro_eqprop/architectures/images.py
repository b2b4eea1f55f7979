"""Networks over images."""

from __future__ import annotations

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Shape
from neuro_eqprop.networks import Connection, Layer, Network, Role
from neuro_eqprop.operators import Conv2d, Dense, Pooled

POOL = 2


def convolutional(
    image: Shape,
    channels: tuple[int, ...],
    outputs: int,
    *,
    kernel: int,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
) -> Network:
    """Kernels over an image (channels, height, width), means of 2 by 2 between them, a dense end.

    The means belong to the connections, which act both ways; `bound` and `feedback` as in
    `layered`. Units of a channel share their bias.
    """
    if len(image) != 3:
        raise ValueError(f"a convolutional network needs images of three axes, not {image}")
    layers = [Layer("input", image, output_rate, Role.INPUT)]
    connections: list[Connection] = []
    for k, count in enumerate(channels):
        size = tuple((n // (POOL if k else 1)) - kernel + 1 for n in layers[-1].shape[1:])
        if min(size) < 1:
            raise ValueError(f"kernels of {kernel} leave nothing of {image} at layer {k + 1}")
        shape = (count, *size)
        name, stiff = f"conv{k + 1}", feedback**k
        layers.append(
            Layer(name, shape, hidden_rate, stiffness=stiff, shared=(count, *[1] * len(size)))
        )
        operator = Pooled(POOL, Conv2d(kernel)) if k else Conv2d(kernel)
        limit = bound if k else None
        connections.append(Connection(layers[-2].name, name, operator, bound=limit))
    softest = feedback ** len(channels)
    layers.append(Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest))
    connections.append(Connection(layers[-2].name, "output", Pooled(POOL, Dense()), bound=bound))
    return Network(tuple(layers), tuple(connections))
