"""Accuracy against joules: which settings nothing beats, and which is the best trade."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SLACK = 0.005
"""How much accuracy, as a fraction of one, the best trade may give up for joules."""


@dataclass(frozen=True, slots=True)
class Point:
    """A way to run a network: what it reaches, and what a sample costs."""

    code: str
    steps: int
    accuracy: float
    joules: float
    low: float
    high: float
    fits: bool = True
    """Whether it is known to fit the chip."""


def front(points: Iterable[Point]) -> list[Point]:
    """The points of which no other is both cheaper and at least as accurate, cheapest first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.joules, -p.accuracy)):
        if not kept or point.accuracy > kept[-1].accuracy:
            kept.append(point)
    return kept


def best(points: Iterable[Point], *, slack: float = SLACK) -> Point:
    """The cheapest point that is at most `slack` less accurate than the most accurate."""
    points = list(points)
    if not points:
        raise ValueError("there are no points to choose the best trade from")
    top = max(point.accuracy for point in points)
    close = (point for point in points if point.accuracy >= top - slack)
    return min(close, key=lambda point: (point.joules, -point.accuracy))
