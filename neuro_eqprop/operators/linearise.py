"""What an operator is in the neighbourhood of a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Ops, Values


@runtime_checkable
class NonlinearOperator(Protocol):
    """An operator that is not linear, but whose slope is known."""

    def pull(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed slope at x, times y."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Tangent:
    """The linear map J = dA/dx at x = `at`, of which only the transpose is asked for."""

    bent: NonlinearOperator
    at: Any
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """That of the operator which it touches."""
        raise NotImplementedError("a tangent has no weight of its own")

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """Not asked for."""
        raise NotImplementedError("a tangent is taken backwards only")

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain J^T y."""
        return onto + gain * self.bent.pull(ops, weight, self.at, y)

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """Not asked for."""
        raise NotImplementedError("a tangent has no weight of its own")

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Not asked for."""
        raise NotImplementedError("a tangent has no weight of its own")
