"""Cost terms of an estimate: events times their costs, and power times time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.interval import Interval, exactly
from neuro_eqprop.chips.energy.time import Duration
from neuro_eqprop.chips.profile import Evidence, Included, Overhead, Profile, Quantity
from neuro_eqprop.chips.quantities import KEYS


class AllInError(ValueError):
    """An all-in cost cannot be used away from the event rate it was measured at."""


@dataclass(frozen=True, slots=True)
class ChipWork:
    """The work to estimate: events, the seconds they take, and the number of chips."""

    events: Mapping[Event, float | Interval | None]
    """Number of each event, with a range where only that is known; None if unknown."""
    time: Duration
    chips: int
    clock_hz: float | None = None
    """Clock frequency, if not that of the profile."""
    host_macs: float = 0.0
    """Multiplications by which the host computes input currents, outside the chip."""


@dataclass(frozen=True, slots=True)
class Term:
    """One cost term: a number of events times a cost, or watts times seconds."""

    name: str
    key: str
    amount: float
    """Number of events, or watts."""
    joules: Interval
    boundary: Boundary
    evidence: Evidence
    source: str
    has_range: bool
    """Whether its cost has a range."""
    operating_point: str
    """Operating point of its cost, if not that of the profile."""
    counted: Interval = field(default=Interval(0.0, 0.0, 0.0), compare=False)
    """Joules at the nominal cost, with the range of the events or of the time alone; not kept in
    files."""


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


def make_term(
    name: str,
    key: str,
    cost: Quantity,
    amount: float | Interval,
    *,
    each: Interval | None = None,
    boundary: Boundary | None = None,
) -> Term:
    """The term of so many events, or watts, at a cost; `each` is the cost if it is not `cost`."""
    number = exactly(amount) if isinstance(amount, float | int) else amount
    price = Interval(cost.value, cost.low, cost.high) if each is None else each
    where = boundary or cost.boundary or KEYS[key].boundary or Boundary.CHIP_TOTAL
    origin = (cost.evidence, cost.src, cost.has_range, cost.operating_point)
    counted = price * number.value if key.startswith("power.") else number * price.value
    return Term(name, key, number.value, number.times(price), where, *origin, counted)


def event_terms(job: ChipWork, profile: Profile) -> tuple[list[Term], list[MissingTerm]]:
    """Terms joules = number * cost of all events, and the events whose cost is unknown."""
    terms, missing = [], []
    for event, number in job.events.items():
        key = f"energy.{event.value}"
        name = event.value.replace("_", " ")
        cost = profile.entry(key)
        if number == 0 or isinstance(cost, Included):
            continue
        amount = number.value if isinstance(number, Interval) else number
        if number is None:
            missing.append(MissingTerm(name, None, "its number is unknown", KEYS[key].boundary))
        elif isinstance(cost, Quantity):
            terms.append(make_term(name, key, cost, number))
        else:
            missing.append(MissingTerm(name, amount, cost.note, KEYS[key].boundary))
    return terms, missing


def power_terms(
    job: ChipWork, profile: Profile, overhead: Overhead | None
) -> tuple[list[Term], list[MissingTerm]]:
    """Terms joules = watts * seconds of idle, host, board and clock power; unknown ones apart."""
    terms: list[Term] = []
    missing: list[MissingTerm] = []
    seconds = job.time.seconds
    for key in power_keys(profile, overhead):
        entry = profile.entry(key)
        name = f"{key.split('.')[1].replace('_', ' ')} power"
        if isinstance(entry, Included):
            continue
        if not isinstance(entry, Quantity):
            missing.append(MissingTerm(name, None, entry.note, KEYS[key].boundary))
            continue
        if seconds is None:
            reason, title = job.time.description, f"{name} over the time"
            missing.append(MissingTerm(title, None, reason, KEYS[key].boundary))
            continue
        scale = power_multiplier(key, job, profile)
        watts = scale * Interval(entry.value, entry.low, entry.high)
        boot = profile.known("power.idle_boot") if key == "power.idle_loaded" else None
        if boot is not None:
            # Loading adds power above that of a booted chip; only this part is dynamic.
            idle = scale * Interval(boot.value, boot.low, boot.high)
            above = max(0.0, watts.value - idle.value)
            rest = Interval(above, max(0.0, watts.low - idle.high), watts.high - idle.low)
            terms.append(make_term("idle after boot", key, boot, idle, each=seconds))
            terms.append(
                make_term(
                    *("loaded above idle", key, entry, rest),
                    each=seconds,
                    boundary=Boundary.CHIP_DYNAMIC,
                )
            )
        else:
            terms.append(make_term(name, key, entry, watts, each=seconds))
    return terms, missing


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


def all_in_term(job: ChipWork, profile: Profile) -> Term:
    """The only term of a chip with an all-in cost, at the event rate it was measured at."""
    cost = profile.known("energy.synop_all_in")
    number = job.events.get(Event.SYNOP)
    if cost is None or number is None:
        raise AllInError(f"{profile.name} has no usable all-in cost")
    amount = number.value if isinstance(number, Interval) else number
    remedy = (
        f"override {profile.name}.energy.synop and {profile.name}.power.static instead, or run at "
        "that rate"
    )
    if cost.at is not None:
        if job.time.seconds is None:
            raise AllInError(
                f"{profile.name}: the all-in cost holds at {cost.at:g} synops a second and chip, "
                f"and the time of this run is unknown; {remedy}"
            )
        rate = amount / (job.time.seconds.value * job.chips)
        if abs(rate / cost.at - 1) > cost.tolerance:
            raise AllInError(
                f"{profile.name}: the all-in cost of {cost.value:g} J holds at {cost.at:g} synops "
                f"a second and chip, this run has {rate:.3g}; {remedy}"
            )
    return make_term("synop, all in", "energy.synop_all_in", cost, number)
