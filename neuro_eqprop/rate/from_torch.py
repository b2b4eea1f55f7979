"""A multilayer perceptron of torch as a network whose connections lead forwards alone.

Weights keep their meaning: layer l has rates rho_l(W_l s_(l-1) + b_l), and settles in one sweep.
torch's Hardsigmoid is clip(u / 6 + 1/2, 0, 1): its slope and shift go into the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neuro_eqprop.activations import (
    HARD_SIGMOID,
    HARD_TANH,
    LINEAR,
    RELU,
    TANH,
    Activation,
    activate,
    box,
)
from neuro_eqprop.arrays import Array, Shape
from neuro_eqprop.networks import Connection, Layer, Network, Role

if TYPE_CHECKING:
    from torch import nn

KNOWN = "Linear, ReLU, ReLU6, Hardsigmoid, Hardtanh, Tanh, Flatten, Dropout and Identity"
SILENT = ("Flatten", "Dropout", "Identity")
"""Modules that do nothing to a vector when a network is used."""


class ForeignError(ValueError):
    """A torch module cannot be brought in; the message names the layer and the reason."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A network and its parameters, ready for `spiking.lower`."""

    network: Network
    params: Mapping[str, Array]

    def states(self, x: Array) -> dict[str, Array]:
        """The rates of all layers but the input, for samples x (samples, features)."""
        found, s = dict[str, Array](), x
        for connection in self.network.connections:
            layer = self.network[connection.target]
            drive = s @ self.params[connection.name].T + self.params[layer.name]
            found[layer.name] = s = activate(layer.activation, drive)
        return found


@dataclass(frozen=True, slots=True)
class Stage:
    """A Linear and what follows it."""

    weight: Array
    bias: Array
    activation: Activation = LINEAR


def from_torch(module: nn.Module, shape: Shape) -> Brought:
    """The network of an `nn.Sequential` for samples of that shape, which are taken flat."""
    stages = list(stages_of(module))
    if not stages:
        raise ForeignError("the module has no Linear layer; there is nothing to bring in")
    features = prod(shape)
    for k, stage in enumerate(stages):
        if stage.weight.shape[1] != features:
            raise ForeignError(
                f"Linear number {k + 1} takes {stage.weight.shape[1]} values and is given "
                f"{features}; the shape of a sample is {tuple(shape)}"
            )
        features = stage.weight.shape[0]
    names = [f"hidden{k + 1}" for k in range(len(stages) - 1)]
    names = ["hidden"] if len(names) == 1 else names
    layers = [Layer("input", (prod(shape),), LINEAR, Role.INPUT)]
    params: dict[str, Array] = {}
    connections: list[Connection] = []
    for name, stage in zip([*names, "output"], stages, strict=True):
        role = Role.OUTPUT if name == "output" else Role.HIDDEN
        connection = Connection(layers[-1].name, name, symmetric=False)
        layers.append(Layer(name, (len(stage.bias),), stage.activation, role))
        connections.append(connection)
        params |= {connection.name: stage.weight, name: stage.bias}
    return Brought(Network(tuple(layers), tuple(connections)), params)


def stages_of(module: nn.Module) -> Iterator[Stage]:
    """The Linear layers in their order, each with its activation."""
    last: Stage | None = None
    parts = list(leaves(module))
    for place, (name, part) in enumerate(parts):
        kind = type(part).__name__
        if kind in SILENT or (kind in ("Softmax", "LogSoftmax") and place == len(parts) - 1):
            continue  # the largest of the last layer is the largest before a softmax too
        if kind == "Linear":
            if last is not None:
                yield last
            last = linear(part)
        elif last is None or last.activation is not LINEAR:
            raise refused(name, kind, "an activation follows a Linear, one for each")
        else:
            last = bent(last, name, part)
    if last is not None:
        yield last


def leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The modules of a Sequential in their order, those of Sequentials within it too."""
    if type(module).__name__ != "Sequential":
        yield prefix or "the module", module
        return
    for name, child in module.named_children():
        yield from leaves(child, f"{prefix}.{name}" if prefix else name)


def refused(name: str, kind: str, reason: str) -> ForeignError:
    """Why a module is not brought in."""
    return ForeignError(f"layer {name!r} is a {kind}: {reason}; known are {KNOWN}")


def linear(part: Any) -> Stage:  # noqa: ANN401
    """A Linear in float64."""
    weight = part.weight.detach().cpu().numpy().astype(np.float64)
    bias = np.zeros(len(weight)) if part.bias is None else part.bias.detach().cpu().numpy()
    return Stage(weight, bias.astype(np.float64))


def bent(stage: Stage, name: str, part: Any) -> Stage:  # noqa: ANN401
    """A stage with the activation that follows it."""
    kind = type(part).__name__
    if kind == "Hardsigmoid":
        return Stage(stage.weight / 6, stage.bias / 6 + 0.5, HARD_SIGMOID)
    if kind == "Hardtanh":
        ends = (float(part.min_val), float(part.max_val))
        named = {(0.0, 1.0): HARD_SIGMOID, (-1.0, 1.0): HARD_TANH}
        return replace(stage, activation=named.get(ends) or Activation("clip", *ends))
    known = {"ReLU": RELU, "ReLU6": box(6.0), "Tanh": TANH}
    if kind not in known:
        raise refused(name, kind, "it has no counterpart here")
    return replace(stage, activation=known[kind])


def normalised(brought: Brought, x: Array, part: float = 0.999) -> Brought:
    """The same network with rates of 0..1, which spikes of code `rate` carry.

    With scale k_l the `part` quantile of the rates of layer l over samples x, W_l becomes
    W_l k_(l-1) / k_l and b_l becomes b_l / k_l. What lies above is clipped. The output's drive,
    from which answers are read, is its old one over its scale.
    """
    states, before = brought.states(x), 1.0
    layers, params = [brought.network.input], dict[str, Array]()
    for connection in brought.network.connections:
        layer = brought.network[connection.target]
        if layer.activation.low < 0 and layer.role is not Role.OUTPUT:
            raise ForeignError(
                f"layer {layer.name!r} has rates below zero ({layer.activation.name}); "
                "use code graded, which carries them as they are"
            )
        top = float(np.quantile(np.abs(states[layer.name]), part))
        scale = top if top > 0 and layer.activation.high == inf else 1.0
        params[connection.name] = brought.params[connection.name] * (before / scale)
        params[layer.name] = brought.params[layer.name] / scale
        layers.append(replace(layer, activation=HARD_SIGMOID))
        before = scale
    return Brought(Network(tuple(layers), brought.network.connections), params)
