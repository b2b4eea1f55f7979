"""Seconds of one sample: by the timing model of the chip, by its real-time tick, or as given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import log2

import numpy as np

from neuro_eqprop.chips.energy.core_work import core_work, tiles_used
from neuro_eqprop.chips.energy.event_counts import Event, events_per_sample, total_steps
from neuro_eqprop.chips.energy.monte_carlo import Draws
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Included, Profile, Quantity, Timing
from neuro_eqprop.chips.workload import Workload
from neuro_eqprop.common.arrays import Array

REQUIRED_TIMES = ("time.synop", "time.neuron_update", "time.neuron_spiking")
OPTIONAL_TIMES = {
    "time.message_in": "messages received",
    "time.message_out": "messages sent",
    "time.hop_ew": "hops",
    "time.hop_ns": "hops",
    "time.tag_update": "tag updates",
    "time.weight_update": "weight updates",
}
"""Work whose time may be unknown: it is then left out, and the description names it."""


class Clock(Enum):
    """Source of the time of a step."""

    MODEL = "model"
    TICK = "tick"


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of a sample: draws and nominal value, or no draws where they are unknown."""

    draws: Array | None
    nominal: float
    description: str
    """How they were obtained, or why they are unknown."""
    modelled: bool = False
    """Whether a model of the step gave them, rather than a tick or the user."""
    at_least: bool = False
    """Whether work without a known time is left out, so that they are a lower bound."""


def unknown(reason: str) -> Duration:
    """A duration that is not known."""
    return Duration(None, 0.0, f"unknown: {reason}")


def duration(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    draws: Draws,
    *,
    learning: bool,
    clock: Clock | None,
    step_seconds: float | None,
) -> Duration:
    """Seconds of one inference or one learning sample."""
    steps = total_steps(workload.phases(learning=learning)) / workload.samples
    if step_seconds is not None:
        given = f"given: {step_seconds:g} s a step"
        return Duration(np.full(draws.size, steps * step_seconds), steps * step_seconds, given)
    if clock is Clock.TICK or (clock is None and profile.timing is Timing.TICK):
        return tick_time(profile, draws, steps=steps)
    if profile.timing is Timing.BARRIER:
        return barrier_time(workload, placement, profile, draws, learning=learning)
    if profile.timing is Timing.CLOCK:
        events = events_per_sample(workload, placement, profile, learning=learning)
        return clock_time(events[Event.SYNOP] or 0.0, profile, draws)
    return unknown("the time of a step is not published")


def barrier_time(
    workload: Workload, placement: Placement, profile: Profile, draws: Draws, *, learning: bool
) -> Duration:
    """Seconds on a chip whose cores wait for each other at a barrier after every step.

    step = max over cores and links of their work + travel of the last message + barrier
    travel = hops (1 + messages before it at a link) t_hop, see `queue_length`
    barrier = t_barrier + t_tiles log2(tiles) + t_chips log2(chips)
    """
    if profile.known("time.barrier") is None:
        return unknown("the profile has no time.barrier")
    if not placement.allocations:
        return unknown("the slowest core needs a placement; give step_seconds")
    steps = total_steps(workload.phases(learning=learning)) / workload.samples
    work = core_work(workload, placement, profile, learning=learning)
    totals = {
        key: sum(float(np.sum(part.get(key, 0.0))) for part in (*work.events.values(), work.links))
        for key in (*REQUIRED_TIMES, *OPTIONAL_TIMES)
    }
    for key in REQUIRED_TIMES:
        if totals[key] and profile.known(key) is None:
            return unknown(f"the profile has no {key}")
    left_out = [
        name
        for key, name in OPTIONAL_TIMES.items()
        if totals[key] and not isinstance(profile.entry(key), Quantity | Included)
    ]
    costs = {key: cost for key in totals if (cost := profile.known(key)) is not None}
    seconds = {key: costs[key].value if key in costs else 0.0 for key in totals}
    events = work.slowest(seconds)
    tiles, chips = tiles_used(placement.allocations, profile), placement.chips or 1
    for key, number in barrier_events(tiles, chips).items():
        cost = profile.known(key)
        if cost is not None:
            events[key], costs[key] = number, cost
    drawn = np.zeros(draws.size)
    for key, cost in costs.items():
        drawn = drawn + events.get(key, 0.0) * draws.quantity(key, cost)
    nominal = sum(events.get(key, 0.0) * cost.value for key, cost in costs.items())
    stepwise = workload.has_steps(learning=learning)
    recorded = "each recorded step" if stepwise else "the mean step"
    rest = f"; without {', '.join(left_out)}, whose time is unknown" if left_out else ""
    description = (
        f"model: the slowest core of {recorded}, queues at the links and the barrier; free "
        f"running, no waiting for a host{rest}"
    )
    return Duration(
        steps * drawn, steps * nominal, description, modelled=True, at_least=bool(left_out)
    )


def barrier_events(tiles: int, chips: int) -> dict[str, float]:
    """Factors of the barrier times in a step: 1, log2(tiles) and log2(chips)."""
    return {
        "time.barrier": 1.0,
        "time.barrier_tiles": log2(tiles),
        "time.barrier_chips": log2(chips),
    }


def clock_time(synops: float, profile: Profile, draws: Draws) -> Duration:
    """Seconds on a chip that processes one synapse after the other: synops * time.synop."""
    cost = profile.known("time.synop")
    if cost is None:
        return unknown("the profile has no time.synop")
    description = "model: one synapse after the other at the profile's clock"
    drawn = synops * draws.quantity("time.synop", cost)
    return Duration(drawn, synops * cost.value, description, modelled=True)


def tick_time(profile: Profile, draws: Draws, *, steps: float) -> Duration:
    """Seconds on a chip that runs in real time: steps * time.tick."""
    tick = profile.known("time.tick")
    if tick is None:
        return unknown("the profile has no time.tick")
    description = f"real time: {tick.value:g} s a step"
    return Duration(steps * draws.quantity("time.tick", tick), steps * tick.value, description)
