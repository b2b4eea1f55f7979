"""Predictions of the profiles compared with published measurements.

A case gives events and seconds, the multiplications of a dense device, or a whole network that is
placed; the prediction is the nominal value, its range the central 95 % of draws over the ranges of
the constants and over the discrepancy of the model, which is learned from the cases of other chips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.discrepancy import (
    KINDS,
    NONE,
    Discrepancy,
    ModelPart,
    Residual,
    learn,
)
from neuro_eqprop.chips.energy.estimate import estimate_job, estimate_use
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.monte_carlo import Draws, Interval, interval
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import ChipWork
from neuro_eqprop.chips.energy.time import Duration, barrier_events
from neuro_eqprop.chips.noc_traffic import noc_traffic
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Profile, Timing
from neuro_eqprop.chips.profiles.load import (
    base_name,
    load_profile,
    parse_override,
    profile_names,
)
from neuro_eqprop.chips.profiles.schema import ONE_WORKLOAD, ProfileError
from neuro_eqprop.chips.published import (
    CaseRole,
    Line,
    Measure,
    PublishedCase,
    PublishedNetwork,
    case_files,
    read_cases,
)
from neuro_eqprop.common.arrays import Array, UnknownNameError

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central parts of the draws for which the calibration is shown."""
FEW_DRAWS = 2001
"""Draws of a prediction from which the discrepancy is learned."""


class CaseError(ValueError):
    """A profile cannot predict a case; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Draws and nominal value of a predicted quantity, without discrepancy."""

    draws: Array
    nominal: float
    missing: tuple[str, ...] = ()
    """Costs that the profile does not have."""


@dataclass(frozen=True, slots=True)
class Check:
    """A published measurement with its prediction."""

    case: PublishedCase
    predicted: Interval
    nominal: float
    below: float = 0.5
    """Fraction of the draws below the measurement."""
    missing: tuple[str, ...] = ()
    """Costs of the case that the profile does not have: the prediction is a lower bound."""

    @property
    def error(self) -> float:
        """The relative error of the nominal prediction."""
        return self.nominal / self.case.measured - 1

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
    def width(self) -> float:
        """High over low of the range."""
        low = self.predicted.low
        return self.predicted.high / low if low > 0 else np.inf

    def to_json(self) -> dict[str, Any]:
        """One of the `cases` of `profiles validate --json`."""
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
            "predicted": self.nominal,
            "median": self.predicted.value,
            "low": self.predicted.low,
            "high": self.predicted.high,
            "nominal": self.nominal,
            "error": self.error,
            "within": self.within,
            "below": self.below,
            "tolerance": case.tolerance,
            "must_be_in_range": case.in_range,
            "holds": self.holds,
            "validates": self.validates,
            "missing": list(self.missing),
            "source": f"{case.source}, {case.where}",
            "note": case.note,
        }


