"""Joules and seconds of one sample on a chip: cost terms, their sum with a range, unknown terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.discrepancy import NONE, Discrepancy
from neuro_eqprop.chips.energy.event_counts import events_per_sample
from neuro_eqprop.chips.energy.mapping import (
    Candidate,
    MappingCost,
    choose,
    placements,
    spaced,
    too_few_cores,
    too_many_cores,
)
from neuro_eqprop.chips.energy.metrics import DutyCycle, by_layer, by_phase, duty_cycle
from neuro_eqprop.chips.energy.monte_carlo import Draws, Energy, Interval, energy, interval
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import (
    AllInError,
    ChipWork,
    Drawn,
    MissingTerm,
    Term,
    all_in_term,
    event_terms,
    host_terms,
    power_terms,
)
from neuro_eqprop.chips.energy.time import duration
from neuro_eqprop.chips.placement import Placement, PlacementStatus, place
from neuro_eqprop.chips.profile import Evidence, Included, Overhead, Profile, Unknown
from neuro_eqprop.chips.workload import Workload
from neuro_eqprop.common.arrays import Array

NO_LEARNING = "unknown: no learning run counted"
REFUSED = "refused"
"""Prefix of `Estimate.reason` if an all-in cost does not apply or too many cores are given."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Energy and time of one sample of inference, or of learning, on a chip.

    With missing terms, the joules are a lower bound.
    """

    joules: Energy | None = None
    """None where nothing is known; `reason` says why."""
    seconds: Interval | None = None
    energy_delay_product: float | None = None
    """Joule seconds, median."""
    terms: tuple[Term, ...] = ()
    missing: tuple[MissingTerm, ...] = ()
    included: tuple[str, ...] = ()
    """Costs that another term already includes, as text."""
    boundary: Boundary | None = None
    """The boundary of the joules: the parts of the system that they include."""
    within: Mapping[Boundary, Energy] = field(default_factory=dict)
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
    drawn_within: Mapping[Boundary, tuple[Array, float]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Draws and nominal value of each of `within`; not kept in files."""
    drawn_seconds: Array | None = field(default=None, compare=False, repr=False)
    """Draws of the seconds; not kept in files."""
    nominal_seconds: float = field(default=0.0, compare=False)
    """Seconds at the nominal times; not kept in files."""
    layers: Mapping[str, float] = field(default_factory=dict)
    """Nominal joules of each layer."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Nominal joules of each phase, of learning."""
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
    def training(self) -> Energy | None:
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


def estimate_job(
    job: ChipWork,
    profile: Profile,
    draws: Draws,
    more: list[Drawn] | None = None,
    *,
    overhead: Overhead | None = None,
    discrepancy: Discrepancy = NONE,
) -> Estimate:
    """Energy of a job on a chip, with `more` terms from outside it.

    `overhead` is loaded idle where known, unless given.
    """
    factor = draws.factor("model energy", discrepancy.energy)
    if profile.known("energy.synop") is None and profile.known("energy.synop_all_in") is not None:
        return total(job, [all_in_term(job, profile, draws)], factor)
    powers, unknown_powers = power_terms(job, profile, draws, overhead)
    events, unknown_events = event_terms(job, profile, draws)
    included = tuple(
        f"{key} is included in {entry.within}: {entry.note}"
        for key, entry in profile.entries.items()
        if isinstance(entry, Included)
    )
    found = total(job, [*powers, *events, *(more or [])], factor)
    return replace(found, missing=(*unknown_powers, *unknown_events), included=included)


