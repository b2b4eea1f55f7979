"""Dense pass of the same network on measured devices, compared with a spiking chip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import erf, log, sqrt

from neuro_eqprop.chips.boundary import Boundary, BoundaryError
from neuro_eqprop.chips.energy.discrepancy import NORMAL_95
from neuro_eqprop.chips.energy.estimate import Estimate, estimate_use
from neuro_eqprop.chips.energy.monte_carlo import Draws, Energy, energy
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.profile import Device, Profile
from neuro_eqprop.chips.workload import Workload

ACTIVITIES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Spikes per neuron and step at which the energy of a chip is estimated to find its crossing."""
CURVE_DRAWS = 501
"""Draws of an estimate of that curve."""
UNKNOWN_COSTS = "which are unknown"
NO_SPIKE, ANY_ACTIVITY = "even without a single spike", "at any activity"


class Outcome(Enum):
    """Which side uses less energy, as far as it can be decided."""

    WINS = "spikes win"
    LOSES = "spikes lose"
    OPEN = "the ranges overlap"
    REFUSED = "not compared"


@dataclass(frozen=True, slots=True)
class DenseReference:
    """Energy of a dense pass on a measured device at one batch size, per sample, above idle."""

    device: str
    batch: int
    joules: Energy
    boundary: Boundary
    note: str
    joules_per_mac: Energy | None = None
    """Not kept in files."""


@dataclass(frozen=True, slots=True)
class DenseComparison:
    """A spiking chip compared with a dense device inside the same boundary."""

    profile: str
    device: str
    batch: int
    outcome: Outcome
    boundary: Boundary
    spiking: float | None
    """Joules of the chip, plus the host's multiplications at the cost of the device."""
    dense: float
    stops_at: float | None
    """Spikes per neuron and step above which the chip uses more energy; None if there are none."""
    sentence: str
    """The outcome as a sentence."""
    likelihood: float | None = None
    """Probability that the chip needs less, from both ranges; None where it is not compared."""

    @property
    def ratio(self) -> float | None:
        """Joules of the chip over those of the device."""
        return self.spiking / self.dense if self.spiking is not None and self.dense > 0 else None

    @property
    def summary(self) -> str:
        """The comparison as a sentence: how many times less or more, and how likely that is."""
        if self.outcome is Outcome.REFUSED or self.ratio is None:
            return f"not compared with {self.device}: measured at {self.boundary.value}"
        less, factor = self.ratio < 1, max(self.ratio, 1 / self.ratio)
        times = f"{factor:.2g}" if factor < 100 else f"{factor:,.0f}"
        text = f"needs {times}x {'less' if less else 'more'} than {self.device}"
        text += f" at batch {self.batch}"
        if self.likelihood is None:
            return f"{text}, even without all of its costs"
        sure = self.likelihood if less else 1 - self.likelihood
        inside = "though the ranges overlap"
        if self.outcome is not Outcome.OPEN:
            inside = "inside the stated range"
        return f"{text}, {inside}: {likely(sure)}"


def likely(probability: float) -> str:
    """A probability as a phrase."""
    phrases = ((0.975, "almost certain"), (0.8, "likely"), (0.6, "rather likely"))
    return next((phrase for least, phrase in phrases if probability >= least), "open")


def probability_less(one: Energy, other: Energy) -> float:
    """Probability that one energy is below another, both log-normal with their 95 % ranges.

    P = Phi(ln(other / one) / sqrt(s_one^2 + s_other^2)),   s = ln(high / low) / (2 NORMAL_95)
    """
    spreads = [log(each.high / each.low) / (2 * NORMAL_95) for each in (one, other) if each.low > 0]
    distance = log(other.value / one.value)
    spread = sqrt(sum(each**2 for each in spreads))
    if not spread:
        return float(distance > 0)
    return 0.5 * (1 + erf(distance / spread / sqrt(2)))


def energy_ratio(one: Estimate, other: Estimate) -> float:
    """The joules of one estimate over those of another at the same boundary."""
    if one.joules is None or other.joules is None or not one.boundary or not other.boundary:
        raise ValueError("there are no joules to compare; one of the two is unknown")
    if one.boundary is not other.boundary:
        raise BoundaryError(one.boundary, other.boundary)
    return one.joules.value / other.joules.value


def dense_references(
    profiles: Iterable[Profile], *, macs: int, batch: int | None, seed: int
) -> list[DenseReference]:
    """The dense pass on each device, at one batch size or at all measured ones."""
    found = []
    devices = [each for each in profiles if each.device is Device.DENSE]
    known = sorted({point.batch for profile in devices for point in profile.batches})
    if batch is not None and batch not in known:
        raise ValueError(
            f"no device was measured at a batch of {batch}, only at "
            f"{', '.join(map(str, known))}; use one of these"
        )
    for profile in devices:
        for point in profile.batches:
            if batch not in (None, point.batch):
                continue
            cost = point.joules_per_mac
            drawn = Draws(seed).quantity(f"{profile.name}.{point.batch}", cost)
            each = energy(drawn, cost.value)
            boundary = cost.boundary or Boundary.BOARD_DYNAMIC
            if point.per_mac:
                joules, note = macs * each, cost.note
                found.append(
                    DenseReference(profile.name, point.batch, joules, boundary, note, each)
                )
            else:
                note = f"one published network: {cost.where}"
                found.append(DenseReference(profile.name, point.batch, each, boundary, note))
    return found


