"""Linearization of a nonlinear operator at a state, for the adjoint nudge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.protocol import Ops, Values


@runtime_checkable
class NonlinearOperator(Protocol):
    """A nonlinear operator with a known Jacobian."""

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Tangent:
    """The Jacobian J = dA/dx at x = `at`; only its transpose is implemented."""

    operator: NonlinearOperator
    at: Any
    stored_name: ClassVar[str] = "tangent"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """Not implemented: use that of the operator."""
        raise NotImplementedError("a linearized operator has no weight")

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """Not implemented."""
        raise NotImplementedError("a linearized operator only acts backwards")

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain J^T y."""
        return onto + gain * self.operator.vjp(ops, weight, self.at, y)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """Not implemented."""
        raise NotImplementedError("a linearized operator has no weight")

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Not implemented."""
        raise NotImplementedError("a linearized operator has no weight")
