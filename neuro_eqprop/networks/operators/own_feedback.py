"""Feedback with weights of its own, in the place of the transposed forward weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.dense import Dense
from neuro_eqprop.networks.ops.protocol import Ops, Values

DENSE = Dense()


@dataclass(frozen=True, slots=True)
class OwnFeedback:
    """y = gain W x, from a layer back to the one before it.

    W learns by the product of both rates, as the forward weights do, or keeps its initial values.
    """

    gain: float = 1.0
    learns: bool = True
    decay: float = 0.0
    """W and the forward weights lose the factor exp(-decay) in the course of a training; less if
    the learning rate falls."""
    stored_name: ClassVar[str] = "own-feedback"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        return DENSE.weight_shape(source, target)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + gain W x."""
        return DENSE.forward(ops, self.gain * weight, x, onto)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain (self.gain W)^T y."""
        return DENSE.backward(ops, weight, y, onto, gain=gain * self.gain, shape=shape)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of gain post pre^T; zero if W does not learn."""
        factor = self.gain if self.learns else 0.0
        return factor * DENSE.weight_gradient(ops, weight, post, pre)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The gain times the spectral norm of W."""
        return [self.gain * norm for norm in DENSE.spectral_norms(ops, weight, source)]
