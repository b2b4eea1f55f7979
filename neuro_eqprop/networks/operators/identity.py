"""Connections without weights: the rates themselves, or their layer norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.layer_norm import layer_norm_vjp
from neuro_eqprop.networks.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class Identity:
    """y = x, or y_i = n(x_i) for each token (n as in `LayerNorm`) if `normed`."""

    normed: bool = False
    stored_name: ClassVar[str] = "plain"
    matrix: ClassVar[bool] = False

    @property
    def linear(self) -> bool:
        """Whether it is linear in x."""
        return not self.normed

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(0,)."""
        if source != target:
            raise ValueError(
                f"an identity connects layers of equal shape, not {source} to {target}"
            )
        return (0,)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        return onto + (ops.layer_norm(x) if self.normed else x)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain y; undefined if `normed`."""
        if self.normed:
            raise ValueError("a layer norm is not linear and has no transpose")
        return onto + gain * y

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        return layer_norm_vjp(ops, x, y) if self.normed else y

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """Empty: there is no weight."""
        return ops.zeros((0,))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """One."""
        return [1.0]
