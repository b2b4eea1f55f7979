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
        raise ValueError(
            f"a convolutional network takes pictures (channels, height, width), not samples of "
            f"shape {image}: give x as (samples, channels, height, width), or use model 'layered'"
        )
    why = misfit(image, kernel, len(channels))
    if why:
        raise ValueError(f"{why}; {way_out(image, channels, kernel)}")
    layers = [Layer("input", image, output_rate, Role.INPUT)]
    connections: list[Connection] = []
    for k, count in enumerate(channels):
        size = tuple((n // (POOL if k else 1)) - kernel + 1 for n in layers[-1].shape[1:])
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


def misfit(image: Shape, kernel: int, layers: int) -> str | None:
    """Why so many layers of kernels cannot be laid over the image; nothing where they can."""
    sides = image[1:]
    for k in range(layers):
        sides = tuple((n // (POOL if k else 1)) - kernel + 1 for n in sides)
        if min(sides) < 1:
            return f"kernels of {kernel} leave nothing of {image} at layer 'conv{k + 1}'"
        if any(n % POOL for n in sides):
            return (
                f"layer 'conv{k + 1}' is {sides[0]} by {sides[1]}, which cannot be divided into "
                f"squares of {POOL} for the means after it"
            )
    return None


def way_out(image: Shape, channels: tuple[int, ...], kernel: int) -> str:
    """The nearest settings with which an image can be taken: fewer layers, or another kernel."""
    depths = [n for n in range(1, len(channels)) if not misfit(image, kernel, n)]
    kernels = [n for n in range(1, min(image[1:]) + 1) if not misfit(image, n, len(channels))]
    ways = []
    if depths:
        ways.append(f"fewer layers (--hidden {','.join(map(str, channels[: depths[-1]]))})")
    if kernels:
        ways.append(f"another kernel (--set kernel={min(kernels, key=lambda n: abs(n - kernel))})")
    return f"use {' or '.join(ways) or 'larger pictures, or model layered'}"
