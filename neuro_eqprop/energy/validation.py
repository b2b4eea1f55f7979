"""Predictions against published measurements: error, range, and whether that counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.energy.estimate import estimate
from neuro_eqprop.energy.event_counts import Duration, Event
from neuro_eqprop.energy.monte_carlo import Draws, Spread
from neuro_eqprop.energy.terms import Job
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.published import Case, Line, Measure, Role

WIDE = 10.0
"""A range whose ends lie further apart than this factor says too little to validate anything."""


@dataclass(frozen=True, slots=True)
class Check:
    """A case with its prediction."""

    case: Case
    predicted: Spread

    @property
    def error(self) -> float:
        """How far off, in parts of the measurement."""
        return self.predicted.value / self.case.measured - 1

    @property
    def within(self) -> bool:
        """Whether the measurement lies in the predicted range, as far as it is certain itself."""
        give = self.case.uncertainty
        return self.predicted.low - give <= self.case.measured <= self.predicted.high + give

    @property
    def holds(self) -> bool | None:
        """Whether what is asked of the case holds; None where nothing is asked."""
        asked = []
        if self.case.tolerance is not None:
            asked.append(abs(self.error) <= self.case.tolerance)
        if self.case.in_range:
            asked.append(self.within)
        return all(asked) if asked else None

    @property
    def validates(self) -> bool:
        """Whether agreement would count: a prediction, of a range that says something."""
        narrow = self.predicted.high <= WIDE * self.predicted.low
        return self.case.role is Role.PREDICTION and narrow


def check(case: Case, profile: Profile, *, seed: int) -> Check:
    """Predict a measurement."""
    if case.line is not None:
        return Check(case, on_line(case.line))
    draws = Draws(seed)
    events: dict[Event, float | np.ndarray[tuple[int], np.dtype[np.float64]] | None] = {}
    for name, (low, high) in case.events.items():
        many = draws.between(f"{case.name} {name}", low, high) if low < high else low
        events[Event(name)] = many
    seconds = case.seconds
    words = "as published" if seconds else "not needed: events alone"
    time = Duration(np.full(draws.size, seconds) if seconds else None, seconds, words)
    job = Job(events, time, 1, case.clock_hz)
    found = estimate(job, profile, draws, overhead=case.overhead).within.get(case.boundary)
    if found is None:
        raise ValueError(
            f"case {case.name!r}: profile {profile.name!r} has nothing at {case.boundary.value}; "
            "give the boundary at which its costs were measured"
        )
    if case.measure is Measure.ENERGY:
        return Check(case, found)
    if not seconds:
        raise ValueError(f"case {case.name!r} speaks of watts and needs seconds")
    parts = (found.value, found.low, found.high, found.nominal)
    return Check(case, Spread(*(part / seconds for part in parts)))


def on_line(line: Line) -> Spread:
    """The value between two ends, and how far their rounding can move it."""
    part = (line.at - line.x[0]) / (line.x[1] - line.x[0])
    value = line.y[0] + part * (line.y[1] - line.y[0])
    give = line.rounding * (abs(part) + abs(1 - part))
    return Spread(value, value - give, value + give, value)
