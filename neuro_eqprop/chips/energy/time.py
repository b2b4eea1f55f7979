"""Seconds of one sample: by the timing model of the chip, by its real-time tick, or as given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import log2

import numpy as np

from neuro_eqprop.chips.energy.core_work import CoreWork, core_work
from neuro_eqprop.chips.energy.event_counts import Event, events_per_sample, total_steps
from neuro_eqprop.chips.energy.interval import Interval, exactly, spread
from neuro_eqprop.chips.placement import CoreAllocation, Placement
from neuro_eqprop.chips.profile import Profile, Timing
from neuro_eqprop.chips.workload import Workload

NEAR = 4
"""Tiles up to which a barrier grows by `time.barrier_tiles`, and by `time.barrier_far` beyond."""


class Clock(Enum):
    """Source of the time of a step."""

    MODEL = "model"
    TICK = "tick"
    SANAFE = "sanafe"
    """SANA-FE in its cycle mode, for inference with recorded spikes."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of a sample, None where they are unknown."""

    seconds: Interval | None
    description: str
    """How they were obtained, or why they are unknown."""
    modelled: bool = False
    """Whether a model of the step gave them, rather than a tick or the user."""
    at_least: bool = False
    """Whether work without a known time is left out, so that they are a lower bound."""


def unknown(reason: str) -> Duration:
    """A duration that is not known."""
    return Duration(None, f"unknown: {reason}")


def duration(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    *,
    learning: bool,
    clock: Clock | None = None,
    step_seconds: float | None = None,
) -> Duration:
    """Seconds of one inference or one learning sample."""
    steps = total_steps(workload.phases(learning=learning)) / workload.samples
    if step_seconds is not None:
        return Duration(exactly(steps * step_seconds), f"given: {step_seconds:g} s a step")
    if clock is Clock.TICK or (clock is None and profile.timing is Timing.TICK):
        tick = profile.known("time.tick")
        if tick is None:
            return unknown("the profile has no time.tick")
        found = steps * Interval(tick.value, tick.low, tick.high)
        return Duration(found, f"real time: {tick.value:g} s a step")
    if profile.timing is Timing.BARRIER:
        return barrier_time(workload, placement, profile, learning=learning)
    cost = profile.known("time.synop") if profile.timing is Timing.CLOCK else None
    if cost is None:
        return unknown("the time of a step is not published")
    events = events_per_sample(workload, placement, profile, learning=learning)
    found = (events[Event.SYNOP] or 0.0) * Interval(cost.value, cost.low, cost.high)
    description = "model: one synapse after the other at the profile's clock"
    return Duration(found, description, modelled=True)


def barrier_time(
    workload: Workload, placement: Placement, profile: Profile, *, learning: bool
) -> Duration:
    """Seconds on a chip whose cores wait for each other at a barrier after every step.

    step = max over cores of (sending, receiving) + learning + barrier
    barrier = t_barrier + t_tiles log2(tiles up to 4) + t_far log2(tiles / 4) + t_chips log2(chips)

    A core receives while its own neurons send. Where spikes were recorded by neuron, the messages
    are followed through buffers of finite size instead of taking the largest of the sums.
    """
    barrier = profile.known("time.barrier")
    if barrier is None:
        return unknown("the profile has no time.barrier")
    if not placement.allocations:
        return unknown("the slowest core needs a placement; give step_seconds")
    steps = total_steps(workload.phases(learning=learning)) / workload.samples
    work = core_work(workload, placement, profile, learning=learning)
    if work.lacking:
        return unknown(f"the profile has no {work.lacking}")
    step = float(np.mean(work.step_seconds()))
    tiles, chips = tiles_used(placement.allocations, profile), placement.chips or 1
    step += barrier_seconds(profile, tiles, chips)
    rest = f"; without {', '.join(work.left_out)}, whose time is unknown" if work.left_out else ""
    description = (
        f"model: {describe(work)} and the barrier; free running, no waiting for a host{rest}"
    )
    found = spread(steps * step, profile.range_factor("time"))
    return Duration(found, description, modelled=True, at_least=bool(work.left_out))


def describe(work: CoreWork) -> str:
    """What the time of a step was taken from."""
    if work.network is not None:
        return "the messages of each recorded step through finite buffers"
    return f"the slowest core of {'each recorded' if work.recorded else 'the mean'} step"


def barrier_seconds(profile: Profile, tiles: int, chips: int) -> float:
    """Seconds of the barrier on so many tiles of so many chips."""
    far = max(1.0, tiles / NEAR) if profile.known("time.barrier_far") is not None else 1.0
    factors = {
        "time.barrier": 1.0,
        "time.barrier_tiles": log2(tiles / far),
        "time.barrier_far": log2(far),
        "time.barrier_chips": log2(chips),
    }
    costs = ((profile.known(key), number) for key, number in factors.items())
    return sum(cost.value * number for cost, number in costs if cost is not None)


def tiles_used(allocations: tuple[CoreAllocation, ...], profile: Profile) -> int:
    """Tiles of one chip that hold a core of the network."""
    cores = max((each.first_core + each.cores for each in allocations), default=1)
    per_chip = profile.limit("cores_per_chip")
    on_chip = cores if per_chip is None else min(cores, per_chip)
    return -(-on_chip // (profile.limit("cores_per_tile") or 1))
