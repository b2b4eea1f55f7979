"""A published measurement, and what has to be known to predict it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from neuro_eqprop.hardware.profile import Boundary


class Role(Enum):
    """Whether the constants of a prediction know the measurement already."""

    PREDICTION = "prediction"
    """They come from elsewhere: agreement is a validation."""
    CONSISTENCY = "consistency"
    """They come from the same source: agreement shows that the formula holds, no more."""


class Measure(Enum):
    """What was measured, in SI units."""

    POWER = "W"
    ENERGY = "J"


@dataclass(frozen=True, slots=True)
class Line:
    """Two ends of a straight line, and the place between them that was kept out."""

    x: tuple[float, float]
    y: tuple[float, float]
    at: float
    rounding: float
    """Half the last digit that the ends are published with."""


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement with the events and seconds that belong to it."""

    name: str
    profile: str
    role: Role
    grade: str
    """A: events and time are published; B: one of them is inferred; C: order of magnitude."""
    measure: Measure
    measured: float
    uncertainty: float
    """Of the measurement: half its last digit, or one deviation."""
    boundary: Boundary
    source: str
    where: str
    events: Mapping[str, tuple[float, float]]
    """By key of `energy`: how many, lowest and highest."""
    seconds: float
    line: Line | None = None
    clock_hz: float | None = None
    overhead: str = ""
    overrides: tuple[str, ...] = ()
    tolerance: float | None = None
    """The error, as a fraction, within which the prediction has to lie."""
    in_range: bool = False
    """Whether the measurement has to lie in the predicted range."""
    note: str = ""
