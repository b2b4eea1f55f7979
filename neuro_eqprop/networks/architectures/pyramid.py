"""The model `pyramid`: convolutional states at several scales of an image, all of them read out.

It is the hierarchical network of the research notes on images. With P the mean over 2 x 2 places,
x_s the image averaged to scale s = 1..S, g the feedback and o the output:

    h_s = rho(U_s * x_s + b_s + K_s * P h_(s-1) + g P^T K_(s+1)^T * h_(s+1) + V_s^T m_s)
    m_s = rho(V_s h_s + c_s)                                       memory, if there is any
    o   = sum over s of R_s (means of h_s over a grid of places) + b_o

All couplings are symmetric, so that there is an energy: scale s has the stiffness g^(s-1), its
memory that of the scale, and the output g^S.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import HIDDEN, OUTPUT, Activation
from neuro_eqprop.networks.architectures.base import ANY_DEPTH, Architecture, RateSettings
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import Conv2d, Dense, Operator, Pooled

POOL = 2
USUAL_PLACES = 4
"""Places along a side of the grid that is read out, if it divides the coarsest scale."""


@dataclass(frozen=True)
class PyramidSettings(RateSettings):
    """Settings of a convolutional pyramid; `hidden` are the channels of its scales."""

    name: str = "pyramid"
    hidden: tuple[int, ...] = setting((32, 64, 128), "channels of each scale, the finest first")
    activation: str = setting("relu", "activation of the states", choices=HIDDEN)
    output: str = setting("linear", "activation of the output layer", choices=OUTPUT)
    bound: float = setting(
        0.0, "bound on the spectral norm of connections between scales; 0 for none", least=0
    )
    feedback: float = setting(
        0.001, "scale of the feedback from scale to scale; below 1 it settles sooner", above=0
    )
    kernel: int = setting(3, "side of the kernels, in pixels (odd)", above=0)
    places: int = setting(0, "side of the grid of places that are read out; 0 for about 4", least=0)
    memory: int = setting(0, "memory units of each place of a scale; 0 for none", least=0)
    memory_bound: float = setting(
        0.7, "bound on the spectral norm of the memory's weights", above=0, below=1
    )


def pyramid(settings: PyramidSettings, image: Shape, outputs: int) -> Network:
    """The network of the settings for an image (channels, height, width); see the module.

    Each scale has half the height and width of the one before, and the units of a channel share
    their bias.
    """
    channels, kernel, feedback = settings.hidden, settings.kernel, settings.feedback
    hidden_rate, output_rate = settings.rates["hidden_rate"], settings.rates["output_rate"]
    sides = scale_sides(image, len(channels))
    if kernel % 2 == 0:
        raise ValueError(f"kernel is {kernel}; kernels that keep the size of an image are odd")
    grid = settings.places or nearest_grid(sides[-1])
    if any(n % grid for n in sides[-1]):
        raise ValueError(
            f"places is {grid}, which does not divide the coarsest scale of {sides[-1][0]} by "
            f"{sides[-1][1]}; use places={nearest_grid(sides[-1])}"
        )
    layers = [Layer("input", image, output_rate, Role.INPUT)]
    connections: list[Connection] = []
    convolution = Conv2d(kernel, padding=kernel // 2)
    for k, (count, side) in enumerate(zip(channels, sides, strict=True)):
        name, stiffness = f"scale{k + 1}", feedback**k
        layers.append(state_layer(name, count, side, hidden_rate, stiffness))
        seen = averaged(POOL**k, convolution)
        connections.append(Connection("input", name, seen))
        if k:
            below = f"scale{k}"
            connections.append(
                Connection(below, name, Pooled(POOL, convolution), bound=settings.bound or None)
            )
        if settings.memory:
            units = settings.memory
            layers.append(state_layer(f"{name}-memory", units, side, hidden_rate, stiffness))
            connections.append(
                Connection(name, f"{name}-memory", Conv2d(1), bound=settings.memory_bound)
            )
        read = averaged(side[0] // grid, Dense())
        connections.append(Connection(name, "output", read))
    softest = feedback ** len(channels)
    layers.append(Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest))
    return Network(tuple(layers), tuple(connections), Cost.CROSS_ENTROPY)


def state_layer(name: str, channels: int, side: Shape, rate: Activation, stiffness: float) -> Layer:
    """A layer of channels over an image, with one bias per channel."""
    shape, shared = (channels, *side), (channels, *[1] * len(side))
    return Layer(name, shape, rate, stiffness=stiffness, shared=shared)


def averaged(size: int, operator: Operator) -> Operator:
    """The operator on means over squares of `size` by `size`."""
    return Pooled(size, operator) if size > 1 else operator


def scale_sides(image: Shape, scales: int) -> list[Shape]:
    """Height and width of each scale; ValueError if the image cannot be halved that often."""
    if len(image) != 3:
        raise ValueError(
            f"a pyramid takes images (channels, height, width), not samples of shape {image}: "
            f"give x as (samples, channels, height, width), or use model 'multiscale'"
        )
    if image[1] != image[2]:
        raise ValueError(f"a pyramid takes square images, not {image[1]} by {image[2]}")
    most = next(k for k in range(image[1].bit_length() + 1) if image[1] % POOL ** (k + 1))
    if scales > most + 1:
        raise ValueError(
            f"an image of {image[1]} by {image[2]} has {most + 1} scales, as it can be halved "
            f"{most} times: give hidden at most {most + 1} sizes, not {scales}"
        )
    return [tuple(n // POOL**k for n in image[1:]) for k in range(scales)]


def nearest_grid(side: Shape) -> int:
    """The divisor of a side nearest to the usual number of places."""
    divisors = [n for n in range(1, side[0] + 1) if not side[0] % n]
    return min(divisors, key=lambda n: abs(n - USUAL_PLACES))


PYRAMID = Architecture(
    "pyramid",
    "convolutional states at several scales of an image, all of them read out",
    PyramidSettings,
    pyramid,
    cost=Cost.CROSS_ENTROPY,
    depths=ANY_DEPTH,
    training={
        "nudging": "positive",
        "beta": 1.0,
        "free_steps": 1,
        "nudged_steps": 1,
        "batch": 64,
        "lr_schedule": "OneCycleLR",
        "normalize": True,
    },
)
