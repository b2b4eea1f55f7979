"""Connections without a weight: what a layer holds, as it is or normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators.layer_norm import norm_pull
from neuro_eqprop.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class Identity:
    """y = x, or y_i = n(x_i) for each token (n as in `Normed`) if `normed`."""

    normed: bool = False
    matrix: ClassVar[bool] = False

    @property
    def linear(self) -> bool:
        """Whether it is linear in x."""
        return not self.normed

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """Nothing."""
        if source != target:
            raise ValueError(
                f"a plain connection joins layers of one shape, not {source}, {target}"
            )
        return (0,)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        return onto + (ops.normalise(x) if self.normed else x)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain y, where it is linear."""
        if self.normed:
            raise ValueError("a normed connection is not linear and has no transpose")
        return onto + gain * y

    def pull(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed slope at x, times y."""
        return norm_pull(ops, x, y) if self.normed else y

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """Nothing to ask for."""
        return ops.zeros((0,))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """One: it is left as it is, or brought to size."""
        return [1.0]