@dataclass(frozen=True, slots=True)
class ProfileValidation:
    """The checks of all published measurements, with their calibration.

    Coverage and sharpness assess ranges together (Gneiting, Balabdaoui & Raftery 2007): the ranges
    should contain the measurements and be as narrow as possible.
    """

    checks: tuple[Check, ...]
    discrepancy: Mapping[str, Discrepancy]
    """By profile, the discrepancy of the model, learned from the other chips."""
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
    def coverage(self) -> float | None:
        """Fraction of the predictions with the measurement in the range; None without any."""
        found = self.predictions
        return sum(each.within for each in found) / len(found) if found else None

    @property
    def sharpness(self) -> float | None:
        """Median of high over low of the predictions."""
        widths = [each.width for each in self.predictions]
        return float(np.median(widths)) if widths else None

    def calibration(self) -> list[dict[str, float]]:
        """For central parts of the draws, the fraction of measurements that lie in them."""
        sides = [abs(2 * each.below - 1) for each in self.predictions]
        if not sides:
            return []
        observed = [float(np.mean([side <= level for side in sides])) for level in LEVELS]
        return [
            {"level": level, "observed": part} for level, part in zip(LEVELS, observed, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """The fields of `profiles validate --json`: checks, coverage, sharpness, discrepancy."""
        counting = self.predictions
        return {
            "cases": [each.to_json() for each in self.checks],
            "predictions": len(counting),
            "predictions_within": sum(each.within for each in counting),
            "coverage": self.coverage,
            "sharpness": self.sharpness,
            "calibration": self.calibration(),
            "misses": [each.case.name for each in counting if not each.within],
            "worst_prediction": max((abs(each.error) for each in counting), default=None),
            "consistency": sum(each.case.role is CaseRole.CONSISTENCY for each in self.checks),
            "lower_bounds": [each.case.name for each in self.checks if each.missing],
            "unpredicted": dict(self.unpredicted),
            "profiles": len({each.case.profile for each in self.checks}),
            "discrepancy": {
                name: {"energy": d.energy, "time": d.time, "placement": d.placement}
                for name, d in self.discrepancy.items()
            },
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
    profiles = {
        case.name: profile_of(case, changes.get(case.profile, {}))
        for case in chosen
        if profile in (None, case.profile)
    }
    shipped = residuals(tuple(ModelPart))
    learned = {name: learn(shipped, without=base_name(name)) for name in sorted(known)}
    checks, unpredicted = [], {}
    for case in (case for case in chosen if case.name in profiles):
        own = learned[case.profile]
        try:
            checks.append(check(case, profiles[case.name], seed=seed, discrepancy=own))
        except CaseError as error:
            unpredicted[case.name] = str(error)
    return ProfileValidation(tuple(checks), learned, unpredicted)


def profile_of(case: PublishedCase, changes: Mapping[str, str | float]) -> Profile:
    """The profile of a case, with changed values and at the supply of the measurement."""
    found = load_profile(case.profile, {**changes, **dict(map(parse_override, case.overrides))})
    return found.at_supply(case.supply) if case.supply else found


@lru_cache(maxsize=2)
def residuals(kinds: tuple[ModelPart, ...]) -> tuple[Residual, ...]:
    """Measurements and predictions of the shipped cases, without any discrepancy."""
    found = []
    for path in case_files():
        for case in read_cases(path):
            if case.role is CaseRole.PREDICTION and KINDS[case.measure] in kinds:
                each = check(case, profile_of(case, {}), seed=0, draws=FEW_DRAWS)
                if each.missing:
                    continue
                found.append(
                    Residual(
                        base_name(case.profile),
                        KINDS[case.measure],
                        case.measured,
                        each.nominal,
                        each.predicted.low,
                        each.predicted.high,
                    )
                )
    return tuple(found)


def discrepancy_of(profile: str) -> Discrepancy:
    """The discrepancy of the model for a chip, learned from the published cases of the others."""
    return learn(residuals((ModelPart.ENERGY, ModelPart.TIME)), without=base_name(profile))


def check(
    case: PublishedCase,
    profile: Profile,
    *,
    seed: int,
    discrepancy: Discrepancy = NONE,
    draws: int | None = None,
) -> Check:
    """Predict one measurement."""
    given = Draws(seed) if draws is None else Draws(seed, draws)
    if case.line is not None:
        predicted = interpolate(case.line)
        return Check(case, predicted, predicted.value)
    found = predict(case, profile, given)
    sigma = getattr(discrepancy, KINDS[case.measure].value)
    if case.measure is Measure.TIME and profile.timing is Timing.TICK:
        sigma = 0.0
    drawn = found.draws * given.factor(f"discrepancy {case.name}", sigma)
    below = float(np.mean(drawn < case.measured))
    return Check(case, interval(drawn), found.nominal, below, found.missing)


def predict(case: PublishedCase, profile: Profile, draws: Draws) -> Prediction:
    """Prediction of a case, without discrepancy."""
    if case.macs:
        return predict_dense(case, profile, draws)
    if isinstance(case.network, PublishedNetwork):
        return predict_network(case, case.network, profile, draws)
    events = case_events(case, draws)
    if case.measure is Measure.TIME:
        return predict_seconds(case, profile, events, draws)
    seconds = case.seconds
    description = "as published" if seconds else "not needed: only events"
    time = Duration(np.full(draws.size, seconds) if seconds else None, seconds, description)
    job = ChipWork(events, time, case.chips, case.clock_hz)
    found = estimate_job(job, profile, draws, overhead=case.overhead)
    missing = tuple(
        each.name
        for each in found.missing
        if each.boundary is not None and case.boundary.holds(each.boundary)
    )
    drawn = power_or_energy(case, profile, found.drawn_within, seconds)
    return replace(drawn, missing=missing)


def case_events(case: PublishedCase, draws: Draws) -> dict[Event, float | Array | None]:
    """The events of a case, drawn where only their range is known."""
    events: dict[Event, float | Array | None] = {}
    for name, number in case.events.items():
        low, high = number if isinstance(number, tuple) else (number, number)
        drawn = draws.between(f"{case.name} {name}", low, high) if low < high else low
        events[Event(name)] = drawn
    return events


def power_or_energy(
    case: PublishedCase,
    profile: Profile,
    within: Mapping[Boundary, tuple[Array, float]],
    seconds: float,
) -> Prediction:
    """Joules or watts inside the boundary of a case."""
    inside = [each for each in within if case.boundary.holds(each)]
    if not inside:
        raise CaseError(
            f"case {case.name!r}: profile {profile.name!r} has nothing at {case.boundary.value}; "
            "use the boundary at which its costs were measured"
        )
    widest = max(inside, key=lambda each: within[each][1])
    drawn, nominal = within[widest]
    if case.measure is Measure.ENERGY:
        return Prediction(drawn, nominal)
    if not seconds:
        raise CaseError(f"case {case.name!r} was measured in watts and needs seconds")
    return Prediction(drawn / seconds, nominal / seconds)


def predict_dense(case: PublishedCase, profile: Profile, draws: Draws) -> Prediction:
    """Joules or seconds of an inference on a dense device at batch 1.

    The time of a multiplication is that of the network that the device was measured with. It varies
    from network to network as its joules do, since a computing device draws nearly constant power.
    """
    points = [each for each in profile.batches if each.batch == 1 and each.per_mac]
    if not points:
        raise CaseError(f"case {case.name!r}: profile {profile.name!r} has no cost at batch 1")
    point = points[0]
    cost = point.joules_per_mac
    if case.measure is Measure.ENERGY:
        drawn = case.macs * draws.quantity(f"{profile.name}.1", cost)
        return Prediction(drawn, case.macs * cost.value)
    if case.measure is not Measure.TIME or not case.reference_macs:
        raise CaseError(
            f"case {case.name!r}: a dense device predicts J, or s with reference_macs, not "
            f"{case.measure.value}"
        )
    nominal = case.macs / case.reference_macs / point.inferences_per_second
    ends = (cost.low / cost.value, cost.high / cost.value)
    low, high = min(1 - ONE_WORKLOAD, ends[0]), max(1 + ONE_WORKLOAD, ends[1])
    times = replace(cost, value=nominal, low=low * nominal, high=high * nominal)
    return Prediction(draws.quantity(f"{profile.name} time", times), nominal)


def predict_seconds(
    case: PublishedCase,
    profile: Profile,
    events: Mapping[Event, float | Array | None],
    draws: Draws,
) -> Prediction:
    """Seconds of `steps` steps, with the events spread evenly over the published cores.

    seconds = events x times / cores + steps x (tick, or barrier)
    """
    cores = sum(case.cores.values()) or 1
    amounts: dict[str, float | Array] = {}
    for event, number in events.items():
        if number is not None:
            amounts[f"time.{event.value}"] = number / cores
    if profile.timing is Timing.TICK:
        amounts = {"time.tick": float(case.steps)}
    elif profile.timing is Timing.BARRIER:
        tiles = -(-cores // case.chips // (profile.limit("cores_per_tile") or 1)) or 1
        for key, number in barrier_events(tiles, case.chips).items():
            amounts[key] = case.steps * number
    drawn, nominal, missing = np.zeros(draws.size), 0.0, []
    for key, amount in amounts.items():
        cost = profile.known(key)
        if cost is not None:
            drawn = drawn + amount * draws.quantity(key, cost)
            nominal += float(np.mean(amount)) * cost.value
        elif np.any(amount) and not key.startswith("time.barrier_"):
            missing.append(key)
    if not nominal:
        raise CaseError(f"case {case.name!r}: profile {profile.name!r} has no times for it")
    return Prediction(drawn, nominal, tuple(missing))


def predict_network(
    case: PublishedCase, network: PublishedNetwork, profile: Profile, draws: Draws
) -> Prediction:
    """Cores, messages, seconds, joules or watts of a network that is placed."""
    workload = network.workload(case.steps)
    settings = EstimateSettings(
        seed=draws.seed,
        draws=draws.size,
        mapping=MappingGoal(case.mapping),
        allocation=case.cores or None,
        overhead=case.overhead,
        step_seconds=case.seconds / case.steps if case.seconds else None,
    )
    found = estimate_use(workload, profile, settings, learning=False)
    placement = found.placement
    if placement is None or placement.cores is None:
        raise CaseError(f"case {case.name!r}: {found.reason or 'the network is not placed'}")
    if case.measure is Measure.CORES:
        return Prediction(np.full(draws.size, float(placement.cores)), float(placement.cores))
    if case.measure is Measure.MESSAGES:
        sent = messages_of(network, placement, profile) * case.steps
        return Prediction(np.full(draws.size, sent), sent)
    if found.drawn_seconds is None:
        raise CaseError(f"case {case.name!r}: the time is {found.time}")
    if case.measure is Measure.TIME:
        return Prediction(found.drawn_seconds, found.nominal_seconds)
    return power_or_energy(case, profile, found.drawn_within, found.nominal_seconds)


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
