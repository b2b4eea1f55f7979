"""Feedback of past states of a layer to itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape


@dataclass(frozen=True, slots=True)
class DelayedFeedback:
    """y[t] = W sum over k of parts[k] x[t - 1 - k], with one scalar W for all units.

    At equilibrium all x[t] are equal, so y = W (sum of parts) x: the delays change the path to the
    equilibrium, not the equilibrium.
    """

    parts: tuple[float, ...]
    stored_name: ClassVar[str] = "echo"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(1,)."""
        if source != target:
            raise ValueError(
                f"delayed feedback connects layers of equal shape, not {source} to {target}"
            )
        return (1,)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W (sum of parts) x."""
        return onto + (weight * sum(self.parts)) * x

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W (sum of parts) y."""
        return onto + (weight * (gain * sum(self.parts))) * y

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum of post . pre over batch and units, times the sum of parts."""
        return sum(self.parts) * reshape(ops.sum(post * pre), (1,))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """|W| times the sum of parts."""
        return [abs(float(weight[0])) * sum(self.parts)]
