"""Predictions of the profiles compared with published measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.energy.estimate import estimate_job
from neuro_eqprop.energy.event_counts import Event
from neuro_eqprop.energy.monte_carlo import Draws, Interval
from neuro_eqprop.energy.terms import Job
from neuro_eqprop.energy.time import Duration
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.published import Case, Line, Measure, Role
from neuro_eqprop.io.profile.load import load_profile, parse_override, profile_names
from neuro_eqprop.io.profile.schema import ProfileError
from neuro_eqprop.io.published_cases import case_files, read_cases

MAX_RATIO = 10.0
"""A range with a larger ratio of its ends is too wide to validate anything."""


@dataclass(frozen=True, slots=True)
class Check:
    """A published measurement with its prediction."""

    case: Case
    predicted: Interval
    nominal: float

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted.value / self.case.measured - 1

    @property
    def within(self) -> bool:
        """Whether the measurement, within its uncertainty, lies in the predicted range."""
        margin = self.case.uncertainty
        return self.predicted.low - margin <= self.case.measured <= self.predicted.high + margin

    @property
    def holds(self) -> bool | None:
        """Whether the conditions of the case hold; None where it has none."""
        conditions = []
        if self.case.tolerance is not None:
            conditions.append(abs(self.error) <= self.case.tolerance)
        if self.case.in_range:
            conditions.append(self.within)
        return all(conditions) if conditions else None

    @property
    def validates(self) -> bool:
        """Whether agreement counts: a prediction with a range that is not too wide."""
        narrow = self.predicted.high <= MAX_RATIO * self.predicted.low
        return self.case.role is Role.PREDICTION and narrow

    def to_json(self) -> dict[str, Any]:
        """The fields of `profiles validate --json`."""
        case = self.case
        return {
            "id": case.name,
            "profile": case.profile,
            "role": case.role.value,
            "grade": case.grade,
            "unit": case.measure.value,
            "boundary": case.boundary.value,
            "measured": case.measured,
            "uncertainty": case.uncertainty,
            "predicted": self.predicted.value,
            "low": self.predicted.low,
            "high": self.predicted.high,
            "nominal": self.nominal,
            "error": self.error,
            "within": self.within,
            "tolerance": case.tolerance,
            "must_be_in_range": case.in_range,
            "holds": self.holds,
            "validates": self.validates,
            "source": f"{case.source}, {case.where}",
            "note": case.note,
        }


@dataclass(frozen=True, slots=True)
class ProfileValidation:
    """The checks of all published measurements."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> list[Check]:
        """The checks whose conditions do not hold."""
        return [each for each in self.checks if each.holds is False]

    def to_json(self) -> dict[str, Any]:
        """The checks, how many of them are predictions, and how far off these are."""
        counting = [each for each in self.checks if each.validates]
        return {
            "cases": [each.to_json() for each in self.checks],
            "predictions": len(counting),
            "predictions_within": sum(each.within for each in counting),
            "worst_prediction": max((abs(each.error) for each in counting), default=None),
            "consistency": sum(not each.validates for each in self.checks),
        }


def validate_profiles(
    profile: str | None = None,
    *,
    cases: Iterable[str | Path] = (),
    overrides: Iterable[str] = (),
    seed: int = 0,
) -> ProfileValidation:
    """Predict every published measurement.

    Parameters
    ----------
    profile
        The name of the profile whose measurements are predicted; None for all.
    cases
        Further TOML files of measurements, beside those that ship with the profiles.
    overrides
        Changed values, as in ``"loihi1.energy.synop=30pJ"``.
    seed
        Of the Monte Carlo draws.

    Examples
    --------
    >>> from neuro_eqprop.energy.validation import validate_profiles
    >>> validate_profiles("truenorth").failed
    []
    """
    files = (*case_files(), *(Path(path) for path in cases))
    chosen = [case for path in files for case in read_cases(path)]
    known = {case.profile for case in chosen}
    if profile is not None and profile not in known:
        if profile not in profile_names():
            raise UnknownNameError("profile", profile, profile_names())
        listed = ", ".join(sorted(known))
        raise ValueError(
            f"there is no published measurement for profile {profile!r}; there are for {listed}"
        )
    changes: dict[str, dict[str, str | float]] = {}
    for each in overrides:
        name, _, rest = each.partition(".")
        if name not in known:
            raise ProfileError(f"override {each!r} names no profile with a measurement")
        key, value = parse_override(rest)
        changes.setdefault(name, {})[key] = value
    checks: list[Check] = []
    loaded: dict[tuple[object, ...], Profile] = {}
    for case in chosen:
        if profile in (None, case.profile):
            changed = changes.get(case.profile, {}) | dict(case.overrides)
            key_ = (case.profile, *changed.items())
            if key_ not in loaded:
                loaded[key_] = load_profile(case.profile, changed)
            checks.append(check(case, loaded[key_], seed=seed))
    return ProfileValidation(tuple(checks))


def check(case: Case, profile: Profile, *, seed: int) -> Check:
    """Predict one measurement."""
    if case.line is not None:
        predicted = interpolate(case.line)
        return Check(case, predicted, predicted.value)
    draws = Draws(seed)
    events: dict[Event, float | Array | None] = {}
    for name, (low, high) in case.events.items():
        number = draws.between(f"{case.name} {name}", low, high) if low < high else low
        events[Event(name)] = number
    seconds = case.seconds
    description = "as published" if seconds else "not needed: only events"
    time = Duration(np.full(draws.size, seconds) if seconds else None, seconds, description)
    job = Job(events, time, 1, case.clock_hz)
    found = estimate_job(job, profile, draws, overhead=case.overhead).within.get(case.boundary)
    if found is None:
        raise ValueError(
            f"case {case.name!r}: profile {profile.name!r} has nothing at {case.boundary.value}; "
            "use the boundary at which its costs were measured"
        )
    if case.measure is Measure.ENERGY:
        return Check(case, found, found.nominal)
    if not seconds:
        raise ValueError(f"case {case.name!r} was measured in watts and needs seconds")
    power = Interval(found.value / seconds, found.low / seconds, found.high / seconds)
    return Check(case, power, found.nominal / seconds)


def interpolate(line: Line) -> Interval:
    """The value between the two points of a line, and how far their rounding can move it."""
    part = (line.at - line.x[0]) / (line.x[1] - line.x[0])
    value = line.y[0] + part * (line.y[1] - line.y[0])
    margin = line.rounding * (abs(part) + abs(1 - part))
    return Interval(value, value - margin, value + margin)
