"""Rounding of weights to integers with few bits and a shared scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from neuro_eqprop.common.arrays import ArgumentError, Array, Ints
from neuro_eqprop.spiking.arithmetic import chunks, nearest, order_of, power_above
from neuro_eqprop.spiking.synapses import Synapses

MANTISSA = 2.0**-7
"""Scales per neuron are multiples of this fraction of the largest scale of the projection."""


TERNARY = 2
"""Bits of ternary weights; weights with one bit are signs."""
SIGN_SCALES = 12
"""Number of powers of two, from the largest weight down, tried as scale of ternary weights."""


class QuantisationError(ValueError):
    """A network cannot be quantised; the message names the part and the reason."""


class BitsError(QuantisationError, ArgumentError):
    """A number of bits that no weights have."""


class Scaling(Enum):
    """Which weights share a scale."""

    LAYER = "layer"
    """All weights of a projection; the scale is a power of two, as chips have it."""
    NEURON = "neuron"
    """The weights onto one target neuron, also in the transpose; useful below five bits."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """How weights are rounded to integers: number of bits, scales, and whether only to even ones.

    Two bits are ternary weights -1, 0 and 1. One bit is the sign of a weight; a weight of zero is
    no synapse. Both use the power of two with the least squared error as their scale.

    Lava's `Dense` rounds weights with mixed signs to even integers; `even` weights stay the same.
    """

    bits: int
    scaling: Scaling = Scaling.LAYER
    even: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.bits, int | np.integer):
            raise QuantisationError(f"bits are an integer such as 8, not {self.bits!r}")
        if not 1 <= self.bits <= 24 or self.most < 1:
            least = 3 if self.even else 1
            raise BitsError(f"weights have {least} to 24 bits, not {self.bits}")

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
    """Integer weights: weight = whole * factor * base, where factor broadcasts to whole."""

    whole: Ints
    factor: Ints
    base: float

    @property
    def weight(self) -> Array:
        """The weights in floating point."""
        if self.factor.size == 1:
            return np.asarray(self.whole * (float(self.factor.item()) * self.base))
        return np.asarray(self.whole * self.factor * self.base)


def round_to_signs(values: Array, rounding: Rounding, *, finest: float) -> Rounded:
    """Ternary or binary weights, scaled by the power of two with the least squared error."""
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
    """A matrix rounded to integers, ties to even, with a scale of at least `finest`.

    With scales per neuron, each row has its own.
    """
    return round_values(
        weight, rounding, lambda: np.abs(weight).max(axis=1, keepdims=True), finest=finest
    )


def round_synapses(synapses: Synapses, rounding: Rounding, *, finest: float = 0.0) -> Rounded:
    """The distinct weights of synapses, rounded; neurons that share weights share a scale."""
    return round_values(synapses.values, rounding, synapses.row_maxima, finest=finest)


def round_values(
    values: Array, rounding: Rounding, maxima: Callable[[], Array], *, finest: float
) -> Rounded:
    """Values rounded to integers; `maxima` returns the largest |w| of the neuron of each value."""
    largest = float(np.abs(values).max(initial=0.0))
    if rounding.bits <= TERNARY and largest:
        return round_to_signs(values, rounding, finest=finest)
    base = max(power_above(largest / rounding.most), finest) if largest else max(finest, 1.0)
    factor = np.ones((1,) * values.ndim, dtype=np.int64)
    if rounding.scaling is Scaling.NEURON and largest:
        base = max(base * MANTISSA, finest)
        factor = np.maximum(1, np.ceil(maxima() / (rounding.most * base))).astype(np.int64)
    if factor.size > 1:
        scaled = nearest(values / factor, base * rounding.step)
        return Rounded(np.asarray(rounding.step * scaled), factor, base)
    order = order_of(values)
    whole: Ints = np.empty(values.shape, dtype=np.int64, order=order)
    for own, chunk in zip(chunks(whole, order), chunks(values, order), strict=True):
        own[:] = rounding.step * nearest(chunk, base * rounding.step)
    return Rounded(whole, factor, base)
