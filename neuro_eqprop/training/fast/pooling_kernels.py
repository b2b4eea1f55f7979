"""Compiled passes over stored images: clip and average, displace and average.

With u = base + fed / size^2 the drive of a unit, `fed` the feedback to its square, low and high the
range of rates:

    s = clip(u)                                    the rate
    D = clip(Du + (u - s), low - s, high - s)      its displacement when the drive changes by Du
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.jit import inner, outer
from neuro_eqprop.ops.protocol import Values


@inner
def clip(value: float, low: float, high: float) -> float:
    """The value, clipped; NaN stays NaN."""
    value = low if value < low else value
    return high if value > high else value


@inner
def from_above(fed: Values, where: tuple[int, int, int], part: float, into: Values) -> None:
    """The feedback to each pixel of a square; `into` is left alone if there is none."""
    if fed.size > 0:
        b, i, j = where
        for c in range(into.size):
            into[c] = fed[b, i, j, c] * part


@inner
def add_rates(row: Values, above: Values, limits: Values, average: Values, rates: Values) -> None:
    """Add the rates of the channels of a pixel to an average; keep them unless `rates` is empty."""
    low, high = limits[0], limits[1]
    for c in range(average.size):
        average[c] += clip(row[c] + above[c], low, high)
    for c in range(rates.size):
        rates[c] = clip(row[c] + above[c], low, high)


@inner
def add_shifts(
    row: Values, above: Values, change: Values, limits: Values, average: Values, moved: Values
) -> None:
    """Write the displacements of the channels of a pixel, and add them to an average."""
    low, high = limits[0], limits[1]
    for c in range(average.size):
        u = row[c] + above[c]
        s = clip(u, low, high)
        by = clip(change[c] + (u - s), low - s, high - s)
        moved[c] = by
        average[c] += by


@outer
def settle(
    base: Values, fed: Values, limits: Values, size: int, rates: Values, averages: Values
) -> None:
    """Write the averages of the rates over squares, and the rates unless that array is empty.

    base and rates are (samples, height, width, channels), fed and averages
    (samples, height / size, width / size, channels); an empty `fed` stands for zeros. `limits` are
    low, high and 1 / size^2.
    """
    samples, height, width, channels = averages.shape
    above, none = np.zeros(channels, dtype=base.dtype), np.zeros(0, dtype=base.dtype)
    for b in range(samples):
        for i in range(height):
            for j in range(width):
                average = averages[b, i, j]
                average[:] = 0.0
                from_above(fed, (b, i, j), limits[2], above)
                for k in range(size * size):
                    y, x = i * size + k // size, j * size + k % size
                    kept = rates[b, y, x] if rates.size > 0 else none
                    add_rates(base[b, y, x], above, limits, average, kept)
                for c in range(channels):
                    average[c] *= limits[2]


@outer
def displace(
    base: Values,
    fed: Values,
    shift: Values,
    limits: Values,
    size: int,
    moved: Values,
    averages: Values,
    total: Values,
) -> None:
    """Write displacements and their averages over squares; add them up for each channel.

    `shift` is the change of `fed`; both have the shape of `averages`.
    """
    samples, height, width, channels = averages.shape
    above, change = np.zeros(channels, dtype=base.dtype), np.zeros(channels, dtype=base.dtype)
    for b in range(samples):
        for i in range(height):
            for j in range(width):
                average = averages[b, i, j]
                average[:] = 0.0
                from_above(fed, (b, i, j), limits[2], above)
                from_above(shift, (b, i, j), limits[2], change)
                for k in range(size * size):
                    y, x = i * size + k // size, j * size + k % size
                    add_shifts(base[b, y, x], above, change, limits, average, moved[b, y, x])
                for c in range(channels):
                    total[c] += average[c]
                    average[c] *= limits[2]
