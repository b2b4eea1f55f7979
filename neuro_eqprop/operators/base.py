"""What every operator can do.

An operator makes y = A(W) x of the rates x of its source. All but `Normed` and `Attention` are
linear in x, have a transpose, and can become synapses.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Ops, Values


class Operator(Protocol):
    """From the rates of one layer to the drive of another."""

    @property
    def linear(self) -> bool:
        """Whether it is linear in x."""
        ...

    @property
    def matrix(self) -> bool:
        """Whether its weight is a matrix, which has to be symmetric in a symmetric loop."""
        ...

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W; an error if it cannot join these layers."""
        ...

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + A(W) x, a fresh array."""
        ...

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain A(W)^T y, of the source's shape (*batch, *shape)."""
        ...

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The gradient of post . A(W) pre by W, summed over the batch."""
        ...

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The largest singular value of A(W); of each of its matrices where it has several."""
        ...


def flat(values: Values) -> Values:
    """One row for each sample."""
    return values if values.ndim == 2 else values.reshape(len(values), -1)


def largest_singular(
    operator: Operator, ops: Ops, weight: Values, source: Shape, tolerance: float = 1e-7
) -> float:
    """The norm of a linear operator, by power iteration on A^T A until it stands still."""
    v = ops.bring(np.random.default_rng(0).standard_normal((1, *source)))
    size, before = 0.0, -1.0
    for _ in range(2000):
        size, v = stretch(operator, ops, weight, v)
        if abs(size - before) <= tolerance * size:
            break
        before = size
    return size


def stretch(operator: Operator, ops: Ops, weight: Values, v: Values) -> tuple[float, Values]:
    """One power iteration from the unit vector nearest v: how much A stretches it, and A^T A v."""
    v = v / float((v * v).sum()) ** 0.5
    nothing = ops.zeros((1,))
    y = operator.forward(ops, weight, v, nothing)
    back = operator.backward(ops, weight, y, nothing, gain=1.0, shape=tuple(v.shape[1:]))
    return float((y * y).sum()) ** 0.5, back
