"""Predictions of the profiles compared with published measurements, and their calibration.

A case gives events and seconds, the multiplications of a dense device, or a whole network that is
placed. On a chip with at least four well-sourced measurements (certainty A or B), the range of a
prediction follows from the residuals r = ln(measured / predicted) of that chip alone, the predicted
case left out:

    factor = max(least, exp(QUANTILE of |r|))

It is calibrated if that is less than an order of magnitude in all; badly sourced cases train
nothing. On all other chips, a prediction is an order of magnitude, or more where its own
measurements say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.estimate import estimate_job, estimate_use
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.interval import Interval, add, exactly, spread
from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import ChipWork
from neuro_eqprop.chips.energy.time import Duration, barrier_seconds
from neuro_eqprop.chips.noc_traffic import noc_traffic
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import (
    FEWEST_POINTS,
    Calibration,
    Profile,
    Tier,
    Timing,
)
from neuro_eqprop.chips.profiles.load import load_profile, parse_override, profile_names
from neuro_eqprop.chips.profiles.schema import ProfileError
from neuro_eqprop.chips.published import (
    CaseRole,
    Line,
    Measure,
    PublishedCase,
    PublishedNetwork,
    case_files,
    read_cases,
)
from neuro_eqprop.common.arrays import UnknownNameError

QUANTILE = 0.8
"""Share of a chip's measurements that its range is to hold."""
MISS = 2 / (1 - QUANTILE)
"""Cost of a miss in the interval score, per unit of its distance."""
PLACED = 1.4
"""Range, as a factor to both sides, of predicted cores and messages."""
KINDS = {
    Measure.POWER: "energy",
    Measure.ENERGY: "energy",
    Measure.TIME: "time",
    Measure.CORES: "placement",
    Measure.MESSAGES: "placement",
}


class CaseError(ValueError):
    """A profile cannot predict a case; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """A published measurement with its prediction."""

    case: PublishedCase
    predicted: Interval
    missing: tuple[str, ...] = ()
    """Costs of the case that the profile does not have: the prediction is a lower bound."""
    tier: Tier = Tier.ORDER_OF_MAGNITUDE

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted.value / self.case.measured - 1

    @property
    def residual(self) -> float:
        """The logarithm of measured over predicted."""
        return log(self.case.measured / self.predicted.value)

    @property
    def trains(self) -> bool:
        """Whether the case is a point of the calibration of its chip."""
        case = self.case
        sourced = case.grade in ("A", "B") and not case.overrides and case.line is None
        return sourced and not self.missing and KINDS[case.measure] != "placement"

    @property
    def within(self) -> bool:
        """Whether the measurement, within its uncertainty, lies in the predicted range.

        A lower bound has no upper end.
        """
        margin = self.case.uncertainty
        if self.missing and self.case.measured >= self.predicted.low - margin:
            return True
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
        """Whether agreement counts: the constants come from elsewhere, and there is a range.

        A lower bound that holds shows little and does not count; one that fails does.
        """
        return self.case.role is CaseRole.PREDICTION and not (self.missing and self.within)

    @property
    def score(self) -> float:
        """The interval score of the logarithm: the width of the range, and MISS times a miss."""
        low, high = log(self.predicted.low), log(self.predicted.high)
        if self.within:
            return high - low
        measured = log(self.case.measured)
        return high - low + MISS * max(low - measured, measured - high, 0.0)

    def to_json(self) -> dict[str, Any]:
        """One of the `cases` of `profiles validate --json`."""
        case = self.case
        return {
            "id": case.name,
            "profile": case.profile,
            "role": case.role.value,
            "grade": case.grade,
            "tier": self.tier.value,
            "unit": case.measure.value,
            "boundary": case.boundary.value,
            "measured": case.measured,
            "uncertainty": case.uncertainty,
            "predicted": self.predicted.value,
            "low": self.predicted.low,
            "high": self.predicted.high,
            "error": self.error,
            "within": self.within,
            "score": self.score,
            "tolerance": case.tolerance,
            "must_be_in_range": case.in_range,
            "holds": self.holds,
            "validates": self.validates,
            "trains": self.trains,
            "missing": list(self.missing),
            "source": f"{case.source}, {case.where}",
            "note": case.note,
        }


def calibration_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Coverage, median width and mean interval score of some predictions; None without any."""
    if not checks:
        return {"cases": 0, "coverage": None, "width": None, "score": None}
    return {
        "cases": len(checks),
        "coverage": sum(each.within for each in checks) / len(checks),
        "width": float(np.median([each.predicted.factor for each in checks])),
        "score": float(np.mean([each.score for each in checks])),
    }


