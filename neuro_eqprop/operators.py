"""What a connection does to a vector: the shape of its parameter, its matrix, its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from neuro_eqprop.arrays import Shape


@dataclass(frozen=True, slots=True)
class Dense:
    """y = W x, with a row of W for each target unit and a column for each source unit."""

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 1 or len(target) != 1:
            raise ValueError(f"a dense connection joins vectors, not {source} and {target}")
        return (target[0], source[0])


Operator: TypeAlias = Dense
"""The union of all operators."""
