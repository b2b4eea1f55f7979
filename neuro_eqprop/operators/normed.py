"""A dense map of normalised rates, as in the research notes; not linear, without an energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.base import Ops, Values


@dataclass(frozen=True, slots=True)
class Normed:
    """y = W n(x), with n(x) = (x - mean of x) / deviation of x over the units of the layer."""

    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 1 or len(target) != 1:
            raise ValueError(f"a normed connection joins vectors, not {source} and {target}")
        return (target[0], source[0])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W n(x)."""
        return ops.affine(onto, ops.normalise(x), weight.T)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """There is none."""
        raise ValueError("a normed connection is not linear and has no transpose")

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post n(pre)^T."""
        return post.T @ ops.normalise(pre)

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Of the matrix alone."""
        return [ops.norm(weight)]
