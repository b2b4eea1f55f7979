"""The same network as a dense pass on measured machines, and whether spikes win against it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from neuro_eqprop.energy.estimate import Estimate, Options, side
from neuro_eqprop.energy.monte_carlo import Draws, Spread, spread
from neuro_eqprop.hardware.profile import Boundary, BoundaryError, Device, Profile
from neuro_eqprop.hardware.workload import Workload

ACTIVITIES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Spikes per neuron and step at which a chip is priced to find where it stops winning."""


class Outcome(Enum):
    """Who uses less, as far as it can be said."""

    WINS = "spikes win"
    LOSES = "spikes lose"
    OPEN = "the ranges overlap"
    REFUSED = "not compared"


@dataclass(frozen=True, slots=True)
class Reference:
    """A dense pass on a measured device at a stated batch, per sample, above the device's idle."""

    device: str
    batch: int
    joules: Spread
    joules_per_mac: Spread
    boundary: Boundary
    note: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A chip against a device inside the same boundary."""

    profile: str
    device: str
    batch: int
    outcome: Outcome
    boundary: Boundary
    spiking: float | None
    """Joules of the chip, with the host's multiplications at the device's own price."""
    dense: float
    stops_at: float | None
    """Spikes per neuron and step above which the chip uses more; None if there is no such."""
    words: str


def compare(one: Estimate, other: Estimate) -> float:
    """How many times the joules of the other; refused where they enclose different things."""
    if one.joules is None or other.joules is None or not one.boundary or not other.boundary:
        raise ValueError("there are no joules to compare; one of the two is unknown")
    if one.boundary is not other.boundary:
        raise BoundaryError(one.boundary, other.boundary)
    return one.joules.value / other.joules.value


def references(
    profiles: Iterable[Profile], *, macs: int, batch: int | None, seed: int
) -> list[Reference]:
    """The dense pass on each device, at one batch or at all that were measured."""
    found = []
    for profile in profiles:
        if profile.device is not Device.DENSE:
            continue
        known = [point.batch for point in profile.batches]
        if batch is not None and batch not in known:
            raise ValueError(
                f"{profile.name} was not measured at a batch of {batch}, only at "
                f"{', '.join(map(str, known))}; take one of these"
            )
        for point in profile.batches:
            if batch not in (None, point.batch):
                continue
            cost = point.joules_per_mac
            each = spread(Draws(seed).quantity(f"{profile.name}.{point.batch}", cost), cost.value)
            whole = Spread(*(macs * v for v in (each.value, each.low, each.high, each.nominal)))
            boundary = cost.boundary or Boundary.BOARD_DYNAMIC
            found.append(Reference(profile.name, point.batch, whole, each, boundary, cost.note))
    return found


def ratio(profile: Profile, workload: Workload) -> float:
    """Arithmetic alone: a dense pass's multiplications over the spiking run's additions.

    ratio = (dense_macs e_mac) / (synops e_ac + host_macs e_mac), both per sample
    """
    mac, ac = profile.known("energy.mac"), profile.known("energy.ac")
    if mac is None or ac is None:
        raise ValueError(f"{profile.name} has no energy.mac and energy.ac to make a ratio of")
    counted = workload.phases(learning=False).values()
    synops = sum(counts.synops for counts in counted) / workload.samples
    host = sum(counts.host_macs for counts in counted) / workload.samples
    spent = synops * ac.value + host * mac.value
    if spent == 0:
        raise ValueError("the run made no synaptic operation, so there is no ratio to dense work")
    return workload.dense_macs * mac.value / spent


def curve(
    workload: Workload, profile: Profile, options: Options, boundary: Boundary
) -> list[tuple[float, float]]:
    """Joules inside a boundary at a row of activities, all spikes scaled alike."""
    if workload.activity == 0:
        return []
    few = replace(options, draws=501)
    points = []
    for activity in ACTIVITIES:
        scaled = workload.scaled(activity / workload.activity)
        found = side(scaled, profile, few, learning=False).estimate
        if found is not None and boundary in found.within:
            points.append((activity, found.within[boundary].value))
    return points


def crossing(points: list[tuple[float, float]], joules: float) -> float | None:
    """The activity at which a rising curve passes `joules`; None if it does not."""
    below = [point for point in points if point[1] <= joules]
    if not below or len(below) == len(points):
        return None
    (a, low), (b, high) = points[len(below) - 1], points[len(below)]
    return a + (b - a) * (joules - low) / (high - low)


def host_macs(workload: Workload) -> float:
    """Multiplications the host makes per inference to feed the network."""
    counted = workload.phases(learning=False).values()
    return sum(counts.host_macs for counts in counted) / workload.samples


def judge_all(
    workload: Workload,
    profile: Profile,
    found: Estimate,
    against: Iterable[Reference],
    options: Options,
) -> list[Comparison]:
    """The comparisons of a chip with all devices; its curves are made once for each boundary."""
    against = list(against)
    boundaries = {reference.boundary for reference in against} & set(found.within)
    curves = {b: curve(workload, profile, options, b) for b in boundaries}
    return [judge(workload, profile, found, each, curves.get(each.boundary)) for each in against]


def judge(
    workload: Workload,
    profile: Profile,
    found: Estimate,
    reference: Reference,
    points: list[tuple[float, float]] | None,
) -> Comparison:
    """Whether spikes win inside the reference's boundary, and up to which activity.

    `points` is the chip's curve inside that boundary; None where it does not reach it.
    """
    macs = host_macs(workload)
    host = Spread(
        *(macs * getattr(reference.joules_per_mac, f) for f in ("value", "low", "high", "nominal"))
    )
    own = found.within.get(reference.boundary)
    if own is None or points is None:
        return across(profile, found, reference, host)
    low, high = own.low + host.low, own.high + host.high
    outcome = Outcome.OPEN
    if high < reference.joules.low:
        outcome = Outcome.WINS
    elif low > reference.joules.high:
        outcome = Outcome.LOSES
    stops = crossing(points, reference.joules.value - host.value)
    words = say(outcome, stops, points, reference.joules.value - host.value, workload.activity)
    gaps = [m.name for m in found.missing if m.boundary and reference.boundary.holds(m.boundary)]
    if gaps and outcome is not Outcome.LOSES:
        words += f"; without {', '.join(gaps)}, which are unknown"
    if macs:
        words += f"; with {macs:g} multiplications of the host at the device's price"
    spent = own.value + host.value
    return Comparison(
        profile.name,
        reference.device,
        reference.batch,
        outcome,
        reference.boundary,
        spent,
        reference.joules.value,
        stops,
        words,
    )


def say(
    outcome: Outcome,
    stops: float | None,
    points: list[tuple[float, float]],
    budget: float,
    activity: float,
) -> str:
    """The outcome in a sentence."""
    if stops is not None:
        return f"{outcome.value}; they stop winning above {stops:.3g} spikes a neuron and step"
    if points and points[0][1] > budget:
        return f"{outcome.value}; they would even without a single spike"
    if points:
        return f"{outcome.value}; they would at any activity (now {activity:.3g})"
    return outcome.value


def across(profile: Profile, found: Estimate, reference: Reference, host: Spread) -> Comparison:
    """Different boundaries: only a chip that loses inside the smaller one has surely lost."""
    inside = [b for b in found.within if reference.boundary.holds(b)]
    outcome, spent = Outcome.REFUSED, None
    words = (
        f"not compared: {reference.device} was measured at {reference.boundary.value}, "
        f"{profile.name} is known at {', '.join(b.value for b in found.within) or 'none'}"
    )
    if inside:
        widest = max(inside, key=lambda b: found.within[b].value)
        own = found.within[widest]
        spent = own.value + host.value
        if own.low + host.low > reference.joules.high:
            outcome = Outcome.LOSES
            words = f"{outcome.value}, even though only its {widest.value} is counted"
    return Comparison(
        profile.name,
        reference.device,
        reference.batch,
        outcome,
        reference.boundary,
        spent,
        reference.joules.value,
        None,
        words,
    )
