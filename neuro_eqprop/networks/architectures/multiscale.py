"""The model `multiscale`: hidden states of three widths, each with memory units."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.architectures.base import Architecture, size
from neuro_eqprop.networks.architectures.hopfield import ends
from neuro_eqprop.networks.architectures.looped import RecurrentSettings
from neuro_eqprop.networks.network import Connection, Layer, Network


@dataclass(frozen=True)
class MultiscaleSettings(RecurrentSettings):
    """Settings of hidden states of three widths; `hidden` is the largest."""

    name: str = "multiscale"


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
    """Three states of H/4, H/2 and H units in a chain, each driven by x and with a memory.

    The bound is divided so that the inputs of a layer from states and memory stay within it.
    """
    if hidden < 4:
        raise ValueError(f"hidden is {hidden}; the smallest of the three states is a quarter of it")
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


def build(settings: MultiscaleSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    return multiscale(
        size(shape), settings.hidden[0], classes, **settings.rates, bound=settings.bound
    )


MULTISCALE = Architecture(
    "multiscale", "hidden states of three widths, each with memory units", MultiscaleSettings, build
)
