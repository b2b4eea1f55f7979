"""Layers and connections: the description of a rate network, validated on construction.

The drive of a unit is its bias plus the contributions of its incoming connections; its rate is the
activation of the drive. A symmetric connection also acts backwards with the transposed weight,
which gives the network an energy; if it connects a layer to itself, its weight is symmetric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np

from neuro_eqprop.common.arrays import Array, NamedDict, Shape, parse_enum, type_name
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.activations import activation as find_activation
from neuro_eqprop.networks.operators import Dense, Embedding, MaxPooled, Operator

A = TypeVar("A")
DENSE = Dense()


class Cost(Enum):
    """The cost C of the output for a target y, summed over the batch.

    With the squared error the output rates are s_o = rho(d_o) and feed back into the network. With
    the cross-entropy the output is a readout (Laborieux et al. 2021): its prediction is
    softmax(d_o), and it feeds back only the error beta (y - softmax(d_o)), zero in the free phase.
    """

    SQUARED = "squared"
    """C = 1/2 |s_o - y|^2"""
    CROSS_ENTROPY = "cross_entropy"
    """C = -y . log softmax(d_o)"""


class Role(Enum):
    """The role of a layer."""

    INPUT = "input"
    HIDDEN = "hidden"
    OUTPUT = "output"


def as_activation(layer: str, given: str | Activation) -> Activation:
    """The activation of a layer, from itself or its name."""
    if isinstance(given, str):
        return find_activation(given)
    if not isinstance(given, Activation):
        raise TypeError(
            f"the activation of layer {layer!r} is {type_name(given)}; give a name such as "
            f"'hard_sigmoid', or an Activation"
        )
    return given


@dataclass(frozen=True, slots=True, init=False)
class Layer:
    """A named group of units with one activation.

    Parameters
    ----------
    name : str
        The key of its bias among the parameters.
    shape : int or tuple of int
        The shape of its units: 64, (channels, height, width), (tokens, width).
    activation : str or Activation
        From drive to rate: "hard_sigmoid", "tanh", "linear", see `networks.activations`.
    role : str or Role
        "input", "hidden" or "output".
    stiffness : float
        The weight k of the layer in the energy: a symmetric connection acts backwards with the
        factor k_target / k_source.
    shared : tuple of int, optional
        The shape of a bias that units share (one value for each channel of an image, for example);
        it is broadcast over the layer.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.Layer("hidden", (4, 4), "hard_sigmoid").size
    16
    """

    name: str
    shape: Shape
    activation: Activation
    role: Role = Role.HIDDEN
    stiffness: float = 1.0
    shared: Shape | None = None

    def __init__(
        self,
        name: str,
        shape: int | Sequence[int],
        activation: str | Activation,
        role: str | Role = Role.HIDDEN,
        stiffness: float = 1.0,
        shared: Shape | None = None,
    ) -> None:
        values = {
            "name": name,
            "shape": (int(shape),) if isinstance(shape, int | np.integer) else tuple(shape),
            "activation": as_activation(name, activation),
            "role": parse_enum("role of a layer", Role, role),
            "stiffness": stiffness,
            "shared": shared,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def bias(self) -> Shape:
        """The shape of the bias."""
        return self.shape if self.shared is None else self.shared

    @property
    def size(self) -> int:
        """The number of units."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection between two layers.

    Parameters
    ----------
    source, target : str
        The names of the layers.
    operator : Operator
        How the source drives the target, see `neuro_eqprop.networks.operators`; dense by default.
    symmetric : bool
        Whether the target also drives the source, with the transposed weight.
    bound : float, optional
        A limit on the spectral norm of the weight during training.
    label : str
        Distinguishes connections between the same two layers.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.Connection("hidden", "output").name
    'hidden->output'
    """

    source: str
    target: str
    operator: Operator = DENSE
    symmetric: bool = True
    bound: float | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """The name of its weight among the parameters."""
        return f"{self.source}->{self.target}" + (f"#{self.label}" if self.label else "")

    @property
    def loops(self) -> bool:
        """Whether it connects a layer to itself."""
        return self.source == self.target


@dataclass(frozen=True, slots=True)
class DirectedEdge:
    """An incoming edge of a layer: a connection forwards, or backwards from its target."""

    source: str
    connection: Connection
    back: float | None
    """The feedback factor of a backward edge; None for a forward one."""
    shape: Shape
    """The shape of the layer it arrives at."""


Parameters: TypeAlias = Mapping[str, A]
"""Weights by connection name, biases by layer name."""


@dataclass(frozen=True, repr=False)  # without slots: cached properties need a __dict__
class Network:
    """Layers, in the order of a forward pass, and the connections between them.

    `train` accepts one in the place of the name of a model.

    Parameters
    ----------
    layers : tuple of Layer
        One has the role of the input, one that of the output.
    connections : tuple of Connection
        Between any layers, also from a layer to itself.
    cost : Cost
        What training minimises: `Cost.SQUARED` or `Cost.CROSS_ENTROPY`, or the name of one.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> network = ne.Network(
    ...     (
    ...         ne.Layer("input", 64, "linear", "input"),
    ...         ne.Layer("hidden", 16, "hard_sigmoid"),
    ...         ne.Layer("output", 10, "hard_sigmoid", "output"),
    ...     ),
    ...     (ne.Connection("input", "hidden"), ne.Connection("hidden", "output")),
    ... )
    >>> network
    Network(input 64, hidden 16, output 10; 2 connections)
    >>> network.parameters()["hidden->output"]
    (10, 16)
    >>> ne.train(network, "digits", epochs=1)
    Model(input 64, hidden 16, output 10, 1210 parameters, trained by hebbian on digits, 1 epoch)
    """

    layers: tuple[Layer, ...]
    connections: tuple[Connection, ...]
    cost: Cost = Cost.SQUARED

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", parse_enum("cost", Cost, self.cost))
        names = [layer.name for layer in self.layers]
        if len(set(names)) != len(names):
            raise ValueError(f"layer names are not unique: {names}")
        for role in (Role.INPUT, Role.OUTPUT):
            if sum(layer.role is role for layer in self.layers) != 1:
                raise ValueError(f"a network needs exactly one {role.value} layer")
        for layer in self.layers:
            if layer.size < 1:
                raise ValueError(f"layer {layer.name!r} has no units (shape {layer.shape})")
            if not 0.0 < layer.stiffness < np.inf:
                raise ValueError(f"layer {layer.name!r}: stiffness must be above zero and finite")
            if len(layer.bias) != len(layer.shape) or any(
                b not in (1, n) for b, n in zip(layer.bias, layer.shape, strict=True)
            ):
                raise ValueError(
                    f"layer {layer.name!r}: a bias of shape {layer.bias} does not broadcast to "
                    f"{layer.shape}"
                )
        keys = [connection.name for connection in self.connections]
        if len(set(keys)) != len(keys):
            raise ValueError(f"connection names are not unique: {keys}; set label")
        for connection in self.connections:
            self._check(connection)

    def __repr__(self) -> str:
        many = len(self.connections)
        return f"Network({self.layout}; {many} connection{'' if many == 1 else 's'})"

    @property
    def layout(self) -> str:
        """The layers with their shapes: "input 64, hidden 128, output 10"."""
        return ", ".join(f"{layer.name} {'x'.join(map(str, layer.shape))}" for layer in self.layers)

    def _check(self, connection: Connection) -> None:
        if not hasattr(connection.operator, "weight_shape"):
            raise TypeError(
                f"the operator of connection {connection.name!r} is "
                f"{type_name(connection.operator)}; give one of "
                f"neuro_eqprop.networks.operators, as Dense()"
            )
        for end in (connection.source, connection.target):
            if end not in self.named:
                raise ValueError(f"connection {connection.name!r}: there is no layer {end!r}")
        if self[connection.target].role is Role.INPUT:
            raise ValueError(f"connection {connection.name!r} has the input layer as its target")
        if connection.bound is not None and connection.bound <= 0:
            raise ValueError(f"connection {connection.name!r}: bound must be above zero")
        self.weight_shape(connection)
        if self.feeds_back(connection) and not connection.operator.linear:
            if not isinstance(connection.operator, MaxPooled):
                raise ValueError(
                    f"connection {connection.name!r} is not linear, so it cannot be symmetric"
                )
            if self[connection.target].activation.low < 0.0:
                raise ValueError(
                    f"layer {connection.target!r} is max-pooled and has rates below zero, whose "
                    f"feedback would settle nowhere: use activation 'relu', 'box' or 'hard_sigmoid'"
                )
        if self.cost is Cost.CROSS_ENTROPY and connection.source == self.output.name:
            raise ValueError(
                f"connection {connection.name!r} starts at the output, which is a readout with "
                f"cross-entropy cost"
            )

    def __getitem__(self, name: str) -> Layer:
        return self.named[name]

    @cached_property
    def named(self) -> Mapping[str, Layer]:
        """The layers by name."""
        return NamedDict("layer", {layer.name: layer for layer in self.layers})

    @cached_property
    def input(self) -> Layer:
        """The input layer."""
        return next(layer for layer in self.layers if layer.role is Role.INPUT)

    @cached_property
    def output(self) -> Layer:
        """The output layer."""
        return next(layer for layer in self.layers if layer.role is Role.OUTPUT)

    @cached_property
    def moving(self) -> tuple[Layer, ...]:
        """The layers with dynamics: all but the input."""
        return tuple(layer for layer in self.layers if layer.role is not Role.INPUT)

    @property
    def vocabulary(self) -> int:
        """The number of token ids that it knows; 0 if its samples are numbers."""
        operators = (connection.operator for connection in self.connections)
        return next((o.vocabulary for o in operators if isinstance(o, Embedding)), 0)

    @cached_property
    def incoming(self) -> Mapping[str, tuple[DirectedEdge, ...]]:
        """The edges into each layer from layers with dynamics."""
        found: dict[str, list[DirectedEdge]] = {layer.name: [] for layer in self.moving}
        for c in self.connections:
            source, target = self[c.source], self[c.target]
            if source.role is not Role.INPUT:
                found[c.target].append(DirectedEdge(c.source, c, None, target.shape))
            if self.feeds_back(c):
                found[c.source].append(DirectedEdge(c.target, c, self.feedback(c), source.shape))
        return {name: tuple(edges) for name, edges in found.items()}

    def weight_shape(self, connection: Connection) -> Shape:
        """The shape of a connection's weight."""
        source, target = self[connection.source], self[connection.target]
        return connection.operator.weight_shape(source.shape, target.shape)

    def feeds_back(self, connection: Connection) -> bool:
        """Whether the connection also acts backwards, with the transposed weight."""
        return (
            connection.symmetric
            and not connection.loops
            and self[connection.source].role is not Role.INPUT
        )

    @cached_property
    def layers_without_feedback(self) -> tuple[str, ...]:
        """The hidden layers that are driven only by the input and by each other, in order."""
        found: list[str] = []
        for layer in self.layers:
            feedback = any(
                layer.name == c.source and (self.feeds_back(c) or c.loops) for c in self.connections
            )
            feedforward = all(
                c.source in found or self[c.source].role is Role.INPUT
                for c in self.connections
                if c.target == layer.name
            )
            if layer.role is Role.HIDDEN and feedforward and not feedback:
                found.append(layer.name)
        return tuple(found)

    def feedback(self, connection: Connection) -> float:
        """The factor of the transposed weight in the backward direction: k_target / k_source."""
        return self[connection.target].stiffness / self[connection.source].stiffness

    def parameters(self) -> dict[str, Shape]:
        """The shape of every weight and bias, by name."""
        weights = {c.name: self.weight_shape(c) for c in self.connections}
        return NamedDict("parameter", weights | {layer.name: layer.bias for layer in self.moving})


def check_parameters(network: Network, params: Mapping[str, Array]) -> None:
    """Raise ValueError for missing, extra, misshapen, non-finite or non-symmetric parameters."""
    expected = network.parameters()
    if set(expected) != set(params):
        missing, extra = set(expected) - set(params), set(params) - set(expected)
        raise ValueError(
            f"parameters do not match the network: missing {sorted(missing)}, extra {sorted(extra)}"
        )
    for name, shape in expected.items():
        if tuple(params[name].shape) != shape:
            raise ValueError(f"parameter {name!r} has shape {params[name].shape}, not {shape}")
        if not np.isfinite(params[name]).all():
            raise ValueError(f"parameter {name!r} holds values that are not finite")
    for connection in network.connections:
        if connection.loops and connection.symmetric and connection.operator.matrix:
            weight = params[connection.name]
            if not np.allclose(weight, weight.T, rtol=0.0, atol=1e-6 * np.abs(weight).max()):
                raise ValueError(f"parameter {connection.name!r} is not a symmetric matrix")