def arithmetic_ratio(profile: Profile, workload: Workload) -> float:
    """Energy of dense arithmetic over that of spiking arithmetic, per sample.

    ratio = dense_macs e_mac / (synops e_ac + host_macs e_mac)
    """
    mac, ac = profile.known("energy.mac"), profile.known("energy.ac")
    if mac is None or ac is None:
        raise ValueError(f"{profile.name} has no energy.mac and energy.ac for a ratio")
    spent = workload.per_sample("synops") * ac.value + workload.per_sample("host_macs") * mac.value
    if spent == 0:
        raise ValueError("the run has no synaptic operations, so there is no ratio to dense work")
    return workload.dense_macs * mac.value / spent


def activity_curve(
    workload: Workload,
    profile: Profile,
    settings: EstimateSettings,
    boundary: Boundary,
    allocation: Mapping[str, int],
) -> list[tuple[float, float]]:
    """Activity and joules inside a boundary, with all spikes scaled alike on the same cores."""
    if workload.activity == 0:
        return []
    points = []
    settings = replace(settings, draws=CURVE_DRAWS, allocation=allocation)
    for activity in ACTIVITIES:
        scaled = workload.scaled(activity / workload.activity)
        found = estimate_use(scaled, profile, settings, learning=False)
        if boundary in found.within:
            points.append((activity, found.within[boundary].value))
    return points


def crossing(points: list[tuple[float, float]], joules: float) -> float | None:
    """Activity at which a rising curve reaches `joules`, interpolated; None if it does not."""
    below = [point for point in points if point[1] <= joules]
    if not below or len(below) == len(points):
        return None
    (a, low), (b, high) = points[len(below) - 1], points[len(below)]
    return a + (b - a) * (joules - low) / (high - low)


def compare_with_references(
    workload: Workload,
    profile: Profile,
    found: Estimate,
    references: Iterable[DenseReference],
    settings: EstimateSettings,
) -> list[DenseComparison]:
    """A chip compared with every reference; its activity curve is made once per boundary."""
    references = [each for each in references if each.joules_per_mac is not None]
    boundaries = {each.boundary for each in references} & set(found.within)
    allocations = () if found.placement is None else found.placement.allocations
    cores = {each.name: each.cores for each in allocations}
    curves = {b: activity_curve(workload, profile, settings, b, cores) for b in boundaries}
    return [
        compare_with_reference(workload, profile, found, each, curves.get(each.boundary))
        for each in references
    ]


def compare_with_reference(
    workload: Workload,
    profile: Profile,
    found: Estimate,
    reference: DenseReference,
    points: list[tuple[float, float]] | None,
) -> DenseComparison:
    """A chip compared with one reference inside the boundary of the reference.

    `points` is the activity curve of the chip inside that boundary; None where it has none.
    """
    macs = workload.per_sample("host_macs")
    if reference.joules_per_mac is None:
        raise ValueError(f"reference {reference.device!r} has no joules_per_mac; compute it anew")
    host = macs * reference.joules_per_mac
    own = found.within.get(reference.boundary)
    if own is None or points is None:
        return across_boundaries(profile, found, reference, host)
    # Multiplications of the host and of the device have the same cost and cancel in every draw.
    left = (workload.dense_macs - macs) * reference.joules_per_mac
    outcome = Outcome.OPEN
    if own.high < left.low:
        outcome = Outcome.WINS
    elif own.low > left.high:
        outcome = Outcome.LOSES
    budget = left.value
    stops = crossing(points, budget)
    sentence = describe_outcome(outcome, stops, points, budget, workload.activity)
    gaps = [m.name for m in found.missing if m.boundary and reference.boundary.holds(m.boundary)]
    if gaps and outcome is not Outcome.LOSES:
        sentence += f"; without {', '.join(gaps)}, {UNKNOWN_COSTS}"
    if macs:
        sentence += f"; with {macs:g} host multiplications at the cost of the device"
    return DenseComparison(
        profile.name,
        reference.device,
        reference.batch,
        outcome,
        reference.boundary,
        own.value + host.value,
        reference.joules.value,
        stops,
        sentence,
        probability_less(own, left) if left.value > 0 else 0.0,
    )


def describe_outcome(
    outcome: Outcome,
    stops: float | None,
    points: list[tuple[float, float]],
    budget: float,
    activity: float,
) -> str:
    """The outcome and the activity up to which it holds."""
    if stops is not None:
        return f"{outcome.value}; they stop winning above {stops:.3g} spikes a neuron and step"
    if points and points[0][1] > budget:
        return f"{outcome.value}; they would {NO_SPIKE}"
    if points:
        return f"{outcome.value}; they would {ANY_ACTIVITY} (now {activity:.3g})"
    return outcome.value


def across_boundaries(
    profile: Profile, found: Estimate, reference: DenseReference, host: Energy
) -> DenseComparison:
    """Across boundaries: decided only if the chip loses inside the smaller one."""
    inside = [b for b in found.within if reference.boundary.holds(b)]
    outcome, spent = Outcome.REFUSED, None
    sentence = (
        f"not compared: {reference.device} was measured at {reference.boundary.value}, "
        f"{profile.name} is known at {', '.join(b.value for b in found.within) or 'none'}"
    )
    if inside:
        widest = max(inside, key=lambda b: found.within[b].value)
        own = found.within[widest]
        spent = own.value + host.value
        if own.low + host.low > reference.joules.high:
            outcome = Outcome.LOSES
            sentence = f"{outcome.value}, even though only its {widest.value} is counted"
    return DenseComparison(
        profile.name,
        reference.device,
        reference.batch,
        outcome,
        reference.boundary,
        spent,
        reference.joules.value,
        None,
        sentence,
    )
