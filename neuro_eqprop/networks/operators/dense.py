"""Fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.base import flatten
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape


@dataclass(frozen=True, slots=True)
class Dense:
    """y = W x, with a row of W for each target unit and a column for each source unit."""

    stored_name: ClassVar[str] = "dense"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        if len(target) != 1:
            raise ValueError(f"a dense connection needs a target of shape (units,), not {target}")
        return (target[0], int(np.prod(source)))

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W x."""
        return ops.affine(onto, flatten(x), weight.T)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W^T y."""
        if len(shape) == 1:
            return ops.affine(onto, y, weight, gain)
        return onto + gain * reshape(y @ weight, (y.shape[0], *shape))

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post pre^T."""
        return post.T @ flatten(pre)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]
