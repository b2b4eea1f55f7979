"""Past states of a layer, fed back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class DelayedFeedback:
    """y[t] = W sum over k of parts[k] x[t - 1 - k], with one number W for all units.

    At equilibrium the past is the present, so that y = W (sum of parts) x: the delays shape how a
    network of spikes gets there, not where it goes.
    """

    parts: tuple[float, ...]
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """One number."""
        if source != target:
            raise ValueError(f"an echo joins a layer to one of its shape, not {source} to {target}")
        return (1,)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W (sum of parts) x."""
        return onto + (weight * sum(self.parts)) * x

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W (sum of parts) y."""
        return onto + (weight * (gain * sum(self.parts))) * y

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum of post . pre over batch and units, times the sum of parts."""
        return sum(self.parts) * (post * pre).sum().reshape(1)

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """|W| times the sum of parts."""
        return [abs(float(weight[0])) * sum(self.parts)]
