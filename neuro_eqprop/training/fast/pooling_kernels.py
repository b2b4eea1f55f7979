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
def spread(line: Values, size: int, channels: int, part: float, into: Values) -> None:
    """The feedback to each pixel of a row, from that to the squares that it crosses."""
    for j in range(line.size // channels):
        for d in range(size):
            start = (j * size + d) * channels
            for c in range(channels):
                into[start + c] = line[j * channels + c] * part


@inner
def average(line: Values, size: int, channels: int, part: float, into: Values) -> None:
    """The averages over squares, from sums over the rows of a square."""
    for j in range(into.size // channels):
        for c in range(channels):
            total = line[j * size * channels + c]
            for d in range(1, size):
                total += line[(j * size + d) * channels + c]
            into[j * channels + c] = total * part


@outer
def settle(
    base: Values, fed: Values, limits: Values, size: int, rates: Values, averages: Values
) -> None:
    """Write the averages of the rates over squares, and the rates unless that array is empty.

    base and rates are (samples, height, width, channels), fed and averages
    (samples, height / size, width / size, channels); an empty `fed` stands for zeros. `limits` are
    low, high and 1 / size^2. Rows of an image are passed over as long vectors.
    """
    samples, height, width, channels = averages.shape
    low, high, part = limits[0], limits[1], limits[2]
    length = width * size * channels
    rows = base.reshape(samples, height * size, length)
    feedback = fed.reshape(samples if fed.size else 0, height, width * channels)
    means = averages.reshape(samples, height, width * channels)
    kept = rates.reshape(samples if rates.size else 0, height * size, length)
    above, total = np.zeros(length, dtype=base.dtype), np.zeros(length, dtype=base.dtype)
    for b in range(samples):
        for i in range(height):
            if fed.size:
                spread(feedback[b, i], size, channels, part, above)
            total[:] = 0.0
            for y in range(i * size, (i + 1) * size):
                row = rows[b, y]
                for q in range(length):
                    total[q] += clip(row[q] + above[q], low, high)
                if rates.size:
                    to = kept[b, y]
                    for q in range(length):
                        to[q] = clip(row[q] + above[q], low, high)
            average(total, size, channels, part, means[b, i])


@outer
def displace(
    base: Values,
    fed: Values,
    shift: Values,
    limits: Values,
    size: int,
    moved: Values,
    averages: Values,
) -> None:
    """Write displacements and their averages over squares.

    `shift` is the change of `fed`; both have the shape of `averages`.
    """
    samples, height, width, channels = averages.shape
    low, high, part = limits[0], limits[1], limits[2]
    length = width * size * channels
    rows = base.reshape(samples, height * size, length)
    feedback = fed.reshape(samples if fed.size else 0, height, width * channels)
    shifts = shift.reshape(samples, height, width * channels)
    means = averages.reshape(samples, height, width * channels)
    results = moved.reshape(samples, height * size, length)
    above, change = np.zeros(length, dtype=base.dtype), np.zeros(length, dtype=base.dtype)
    total = np.zeros(length, dtype=base.dtype)
    for b in range(samples):
        for i in range(height):
            if fed.size:
                spread(feedback[b, i], size, channels, part, above)
            spread(shifts[b, i], size, channels, part, change)
            total[:] = 0.0
            for y in range(i * size, (i + 1) * size):
                row, to = rows[b, y], results[b, y]
                for q in range(length):
                    u = row[q] + above[q]
                    s = clip(u, low, high)
                    by = clip(change[q] + (u - s), low - s, high - s)
                    to[q] = by
                    total[q] += by
            average(total, size, channels, part, means[b, i])
