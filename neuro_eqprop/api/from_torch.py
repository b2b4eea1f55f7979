"""Convert a torch MLP or ConvNet to a network whose connections point forwards only.

Weights keep their meaning: layer l has rates rho_l(A(W_l) s_(l-1) + b_l), and settles in one sweep.
torch's Hardsigmoid is clip(u / 6 + 1/2, 0, 1): its slope and shift are folded into the weights.
Average pooling becomes part of the connection that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import Array, Shape, type_name
from neuro_eqprop.dynamics.torch_layers import (
    NORMS,
    POOLS,
    REASONS,
    ForeignError,
    convolution,
    flattened,
    fold_batch_norm,
    numbers,
    pooling_size,
    refused,
)
from neuro_eqprop.networks.activations import (
    HARD_SIGMOID,
    HARD_TANH,
    LINEAR,
    RELU,
    TANH,
    Activation,
    box,
)
from neuro_eqprop.networks.network import Connection, Layer, Network, Role, check_parameters
from neuro_eqprop.networks.operators import Dense, Operator, Pooled
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.training.trained import FROM_TORCH

if TYPE_CHECKING:
    from torch import nn

SKIPPED = ("Dropout", "Dropout2d", "Identity")
"""Modules without an effect in evaluation mode."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A Linear or Conv2d with the average pooling before it and the activation after it."""

    operator: Operator
    weight: Array
    bias: Array
    shape: Shape
    """Shape of its rates."""
    activation: Activation = LINEAR


def from_torch(module: nn.Module, shape: int | Shape, *, feedback: float = 0.0) -> Model:
    """Convert a trained `nn.Sequential` to a model; nothing is trained.

    The connections of the model point forwards only, so that it settles in one sweep to the
    outputs of the module; `to_spiking` and the simulators take it from there. With `feedback`,
    `train` goes on from it by equilibrium propagation.

    Parameters
    ----------
    module : torch.nn.Module
        An `nn.Sequential` of Linear, Conv2d, average pooling, batch normalisation and activations,
        which ends in a Linear layer. It is not changed.
    shape : int or tuple of int
        The shape of one sample: the number of features, or (channels, height, width).
    feedback : float
        Above zero, every connection beyond the input also acts backwards, with its transposed
        weight times this: outputs differ from those of the module by terms of this order.

    Returns
    -------
    Model
        With the provenance "converted from torch". Its samples are flat rows (samples, features).

    Raises
    ------
    ForeignError
        If a layer has no counterpart; the message names the layer and the reason.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> from torch import nn
    >>> module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    >>> model = ne.from_torch(module, 64)
    >>> model
    Model(input 64, hidden 32, output 10, 2410 parameters, converted from torch)
    >>> ne.train(ne.from_torch(module, 64, feedback=0.1), "digits", epochs=1)
    Model(input 64, hidden 32, output 10, 2410 parameters, trained by hebbian on digits, 1 epoch)
    >>> model.to_spiking(code="graded").neurons
    42
    """
    if not 0.0 <= feedback < inf:
        raise ValueError(f"feedback is {feedback}; it is zero for none, or a positive factor")
    given, stages = stages_of(module, (shape,) if isinstance(shape, int) else tuple(shape))
    if not stages or len(stages[-1].shape) != 1:
        raise ForeignError("the module does not end in a Linear layer, which would be the output")
    layers = [Layer("input", given, LINEAR, Role.INPUT)]
    params: dict[str, Array] = {}
    connections: list[Connection] = []
    for k, (name, stage) in enumerate(zip(layer_names(stages), stages, strict=True)):
        role = Role.OUTPUT if name == "output" else Role.HIDDEN
        connection = Connection(layers[-1].name, name, stage.operator, symmetric=feedback > 0)
        stiff = feedback**k if feedback else 1.0
        shared = stage.bias.shape if len(stage.shape) > 1 else None
        layers.append(Layer(name, stage.shape, stage.activation, role, stiff, shared))
        connections.append(connection)
        params |= {connection.name: stage.weight, name: stage.bias}
    network = Network(tuple(layers), tuple(connections))
    check_parameters(network, params)
    return Model(network, params, provenance=FROM_TORCH)


def layer_names(stages: list[Stage]) -> list[str]:
    """Names of the layers: conv1, conv2, ...; hidden1, hidden2, ... (or hidden); output."""
    images = sum(len(stage.shape) > 1 for stage in stages)
    vectors = len(stages) - images - 1
    hidden = ["hidden"] if vectors == 1 else [f"hidden{k + 1}" for k in range(vectors)]
    return [*(f"conv{k + 1}" for k in range(images)), *hidden, "output"]


