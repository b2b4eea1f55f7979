"""The model `conv`: a convolutional network over images."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.activations import HIDDEN, OUTPUT, Activation
from neuro_eqprop.architectures.base import ANY_DEPTH, Architecture, RateSettings
from neuro_eqprop.arrays import Shape
from neuro_eqprop.networks import Connection, Layer, Network, Role
from neuro_eqprop.operators import Conv2d, Dense, Pooled
from neuro_eqprop.settings import setting

POOL = 2


@dataclass(frozen=True)
class ConvSettings(RateSettings):
    """Settings of a convolutional network; `hidden` are its channels."""

    name: str = "conv"
    hidden: tuple[int, ...] = setting((32,), "channels of each hidden layer")
    activation: str = setting("relu", "activation of hidden layers", choices=HIDDEN)
    output: str = setting("linear", "activation of the output layer", choices=OUTPUT)
    bound: float = setting(
        2.5, "bound on the spectral norm of connections that feed back; 0 for none", least=0
    )
    feedback: float = setting(
        0.1, "scale of the feedback from layer to layer; below 1 it settles sooner", above=0
    )
    kernel: int = setting(5, "side of the kernels, in pixels", above=0)


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
    """Convolutions over an image (channels, height, width), with 2 x 2 average pooling between.

    A dense connection follows. Pooling is part of the connections, which act both ways; `bound` and
    `feedback` as in `layered`. Units of a channel share their bias.
    """
    if len(image) != 3:
        raise ValueError(
            f"a convolutional network takes images (channels, height, width), not samples of "
            f"shape {image}: give x as (samples, channels, height, width), or use model 'layered'"
        )
    reason = misfit(image, kernel, len(channels))
    if reason:
        raise ValueError(f"{reason}; {suggest(image, channels, kernel)}")
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
    """Why that number of convolutions does not fit the image; None where it does."""
    sides = image[1:]
    for k in range(layers):
        sides = tuple((n // (POOL if k else 1)) - kernel + 1 for n in sides)
        if min(sides) < 1:
            return f"kernels of {kernel} leave no pixel of {image} at layer 'conv{k + 1}'"
        if any(n % POOL for n in sides):
            return (
                f"layer 'conv{k + 1}' is {sides[0]} by {sides[1]}, which pooling by {POOL} does "
                f"not divide"
            )
    return None


def suggest(image: Shape, channels: tuple[int, ...], kernel: int) -> str:
    """The nearest settings that fit an image: fewer layers, or another kernel."""
    depths = [n for n in range(1, len(channels)) if not misfit(image, kernel, n)]
    kernels = [n for n in range(1, min(image[1:]) + 1) if not misfit(image, n, len(channels))]
    settings = []
    if depths:
        settings.append(f"fewer layers (hidden={','.join(map(str, channels[: depths[-1]]))})")
    if kernels:
        settings.append(f"another kernel (kernel={min(kernels, key=lambda n: abs(n - kernel))})")
    return f"use {' or '.join(settings) or 'larger images, or model layered'}"


def build(settings: ConvSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    return convolutional(
        shape,
        settings.hidden,
        classes,
        kernel=settings.kernel,
        **settings.rates,
        bound=settings.bound or None,
        feedback=settings.feedback,
    )


CONV = Architecture(
    "conv",
    "convolutional network over images",
    ConvSettings,
    build,
    depths=ANY_DEPTH,
    training={"beta": 0.25, "learning_rate": 0.003, "free_steps": 3, "nudged_steps": 1},
)
