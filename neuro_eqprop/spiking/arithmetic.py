"""The two arithmetics of the step: float64, and 24-bit integers as `neuro_eqprop.spiking.ir` says.

A kind of neuron writes its step once, with the operations of an `Arithmetic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints

Numbers: TypeAlias = npt.NDArray[Any]
"""An array of floats, integers or booleans."""

STATE_BITS = 24
"""Bits of u, v, the sums and the state of a graded unit, including the sign."""
FRACTION_BITS = 6
"""Fractional bits of u and v, relative to a weight step."""
DECAY_BITS = 12
"""Bits of decays, dampings and betas."""
TOP = 1 << (STATE_BITS - 1)
ONE = 1 << DECAY_BITS
FRACTION = 1 << FRACTION_BITS
CHUNK = 2**16
"""Values that are looked at together, which fit into the cache."""
UNREACHED = 2**40
"""A magnitude that no value of 24 bits reaches; sums and products with it are exact."""


def to_12_bits(part: float) -> int:
    """A decay, damping or beta in multiples of 1/4096."""
    return round(part * ONE)


def scale(x: Ints, part: int) -> Ints:
    """x part / 4096, truncated towards zero."""
    product = x * part
    return np.asarray(np.sign(product) * (np.abs(product) >> DECAY_BITS))


def wrap(x: Ints) -> Ints:
    """x plus the multiple of 2^24 that brings it into -2^23 < x <= 2^23."""
    return np.asarray((x + (TOP - 1)) % (TOP << 1) - (TOP - 1))


def saturate(x: Ints) -> Ints:
    """x clipped to 24 bits."""
    return np.asarray(np.minimum(np.maximum(x, 1 - TOP), TOP - 1))


def divide(x: Ints, shift: int) -> Ints:
    """x / 2^shift to the nearest integer, ties to even."""
    floor, rest = x >> shift, x & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    up = (rest > half) | ((rest == half) & (floor & 1 == 1) & (shift > 0))
    return np.asarray(floor + up)


def nearest(values: Array, unit: float) -> Ints:
    """Values as the nearest multiples of the unit, ties to even, clipped to +-2^40.

    Larger values would saturate a 24-bit voltage, too, but their sums and products would not be
    exact in every simulator.
    """
    return np.asarray(np.clip(np.rint(values / unit), -UNREACHED, UNREACHED), dtype=np.int64)


def power_above(x: float) -> float:
    """The smallest power of two that is at least x."""
    mantissa, exponent = frexp(x)
    return 2.0 ** (exponent - 1 if mantissa == 0.5 else exponent)


def order_of(values: Numbers) -> Literal["C", "F"]:
    """The order in which an array lies in memory: by rows or by columns."""
    return "F" if values.flags.f_contiguous else "C"


def chunks(values: Numbers, order: Literal["C", "F", "K"] = "K") -> Iterator[Numbers]:
    """Consecutive parts of an array, flat; in the order of memory unless one is given."""
    flat = values.ravel(order=order)
    return (flat[start : start + CHUNK] for start in range(0, flat.size, CHUNK))


def check_multiples(values: Array, unit: float, what: str) -> None:
    """Raise an error if a value is not an integer multiple of the unit."""
    for chunk in chunks(np.asarray(values)):
        ratio = chunk / unit
        if not (np.abs(ratio) < 2.0**53).all() or not (ratio == np.rint(ratio)).all():
            raise ValueError(f"{what} is not a multiple of {unit}; quantise the entire network")


def bits_of(*values: int) -> int:
    """Bits of the largest absolute value, including the sign; at most STATE_BITS."""
    largest = max(abs(value) for value in values)
    return min(largest, TOP - 1).bit_length() + 1


class FloatArithmetic:
    """Values are floats in the unit of one; nothing wraps, saturates or is rounded."""

    dtype: ClassVar[type] = np.float64
    unit: ClassVar[float] = 1.0
    fraction: ClassVar[int] = 1
    fixed: ClassVar[bool] = False

    def __init__(self) -> None:
        self.overflows = np.zeros(2, dtype=np.int64)
        """Wraps and saturations that changed a value."""

    def own(self, values: npt.ArrayLike, what: str) -> Any:  # noqa: ANN401
        """Values of the network in units; raises an error, which names `what`, for parts of one."""
        return values

    def rounded(self, values: Array) -> Numbers:
        """Values from outside in units, rounded to the nearest."""
        return values

    def part(self, value: float) -> float:
        """A damping or a beta, as `times` takes it."""
        return value

    def keep(self, decay: float) -> float:
        """What a decay leaves, as `times` takes it."""
        return 1 - decay

    def times(self, x: Numbers, part: float) -> Numbers:
        """x times a part."""
        return np.asarray(x * part)

    def fine(self, x: Numbers) -> Numbers:
        """x in the finer unit of currents and voltages."""
        return x

    def wrap(self, x: Numbers) -> Numbers:
        """x, as a register of sums holds it."""
        return x

    def saturate(self, x: Numbers) -> Numbers:
        """x, as a register of states holds it."""
        return x

    def ratio(self, x: Numbers, theta: float) -> Numbers:
        """The number of thetas nearest to x, ties to even."""
        return np.asarray(np.rint(x / theta))


class FixedArithmetic(FloatArithmetic):
    """Values are integers in a unit that is a power of two, with 24 bits."""

    dtype: ClassVar[type] = np.int64
    fraction: ClassVar[int] = FRACTION
    fixed: ClassVar[bool] = True

    def __init__(self, unit: float) -> None:
        super().__init__()
        self.unit = unit  # type: ignore[misc]

    def own(self, values: npt.ArrayLike, what: str) -> Any:  # noqa: ANN401
        """Integers; an infinite limit becomes +-2^40, which no value reaches."""
        array = np.asarray(values, dtype=np.float64)
        endless = np.isinf(array)
        check_multiples(np.where(endless, 0.0, array), self.unit, what)
        whole = np.where(endless, np.sign(array) * UNREACHED, array / self.unit).astype(np.int64)
        return whole if array.ndim else int(whole)

    def rounded(self, values: Array) -> Ints:
        """The nearest integers, ties to even."""
        return nearest(values, self.unit)

    def part(self, value: float) -> int:
        """In multiples of 1/4096."""
        return to_12_bits(value)

    def keep(self, decay: float) -> int:
        """In multiples of 1/4096."""
        return ONE - to_12_bits(decay)

    def times(self, x: Numbers, part: float) -> Ints:
        """Truncated towards zero."""
        return scale(x, int(part))

    def fine(self, x: Numbers) -> Ints:
        """With six fractional bits."""
        return np.asarray(x << FRACTION_BITS)

    def wrap(self, x: Numbers) -> Ints:
        """With 24 bits; values that change are counted."""
        fits = wrap(x)
        self.overflows[0] += np.count_nonzero(fits != x)
        return fits

    def saturate(self, x: Numbers) -> Ints:
        """Clipped to 24 bits; values that change are counted."""
        fits = saturate(x)
        self.overflows[1] += np.count_nonzero(fits != x)
        return fits

    def ratio(self, x: Numbers, theta: float) -> Ints:
        """Theta is a power of two."""
        return divide(x, int(theta).bit_length() - 1)