@dataclass(frozen=True, slots=True)
class ProfileValidation:
    """The checks of all published measurements, with their calibration.

    Coverage and width assess ranges together (Gneiting, Balabdaoui & Raftery 2007): the ranges
    should contain the measurements and be as narrow as possible. The interval score counts both.
    """

    checks: tuple[Check, ...]
    unpredicted: Mapping[str, str] = field(default_factory=dict)
    """Cases that the profile cannot predict, each with the reason."""

    @property
    def failed(self) -> list[Check]:
        """The checks whose conditions do not hold."""
        return [each for each in self.checks if each.holds is False]

    @property
    def predictions(self) -> list[Check]:
        """The checks that validate."""
        return [each for each in self.checks if each.validates]

    @property
    def well_sourced(self) -> list[Check]:
        """The checks of certainty A or B on calibrated chips."""
        return [each for each in self.checks if each.trains and each.tier is Tier.CALIBRATED]

    @property
    def coverage(self) -> float | None:
        """Fraction of the predictions with the measurement in the range; None without any."""
        found: float | None = calibration_json(self.predictions)["coverage"]
        return found

    @property
    def width(self) -> float | None:
        """Median of high over low of the predictions."""
        found: float | None = calibration_json(self.predictions)["width"]
        return found

    def to_json(self) -> dict[str, Any]:
        """The fields of `profiles validate --json`: checks, coverage, width, score."""
        counting = self.predictions
        chips = sorted({each.case.profile for each in counting})
        return {
            "cases": [each.to_json() for each in self.checks],
            **calibration_json(counting) | {"cases": [each.to_json() for each in self.checks]},
            "predictions": len(counting),
            "predictions_within": sum(each.within for each in counting),
            "calibrated": calibration_json(self.well_sourced),
            "by_chip": {
                chip: calibration_json([each for each in counting if each.case.profile == chip])
                for chip in chips
            },
            "misses": [each.case.name for each in counting if not each.within],
            "worst_prediction": max((abs(each.error) for each in counting), default=None),
            "consistency": sum(each.case.role is CaseRole.CONSISTENCY for each in self.checks),
            "lower_bounds": [each.case.name for each in self.checks if each.missing],
            "unpredicted": dict(self.unpredicted),
            "profiles": len({each.case.profile for each in self.checks}),
        }


def calibrate(residuals: Sequence[float], *, least: float = 1.4) -> Calibration | None:
    """The calibration of a chip by the residuals of its measurements; None where there is none."""
    sizes = np.abs(np.asarray(residuals, dtype=np.float64))
    if len(sizes) < FEWEST_POINTS:
        return None
    factor = range_of(sizes, least)
    left_out = [range_of(np.delete(sizes, k), least) for k in range(len(sizes))]
    inside = sum(size <= log(each) for size, each in zip(sizes, left_out, strict=True))
    return Calibration(len(sizes), round(factor, 3), int(inside), least)


def range_of(sizes: np.ndarray[Any, Any], least: float) -> float:
    """The factor that holds the QUANTILE of the sizes of residuals."""
    return max(least, exp(float(np.quantile(sizes, QUANTILE))))


