"""A number with its range, and how ranges add up and multiply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, hypot, log, sqrt


@dataclass(frozen=True, slots=True)
class Interval:
    """A nominal value and its range."""

    value: float
    low: float
    high: float
    nominal: float | None = field(default=None, compare=False)
    """Nominal sum in files before version 0.3, whose value was the median of draws."""

    def __mul__(self, factor: float) -> Interval:
        return Interval(factor * self.value, factor * self.low, factor * self.high)

    __rmul__ = __mul__

    @property
    def factor(self) -> float:
        """High over low; infinite if the range reaches down to zero."""
        return self.high / self.low if self.low > 0 else float("inf")

    def times(self, other: Interval) -> Interval:
        """The product; the logarithms of independent ranges add up in quadrature."""
        value = self.value * other.value
        if not value:
            return Interval(value, 0.0, self.high * other.high)
        if not self.low or not other.low:
            low = 0.0
        else:
            low = value * exp(-hypot(log(self.value / self.low), log(other.value / other.low)))
        up = hypot(log(self.high / self.value), log(other.high / other.value))
        return Interval(value, low, value * exp(up))

    def widened(self, factor: float) -> Interval:
        """The range as wide as times and over a factor, on top of its own."""
        return self.times(Interval(1.0, 1 / factor, factor))


def exactly(value: float) -> Interval:
    """A number without a range."""
    return Interval(value, value, value)


def spread(value: float, factor: float) -> Interval:
    """A number with a range of times and over a factor."""
    return Interval(value, value / factor, value * factor)


def add(parts: Iterable[Interval]) -> Interval:
    """The sum; the distances of independent ends from their values add up in quadrature."""
    parts = list(parts)
    value = sum(each.value for each in parts)
    below = sqrt(sum((each.value - each.low) ** 2 for each in parts))
    above = sqrt(sum((each.high - each.value) ** 2 for each in parts))
    return Interval(value, max(0.0, value - below), value + above)
