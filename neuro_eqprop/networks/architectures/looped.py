"""The model `looped`: a hidden layer connected to itself."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.architectures.base import Architecture, Rates, RateSettings, size
from neuro_eqprop.networks.architectures.mlp import layered
from neuro_eqprop.networks.network import Connection, Network


@dataclass(frozen=True)
class RecurrentSettings(RateSettings):
    """Settings of a model with recurrent weights, whose spectral norm is bounded."""

    bound: float = setting(0.95, "bound on the spectral norm of recurrent weights", above=0)


@dataclass(frozen=True)
class LoopSettings(RecurrentSettings):
    """Settings of a hidden layer connected to itself, which the output feeds back to."""

    feedback: float = setting(
        1.0, "scale of the feedback from the output; below 1 it settles sooner", above=0
    )


@dataclass(frozen=True)
class LoopedSettings(LoopSettings):
    """Settings of a hidden layer connected to itself."""

    name: str = "looped"
    symmetric: bool = setting(True, "recurrent weights are symmetric: the network has an energy")


def looped(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None,
    symmetric: bool = True,
    feedback: float = 1.0,
) -> Network:
    """x -> h <-> output, and h -> h by a matrix of spectral norm at most `bound`.

    If it is not `symmetric`, the network has no energy. `feedback` is that of the output.
    """
    rates = Rates(hidden_rate=hidden_rate, output_rate=output_rate)
    plain = layered(inputs, (hidden,), outputs, feedback=feedback, **rates)
    return with_loop(plain, Connection("hidden", "hidden", symmetric=symmetric, bound=bound))


def with_loop(plain: Network, loop: Connection) -> Network:
    """A network with one hidden layer, and a connection of that layer to itself."""
    first, *others = plain.connections
    return Network(plain.layers, (first, loop, *others))


def build(settings: LoopedSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    return looped(
        size(shape),
        settings.hidden[0],
        classes,
        **settings.rates,
        bound=settings.bound,
        symmetric=settings.symmetric,
        feedback=settings.feedback,
    )


LOOPED = Architecture("looped", "hidden layer connected to itself", LoopedSettings, build)
