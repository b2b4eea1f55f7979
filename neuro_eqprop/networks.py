"""Layers and connections: the one description of a rate network, checked when it is made.

A unit's drive is its bias plus what every connection brings it; its rate is the activation of
its drive. A symmetric connection also acts backwards with the transposed weight, which gives the
network an energy; between a layer and itself its weight is a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Array, Shape
from neuro_eqprop.operators import Attention, Dense, Operator, Patches, PerToken
from neuro_eqprop.ops.numpy import NumpyOps

A = TypeVar("A")
DENSE = Dense()


class Cost(Enum):
    """What the output is judged by, summed over the batch: C for a target y.

    With the squared error the output's rates are s_o = rho(d_o), and they act back on the network.
    With the cross-entropy the output only reads: its answer is softmax(d_o), and its rates are the
    errors beta (y - softmax(d_o)) that it sends back, none in a free phase.
    """

    SQUARED = "squared"
    """C = 1/2 |s_o - y|^2"""
    CROSS_ENTROPY = "cross_entropy"
    """C = -y . log softmax(d_o)"""


class Role(Enum):
    """What a layer is for."""

    INPUT = "input"
    HIDDEN = "hidden"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Layer:
    """A named group of units of one kind.

    `stiffness` is its weight in the energy: a symmetric connection drives its source backwards by
    the target's stiffness over the source's. `shared` is the shape of its bias where units share
    one (a number for each channel of an image, say), broadcast over the layer.
    """

    name: str
    shape: Shape
    activation: Activation
    role: Role = Role.HIDDEN
    stiffness: float = 1.0
    shared: Shape | None = None

    @property
    def bias(self) -> Shape:
        """The shape of its bias."""
        return self.shape if self.shared is None else self.shared

    @property
    def size(self) -> int:
        """How many units it has."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Connection:
    """From one layer to another; `bound` is kept on its spectral norm during training.

    A `label` tells it from others between the same layers.
    """

    source: str
    target: str
    operator: Operator = DENSE
    symmetric: bool = True
    bound: float | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """The key of its weight among the parameters."""
        return f"{self.source}->{self.target}" + (f"#{self.label}" if self.label else "")

    @property
    def loops(self) -> bool:
        """Whether it joins a layer to itself."""
        return self.source == self.target


@dataclass(frozen=True, slots=True)
class DirectedEdge:
    """One way into a layer: a connection taken forwards, or backwards from its target."""

    source: str
    connection: Connection
    back: float | None
    """What it is scaled by backwards; None for forwards."""
    shape: Shape
    """Of the layer that it leads to."""


Parameters: TypeAlias = Mapping[str, A]
"""Weights by connection name, biases by layer name."""


@dataclass(frozen=True)  # without slots: what follows from the fields is worked out once
class Network:
    """Layers in the order of a forward pass, and the connections between them."""

    layers: tuple[Layer, ...]
    connections: tuple[Connection, ...]
    cost: Cost = Cost.SQUARED

    def __post_init__(self) -> None:
        names = [layer.name for layer in self.layers]
        if len(set(names)) != len(names):
            raise ValueError(f"two layers share a name in {names}")
        for role in (Role.INPUT, Role.OUTPUT):
            if sum(layer.role is role for layer in self.layers) != 1:
                raise ValueError(f"a network needs exactly one {role.value} layer")
        for layer in self.layers:
            if layer.size < 1:
                raise ValueError(f"layer {layer.name!r} has no units (shape {layer.shape})")
            if not 0.0 < layer.stiffness < np.inf:
                raise ValueError(f"layer {layer.name!r}: a stiffness must be above zero and finite")
            if len(layer.bias) != len(layer.shape) or any(
                b not in (1, n) for b, n in zip(layer.bias, layer.shape, strict=True)
            ):
                raise ValueError(
                    f"layer {layer.name!r}: a bias {layer.bias} does not spread over {layer.shape}"
                )
        keys = [connection.name for connection in self.connections]
        if len(set(keys)) != len(keys):
            raise ValueError(f"two connections share a name in {keys}")
        for connection in self.connections:
            self._check(connection)

    def _check(self, connection: Connection) -> None:
        for end in (connection.source, connection.target):
            if end not in self.named:
                raise ValueError(f"connection {connection.name!r}: there is no layer {end!r}")
        if self[connection.target].role is Role.INPUT:
            raise ValueError(f"connection {connection.name!r} leads into the input layer")
        if connection.bound is not None and connection.bound <= 0:
            raise ValueError(f"connection {connection.name!r}: a bound must be above zero")
        self.parameter(connection)
        if self.feeds_back(connection) and not connection.operator.linear:
            raise ValueError(f"connection {connection.name!r} is not linear and cannot act back")
        if self.cost is Cost.CROSS_ENTROPY and connection.source == self.output.name:
            raise ValueError(f"connection {connection.name!r} starts at an output that only reads")

    def __getitem__(self, name: str) -> Layer:
        return self.named[name]

    @cached_property
    def named(self) -> Mapping[str, Layer]:
        """The layers by name."""
        return {layer.name: layer for layer in self.layers}

    @cached_property
    def input(self) -> Layer:
        """The layer that holds the data."""
        return next(layer for layer in self.layers if layer.role is Role.INPUT)

    @cached_property
    def output(self) -> Layer:
        """The layer that is compared with the target."""
        return next(layer for layer in self.layers if layer.role is Role.OUTPUT)

    @cached_property
    def moving(self) -> tuple[Layer, ...]:
        """The layers that settle: all but the input."""
        return tuple(layer for layer in self.layers if layer.role is not Role.INPUT)

    @cached_property
    def wires(self) -> Mapping[str, tuple[DirectedEdge, ...]]:
        """For each layer that moves, what arrives there from layers that move."""
        found: dict[str, list[DirectedEdge]] = {layer.name: [] for layer in self.moving}
        for c in self.connections:
            source, target = self[c.source], self[c.target]
            if source.role is not Role.INPUT:
                found[c.target].append(DirectedEdge(c.source, c, None, target.shape))
            if self.feeds_back(c):
                found[c.source].append(DirectedEdge(c.target, c, self.feedback(c), source.shape))
        return {name: tuple(ways) for name, ways in found.items()}

    def parameter(self, connection: Connection) -> Shape:
        """The shape of a connection's weight."""
        source, target = self[connection.source], self[connection.target]
        return connection.operator.parameter(source.shape, target.shape)

    def feeds_back(self, connection: Connection) -> bool:
        """Whether the connection also drives its source with the transposed weight."""
        return (
            connection.symmetric
            and not connection.loops
            and self[connection.source].role is not Role.INPUT
        )

    def feedback(self, connection: Connection) -> float:
        """What the transposed weight is scaled by on its way back."""
        return self[connection.target].stiffness / self[connection.source].stiffness

    def parameters(self) -> dict[str, Shape]:
        """The shape of every weight and bias, by name."""
        weights = {c.name: self.parameter(c) for c in self.connections}
        return weights | {layer.name: layer.bias for layer in self.moving}


