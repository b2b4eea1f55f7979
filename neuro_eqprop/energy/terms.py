"""The addends of an estimate: events times costs, power times time, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.energy.event_counts import Duration, Event
from neuro_eqprop.energy.monte_carlo import Draws, Spread, spread
from neuro_eqprop.hardware.profile import Boundary, Evidence, Included, Overhead, Profile, Quantity
from neuro_eqprop.hardware.quantities import KEYS


class AllInError(ValueError):
    """An all-in cost was to be used away from the operating point it was measured at."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be priced: events, the seconds they take, and the machine that runs them."""

    events: Mapping[Event, float | Array | None]
    """By event: how many, drawn if only a range is known; None if their number is unknown."""
    time: Duration
    chips: int
    clock_hz: float | None = None
    """The clock, where it is not the profile's."""


@dataclass(frozen=True, slots=True)
class Term:
    """One addend: how many events, or watt times seconds, at which cost."""

    name: str
    key: str
    amount: float
    joules: Spread
    boundary: Boundary
    evidence: Evidence
    source: str
    ranged: bool
    """Whether its cost has a range."""
    operating_point: str
    """Where its cost holds, if that is not the profile's operating point."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A term that could not be priced; `amount` is None where even the events are unknown."""

    name: str
    amount: float | None
    reason: str
    boundary: Boundary | None


Drawn: TypeAlias = tuple[Term, Array]
"""A term and the draws of its joules."""


def term(
    name: str,
    key: str,
    cost: Quantity,
    *,
    amount: float,
    joules: Array,
    nominal: float,
    boundary: Boundary | None = None,
) -> Drawn:
    """A term with its draws."""
    where = boundary or cost.boundary or KEYS[key].boundary or Boundary.CHIP_TOTAL
    found = spread(joules, nominal)
    origin = (cost.evidence, cost.source, cost.has_range, cost.operating_point)
    return Term(name, key, amount, found, where, *origin), joules


def charges(job: Job, profile: Profile, draws: Draws, missing: list[Missing]) -> list[Drawn]:
    """Events times their marginal costs."""
    drawn = []
    for event, number in job.events.items():
        key = f"energy.{event.value}"
        name = event.value.replace("_", " ")
        if isinstance(number, float | int) and number == 0:
            continue
        cost = profile.entry(key)
        if isinstance(cost, Included):
            continue
        mean = None if number is None else float(np.mean(number))
        if number is None:
            missing.append(Missing(name, None, "how many is not known", KEYS[key].boundary))
        elif not isinstance(cost, Quantity):
            missing.append(Missing(name, mean, cost.note, KEYS[key].boundary))
        else:
            joules = number * draws.quantity(key, cost)
            amount = float(np.mean(number))
            drawn.append(
                term(name, key, cost, amount=amount, joules=joules, nominal=amount * cost.value)
            )
    return drawn


def powers(
    job: Job,
    profile: Profile,
    draws: Draws,
    overhead: Overhead | None,
    missing: list[Missing],
) -> list[Drawn]:
    """Power times time: of rest, of what runs beside, of a clock."""
    keys = resting(profile, overhead)
    for key in keys:
        entry = profile.entry(key)
        if not isinstance(entry, Quantity | Included):
            missing.append(Missing(say(key), None, entry.note, KEYS[key].boundary))
    known = [(key, cost) for key in keys if (cost := profile.known(key)) is not None]
    if job.time.draws is None:
        for key, _ in known:
            missing.append(Missing(say(key), None, job.time.words, KEYS[key].boundary))
        return []
    drawn = []
    for key, cost in known:
        scale = machines(key, job, profile)
        watts, nominal = scale * draws.quantity(key, cost), scale * cost.value
        boot = profile.known("power.idle_boot") if key == "power.idle_loaded" else None
        if boot is not None:
            # What loading and waiting adds to a booted chip is above idle; the rest is not.
            idle = np.minimum(scale * draws.quantity("power.idle_boot", boot), watts)
            drawn.append(burn("idle after boot", key, boot, job, idle, scale * boot.value))
            watts, nominal = watts - idle, nominal - scale * boot.value
            above = burn("loaded above idle", key, cost, job, watts, nominal, dynamic=True)
            drawn.append(above)
        else:
            drawn.append(burn(say(key), key, cost, job, watts, nominal))
    return drawn


def burn(
    name: str,
    key: str,
    cost: Quantity,
    job: Job,
    watts: Array,
    nominal: float,
    *,
    dynamic: bool = False,
) -> Drawn:
    """A power over the time of the job."""
    if job.time.draws is None:
        raise ValueError("power without time")
    boundary = Boundary.CHIP_DYNAMIC if dynamic else None
    joules = watts * job.time.draws
    plain = nominal * job.time.nominal
    return term(name, key, cost, amount=nominal, joules=joules, nominal=plain, boundary=boundary)


def resting(profile: Profile, overhead: Overhead | None) -> list[str]:
    """The keys of power that add up; loaded idle, or static and host, never both."""
    if overhead is None:
        loaded = profile.known("power.idle_loaded") is not None
        overhead = Overhead.LOADED_IDLE if loaded else Overhead.STATIC_AND_HOST
    keys = ["power.idle_loaded"] if overhead is Overhead.LOADED_IDLE else ["power.static"]
    if overhead is Overhead.STATIC_AND_HOST and "power.host" in profile.entries:
        keys.append("power.host")
    active = profile.known("power.active")
    if active is not None:
        held = active.boundary in (Boundary.CHIP_TOTAL, Boundary.BOARD_TOTAL, Boundary.SYSTEM_WALL)
        keys = ["power.active"] if held else ["power.active", "power.static"]
    return [*keys, *(k for k in ("power.board", "power.clock") if k in profile.entries)]


def machines(key: str, job: Job, profile: Profile) -> float:
    """What a power is multiplied with: chips, boards, or chips and their clock."""
    if key == "power.board":
        per_board = profile.limit("chips_per_board") or 1
        return float(-(-job.chips // per_board))
    if key == "power.clock":
        clock = profile.known("time.clock")
        return job.chips * (job.clock_hz or (clock.value if clock is not None else 0.0))
    return float(job.chips)


def say(key: str) -> str:
    """The name of a term of power."""
    return f"{key.split('.')[1].replace('_', ' ')} power"


def all_in(job: Job, profile: Profile, draws: Draws) -> Drawn:
    """The one term of a chip of which only an all-in cost is known, at its operating point."""
    cost = profile.known("energy.synop_all_in")
    number = job.events.get(Event.SYNOP)
    if cost is None or cost.at is None or number is None:
        raise AllInError(f"{profile.name} has no all-in cost that could be used")
    way_out = (
        "give its marginal cost and static power instead "
        f"(--override {profile.name}.energy.synop=...), or run at that rate"
    )
    if job.time.draws is None:
        raise AllInError(
            f"{profile.name}: the all-in cost holds at {cost.at:g} synops a second and chip, and "
            f"the time of this run is not known; {way_out}"
        )
    rate = float(np.mean(number)) / (job.time.nominal * job.chips)
    if abs(rate / cost.at - 1) > cost.tolerance:
        raise AllInError(
            f"{profile.name}: the all-in cost of {cost.value:g} J holds at {cost.at:g} synops a "
            f"second and chip, this run makes {rate:.3g}; {way_out}"
        )
    amount = float(np.mean(number))
    joules = number * draws.quantity("energy.synop_all_in", cost)
    return term(
        *("synop, all in", "energy.synop_all_in", cost),
        amount=amount,
        joules=np.asarray(joules),
        nominal=amount * cost.value,
    )