def validate_profiles(
    profile: str | None = None,
    *,
    cases: Iterable[str | Path] = (),
    overrides: Iterable[str] = (),
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

    Examples
    --------
    >>> from neuro_eqprop.chips.energy.validation import validate_profiles
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
    unpredicted: dict[str, str] = {}
    for case in (each for each in chosen if profile in (None, each.profile)):
        found = check_or_reason(case, profile_of(case, changes.get(case.profile, {})))
        if isinstance(found, str):
            unpredicted[case.name] = found
        else:
            checks.append(found)
    return ProfileValidation(
        tuple(leave_out(each, checks, changes) for each in checks), unpredicted
    )


def residuals_of(checks: Iterable[Check], profile: str, kind: str) -> list[float]:
    """The residuals of the cases that calibrate predictions of a kind on a chip."""
    return [
        each.residual
        for each in checks
        if each.trains and each.case.profile == profile and KINDS[each.case.measure] == kind
    ]


def leave_out(
    own: Check, checks: Iterable[Check], changes: Mapping[str, Mapping[str, str | float]]
) -> Check:
    """The check of a case with the calibration of its chip without this case."""
    profile = profile_of(own.case, changes.get(own.case.profile, {}))
    shipped = profile.calibration.get(KINDS[own.case.measure])
    if shipped is None or not own.trains:
        return own
    others = (each for each in checks if each is not own)
    sizes = np.abs(residuals_of(others, own.case.profile, KINDS[own.case.measure]))
    if not len(sizes):
        return own
    found = replace(shipped, factor=range_of(sizes, shipped.least))
    changed = {**profile.calibration, KINDS[own.case.measure]: found}
    return check(own.case, replace(profile, calibration=changed))


def profile_of(case: PublishedCase, changes: Mapping[str, str | float]) -> Profile:
    """The profile of a case, with changed values and at the supply of the measurement."""
    found = load_profile(case.profile, {**changes, **dict(map(parse_override, case.overrides))})
    return found.at_supply(case.supply) if case.supply else found


def check(case: PublishedCase, profile: Profile) -> Check:
    """Predict one measurement."""
    if case.line is not None:
        return Check(case, interpolate(case.line), tier=Tier.CALIBRATED)
    predicted, missing = predict(case, profile)
    return Check(case, predicted, missing, profile.tier(KINDS[case.measure]))


def check_or_reason(case: PublishedCase, profile: Profile) -> Check | str:
    """The check of a case, or why the profile cannot predict it."""
    try:
        return check(case, profile)
    except CaseError as error:
        return str(error)


def predict(case: PublishedCase, profile: Profile) -> tuple[Interval, tuple[str, ...]]:
    """Prediction of a case, and the costs of it that the profile does not have."""
    if case.macs:
        return predict_dense(case, profile), ()
    if isinstance(case.network, PublishedNetwork):
        return predict_network(case, case.network, profile), ()
    events = case_events(case)
    if case.measure is Measure.TIME:
        return predict_seconds(case, profile, events)
    seconds = case.seconds
    time = Duration(exactly(seconds) if seconds else None, "as published" if seconds else "none")
    job = ChipWork(events, time, case.chips, case.clock_hz)
    found = estimate_job(job, profile, EstimateSettings(overhead=case.overhead))
    missing = tuple(
        each.name
        for each in found.missing
        if each.boundary is not None and case.boundary.holds(each.boundary)
    )
    return power_or_energy(case, profile, found.within, seconds), missing


def case_events(case: PublishedCase) -> dict[Event, float | Interval | None]:
    """The events of a case, with a range where only that is known.

    The nominal number is the geometric mean of the ends where they are decades apart, else their
    mean: an unknown activity is uncertain by a factor.
    """
    events: dict[Event, float | Interval | None] = {}
    for name, number in case.events.items():
        low, high = number if isinstance(number, tuple) else (number, number)
        middle = (low * high) ** 0.5 if high > 10 * low > 0 else (low + high) / 2
        events[Event(name)] = Interval(middle, low, high) if low < high else low
    return events


def power_or_energy(
    case: PublishedCase, profile: Profile, within: Mapping[Boundary, Interval], seconds: float
) -> Interval:
    """Joules or watts inside the boundary of a case."""
    inside = [each for each in within if case.boundary.holds(each)]
    if not inside:
        raise CaseError(
            f"case {case.name!r}: profile {profile.name!r} has nothing at {case.boundary.value}; "
            "use the boundary at which its costs were measured"
        )
    widest = max((within[each] for each in inside), key=lambda each: each.value)
    if case.measure is Measure.ENERGY:
        return widest
    if not seconds:
        raise CaseError(f"case {case.name!r} was measured in watts and needs seconds")
    return widest * (1 / seconds)


def predict_dense(case: PublishedCase, profile: Profile) -> Interval:
    """Joules or seconds of an inference on a dense device at batch 1.

    The time of a multiplication is that of the network that the device was measured with.
    """
    points = [each for each in profile.batches if each.batch == 1 and each.per_mac]
    if not points:
        raise CaseError(f"case {case.name!r}: profile {profile.name!r} has no cost at batch 1")
    point = points[0]
    if case.measure is Measure.ENERGY:
        return spread(case.macs * point.joules_per_mac.value, profile.range_factor())
    if case.measure is not Measure.TIME or not case.reference_macs:
        raise CaseError(
            f"case {case.name!r}: a dense device predicts J, or s with reference_macs, not "
            f"{case.measure.value}"
        )
    nominal = case.macs / case.reference_macs / point.inferences_per_second
    return spread(nominal, profile.range_factor("time"))


def predict_seconds(
    case: PublishedCase, profile: Profile, events: Mapping[Event, float | Interval | None]
) -> tuple[Interval, tuple[str, ...]]:
    """Seconds of `steps` steps, with the events spread evenly over the published cores.

    seconds = events x times / cores + steps x (tick, or barrier)
    """
    cores = sum(case.cores.values()) or 1
    if profile.timing is Timing.TICK:
        tick = profile.known("time.tick")
        if tick is not None:
            return case.steps * Interval(tick.value, tick.low, tick.high), ()
    parts, missing = [], []
    for event, number in events.items():
        cost = profile.known(f"time.{event.value}")
        if cost is not None and number is not None:
            amount = number if isinstance(number, Interval) else exactly(number)
            parts.append(amount * (cost.value / cores))
        elif number:
            missing.append(f"time.{event.value}")
    if profile.timing is Timing.BARRIER:
        tiles = -(-cores // case.chips // (profile.limit("cores_per_tile") or 1)) or 1
        parts.append(exactly(case.steps * barrier_seconds(profile, tiles, case.chips)))
    found = add(parts)
    if not found.value:
        raise CaseError(f"case {case.name!r}: profile {profile.name!r} has no times for it")
    return found.widened(profile.range_factor("time")), tuple(missing)


def predict_network(case: PublishedCase, network: PublishedNetwork, profile: Profile) -> Interval:
    """Cores, messages, seconds, joules or watts of a network that is placed."""
    settings = EstimateSettings(
        mapping=MappingGoal(case.mapping) if case.mapping else EstimateSettings().mapping,
        allocation=case.cores or None,
        overhead=case.overhead,
        step_seconds=case.seconds / case.steps if case.seconds else None,
    )
    found = estimate_use(network.workload(case.steps), profile, settings, learning=False)
    placement = found.placement
    if placement is None or placement.cores is None:
        raise CaseError(f"case {case.name!r}: {found.reason or 'the network is not placed'}")
    if case.measure is Measure.CORES:
        return spread(float(placement.cores), PLACED)
    if case.measure is Measure.MESSAGES:
        return spread(messages_of(network, placement, profile) * case.steps, PLACED)
    if found.seconds is None:
        raise CaseError(f"case {case.name!r}: the time is {found.time}")
    if case.measure is Measure.TIME:
        return found.seconds
    return power_or_energy(case, profile, found.within, found.seconds.value)


def messages_of(network: PublishedNetwork, placement: Placement, profile: Profile) -> float:
    """Messages of a step: spikes times the cores that each reaches."""
    traffic = noc_traffic(network.shape(), placement, profile)
    return sum(each.spikes * traffic[each.name].messages for each in network.layer)


def interpolate(line: Line) -> Interval:
    """Linear interpolation between the two points of a line, with the range of their rounding."""
    part = (line.at - line.x[0]) / (line.x[1] - line.x[0])
    value = line.y[0] + part * (line.y[1] - line.y[0])
    margin = line.rounding * (abs(part) + abs(1 - part))
    return Interval(value, value - margin, value + margin)
