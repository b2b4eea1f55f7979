"""Maps of normalised rates, as in the research notes; not linear, without an energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.numpy import STEADY
from neuro_eqprop.ops.protocol import Ops, Values


def norm_pull(ops: Ops, x: Values, u: Values) -> Values:
    """The transposed slope of n at x, times u: (u - mean u - n mean(u n)) / deviation."""
    moved = x - x.mean(axis=-1, keepdims=True)
    deviation = ((moved * moved).mean(axis=-1, keepdims=True) + STEADY) ** 0.5
    n = moved / deviation
    along = (u * n).mean(axis=-1, keepdims=True)
    return (u - u.mean(axis=-1, keepdims=True) - n * along) / deviation


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """y = W n(x), with n(x) = (x - mean of x) / deviation of x over the units of the layer.

    Between sequences, of each token by itself.
    """

    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) not in (1, 2) or len(target) != len(source) or source[:-1] != target[:-1]:
            raise ValueError(
                f"a normed connection joins vectors, or as many tokens, not {source} and {target}"
            )
        return (target[-1], source[-1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W n(x)."""
        if x.ndim == 2:
            return ops.affine(onto, ops.normalise(x), weight.T)
        return ops.normalise(x) @ weight.T + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """There is none."""
        raise ValueError("a normed connection is not linear and has no transpose")

    def pull(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed slope at x, times y."""
        return norm_pull(ops, x, y @ weight)

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post n(pre)^T."""
        seen = ops.normalise(pre)
        return post.reshape(-1, post.shape[-1]).T @ seen.reshape(-1, seen.shape[-1])

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Of the matrix alone."""
        return [ops.norm(weight)]
