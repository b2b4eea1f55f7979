"""A published measurement, and the inputs of its prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from neuro_eqprop.hardware.profile import Boundary, Overhead


class Role(Enum):
    """Whether the constants of a prediction are independent of the measurement."""

    PREDICTION = "prediction"
    """They come from elsewhere: agreement validates them."""
    CONSISTENCY = "consistency"
    """They come from the same source: agreement only shows that the formula holds."""


class Measure(Enum):
    """The measured quantity, by its SI unit."""

    POWER = "W"
    ENERGY = "J"


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through two published points, and the held-out position between them."""

    x: tuple[float, float]
    y: tuple[float, float]
    at: float
    rounding: float
    """Half the last published digit of the points."""

    def __post_init__(self) -> None:
        if self.x[0] == self.x[1]:
            raise ValueError("the two points have the same x")


@dataclass(frozen=True, slots=True)
class Case:
    """A published measurement with its events and seconds."""

    name: str
    profile: str
    role: Role
    grade: str
    """A: events and time are published; B: one of them is inferred; C: order of magnitude."""
    measure: Measure
    measured: float
    uncertainty: float
    """Uncertainty of the measurement: half its last digit, or one standard deviation."""
    boundary: Boundary
    source: str
    where: str
    events: Mapping[str, tuple[float, float]]
    """Lowest and highest number of events, by key of the section `energy`."""
    seconds: float = 0.0
    line: Line | None = None
    clock_hz: float | None = None
    overhead: Overhead | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Values that replace those of the profile, by key."""
    tolerance: float | None = None
    """The relative error within which the prediction must lie."""
    in_range: bool = False
    """Whether the measurement must lie in the predicted range."""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.events and self.line is None:
            raise ValueError("it has neither events nor a line to predict from")
        if self.measured == 0:
            raise ValueError("measured is zero; the relative error of zero is undefined")