def total(job: ChipWork, drawn: list[Drawn], factor: Array | float = 1.0) -> Estimate:
    """The estimate that sums the terms; `factor` has draws of the error of the model."""
    time = job.time
    seconds = None if time.draws is None else interval(time.draws)
    if not drawn:
        return Estimate(
            seconds=seconds,
            time=time.description,
            seconds_at_least=time.at_least,
            drawn_seconds=time.draws,
            nominal_seconds=time.nominal,
        )
    terms = tuple(term for term, _ in drawn)
    everything = factor * np.sum([array for _, array in drawn], axis=0)
    nominal = sum(term.joules.nominal for term in terms)
    within = {b: (factor * array, value) for b, (array, value) in subtotals(drawn).items()}
    product = None if time.draws is None else interval(everything * time.draws).value
    order = list(Evidence)
    return Estimate(
        joules=energy(everything, nominal),
        seconds=seconds,
        energy_delay_product=product,
        terms=terms,
        boundary=enclosing_boundary(terms),
        within={b: energy(array, nominal) for b, (array, nominal) in within.items()},
        drawn_within=within,
        drawn_seconds=time.draws,
        nominal_seconds=time.nominal,
        evidence=max((term.evidence for term in terms), key=order.index),
        time=time.description,
        seconds_at_least=time.at_least,
    )


def enclosing_boundary(terms: tuple[Term, ...]) -> Boundary:
    """The smallest boundary that includes every term."""
    for boundary in Boundary:
        if all(boundary.holds(term.boundary) for term in terms):
            return boundary
    return Boundary.SYSTEM_WALL


def subtotals(drawn: list[Drawn]) -> dict[Boundary, tuple[Array, float]]:
    """Draws and nominal sums inside each boundary that a term reaches."""
    found = {}
    reached = {term.boundary for term, _ in drawn}
    for boundary in (boundary for boundary in Boundary if boundary in reached):
        held = [(term, array) for term, array in drawn if boundary.holds(term.boundary)]
        nominal = sum(term.joules.nominal for term, _ in held)
        found[boundary] = (np.sum([array for _, array in held], axis=0), nominal)
    return found


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

    def nominal(placement: Placement) -> tuple[float | None, float | None]:
        mean, one = workload.without_steps, Draws(settings.seed, 1)
        try:
            found = estimate_placed(mean, placement, profile, settings, one, learning=learning)
        except AllInError:
            return None, None
        joules = None if found.joules is None else found.joules.nominal
        return joules, None if found.seconds is None else found.nominal_seconds

    if settings.allocation is not None:
        return placed(settings.allocation), ()
    if reason := too_many_cores(shape, profile, placed, cores=settings.cores, chips=settings.chips):
        raise CoresError(reason, placed({}))
    every = list(placements(workload, profile, placed, cores=settings.cores, learning=learning))
    if len(every) == 1:
        enough = settings.cores is None
        return every[0] if enough else too_few_cores(every[0], settings.cores or 0), ()
    priced = [Candidate(each, *nominal(each)) for each in spaced(every)]
    chosen, costs = choose(priced, settings.mapping, cores=settings.cores)
    return chosen.placement, costs


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
    draws = Draws(settings.seed, settings.draws)
    try:
        estimate = estimate_placed(workload, placement, profile, settings, draws, learning=learning)
    except AllInError as error:
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
    nominal = 0.0 if found.joules is None else found.joules.nominal
    rest = (workload, placement, profile, nominal)
    duty = None
    if settings.rate is not None:
        duty = duty_cycle(
            profile,
            settings.rate,
            joules=None if found.joules is None else found.joules.value,
            seconds=None if found.seconds is None else found.seconds.value,
            chips=placement.chips or 1,
        )
    phases = by_phase(*rest) if learning else {}
    layers = by_layer(*rest, learning=learning)
    return replace(found, layers=layers, phases=phases, duty=duty)


def estimate_placed(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    settings: EstimateSettings,
    draws: Draws,
    *,
    learning: bool,
) -> Estimate:
    """Energy and time of one sample of a workload with a given placement."""
    time = duration(
        *(workload, placement, profile, draws),
        learning=learning,
        clock=settings.clock,
        step_seconds=settings.step_seconds,
    )
    if time.draws is not None and time.modelled:
        factor = draws.factor("model time", settings.discrepancy.time)
        time = replace(time, draws=time.draws * factor)
    job = ChipWork(
        events_per_sample(workload, placement, profile, learning=learning),
        time,
        placement.chips or 1,
    )
    host = host_terms(workload.per_sample("host_macs"), settings.host_mac, draws)
    return estimate_job(
        *(job, profile, draws, host), overhead=settings.overhead, discrepancy=settings.discrepancy
    )


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