def check_parameters(network: Network, params: Mapping[str, Array]) -> None:
    """Refuse parameters that are missing, left over, misshapen, not finite or not symmetric."""
    wanted = network.parameters()
    if set(wanted) != set(params):
        missing, extra = set(wanted) - set(params), set(params) - set(wanted)
        raise ValueError(f"parameters do not fit: missing {sorted(missing)}, extra {sorted(extra)}")
    for name, shape in wanted.items():
        if tuple(params[name].shape) != shape:
            raise ValueError(f"parameter {name!r} has shape {params[name].shape}, not {shape}")
        if not np.isfinite(params[name]).all():
            raise ValueError(f"parameter {name!r} holds values that are not finite")
    for connection in network.connections:
        if connection.loops and connection.symmetric and connection.operator.matrix:
            weight = params[connection.name]
            if not np.allclose(weight, weight.T, rtol=0.0, atol=1e-6 * np.abs(weight).max()):
                raise ValueError(f"parameter {connection.name!r} is not a symmetric matrix")


START_NORM = 0.5
"""The coupling (spectral norm times the root of the feedback) that a loop may have at the start.

Well inside where settling contracts: started near one or above, a network has several equilibria,
and clipped outputs die early.
"""


START_LOOK = 0.8
"""The norm of the query and key weights that attention starts with."""
EMBEDDING = 4.0
"""How much larger the embedding of given tokens starts: few of a token's features are on."""


def initialise(network: Network, rng: np.random.Generator) -> dict[str, Array]:
    """Uniform weights and zero biases.

    The variance is 2 / (fan in + fan out), or less where a weight closes a loop: there it is kept
    within `START_NORM` and the bound, and symmetric if it joins a layer to itself. Attention starts
    with equal queries and keys (an orthogonal matrix), so that tokens look at those like them.
    """
    params: dict[str, Array] = {}
    for connection in network.connections:
        shape = network.parameter(connection)
        given = network[connection.source].role is Role.INPUT
        if isinstance(connection.operator, Attention):
            params[connection.name] = alike(shape, min(START_LOOK, connection.bound or np.inf), rng)
            continue
        if not np.prod(shape):
            params[connection.name] = np.zeros(shape)
            continue
        limit = np.sqrt(6.0 / fans(connection.operator, shape))
        weight = rng.uniform(-limit, limit, shape)
        if connection.loops and connection.symmetric and connection.operator.matrix:
            weight = (weight + weight.T) / 2
        if given and isinstance(connection.operator, PerToken):
            weight = weight * EMBEDDING
        if not given:
            weight = weight * shrink(network, connection, weight)
        params[connection.name] = weight
    for layer in network.moving:
        params[layer.name] = np.zeros(layer.bias)
    return params


def alike(shape: Shape, norm: float, rng: np.random.Generator) -> Array:
    """The same orthogonal matrix, times `norm`, for queries and keys."""
    turned, _ = np.linalg.qr(rng.standard_normal(shape[1:]))
    return np.asarray(norm * np.stack([turned] * shape[0]))


def fans(operator: Operator, shape: Shape) -> int:
    """How many weights lead to a unit plus how many lead from one."""
    if len(shape) < 4:
        return shape[0] + shape[-1]
    places = int(np.prod(shape[2:]))
    apart = isinstance(operator, Patches)  # each place of a patch has units of its own
    return places * shape[1] + (1 if apart else places) * shape[0]


def shrink(network: Network, connection: Connection, weight: Array) -> Array:
    """What brings the norms of a weight that closes a loop within where it may start."""
    source = network[connection.source].shape
    largest = np.asarray(connection.operator.norms(NumpyOps(), weight, source))
    start = START_NORM / np.sqrt(network.feedback(connection))
    within = np.minimum(start, connection.bound or np.inf) / largest
    factors = np.asarray(np.minimum(1.0, within))
    return factors.reshape(-1, *[1] * (weight.ndim - 1)) if len(factors) > 1 else factors
