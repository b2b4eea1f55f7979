"""The interface of operators, and their spectral norm by power iteration.

An operator maps the rates x of a connection's source to y = A(W) x, a contribution to the drive of
its target. Each operator states whether it is linear in x (`linear`): a linear one has a transpose,
so it can be part of a symmetric connection and become synapses of a spiking network.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape


class Operator(Protocol):
    """A map from the rates of one layer to the drive of another."""

    stored_name: ClassVar[str]
    """Its name in files; it stays when the class is renamed."""

    @property
    def linear(self) -> bool:
        """Whether it is linear in x."""
        ...

    @property
    def matrix(self) -> bool:
        """Whether its weight is a matrix, which a symmetric self-connection keeps symmetric."""
        ...

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """The shape of W; ValueError if it cannot connect layers of these shapes."""
        ...

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + A(W) x, a new array."""
        ...

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain A(W)^T y, where `shape` is that of the source layer."""
        ...

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The gradient of post . A(W) pre by W, summed over the batch."""
        ...

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The largest singular value of A(W); of each of its matrices if it has several."""
        ...


def flatten(values: Values) -> Values:
    """The values as (samples, features)."""
    return values if values.ndim == 2 else reshape(values, (values.shape[0], -1))


def power_iteration_norm(
    operator: Operator, ops: Ops, weight: Values, source: Shape, tolerance: float = 1e-7
) -> float:
    """The spectral norm of a linear operator, by power iteration on A^T A to convergence."""
    v = ops.from_numpy(np.random.default_rng(0).standard_normal((1, *source)))
    norm, before = 0.0, -1.0
    for _ in range(2000):
        size, v = power_iteration_step(operator, ops, weight, v)
        norm = float(size)
        if not norm or abs(norm - before) <= tolerance * norm:
            break
        before = norm
    return norm


def power_iteration_step(
    operator: Operator, ops: Ops, weight: Values, v: Values
) -> tuple[Values, Values]:
    """|A v|, a scalar of the library, and A^T A v for the normalized v."""
    v = v / (v * v).sum() ** 0.5
    zero = ops.zeros((1,))
    y = operator.forward(ops, weight, v, zero)
    back = operator.backward(ops, weight, y, zero, gain=1.0, shape=tuple(v.shape[1:]))
    return (y * y).sum() ** 0.5, back
