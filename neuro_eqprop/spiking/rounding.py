"""Weights as integers of few bits, and the scale that they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import frexp

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.spiking.fixed_point import nearest
from neuro_eqprop.spiking.synapses import Synapses

MANTISSA = 2.0**-7
"""Scales by neuron are multiples of this part of the projection's largest."""


TERNARY = 2
"""Bits of ternary weights; fewer are signs."""
SIGN_SCALES = 12
"""Powers of two below the largest weight that are tried as the scale of ternary weights."""


class QuantisationError(ValueError):
    """A network cannot be quantised; the message names the part and the reason."""


class Scaling(Enum):
    """The weights that share a scale."""

    LAYER = "layer"
    """All weights of a projection; the scale is a power of two, a chip's weight exponent."""
    NEURON = "neuron"
    """The weights of a target neuron, and of its counterpart backwards; pays below five bits."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """How weights become integers: of few bits, with scales by layer or neuron, or even only.

    Two bits are ternary weights, -1, 0 and 1; one bit is the sign of a weight, where a weight of
    zero stays no synapse. Both have the scale, a power of two, with the least squared error.

    `even` is what Lava's Dense makes of weights of both signs, so that it leaves these alone.
    """

    bits: int
    scaling: Scaling = Scaling.LAYER
    even: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.bits, int | np.integer):
            raise QuantisationError(f"bits are an integer such as 8, not {self.bits!r}")
        if not 1 <= self.bits <= 24 or self.most < 1:
            least = 3 if self.even else 1
            raise QuantisationError(f"weights have {least} to 24 bits, not {self.bits}")

    @property
    def step(self) -> int:
        """The difference between adjacent integer weights."""
        return 2 if self.even else 1

    @property
    def most(self) -> int:
        """The largest absolute integer weight."""
        return max(int((1 << (self.bits - 1)) - self.step), 0 if self.even else 1)


@dataclass(frozen=True, slots=True)
class Rounded:
    """Integer weights: weight = whole factor base; factors have a shape that broadcasts."""

    whole: Ints
    factor: Ints
    base: float

    @property
    def weight(self) -> Array:
        """The weights in floating point."""
        return np.asarray(self.whole * self.factor * self.base)


def power_above(x: float) -> float:
    """The least power of two that is not below x."""
    mantissa, exponent = frexp(x)
    return 2.0 ** (exponent - 1 if mantissa == 0.5 else exponent)


def round_to_signs(values: Array, rounding: Rounding, *, finest: float) -> Rounded:
    """Ternary or binary weights at the power of two with the least squared error."""
    top = power_above(float(np.abs(values).max()))
    found: tuple[float, Array, float] | None = None
    for place in range(SIGN_SCALES):
        base = max(top * 2.0**-place, finest)
        whole = np.sign(values)
        if rounding.bits == TERNARY:
            whole = np.clip(nearest(values, base), -1, 1)
        error = float(((values - base * whole) ** 2).sum())
        if found is None or error < found[0]:
            found = (error, whole, base)
    if found is None:
        raise QuantisationError("there is no scale for the weights")
    factor = np.ones((1,) * values.ndim, dtype=np.int64)
    return Rounded(found[1].astype(np.int64), factor, found[2])


def round_weight(weight: Array, rounding: Rounding, *, finest: float = 0.0) -> Rounded:
    """The nearest weights that few bits can hold, ties to even, at a scale of at least `finest`.

    With scales by neuron, the weights of a neuron are a row.
    """
    return round_values(
        weight, rounding, lambda: np.abs(weight).max(axis=1, keepdims=True), finest=finest
    )


def round_synapses(synapses: Synapses, rounding: Rounding, *, finest: float = 0.0) -> Rounded:
    """The same for the distinct weights of synapses; neurons that share weights share a scale."""
    return round_values(synapses.values, rounding, synapses.row_maxima, finest=finest)


def round_values(
    values: Array, rounding: Rounding, maxima: Callable[[], Array], *, finest: float
) -> Rounded:
    """The nearest integers of the values; `maxima` are those of the neurons they belong to."""
    largest = float(np.abs(values).max(initial=0.0))
    if rounding.bits <= TERNARY and largest:
        return round_to_signs(values, rounding, finest=finest)
    base = max(power_above(largest / rounding.most), finest) if largest else max(finest, 1.0)
    factor = np.ones((1,) * values.ndim, dtype=np.int64)
    if rounding.scaling is Scaling.NEURON and largest:
        base = max(base * MANTISSA, finest)
        factor = np.maximum(1, np.ceil(maxima() / (rounding.most * base))).astype(np.int64)
    whole = rounding.step * nearest(values / factor, base * rounding.step)
    return Rounded(np.asarray(whole), factor, base)
