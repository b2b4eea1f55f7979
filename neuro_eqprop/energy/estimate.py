"""Joules of a network on a chip: each term shown, what is not known listed, in a stated range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.energy.event_counts import Clock, count, duration
from neuro_eqprop.energy.monte_carlo import SIZE, Draws, Spread, spread
from neuro_eqprop.energy.terms import (
    AllInError,
    Drawn,
    Job,
    Missing,
    Term,
    all_in,
    charges,
    powers,
)
from neuro_eqprop.hardware.placement import Placement, Verdict, place
from neuro_eqprop.hardware.profile import Boundary, Evidence, Included, Overhead, Profile
from neuro_eqprop.hardware.workload import Workload


@dataclass(frozen=True, slots=True)
class Estimate:
    """Joules of a sample. With terms missing it is a lower bound, and says so."""

    joules: Spread | None
    seconds: Spread | None
    delay_product: Spread | None
    """Joule seconds."""
    terms: tuple[Term, ...]
    missing: tuple[Missing, ...]
    inside: tuple[str, ...]
    """Costs that another term already holds."""
    boundary: Boundary | None
    """What the joules enclose."""
    within: Mapping[Boundary, Spread]
    """The sum of the terms inside of each boundary that some term reaches."""
    evidence: Evidence | None
    """The weakest of the terms."""
    time: str

    @property
    def at_least(self) -> bool:
        """Whether terms are missing, so that the joules are a lower bound."""
        return bool(self.missing)


def estimate(
    job: Job, profile: Profile, draws: Draws, *, overhead: Overhead | None = None
) -> Estimate:
    """Price a job on a chip. `overhead` is loaded idle where known, unless asked otherwise."""
    if profile.known("energy.synop") is None and profile.known("energy.synop_all_in") is not None:
        return total(job, [all_in(job, profile, draws)], [], [])
    missing: list[Missing] = []
    inside: list[str] = []
    drawn = [
        *powers(job, profile, draws, overhead, missing),
        *charges(job, profile, draws, missing),
    ]
    for key, entry in profile.entries.items():
        if isinstance(entry, Included):
            inside.append(f"{key} is inside {entry.within}: {entry.note}")
    return total(job, drawn, missing, inside)


def total(job: Job, drawn: list[Drawn], missing: list[Missing], inside: list[str]) -> Estimate:
    """Sum up the terms."""
    seconds = None if job.time.draws is None else spread(job.time.draws, job.time.nominal)
    terms = tuple(term for term, _ in drawn)
    if not drawn:
        parts: dict[Boundary, Spread] = {}
        return Estimate(
            None,
            seconds,
            None,
            (),
            tuple(missing),
            tuple(inside),
            None,
            parts,
            None,
            job.time.words,
        )
    everything = np.sum([array for _, array in drawn], axis=0)
    nominal = sum(term.joules.nominal for term in terms)
    product = None
    if job.time.draws is not None:
        product = spread(everything * job.time.draws, nominal * job.time.nominal)
    order = list(Evidence)
    return Estimate(
        spread(everything, nominal),
        seconds,
        product,
        terms,
        tuple(missing),
        tuple(inside),
        enclosing(terms),
        subtotals(drawn),
        max((term.evidence for term in terms), key=order.index),
        job.time.words,
    )


def enclosing(terms: tuple[Term, ...]) -> Boundary:
    """The smallest boundary that holds every term."""
    for boundary in Boundary:
        if all(boundary.holds(term.boundary) for term in terms):
            return boundary
    return Boundary.SYSTEM_WALL


def subtotals(drawn: list[Drawn]) -> dict[Boundary, Spread]:
    """Sums inside of each boundary that some term reaches."""
    found = {}
    reached = {term.boundary for term, _ in drawn}
    for boundary in Boundary:
        if boundary not in reached:
            continue
        held = [(term, array) for term, array in drawn if boundary.holds(term.boundary)]
        nominal = sum(term.joules.nominal for term, _ in held)
        found[boundary] = spread(np.sum([array for _, array in held], axis=0), nominal)
    return found


@dataclass(frozen=True, slots=True)
class Options:
    """How to price: where the time comes from, what stands for rest, how the chip is filled."""

    seed: int
    clock: Clock | None = None
    step_seconds: float | None = None
    overhead: Overhead | None = None
    tag_bits: int | None = None
    soft_reset: bool | None = None
    chips: int | None = None
    draws: int = SIZE


@dataclass(frozen=True, slots=True)
class Side:
    """Inference or learning on a chip: its placement and its joules, or why there are none."""

    placement: Placement
    estimate: Estimate | None
    reason: str


@dataclass(frozen=True, slots=True)
class ChipEstimate:
    """What a workload costs on a chip, inference and learning apart."""

    profile: Profile
    inference: Side
    learning: Side


NO_LEARNING = "unknown: no learning run counted"


def bill(
    workload: Workload,
    profile: Profile,
    options: Options,
    *,
    lessons: Workload | None = None,
    unlearned: str = NO_LEARNING,
) -> ChipEstimate:
    """Place and price a workload on a chip; learning by its lessons, or why there are none."""
    check_factors(profile)
    inference = side(workload, profile, options, learning=False)
    learning = side(lessons or workload, profile, options, learning=True)
    if learning.reason == NO_LEARNING:
        learning = replace(learning, reason=unlearned)
    return ChipEstimate(profile, inference, learning)


def check_factors(profile: Profile) -> None:
    """Refuse a scenario that still waits for factors."""
    if profile.missing:
        each = " ".join(
            f"--override {profile.name}.scale.{name}=FACTOR" for name in profile.missing
        )
        raise ValueError(
            f"profile {profile.name!r} is a scenario and waits for your factor: "
            f"--override {profile.name}.scale=FACTOR, or one each: {each}"
        )


def side(workload: Workload, profile: Profile, options: Options, *, learning: bool) -> Side:
    """One of the two sides of a bill."""
    shapes = workload.shapes
    if learning and not any(link.plastic for link in shapes.links):
        shapes = shapes.learning()
    placement = place(
        shapes,
        profile,
        tag_bits=options.tag_bits,
        soft_reset=options.soft_reset,
        chips=options.chips,
    )
    if learning and not workload.learned:
        return Side(placement, None, NO_LEARNING)
    ability = profile.known("support.learning")
    if learning and ability is not None and not ability.value:
        words = f"no learning on the chip: {ability.where} ({ability.source})"
        return Side(placement, None, words)
    if placement.verdict is Verdict.DOES_NOT_FIT:
        reasons = "; ".join(violation.reason for violation in placement.violations)
        return Side(placement, None, f"does not fit: {reasons}")
    draws = Draws(options.seed, options.draws)
    job = Job(
        count(workload, placement, profile, learning=learning),
        duration(
            *(workload, placement, profile, draws),
            learning=learning,
            clock=options.clock,
            step_seconds=options.step_seconds,
        ),
        placement.chips or 1,
    )
    try:
        found = estimate(job, profile, draws, overhead=options.overhead)
    except AllInError as error:
        return Side(placement, None, f"refused: {error}")
    if found.joules is None:
        return Side(placement, found, "unknown: no cost of this chip is published")
    return Side(placement, found, "")
