"""A model: one hidden layer, named by its width instead of a list of sizes."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import TANH, activation
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.architectures.base import Architecture, ModelSettings, size
from neuro_eqprop.networks.network import Network


@dataclass(frozen=True)
class DirectSettings(ModelSettings):
    name: str = "direct"
    width: int = setting(6, "units of the hidden layer", above=0)


def build(settings: DirectSettings, shape: Shape, classes: int) -> Network:
    return layered(
        size(shape),
        (settings.width,),
        classes,
        hidden_rate=TANH,
        output_rate=activation("linear"),
    )


DIRECT = Architecture(
    "direct", "one hidden tanh layer", DirectSettings, build, training={"beta": 0.3}
)
