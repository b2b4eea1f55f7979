"""Statistics over seeds: 95 % intervals and effect sizes.

Student     mean +- t(0.975, n - 1) s / sqrt(n)
Fisher      tanh(artanh(rho) +- 1.96 / sqrt(n - 3))
Wilson      (p + z^2/2n +- z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n)
chi-square  s sqrt((n - 1) / chi2)
Cohen       d = (mean a - mean b) / pooled s;  Hedges g = d (1 - 3 / (4 (n_a + n_b) - 9))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, exp, inf, log, sqrt, tanh

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, its 95 % interval, and the number of seeds or samples."""

    value: float
    low: float
    high: float
    size: int

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def exact(value: float) -> Interval:
    """The interval [value, value] of a number without sampling error."""
    return Interval(value, value, value, 1)


def student(values: Sequence[float]) -> Interval:
    """The mean with Student's interval; the interval of a single value is unbounded."""
    from scipy.stats import t

    if not values:
        raise ValueError("the mean needs at least one value")
    mean, size = float(np.mean(values)), len(values)
    if size == 1:
        return Interval(mean, -inf, inf, 1)
    half = float(t.ppf((1 + LEVEL) / 2, size - 1)) * float(np.std(values, ddof=1)) / sqrt(size)
    return Interval(mean, mean - half, mean + half, size)


def paired(one: Sequence[float], other: Sequence[float]) -> Interval:
    """The mean difference of two paired samples (equal seeds)."""
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} values cannot be paired")
    return student([a - b for a, b in zip(one, other, strict=True)])


def geometric(values: Sequence[float]) -> Interval:
    """The geometric mean of ratios, with Student's interval of their logarithms."""
    found = student([log(value) for value in values])
    high = inf if found.high == inf else exp(found.high)
    return Interval(exp(found.value), exp(found.low), high, found.size)


def cohens_d(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Cohen's d; None if a sample has one value or neither varies."""
    sizes = len(one), len(other)
    if min(sizes) < 2:
        return None
    squares = [(n - 1) * float(np.var(v, ddof=1)) for n, v in zip(sizes, (one, other), strict=True)]
    pooled = sqrt(sum(squares) / (sum(sizes) - 2))
    return (float(np.mean(one)) - float(np.mean(other))) / pooled if pooled > 0 else None


def hedges_g(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Hedges' g, which is Cohen's d corrected for small samples."""
    d = cohens_d(one, other)
    return None if d is None else d * (1 - 3 / (4 * (len(one) + len(other)) - 9))


def spearman(one: Sequence[float], other: Sequence[float]) -> Interval:
    """Spearman's rank correlation with Fisher's interval; zero if one side does not vary."""
    from scipy.stats import norm, rankdata

    size = len(one)
    if size != len(other) or size < 4:
        raise ValueError(f"a rank correlation needs at least 4 pairs, not {size} and {len(other)}")
    a, b = rankdata(one), rankdata(other)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return Interval(0.0, 0.0, 0.0, size)
    rho = float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))
    if abs(rho) > 1 - 1e-12:
        return Interval(rho, rho, rho, size)
    half = float(norm.ppf((1 + LEVEL) / 2)) / sqrt(size - 3)
    return Interval(rho, tanh(atanh(rho) - half), tanh(atanh(rho) + half), size)


def wilson(hits: int, size: int) -> Interval:
    """A proportion with Wilson's interval."""
    from scipy.stats import norm

    if not 0 <= hits <= size or size < 1:
        raise ValueError(f"{hits} of {size} is not a proportion")
    z, p = float(norm.ppf((1 + LEVEL) / 2)), hits / size
    middle = p + z * z / (2 * size)
    half = z * sqrt(p * (1 - p) / size + z * z / (4 * size * size))
    scale = 1 + z * z / size
    low = 0.0 if hits == 0 else (middle - half) / scale
    high = 1.0 if hits == size else (middle + half) / scale
    return Interval(p, low, high, size)


def deviation(values: Sequence[float]) -> Interval:
    """The standard deviation with its chi-square interval."""
    from scipy.stats import chi2

    size = len(values)
    if size < 2:
        raise ValueError(f"{size} values are too few for a standard deviation")
    s = float(np.std(values, ddof=1))
    low, high = (float(chi2.ppf(p, size - 1)) for p in ((1 + LEVEL) / 2, (1 - LEVEL) / 2))
    return Interval(s, s * sqrt((size - 1) / low), s * sqrt((size - 1) / high), size)
