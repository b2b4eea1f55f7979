"""Seeded draws from the ranges of a profile, and what is reported of them."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.hardware.profile import Quantity

SIZE = 20_000
"""Draws of an estimate; the middle 95 % of a sum is then stable to below a percent."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 2.5 % and 97.5 % points of the draws, and the sum of nominal values beside."""

    value: float
    low: float
    high: float
    nominal: float


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws that depend on seed and key alone, so that a quantity is the same in every term."""

    seed: int
    size: int = SIZE

    def quantity(self, key: str, quantity: Quantity) -> Array:
        """Log-uniform between low and high; constant where there is no range."""
        if not quantity.has_range:
            return np.full(self.size, quantity.value)
        uniform = self.uniform(key)
        return np.asarray(quantity.low * (quantity.high / quantity.low) ** uniform)

    def between(self, key: str, low: float, high: float) -> Array:
        """Uniform between two counts, of which the lower may be zero."""
        return np.asarray(low + (high - low) * self.uniform(key))

    def uniform(self, key: str) -> Array:
        """Numbers from zero to one that belong to a key."""
        generator = np.random.default_rng([self.seed, crc32(key.encode())])
        return generator.random(self.size)


def spread(draws: Array, nominal: float) -> Spread:
    """What is reported of draws."""
    low, value, high = (float(q) for q in np.quantile(draws, (0.025, 0.5, 0.975)))
    return Spread(value, low, high, float(nominal))
