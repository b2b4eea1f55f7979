"""The model `conv`: a convolutional network over images."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import HIDDEN, OUTPUT, Activation
from neuro_eqprop.networks.architectures.base import ANY_DEPTH, Architecture, RateSettings
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.operators import Conv2d, Dense, MaxPooled, Operator, Pooled

POOL = 2
PADDINGS = ("valid", "same")
POOLS = ("average", "max")


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
    padding: str = setting(
        "valid",
        "valid: kernels stay inside the image; same: zeros around it keep its size (odd kernels)",
        choices=PADDINGS,
    )
    pool: str = setting(
        "average",
        "average: connections average rates over 2 x 2 squares; max: layers have the largest drive "
        "of each square (Laborieux et al. 2021)",
        choices=POOLS,
    )


def convolutional(  # noqa: PLR0913 - keyword arguments
    image: Shape,
    channels: tuple[int, ...],
    outputs: int,
    *,
    kernel: int | Conv2d,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
    pool: str = "average",
) -> Network:
    """Convolutions over an image (channels, height, width), with 2 x 2 pooling between.

    A dense connection follows. Pooling is part of the connections, which act both ways; `bound` and
    `feedback` as in `layered`, `pool` as in `ConvSettings`. Units of a channel share their bias.
    `kernel` is the side of the kernels, or the convolution itself with its padding.
    """
    convolution = Conv2d(kernel) if isinstance(kernel, int) else kernel
    if len(image) != 3:
        raise ValueError(
            f"a convolutional network takes images (channels, height, width), not samples of "
            f"shape {image}: give x as (samples, channels, height, width), or use model 'layered'"
        )
    reason = misfit(image, convolution, len(channels))
    if reason:
        raise ValueError(f"{reason}; {suggest(image, channels, convolution)}")
    layers = [Layer("input", image, output_rate, Role.INPUT)]
    connections: list[Connection] = []
    largest = pool == "max"
    for k, count in enumerate(channels):
        before = POOL if k and not largest else 1
        size = tuple(shrunk(n // before, convolution) for n in layers[-1].shape[1:])
        operator: Operator = Pooled(POOL, convolution) if k else convolution
        if largest:
            operator, size = MaxPooled(POOL, convolution), tuple(n // POOL for n in size)
        shape = (count, *size)
        name, stiff = f"conv{k + 1}", feedback**k
        layers.append(
            Layer(name, shape, hidden_rate, stiffness=stiff, shared=(count, *[1] * len(size)))
        )
        limit = bound if k else None
        connections.append(Connection(layers[-2].name, name, operator, bound=limit))
    softest = feedback ** len(channels)
    layers.append(Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest))
    readout = Dense() if largest else Pooled(POOL, Dense())
    connections.append(Connection(layers[-2].name, "output", readout, bound=bound))
    return Network(tuple(layers), tuple(connections))


def shrunk(side: int, convolution: Conv2d) -> int:
    """The side of an image after a convolution with stride 1."""
    return side + 2 * convolution.padding - convolution.kernel + 1


def misfit(image: Shape, convolution: Conv2d, layers: int) -> str | None:
    """The reason why that many convolutions do not fit the image; None if they fit."""
    sides = image[1:]
    for k in range(layers):
        sides = tuple(shrunk(n // (POOL if k else 1), convolution) for n in sides)
        if min(sides) < 1:
            return (
                f"kernels of {convolution.kernel} leave no pixel of {image} at layer 'conv{k + 1}'"
            )
        if any(n % POOL for n in sides):
            return (
                f"layer 'conv{k + 1}' is {sides[0]} by {sides[1]}, which pooling by {POOL} does "
                f"not divide"
            )
    return None


def suggest(image: Shape, channels: tuple[int, ...], convolution: Conv2d) -> str:
    """The nearest settings that fit an image: padding, fewer layers, or another kernel."""
    kernel, same = convolution.kernel, Conv2d(convolution.kernel, convolution.kernel // 2)
    depths = [n for n in range(1, len(channels)) if not misfit(image, convolution, n)]
    kernels = [
        n
        for n in range(2, min(image[1:]) + 1)  # a kernel of one pixel sees no neighbours
        if not convolution.padding and not misfit(image, Conv2d(n), len(channels))
    ]
    settings = []
    if convolution != same and kernel % 2 and not misfit(image, same, len(channels)):
        settings.append("zeros around the images (padding=same)")
    if depths:
        settings.append(f"fewer layers (hidden={','.join(map(str, channels[: depths[-1]]))})")
    if kernels:
        settings.append(f"another kernel (kernel={min(kernels, key=lambda n: abs(n - kernel))})")
    return f"use {' or '.join(settings) or 'larger images, or model layered'}"


def build(settings: ConvSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    if settings.padding == "same" and settings.kernel % 2 == 0:
        raise ValueError(
            f"kernel is {settings.kernel}; kernels that keep the size of an image are odd: use "
            f"kernel={settings.kernel + 1} or padding=valid"
        )
    return convolutional(
        shape,
        settings.hidden,
        classes,
        kernel=Conv2d(settings.kernel, settings.kernel // 2 if settings.padding == "same" else 0),
        **settings.rates,
        bound=settings.bound or None,
        feedback=settings.feedback,
        pool=settings.pool,
    )


CONV = Architecture(
    "conv",
    "convolutional network over images",
    ConvSettings,
    build,
    depths=ANY_DEPTH,
    training={"beta": 0.25, "learning_rate": 0.003, "free_steps": 3, "nudged_steps": 1},
)
