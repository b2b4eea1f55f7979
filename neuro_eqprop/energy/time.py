"""Seconds of one sample: by the timing model of the chip, by its real-time tick, or as given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.energy.event_counts import total_steps
from neuro_eqprop.energy.monte_carlo import Draws
from neuro_eqprop.hardware.placement import Placement
from neuro_eqprop.hardware.profile import Profile, Timing
from neuro_eqprop.hardware.workload import Workload
from neuro_eqprop.traces import Counts


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
        counted = workload.phases(learning=learning).values()
        return clock_time(sum(c.synops for c in counted) / workload.samples, profile, draws)
    return unknown("the time of a step is not published")


def barrier_time(
    workload: Workload, placement: Placement, profile: Profile, draws: Draws, *, learning: bool
) -> Duration:
    """Each step lasts until the slowest core has finished and the barrier has passed.

    step = max over cores of (synops t_synop + updates t_update) + t_barrier
    """
    barrier = profile.known("time.barrier")
    if barrier is None:
        return unknown("the profile has no time.barrier")
    if not placement.allocations:
        return unknown("the slowest core needs a placement; give step_seconds")
    steps = total_steps(workload.phases(learning=learning)) / workload.samples
    worst, nominal = np.zeros(draws.size), 0.0
    for work in work_per_core(workload, placement, learning=learning).values():
        drawn, core_nominal = np.zeros(draws.size), 0.0
        for key, events in work.items():
            cost = profile.known(key)
            if events and cost is None:
                return unknown(f"the profile has no {key}")
            if cost is not None:
                drawn = drawn + events * draws.quantity(key, cost)
                core_nominal += events * cost.value
        worst, nominal = np.maximum(worst, drawn), max(nominal, core_nominal)
    per_step = worst + draws.quantity("time.barrier", barrier)
    description = "model: slowest core and barrier, free running, no waiting for a host"
    return Duration(steps * per_step, steps * (nominal + barrier.value), description)


def work_per_core(
    workload: Workload, placement: Placement, *, learning: bool
) -> dict[str, dict[str, float]]:
    """Mean events per step on one core of each population, by key of the section `time`."""
    counted = workload.phases(learning=learning)
    steps = total_steps(counted)
    work: dict[str, dict[str, float]] = {}
    for each in placement.allocations:
        counts = counted.get(each.name, Counts())
        extra = each.compartments - 1
        updates = counts.updates_active + counts.updates_idle
        share = 1.0 / (each.cores * steps)
        work[each.name] = {
            "time.neuron_spiking": counts.updates_active * share,
            "time.neuron_update": (counts.updates_idle + extra * updates) * share,
            "time.weight_update": counts.weight_updates * share if learning else 0.0,
            "time.synop": 0.0,
        }
    for name, counts in counted.items():
        projections = workload.shape.out_of(name)
        total = sum(each.synapses for each in projections)
        for projection in projections:
            if total:
                arriving = counts.synops * projection.synapses / total
                cores = placement[projection.target].cores
                work[projection.target]["time.synop"] += arriving / (cores * steps)
    return work


def clock_time(synops: float, profile: Profile, draws: Draws) -> Duration:
    """One synapse after the other at the clock of the chip."""
    cost = profile.known("time.synop")
    if cost is None:
        return unknown("the profile has no time.synop")
    description = "model: one synapse after the other at the profile's clock"
    return Duration(synops * draws.quantity("time.synop", cost), synops * cost.value, description)


def tick_time(profile: Profile, draws: Draws, *, steps: float) -> Duration:
    """Every step lasts one tick of real time."""
    tick = profile.known("time.tick")
    if tick is None:
        return unknown("the profile has no time.tick")
    description = f"real time: {tick.value:g} s a step"
    return Duration(steps * draws.quantity("time.tick", tick), steps * tick.value, description)
