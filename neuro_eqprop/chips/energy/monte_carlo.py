"""Seeded Monte Carlo draws from the ranges of a profile, and their quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from neuro_eqprop.chips.profile import Quantity
from neuro_eqprop.common.arrays import Array

SIZE = 20_000
"""Draws of an estimate; the central 95 % of a sum is then stable to below one percent."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Median, 2.5 % and 97.5 % quantiles of the draws."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Energy(Interval):
    """Joules: quantiles of the draws, and the sum of the nominal costs."""

    nominal: float

    def __mul__(self, factor: float) -> Energy:
        return Energy(*(factor * v for v in (self.value, self.low, self.high, self.nominal)))

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws that depend on seed and key only, so a quantity is the same in every term."""

    seed: int
    size: int = SIZE

    def quantity(self, key: str, quantity: Quantity) -> Array:
        """Draws between low and high with the median at the value; constant without a range.

            value (low / value)^|side|   if side < 0
            value (high / value)^|side|  else,    side uniform in [-1, 1)

        Half of the draws are log-uniform below the value and half above it, so that the nominal
        sum lies in the middle of the draws even if a range is one-sided.
        """
        if not quantity.has_range:
            return np.full(self.size, quantity.value)
        below = quantity.low / quantity.value
        above = quantity.high / quantity.value
        side = 2.0 * self.uniform(key) - 1.0
        return np.asarray(
            quantity.value * np.where(side < 0, below ** np.abs(side), above ** np.abs(side))
        )

    def factor(self, key: str, sigma: float) -> Array:
        """Log-normal factors of median one, exp(sigma z); ones where sigma is zero."""
        if sigma == 0:
            return np.ones(self.size)
        generator = np.random.default_rng([self.seed, crc32(key.encode())])
        return np.asarray(np.exp(sigma * generator.standard_normal(self.size)))

    def between(self, key: str, low: float, high: float) -> Array:
        """Uniform draws between two counts; the lower one may be zero."""
        return np.asarray(low + (high - low) * self.uniform(key))

    def uniform(self, key: str) -> Array:
        """Uniform draws in [0, 1) that belong to a key."""
        generator = np.random.default_rng([self.seed, crc32(key.encode())])
        return generator.random(self.size)


def interval(draws: Array) -> Interval:
    """Median and central 95 % of draws."""
    low, value, high = (float(q) for q in np.quantile(draws, (0.025, 0.5, 0.975)))
    return Interval(value, low, high)


def energy(draws: Array, nominal: float) -> Energy:
    """Median and central 95 % of draws of joules, with the nominal sum."""
    found = interval(draws)
    return Energy(found.value, found.low, found.high, float(nominal))
