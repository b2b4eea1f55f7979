"""Accuracy against joules: the Pareto front of the settings of a network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

SLACK = 0.005
"""Accuracy, as a fraction of one, that `best` may give up for fewer joules."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a network: its accuracy, and the joules of one sample."""

    code: str
    steps: int
    accuracy: float
    joules: float
    low: float
    high: float
    fits: bool = True
    """Whether it is known to fit on the chip."""
    profile: str = ""
    """The chip, where points of several chips are compared."""
    seconds: float | None = None
    bits: int | None = None


def front(points: Iterable[Point]) -> list[Point]:
    """The Pareto front: no other point is both cheaper and at least as accurate."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.joules, -p.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return kept


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The Pareto-optimal points in accuracy, joules and seconds, sorted by joules.

    A point is dominated by one that is at least as good in all three and better in one.
    """
    points = list(points)

    def values(point: Point) -> tuple[float, float, float]:
        seconds = inf if point.seconds is None else point.seconds
        return (-point.accuracy, point.joules, seconds)

    def dominated(point: Point) -> bool:
        own = values(point)
        return any(
            all(a <= b for a, b in zip(values(other), own, strict=True)) and values(other) != own
            for other in points
        )

    return sorted((p for p in points if not dominated(p)), key=lambda point: point.joules)


def best(points: Iterable[Point], *, slack: float = SLACK) -> Point:
    """The cheapest point that is at most `slack` less accurate than the most accurate one."""
    points = list(points)
    if not points:
        raise ValueError("points is empty; there is nothing to choose from")
    top = max(point.accuracy for point in points)
    close = (point for point in points if point.accuracy >= top - slack)
    return min(close, key=lambda point: (point.joules, -point.accuracy))
