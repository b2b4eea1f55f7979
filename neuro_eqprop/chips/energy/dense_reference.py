"""Dense pass of the same network on measured devices, compared with a spiking chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import erf, inf, log, sqrt

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.interval import Interval, spread
from neuro_eqprop.chips.profile import Device, Profile, Tier
from neuro_eqprop.chips.workload import Workload

SCALED = ("synop", "spike", "message", "hop ew", "hop ns", "chip link", "input", "neuron spiking")
"""Terms that grow with the spikes."""
TWO_SIGMA = 2.0
"""Half-width of a range in standard deviations of the logarithm, where a likelihood is stated."""


class Outcome(Enum):
    """Which side uses less energy, as far as it can be decided."""

    WINS = "spikes win"
    LOSES = "spikes lose"
    OPEN = "the ranges overlap"
    REFUSED = "not compared"


@dataclass(frozen=True, slots=True)
class DenseReference:
    """Interval of a dense pass on a measured device at one batch size, per sample, above idle."""

    device: str
    batch: int
    joules: Interval
    boundary: Boundary
    note: str
    joules_per_mac: Interval | None = None
    """Not kept in files."""
    tier: Tier | None = None
    """Whether its joules are calibrated; None in files before 0.3."""


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
    tier: Tier | None = None
    """Calibrated only if both sides are."""

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
        if self.tier is Tier.ORDER_OF_MAGNITUDE:
            return f"{text}, both to an order of magnitude"
        sure = self.likelihood if less else 1 - self.likelihood
        inside = "though the ranges overlap"
        if self.outcome is not Outcome.OPEN:
            inside = "beyond both ranges"
        return f"{text}, {inside}: {likely(sure)}"


def likely(probability: float) -> str:
    """A probability as a phrase."""
    phrases = ((0.9, "likely"), (0.6, "rather likely"))
    return next((phrase for least, phrase in phrases if probability >= least), "open")


def probability_less(one: Interval, other: Interval) -> float:
    """Probability that one energy is below another, both log-normal with their ranges.

    P = Phi(ln(other / one) / sqrt(s_one^2 + s_other^2)),   s = ln(high / low) / (2 TWO_SIGMA)
    """
    spreads = [log(each.high / each.low) / (2 * TWO_SIGMA) for each in (one, other) if each.low > 0]
    distance = log(other.value / one.value)
    spread = sqrt(sum(each**2 for each in spreads))
    if not spread:
        return float(distance > 0)
    return 0.5 * (1 + erf(distance / spread / sqrt(2)))


def dense_references(
    profiles: Iterable[Profile], *, macs: int, batch: int | None
) -> list[DenseReference]:
    """The dense pass on each device with a cost of a MAC, at one batch size or at all measured."""
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
            if not point.per_mac or batch not in (None, point.batch):
                continue
            cost = point.joules_per_mac
            each = spread(cost.value, profile.range_factor())
            boundary = cost.boundary or Boundary.BOARD_DYNAMIC
            found.append(
                DenseReference(
                    *(profile.name, point.batch, macs * each, boundary, cost.note, each),
                    tier=profile.tier(),
                )
            )
    return found


def arithmetic_ratio(profile: Profile, workload: Workload) -> float:
    """Interval of dense arithmetic over that of spiking arithmetic, per sample.

    ratio = dense_macs e_mac / (synops e_ac + host_macs e_mac)
    """
    mac, ac = profile.known("energy.mac"), profile.known("energy.ac")
    if mac is None or ac is None:
        raise ValueError(f"{profile.name} has no energy.mac and energy.ac for a ratio")
    spent = workload.per_sample("synops") * ac.value + workload.per_sample("host_macs") * mac.value
    if spent == 0:
        raise ValueError("the run has no synaptic operations, so there is no ratio to dense work")
    return workload.dense_macs * mac.value / spent


def crossing(workload: Workload, found: Estimate, boundary: Boundary, budget: float) -> float:
    """Spikes per neuron and step at which a chip takes `budget` joules inside a boundary.

    Events of spikes grow with the activity, everything else stays, also the time. Not above zero if
    the chip takes more without a single spike; infinite if nothing grows with the activity.
    """
    inside = [term for term in found.terms if boundary.holds(term.boundary)]
    moving = sum(term.joules.value for term in inside if term.name in SCALED)
    idle = next((term for term in inside if term.name == "neuron update"), None)
    active = next((term.amount for term in inside if term.name == "neuron spiking"), 0.0)
    if idle is not None and idle.amount:
        moving -= active * idle.joules.value / idle.amount
    rest = found.within[boundary].value - moving
    return workload.activity * (budget - rest) / moving if moving > 0 else inf


def compare_with_references(
    workload: Workload, profile: Profile, found: Estimate, references: Iterable[DenseReference]
) -> list[DenseComparison]:
    """A chip compared with every reference inside the boundary of the reference."""
    return [
        compare_with_reference(workload, profile, found, each)
        for each in references
        if each.joules_per_mac is not None
    ]


def compare_with_reference(
    workload: Workload, profile: Profile, found: Estimate, reference: DenseReference
) -> DenseComparison:
    """A chip compared with one reference inside the boundary of the reference."""
    macs = workload.per_sample("host_macs")
    if reference.joules_per_mac is None:
        raise ValueError(f"reference {reference.device!r} has no joules_per_mac; compute it anew")
    host = macs * reference.joules_per_mac
    own = found.within.get(reference.boundary)
    if own is None:
        return across_boundaries(profile, found, reference, host)
    # Multiplications of the host and of the device have the same cost and cancel.
    left = (workload.dense_macs - macs) * reference.joules_per_mac
    outcome = Outcome.OPEN
    if own.high < left.low:
        outcome = Outcome.WINS
    elif own.low > left.high:
        outcome = Outcome.LOSES
    stops = crossing(workload, found, reference.boundary, left.value)
    sentence = f"{outcome.value}; they stop winning above {stops:.3g} spikes a neuron and step"
    if stops <= 0:
        sentence = f"{outcome.value}; they would even without a single spike"
    elif stops > 1:
        sentence = f"{outcome.value}; they would at any activity (now {workload.activity:.3g})"
    gaps = [m.name for m in found.missing if m.boundary and reference.boundary.holds(m.boundary)]
    if gaps and outcome is not Outcome.LOSES:
        sentence += f"; without {', '.join(gaps)}, which are unknown"
    if macs:
        sentence += f"; with {macs:g} host multiplications at the cost of the device"
    tiers = {found.tier, reference.tier}
    return DenseComparison(
        *(profile.name, reference.device, reference.batch, outcome, reference.boundary),
        *(
            own.value + host.value,
            reference.joules.value,
            stops if 0 < stops <= 1 else None,
            sentence,
        ),
        probability_less(own, left) if left.value > 0 else 0.0,
        Tier.CALIBRATED if tiers == {Tier.CALIBRATED} else Tier.ORDER_OF_MAGNITUDE,
    )


def across_boundaries(
    profile: Profile, found: Estimate, reference: DenseReference, host: Interval
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