def stages_of(module: nn.Module, shape: Shape) -> tuple[Shape, list[Stage]]:
    """The shape of the input layer, and the Linear and Conv2d layers in order."""
    stages: list[Stage] = []
    check_sequential(module)
    parts = list(leaves(module))
    kinds = [type(part).__name__ for _, part in parts]
    images = "Conv2d" in kinds or any(kind in POOLS for kind in kinds)
    given = now = shape if images else (prod(shape),)
    pool = 1
    for place, (name, part) in enumerate(parts):
        kind = kinds[place]
        if kind in SKIPPED or (kind in ("Softmax", "LogSoftmax") and place == len(parts) - 1):
            continue  # a softmax does not change which output is largest
        if kind == "Flatten":
            now = flattened(name, part, now)
        elif kind in POOLS:
            size = pooling_size(name, part, now)
            pool, now = pool * size, (now[0], *(n // size for n in now[1:]))
            if stages and stages[-1].activation is LINEAR:
                raise refused(name, kind, "pooling averages rates: put an activation before it")
        elif kind in ("Linear", "Conv2d"):
            stage = linear(name, part, now) if kind == "Linear" else filtered(name, part, now)
            inner = stage.operator
            stages.append(replace(stage, operator=Pooled(pool, inner) if pool > 1 else inner))
            pool, now = 1, stage.shape
        elif kind in REASONS:
            raise refused(name, kind, REASONS[kind])
        elif not stages or stages[-1].activation is not LINEAR or pool > 1:
            what = "a norm" if kind in NORMS else "an activation"
            raise refused(name, kind, f"{what} must follow a Linear or Conv2d, one for each")
        elif kind in NORMS:
            weight, bias = fold_batch_norm(name, part, stages[-1].weight, stages[-1].bias)
            stages[-1] = replace(stages[-1], weight=weight, bias=bias)
        else:
            stages[-1] = with_activation(stages[-1], name, part)
    return given, stages


def check_sequential(module: nn.Module) -> None:
    """Raise ForeignError for a module with its own `forward`.

    `from_torch` reads the order of layers from Sequentials, and cannot read code.
    """
    from torch import nn

    if not isinstance(module, nn.Module):
        raise TypeError(f"from_torch takes a torch.nn.Module first, not {type_name(module)}")
    nested = [("the module", module), *module.named_modules()]
    for name, part in nested:
        plain = type(part).__module__.startswith("torch.") or isinstance(part, nn.Sequential)
        if not plain:
            kind = type(part).__name__
            raise ForeignError(
                f"{name if name == 'the module' else repr(name)} is a {kind} with its own "
                "`forward`, which from_torch cannot read: it converts an nn.Sequential of layers; "
                "put the layers into one, in the order of `forward`"
            )


def leaves(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The layers of a Sequential in order, with those of nested Sequentials."""
    if type(module).__name__ != "Sequential":
        yield prefix or "the module", module
        return
    for name, child in module.named_children():
        yield from leaves(child, f"{prefix}.{name}" if prefix else name)


def linear(name: str, part: Any, shape: Shape) -> Stage:  # noqa: ANN401
    """A Linear layer in float64."""
    if len(shape) != 1:
        raise refused(name, "Linear", f"it is given images {shape}; put a Flatten before it")
    weight = numbers(name, part, "weight")
    if weight.shape[1] != shape[0]:
        raise refused(name, "Linear", f"it takes {weight.shape[1]} values and is given {shape[0]}")
    return Stage(Dense(), weight, numbers(name, part, "bias"), (len(weight),))


def filtered(name: str, part: Any, shape: Shape) -> Stage:  # noqa: ANN401
    """A Conv2d layer in float64, with one bias for each channel."""
    operator, weight, made = convolution(name, part, shape)
    bias = numbers(name, part, "bias").reshape(-1, 1, 1)
    return Stage(operator, weight, bias, made)


def with_activation(stage: Stage, name: str, part: Any) -> Stage:  # noqa: ANN401
    """The stage with the activation that follows it."""
    kind = type(part).__name__
    if kind == "Hardsigmoid":
        return replace(
            stage, weight=stage.weight / 6, bias=stage.bias / 6 + 0.5, activation=HARD_SIGMOID
        )
    if kind == "Hardtanh":
        ends = (float(part.min_val), float(part.max_val))
        named = {(0.0, 1.0): HARD_SIGMOID, (-1.0, 1.0): HARD_TANH}
        return replace(stage, activation=named.get(ends) or Activation("clip", *ends))
    known = {"ReLU": RELU, "ReLU6": box(6.0), "Tanh": TANH}
    if kind not in known:
        raise refused(name, kind, "it has no counterpart here")
    return replace(stage, activation=known[kind])


def forward(model: Model, x: Array) -> dict[str, Array]:
    """The rates of all layers but the input for samples x (samples, features), in one sweep."""
    found, s = dict[str, Array](), x
    for connection in model.network.connections:
        layer = model.network[connection.target]
        images = s.reshape(len(x), *model.network[connection.source].shape)
        weight, bias = model.params[connection.name], model.params[layer.name]
        drive = connection.operator.forward(NumpyOps(), weight, images, bias)
        found[layer.name] = s = layer.activation.value(drive)
    return found


def normalised(model: Model, x: Array, part: float = 0.999) -> Model:
    """The converted model with rates scaled to 0..1, which spike code `rate` needs.

    With scale k_l the `part` quantile of the rates of layer l over samples x, W_l becomes
    W_l k_(l-1) / k_l and b_l becomes b_l / k_l (Rueckauer et al. 2017). Larger rates are clipped.
    The drive of the output, which gives the class, is divided by k of the output.
    """
    states, before = forward(model, x), 1.0
    layers, params = [model.network.input], dict[str, Array]()
    for connection in model.network.connections:
        layer = model.network[connection.target]
        if layer.activation.low < 0 and layer.role is not Role.OUTPUT:
            raise ForeignError(
                f"layer {layer.name!r} has rates below zero ({layer.activation.name}); "
                "use code graded, which sends them unchanged"
            )
        top = float(np.quantile(np.abs(states[layer.name]), part))
        scale = top if top > 0 and layer.activation.high == inf else 1.0
        params[connection.name] = model.params[connection.name] * (before / scale)
        params[layer.name] = model.params[layer.name] / scale
        layers.append(replace(layer, activation=HARD_SIGMOID))
        before = scale
    network = Network(tuple(layers), model.network.connections)
    return Model(network, params, provenance=model.provenance)
