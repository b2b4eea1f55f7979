"""Compiled passes over stored images: clip and average, displace and average.

With u = base + fed / size^2 the drive of a unit, `fed` the feedback to its square, low and high the
range of rates:

    s = clip(u)                                    the rate
    D = clip(Du + (u - s), low - s, high - s)      its displacement when the drive changes by Du

Arrays are flat. An image is (samples, height, width, channels), its averages are (samples,
height / size, width / size, channels); `limits` are low, high and 1 / size^2. The side of a square
is given as a tuple of that length, and so is a constant of the compiled code: loops over a square
are unrolled. Positions are unsigned, since numba checks signed ones for negative values.
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.jit import inner, outer
from neuro_eqprop.networks.ops.protocol import Values

Square = tuple[int, ...]
Row = tuple[np.uint64, np.uint64, np.uint64]


@inner
def clip(value: float, low: float, high: float) -> float:
    """The value, clipped; NaN stays NaN."""
    value = low if value < low else value
    return high if value > high else value


@inner
def spread(values: Values, start: Values, row: Row, part: float, to: Values) -> None:
    """Divide the values of a row of squares among the pixels of a row."""
    width, channels, size = row
    for j in range(width):
        for x in range(size):
            first, pixel = start + j * channels, (j * size + x) * channels
            for c in range(channels):
                to[pixel + c] = values[first + c] * part


@outer
def settle(
    base: Values, fed: Values, limits: Values, square: Square, row: tuple[int, int], to: Values
) -> None:
    """Write the averages of the rates over squares; `row` is their width and channels.

    An empty `fed` means zeros.
    """
    unsigned = np.uint64
    size, width, channels = unsigned(len(square)), unsigned(row[0]), unsigned(row[1])
    low, high, part, zero = limits[0], limits[1], limits[2], limits.dtype.type(0)
    length, driven = width * size * channels, fed.size > 0
    for r in range(unsigned(to.size) // (width * channels)):
        for j in range(width):
            first, pixel = (r * width + j) * channels, r * size * length + j * size * channels
            for c in range(channels):
                above, total = (fed[first + c] * part if driven else zero), zero
                for y in range(size):
                    for x in range(size):
                        u = base[pixel + y * length + x * channels + c] + above
                        total += clip(u, low, high)
                to[first + c] = total * part


@outer
def rates(
    base: Values, fed: Values, limits: Values, square: Square, row: tuple[int, int], to: Values
) -> None:
    """Write the rates of all pixels."""
    unsigned = np.uint64
    size, width, channels = unsigned(len(square)), unsigned(row[0]), unsigned(row[1])
    low, high, part = limits[0], limits[1], limits[2]
    length = width * size * channels
    above = np.zeros(length, dtype=base.dtype)
    for r in range(unsigned(base.size) // (size * length)):
        if fed.size:
            spread(fed, r * width * channels, (width, channels, size), part, above)
        for y in range(size):
            start = (r * size + y) * length
            for k in range(length):
                to[start + k] = clip(base[start + k] + above[k], low, high)


@outer
def displace(
    base: Values,
    fed: Values,
    shift: Values,
    limits: Values,
    square: Square,
    row: tuple[int, int],
    moved: Values,
    averages: Values,
) -> None:
    """Write displacements and their averages over squares; `shift` is the change of `fed`."""
    unsigned = np.uint64
    size, width, channels = unsigned(len(square)), unsigned(row[0]), unsigned(row[1])
    low, high, part, zero = limits[0], limits[1], limits[2], limits.dtype.type(0)
    length, kind = width * size * channels, base.dtype
    above, change, total = np.zeros(length, kind), np.empty(length, kind), np.empty(length, kind)
    for r in range(unsigned(base.size) // (size * length)):
        first = r * width * channels
        if fed.size:
            spread(fed, first, (width, channels, size), part, above)
        spread(shift, first, (width, channels, size), part, change)
        for k in range(length):
            total[k] = zero
        for y in range(size):
            start = (r * size + y) * length
            for k in range(length):
                u = base[start + k] + above[k]
                s = clip(u, low, high)
                by = clip(change[k] + (u - s), low - s, high - s)
                moved[start + k] = by
                total[k] += by
        for j in range(width):
            for c in range(channels):
                mean = zero
                for x in range(size):
                    mean += total[(j * size + x) * channels + c]
                averages[first + j * channels + c] = mean * part
