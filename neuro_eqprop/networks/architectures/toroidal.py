"""The model `toroidal`: a recurrent hidden layer with delayed feedback from its past states."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.architectures.base import Architecture, size
from neuro_eqprop.networks.architectures.looped import LoopSettings, looped
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import DelayedFeedback


@dataclass(frozen=True)
class ToroidalSettings(LoopSettings):
    """Settings of a recurrent hidden layer with delayed feedback."""

    name: str = "toroidal"


PAST = DelayedFeedback((0.9, 0.81, 0.729))
"""Delayed feedback of the last three states, with decreasing factors."""
PAST_PART = 0.25
"""Fraction of the bound that the delayed feedback may take."""


def toroidal(
    inputs: int,
    hidden: int,
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float,
    feedback: float = 1.0,
) -> Network:
    """As `looped`, with feedback from the last three states of h, all with one gain.

    Both loops share the bound: at equilibrium their sum has to contract.
    """
    delayed = Connection("hidden", "hidden", PAST, bound=bound * PAST_PART, label="echo")
    plain = looped(
        inputs,
        hidden,
        outputs,
        hidden_rate=hidden_rate,
        output_rate=output_rate,
        bound=bound * (1.0 - PAST_PART),
        feedback=feedback,
    )
    return replace(plain, connections=(*plain.connections, delayed))


def build(settings: ToroidalSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    return toroidal(
        size(shape),
        settings.hidden[0],
        classes,
        **settings.rates,
        bound=settings.bound,
        feedback=settings.feedback,
    )


TOROIDAL = Architecture(
    "toroidal",
    "hidden layer connected to itself and to its last three states",
    ToroidalSettings,
    build,
)
