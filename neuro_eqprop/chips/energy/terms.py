"""Cost terms of an estimate: events times their costs, and power times time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.monte_carlo import Draws, Energy, energy
from neuro_eqprop.chips.energy.time import Duration
from neuro_eqprop.chips.profile import Evidence, Included, Overhead, Profile, Quantity
from neuro_eqprop.chips.quantities import KEYS
from neuro_eqprop.common.arrays import Array


class AllInError(ValueError):
    """An all-in cost cannot be used away from the event rate it was measured at."""


@dataclass(frozen=True, slots=True)
class ChipWork:
    """The work to estimate: events, the seconds they take, and the number of chips."""

    events: Mapping[Event, float | Array | None]
    """Number of each event, drawn if only a range is known; None if unknown."""
    time: Duration
    chips: int
    clock_hz: float | None = None
    """Clock frequency, if not that of the profile."""


@dataclass(frozen=True, slots=True)
class Term:
    """One cost term: a number of events times a cost, or watts times seconds."""

    name: str
    key: str
    amount: float
    """Number of events, or watts."""
    joules: Energy
    boundary: Boundary
    evidence: Evidence
    source: str
    has_range: bool
    """Whether its cost has a range."""
    operating_point: str
    """Operating point of its cost, if not that of the profile."""


@dataclass(frozen=True, slots=True)
class MissingTerm:
    """A term without a known cost; `amount` is None where the number of events is unknown too."""

    name: str
    amount: float | None
    reason: str
    boundary: Boundary | None = None
    """Not kept in files."""

    @property
    def title(self) -> str:
        """The name with its amount."""
        return self.name + ("" if self.amount is None else f" ({self.amount:.4g} a sample)")


Drawn: TypeAlias = tuple[Term, Array]
"""A term and the draws of its joules."""


def make_term(
    name: str,
    key: str,
    cost: Quantity,
    *,
    amount: float,
    joules: Array,
    nominal: float,
    boundary: Boundary | None = None,
) -> Drawn:
    """A `Term`, and the draws of its joules."""
    boundary = boundary or cost.boundary or KEYS[key].boundary or Boundary.CHIP_TOTAL
    origin = (cost.evidence, cost.src, cost.has_range, cost.operating_point)
    return Term(name, key, amount, energy(joules, nominal), boundary, *origin), joules


def event_terms(
    job: ChipWork, profile: Profile, draws: Draws
) -> tuple[list[Drawn], list[MissingTerm]]:
    """Terms joules = number * cost of all events, and the events whose cost is unknown."""
    drawn, missing = [], []
    for event, number in job.events.items():
        key = f"energy.{event.value}"
        name = event.value.replace("_", " ")
        if isinstance(number, float | int) and number == 0:
            continue
        cost = profile.entry(key)
        if isinstance(cost, Included):
            continue
        if number is None:
            missing.append(MissingTerm(name, None, "its number is unknown", KEYS[key].boundary))
            continue
        amount = float(np.mean(number))
        if isinstance(cost, Quantity):
            joules = number * draws.quantity(key, cost)
            nominal = amount * cost.value
            drawn.append(make_term(name, key, cost, amount=amount, joules=joules, nominal=nominal))
        else:
            missing.append(MissingTerm(name, amount, cost.note, KEYS[key].boundary))
    return drawn, missing


def host_terms(macs: float, cost: Quantity | None, draws: Draws) -> list[Drawn]:
    """Term of the multiplications by which the host computes input currents, outside the chip."""
    if not macs or cost is None:
        return []
    joules = macs * draws.quantity("host mac", cost)
    drawn = make_term(
        *("host MACs", "energy.mac", cost),
        amount=macs,
        joules=joules,
        nominal=macs * cost.value,
        boundary=Boundary.BOARD_DYNAMIC,
    )
    return [drawn]


def power_terms(
    job: ChipWork, profile: Profile, draws: Draws, overhead: Overhead | None
) -> tuple[list[Drawn], list[MissingTerm]]:
    """Terms joules = watts * seconds of idle, host, board and clock power; unknown ones apart."""
    drawn: list[Drawn] = []
    missing, known = [], []
    for key in power_keys(profile, overhead):
        entry = profile.entry(key)
        if isinstance(entry, Quantity):
            known.append((key, entry))
        elif not isinstance(entry, Included):
            missing.append(MissingTerm(power_name(key), None, entry.note, KEYS[key].boundary))
    if job.time.draws is None:
        reason = job.time.description
        missing += [
            MissingTerm(f"{power_name(key)} over the time", None, reason, KEYS[key].boundary)
            for key, _ in known
        ]
        return [], missing
    for key, cost in known:
        scale = power_multiplier(key, job, profile)
        watts, nominal = scale * draws.quantity(key, cost), scale * cost.value
        boot = profile.known("power.idle_boot") if key == "power.idle_loaded" else None
        if boot is not None:
            # Loading adds power above that of a booted chip; only this part is dynamic.
            idle = np.minimum(scale * draws.quantity("power.idle_boot", boot), watts)
            drawn.append(power_term("idle after boot", key, boot, job, idle, scale * boot.value))
            watts, nominal = watts - idle, nominal - scale * boot.value
            name = "loaded above idle"
            drawn.append(power_term(name, key, cost, job, watts, nominal, dynamic=True))
        else:
            drawn.append(power_term(power_name(key), key, cost, job, watts, nominal))
    return drawn, missing


def power_term(
    name: str,
    key: str,
    cost: Quantity,
    job: ChipWork,
    watts: Array,
    nominal: float,
    *,
    dynamic: bool = False,
) -> Drawn:
    """Term of one power over the time of the job."""
    if job.time.draws is None:
        raise ValueError("a power term needs a known time")
    return make_term(
        name,
        key,
        cost,
        amount=nominal,
        joules=watts * job.time.draws,
        nominal=nominal * job.time.nominal,
        boundary=Boundary.CHIP_DYNAMIC if dynamic else None,
    )


def power_keys(profile: Profile, overhead: Overhead | None) -> list[str]:
    """Keys of the powers that add up: loaded idle if known, else static and host power."""
    if overhead is None:
        loaded = profile.known("power.idle_loaded") is not None
        overhead = Overhead.LOADED_IDLE if loaded else Overhead.STATIC_AND_HOST
    keys = ["power.idle_loaded"] if overhead is Overhead.LOADED_IDLE else ["power.static"]
    if overhead is Overhead.STATIC_AND_HOST and "power.host" in profile.entries:
        keys.append("power.host")
    active = profile.known("power.active")
    if active is not None:
        total = (Boundary.CHIP_TOTAL, Boundary.BOARD_TOTAL, Boundary.SYSTEM_WALL)
        keys = ["power.active"] if active.boundary in total else ["power.active", "power.static"]
    return [*keys, *(key for key in ("power.board", "power.clock") if key in profile.entries)]


def power_multiplier(key: str, job: ChipWork, profile: Profile) -> float:
    """The factor of a power: number of chips, of boards, or chips times clock frequency."""
    if key == "power.board":
        per_board = profile.limit("chips_per_board") or 1
        return float(-(-job.chips // per_board))
    if key == "power.clock":
        clock = profile.known("time.clock")
        return job.chips * (job.clock_hz or (clock.value if clock is not None else 0.0))
    return float(job.chips)


def power_name(key: str) -> str:
    """The name of a power term."""
    return f"{key.split('.')[1].replace('_', ' ')} power"


def all_in_term(job: ChipWork, profile: Profile, draws: Draws) -> Drawn:
    """The only term of a chip with an all-in cost, at the event rate it was measured at."""
    cost = profile.known("energy.synop_all_in")
    number = job.events.get(Event.SYNOP)
    if cost is None or cost.at is None or number is None:
        raise AllInError(f"{profile.name} has no usable all-in cost")
    remedy = (
        f"override {profile.name}.energy.synop and {profile.name}.power.static instead, or run at "
        "that rate"
    )
    if job.time.draws is None:
        raise AllInError(
            f"{profile.name}: the all-in cost holds at {cost.at:g} synops a second and chip, and "
            f"the time of this run is unknown; {remedy}"
        )
    amount = float(np.mean(number))
    rate = amount / (job.time.nominal * job.chips)
    if abs(rate / cost.at - 1) > cost.tolerance:
        raise AllInError(
            f"{profile.name}: the all-in cost of {cost.value:g} J holds at {cost.at:g} synops a "
            f"second and chip, this run has {rate:.3g}; {remedy}"
        )
    return make_term(
        *("synop, all in", "energy.synop_all_in", cost),
        amount=amount,
        joules=np.asarray(number * draws.quantity("energy.synop_all_in", cost)),
        nominal=amount * cost.value,
    )
