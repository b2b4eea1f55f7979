"""A dense map of layer-normalized rates (Ba et al. 2016); not linear, without an energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.array_api import EPSILON
from neuro_eqprop.networks.ops.protocol import Ops, Values


def layer_norm_vjp(ops: Ops, x: Values, u: Values) -> Values:
    """The transposed Jacobian of n at x, times u: (u - mean u - n mean(u n)) / deviation."""
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = ((centred * centred).mean(axis=-1, keepdims=True) + EPSILON) ** 0.5
    n = centred / deviation
    along = (u * n).mean(axis=-1, keepdims=True)
    return (u - u.mean(axis=-1, keepdims=True) - n * along) / deviation


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """y = W n(x), with n(x) = (x - mean x) / standard deviation of x over the units.

    Layers of shape (tokens, units) are normalized token by token.
    """

    stored_name: ClassVar[str] = "normed"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        if len(source) not in (1, 2) or len(target) != len(source) or source[:-1] != target[:-1]:
            raise ValueError(
                f"a layer norm connects layers of shape (units,), or (tokens, units) with equal "
                f"tokens, not {source} to {target}"
            )
        return (target[-1], source[-1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W n(x)."""
        if x.ndim == 2:
            return ops.affine(onto, ops.layer_norm(x), weight.T)
        return ops.layer_norm(x) @ weight.T + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: the operator is not linear."""
        raise ValueError("a layer norm is not linear and has no transpose")

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        return layer_norm_vjp(ops, x, y @ weight)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post n(pre)^T."""
        normed = ops.layer_norm(pre)
        return post.reshape(-1, post.shape[-1]).T @ normed.reshape(-1, normed.shape[-1])

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]
