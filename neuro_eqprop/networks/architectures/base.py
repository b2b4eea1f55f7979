"""`Architecture`: settings and defaults of a model, and the function that builds its network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypedDict

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import check, setting
from neuro_eqprop.networks.activations import HIDDEN, OUTPUT, Activation, activation
from neuro_eqprop.networks.network import Cost, Network

ANY_DEPTH = range(1, 65)


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model: the table `[model]` of a study."""

    name: str

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class HiddenSettings(ModelSettings):
    """Settings of a model with hidden layers."""

    hidden: tuple[int, ...] = setting((128,), "units of each hidden layer")

    def __post_init__(self) -> None:
        check(self)
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden is {self.hidden}; each layer needs at least one unit")


class Rates(TypedDict):
    """Activations of a network, as the functions that build networks name them."""

    hidden_rate: Activation
    output_rate: Activation


@dataclass(frozen=True)
class RateSettings(HiddenSettings):
    """Settings of a model whose activations can be chosen."""

    activation: str = setting("hard_sigmoid", "activation of hidden layers", choices=HIDDEN)
    height: float = setting(
        4.0, "largest rate of activation box", above=0, only_with=("activation", "box")
    )
    output: str = setting(
        "hard_sigmoid",
        "activation of the output layer (spike code rate needs hard_sigmoid)",
        choices=OUTPUT,
    )

    @property
    def rates(self) -> Rates:
        """The activations of the network."""
        return {
            "hidden_rate": activation(self.activation, self.height),
            "output_rate": activation(self.output),
        }


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model by name: what `--model` and `[model] name` choose from.

    Parameters
    ----------
    name, label
        The name, and one clause for help and documentation.
    settings
        Dataclass of the model's settings, with their defaults; a subclass of `ModelSettings`.
    build
        Network from the settings, the shape of one sample, and the number of classes.
    rule
        Default update rule.
    cost
        Default cost of the network.
    depths
        Numbers of hidden sizes that the model takes.
    training
        Defaults of training and rule settings that replace the general ones.

    """

    name: str
    label: str
    settings: Callable[..., ModelSettings]
    build: Callable[[Any, Shape, int], Network]
    rule: str = "hebbian"
    cost: Cost = Cost.SQUARED
    depths: range = range(1, 2)
    training: Mapping[str, object] = field(default_factory=dict)

    def rule_for(self, settings: ModelSettings) -> str:
        """The default rule; `asymmetric` instead of `hebbian` if the weights are not symmetric."""
        symmetric = getattr(settings, "symmetric", True)
        return self.rule if symmetric or self.rule != "hebbian" else "asymmetric"


def size(shape: Shape) -> int:
    """Number of units of a layer of that shape."""
    return prod(shape)
