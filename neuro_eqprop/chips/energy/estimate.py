"""Joules and seconds of one sample on a chip: cost terms, their sum with a range, unknown terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.event_counts import events_per_sample
from neuro_eqprop.chips.energy.interval import Interval, add, spread
from neuro_eqprop.chips.energy.mapping import (
    MappingCost,
    choose,
    placements,
    spaced,
    too_few_cores,
    too_many_cores,
)
from neuro_eqprop.chips.energy.metrics import DutyCycle, by_layer, by_phase, duty_cycle
from neuro_eqprop.chips.energy.sanafe import SanafeError, sanafe_seconds
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import (
    AllInError,
    ChipWork,
    MissingTerm,
    Term,
    all_in_term,
    event_terms,
    make_term,
    power_terms,
)
from neuro_eqprop.chips.energy.time import Clock, Duration, duration
from neuro_eqprop.chips.placement import Placement, PlacementStatus, place
from neuro_eqprop.chips.profile import Evidence, Included, Profile, Tier, Timing, Unknown
from neuro_eqprop.chips.workload import Workload

NO_LEARNING = "unknown: no learning run counted"
REFUSED = "refused"
"""Prefix of `Estimate.reason` if an all-in cost does not apply or too many cores are given."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Energy and time of one sample of inference, or of learning, on a chip.

    With missing terms, the joules are a lower bound.
    """

    joules: Interval | None = None
    """None where nothing is known; `reason` says why."""
    seconds: Interval | None = None
    energy_delay_product: float | None = None
    """Joule seconds."""
    terms: tuple[Term, ...] = ()
    missing: tuple[MissingTerm, ...] = ()
    included: tuple[str, ...] = ()
    """Costs that another term already includes, as text."""
    boundary: Boundary | None = None
    """The boundary of the joules: the parts of the system that they include."""
    within: Mapping[Boundary, Interval] = field(default_factory=dict)
    """The sum of the terms inside each boundary that a term reaches."""
    evidence: Evidence | None = None
    """The weakest evidence of the terms."""
    time: str = ""
    """How the seconds were obtained."""
    reason: str = ""
    """Why there are no joules."""
    placement: Placement | None = None
    samples: int | None = None
    """Samples of the whole training, where this is an estimate of learning."""
    mapping: str = ""
    """How the populations were mapped to cores."""
    mappings: tuple[MappingCost, ...] = ()
    """Cores, nominal joules and seconds of each mapping, where they differ."""
    tier: Tier | None = None
    """Whether the joules are calibrated, or an order of magnitude; None in files before 0.3."""
    layers: Mapping[str, float] = field(default_factory=dict)
    """Joules of each layer."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Joules of each phase, of learning."""
    duty: DutyCycle | None = None
    """Average power at a rate of samples, where one is given."""
    seconds_at_least: bool = False
    """Whether work without a known time is left out, so that the seconds are a lower bound."""

    @property
    def at_least(self) -> bool:
        """Whether terms are missing, so that the joules are a lower bound."""
        return bool(self.missing)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The missing terms, each with its reason."""
        return tuple(f"{each.title}: {each.reason}" for each in self.missing)

    @property
    def frames_per_second(self) -> float | None:
        """Samples a second, one after the other."""
        return None if self.seconds is None else 1 / self.seconds.value

    @property
    def frames_per_joule(self) -> float | None:
        """Samples a second and watt, which are samples a joule."""
        return None if self.joules is None or not self.joules.value else 1 / self.joules.value

    @property
    def sensitivity(self) -> dict[str, dict[str, float]]:
        """For each term its share, and the joules of a sample if its cost were halved."""
        if self.joules is None:
            return {}
        total = self.joules.value
        return {
            name: {"share": share, "joules_if_halved": total * (1 - share / 2)}
            for name, share in self.shares.items()
        }

    @property
    def shares(self) -> dict[str, float]:
        """The fraction of each term in the sum, largest first."""
        total = sum(term.joules.value for term in self.terms)
        terms = sorted(self.terms, key=lambda term: -term.joules.value)
        return {term.name: term.joules.value / total for term in terms}

    @property
    def training(self) -> Interval | None:
        """Joules of the whole training, where its number of samples is known."""
        if self.joules is None or self.samples is None:
            return None
        return self.samples * self.joules

    @property
    def training_seconds(self) -> float | None:
        """Seconds of the whole training."""
        if self.seconds is None or self.samples is None:
            return None
        return self.samples * self.seconds.value


def estimate_job(job: ChipWork, profile: Profile, settings: EstimateSettings) -> Estimate:
    """Energy of a job on a chip: its terms, their sum, and what is not known."""
    power = profile.known("power.active") is not None and job.time.seconds is not None
    all_in = profile.known("energy.synop_all_in") is not None and not power
    if all_in and profile.known("energy.synop") is None:
        return total([all_in_term(job, profile)], job, profile)
    powers, unknown_powers = power_terms(job, profile, settings.overhead)
    events, unknown_events = event_terms(job, profile)
    terms = [*powers, *events]
    if job.host_macs and settings.host_mac is not None:
        terms.append(
            make_term(
                *("host MACs", "energy.mac", settings.host_mac, job.host_macs),
                boundary=Boundary.BOARD_DYNAMIC,
            )
        )
    included = tuple(
        f"{key} is included in {entry.within}: {entry.note}"
        for key, entry in profile.entries.items()
        if isinstance(entry, Included)
    )
    missing = (*unknown_powers, *unknown_events)
    return replace(total(terms, job, profile), missing=missing, included=included)


def total(terms: list[Term], job: ChipWork, profile: Profile) -> Estimate:
    """The estimate that sums the terms."""
    time = job.time
    known = Estimate(
        seconds=time.seconds,
        time=time.description,
        seconds_at_least=time.at_least,
        tier=profile.tier(),
    )
    if not terms:
        return known
    reached = {term.boundary for term in terms}
    within = {
        boundary: sum_with_range([t for t in terms if boundary.holds(t.boundary)], profile)
        for boundary in Boundary
        if boundary in reached
    }
    joules, order = sum_with_range(terms, profile), list(Evidence)
    return replace(
        known,
        joules=joules,
        energy_delay_product=None if time.seconds is None else joules.value * time.seconds.value,
        terms=tuple(terms),
        boundary=next(b for b in Boundary if all(b.holds(each) for each in reached)),
        within=within,
        evidence=max((term.evidence for term in terms), key=order.index),
    )


def sum_with_range(terms: Iterable[Term], profile: Profile) -> Interval:
    """The sum of terms, with the range of the chip.

    On a calibrated chip that of its own measurements, on top of what is uncertain about events and
    time, and about constants that were fitted; on another one the ranges of the costs, but at least
    an order of magnitude.
    """
    terms, factor = list(terms), profile.range_factor()
    if profile.tier() is Tier.CALIBRATED:
        found = add(term.counted for term in terms).widened(factor)
        if profile.fit is None:
            return found
        joules: dict[str, float] = {}
        for term in terms:
            joules[term.key] = joules.get(term.key, 0.0) + term.joules.value
        return found.widened(profile.fit.factor(joules))
    found = add(term.joules for term in terms)
    low, high = min(found.low, found.value / factor), max(found.high, found.value * factor)
    return Interval(found.value, low, high)


def value_of(interval: Interval | None) -> float | None:
    """The nominal value; None if it is unknown."""
    return None if interval is None else interval.value


class CoresError(ValueError):
    """More cores were given than the chips have or the network can use."""

    def __init__(self, reason: str, placement: Placement) -> None:
        super().__init__(reason)
        self.placement = placement
        """Placement on the fewest cores."""


def map_workload(
    workload: Workload, profile: Profile, settings: EstimateSettings, *, learning: bool
) -> tuple[Placement, tuple[MappingCost, ...]]:
    """The placement chosen by the settings, and the cost of each mapping if they differ."""
    shape = workload.shape
    if learning and not shape.plastic:
        shape = shape.make_plastic()

    def placed(at_least: Mapping[str, int]) -> Placement:
        return place(
            shape,
            profile,
            tag_bits=settings.tag_bits,
            soft_reset=settings.soft_reset,
            chips=settings.chips,
            at_least=at_least,
        )

    modelled = settings
    if settings.clock is Clock.SANAFE:
        modelled = replace(settings, clock=None)

    def priced(placement: Placement) -> tuple[Placement, MappingCost]:
        mean, joules, seconds = workload.without_steps, None, None
        with suppress(AllInError):
            found = estimate_placed(mean, placement, profile, modelled, learning=learning)
            joules, seconds = value_of(found.joules), value_of(found.seconds)
        return placement, MappingCost("", placement.cores or 0, placement.chips, joules, seconds)

    if settings.allocation is not None:
        return placed(settings.allocation), ()
    if reason := too_many_cores(shape, profile, placed, cores=settings.cores, chips=settings.chips):
        raise CoresError(reason, placed({}))
    every = list(placements(workload, profile, placed, cores=settings.cores, learning=learning))
    if len(every) == 1:
        enough = settings.cores is None
        return every[0] if enough else too_few_cores(every[0], settings.cores or 0), ()
    candidates = [priced(each) for each in spaced(every)]
    chosen, costs = choose(candidates, settings.mapping, cores=settings.cores)
    return chosen, costs


def estimate_use(
    workload: Workload, profile: Profile, settings: EstimateSettings, *, learning: bool
) -> Estimate:
    """Place a workload on a chip and estimate one sample of its inference or of its learning."""
    try:
        placement, costs = map_workload(workload, profile, settings, learning=learning)
    except CoresError as error:
        return Estimate(placement=error.placement, reason=f"{REFUSED}: {error}")
    reason = why_not(workload, profile, placement, learning=learning)
    if reason:
        return Estimate(placement=placement, reason=reason)
    try:
        estimate = estimate_placed(workload, placement, profile, settings, learning=learning)
    except (AllInError, SanafeError) as error:
        return Estimate(placement=placement, reason=f"{REFUSED}: {error}")
    reason = "unknown: no cost of this chip is published" if estimate.joules is None else ""
    if placement.allocations and estimate.joules is not None:
        estimate = add_metrics(estimate, workload, placement, profile, settings, learning=learning)
    goal = settings.mapping.value if settings.cores is None else f"{settings.cores} cores given"
    return replace(estimate, placement=placement, reason=reason, mapping=goal, mappings=costs)


def add_metrics(
    found: Estimate,
    workload: Workload,
    placement: Placement,
    profile: Profile,
    settings: EstimateSettings,
    *,
    learning: bool,
) -> Estimate:
    """The estimate with its joules by layer and phase, and its duty cycle."""
    joules = value_of(found.joules)
    duty = duty_cycle(
        profile,
        settings.rate,
        joules=joules,
        seconds=value_of(found.seconds),
        chips=placement.chips or 1,
    )
    rest = (workload, placement, profile, joules or 0.0)
    phases = by_phase(*rest) if learning else {}
    layers = by_layer(*rest, learning=learning)
    return replace(found, layers=layers, phases=phases, duty=duty)


def estimate_placed(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    settings: EstimateSettings,
    *,
    learning: bool,
) -> Estimate:
    """Energy and time of one sample of a workload with a given placement."""
    if settings.clock is Clock.SANAFE and profile.timing is Timing.BARRIER and not learning:
        seconds = sanafe_seconds(workload, placement, profile)
        found = spread(seconds, profile.range_factor("time"))
        time = Duration(found, "SANA-FE in its cycle mode", modelled=True)
    else:
        clock = None if settings.clock is Clock.SANAFE else settings.clock
        time = duration(
            *(workload, placement, profile),
            learning=learning,
            clock=clock,
            step_seconds=settings.step_seconds,
        )
    job = ChipWork(
        events_per_sample(workload, placement, profile, learning=learning),
        time,
        placement.chips or 1,
        host_macs=workload.per_sample("host_macs"),
    )
    return estimate_job(job, profile, settings)


def why_not(workload: Workload, profile: Profile, placement: Placement, *, learning: bool) -> str:
    """Why a workload cannot run on a chip; empty if it can."""
    if learning and not workload.learned:
        return NO_LEARNING
    ability = profile.known("support.learning")
    if learning and ability is not None and not ability.value:
        return f"no learning on the chip: {ability.where} ({ability.src})"
    if learning and ability is None:
        entry = profile.entry("support.learning")
        note = entry.note if isinstance(entry, Unknown) else ""
        return f"unknown: whether the chip learns by this rule ({note})"
    if placement.status is PlacementStatus.DOES_NOT_FIT:
        return f"does not fit: {'; '.join(each.reason for each in placement.violations)}"
    return ""
