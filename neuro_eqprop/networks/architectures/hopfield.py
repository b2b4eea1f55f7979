"""The model `modern`: a modern Hopfield network (Ramsauer et al. 2021; Krotov & Hopfield 2021).

Memory units m = rho(W h + b) that act back on h by W^T minimise the energy
E(h, m) = G(h) + G(m) - m . W h - b . m. With tanh, eliminating m gives the energy of a
dense associative memory, G(h) - sum log cosh(W h + b); layers and connections describe it.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import LINEAR, Activation
from neuro_eqprop.networks.architectures.base import Architecture, size
from neuro_eqprop.networks.architectures.looped import RecurrentSettings
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import LayerNorm


@dataclass(frozen=True)
class ModernSettings(RecurrentSettings):
    """Settings of a hidden layer with memory units."""

    name: str = "modern"
    symmetric: bool = setting(
        True, "memory weights are tied, so there is an energy; false: untied, with a layer norm"
    )
    memory: int = setting(0, "memory units; 0 for four times the hidden ones", least=0)


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
    """x -> h <-> memory, h <-> output: the research notes' modern network with tied weights."""
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
    """h = W_2 rho(W_1 n(h)) + W_e x with a softmax readout: the research notes' form, no energy."""
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


def build(settings: ModernSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    sizes, hidden = (size(shape), settings.hidden[0], classes), settings.rates["hidden_rate"]
    memory = settings.memory or 4 * settings.hidden[0]
    if not settings.symmetric:
        return modern_notes(*sizes, memory=memory, hidden_rate=hidden, bound=settings.bound)
    return modern(*sizes, memory=memory, **settings.rates, bound=settings.bound)


MODERN = Architecture(
    "modern", "hidden layer with memory units, a modern Hopfield network", ModernSettings, build
)
