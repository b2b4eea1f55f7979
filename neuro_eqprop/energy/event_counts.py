"""From the counts of a run and a placement to the events a chip is charged for, and its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.energy.monte_carlo import Draws
from neuro_eqprop.hardware.noc_traffic import routes
from neuro_eqprop.hardware.placement import Placement
from neuro_eqprop.hardware.profile import Profile, Quantity, Timing
from neuro_eqprop.hardware.workload import Workload
from neuro_eqprop.traces import Counts


class Event(Enum):
    """What costs joules; the value is its key in the section `energy` of a profile."""

    NEURON_IDLE = "neuron_update"
    NEURON_ACTIVE = "neuron_spiking"
    SPIKE = "spike"
    SYNOP = "synop"
    MESSAGE = "message"
    HOP_EW = "hop_ew"
    HOP_NS = "hop_ns"
    CHIP_LINK = "chip_link"
    WEIGHT_UPDATE = "weight_update"
    TAG_UPDATE = "tag_update"
    TRACE_UPDATE = "trace_update"
    INPUT = "input"
    OUTPUT = "output"
    BARRIER = "barrier"


class Clock(Enum):
    """Where the time of a step comes from."""

    MODEL = "model"
    TICK = "tick"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of a sample: draws and nominal, or why they are not known."""

    draws: Array | None
    nominal: float
    words: str


def count(
    workload: Workload, placement: Placement, profile: Profile, *, learning: bool
) -> dict[Event, float | None]:
    """Events per sample of an inference or a learning episode; None where they are not known."""
    counted = workload.phases(learning=learning)
    sums = dict.fromkeys(Event, 0.0)
    for name, counts in counted.items():
        sums[Event.SYNOP] += counts.synops
        if learning:
            # Also of what comes in from outside: the trace of an axon is kept on the chip.
            sums[Event.TRACE_UPDATE] += counts.trace_updates
        if workload.shapes[name].off_chip:
            continue
        more = placement.seat(name).compartments - 1 if placement.seats else 0
        sums[Event.NEURON_ACTIVE] += counts.updates_active
        sums[Event.NEURON_IDLE] += counts.updates_idle
        sums[Event.NEURON_IDLE] += more * (counts.updates_active + counts.updates_idle)
        sums[Event.SPIKE] += counts.spikes
        if counts.host_macs:
            sums[Event.INPUT] += workload.shapes[name].size * workload.samples
        if learning:
            sums[Event.WEIGHT_UPDATE] += counts.weight_updates
            sums[Event.TAG_UPDATE] += counts.tag_updates
    sums[Event.OUTPUT] = workload.shapes[workload.shapes.output].size * workload.samples
    if profile.timing is Timing.BARRIER:
        sums[Event.BARRIER] = longest(counted) * (placement.chips or 1)
    unknown = travel(workload, placement, profile, counted, sums)
    each: dict[Event, float | None] = {e: total / workload.samples for e, total in sums.items()}
    return each | dict.fromkeys(unknown)


def travel(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    counted: Mapping[str, Counts],
    sums: dict[Event, float],
) -> set[Event]:
    """Add what spikes do between cores; the events whose number cannot be known are returned."""
    if not placement.seats:
        outside = any(workload.shapes[name].off_chip for name in counted)
        hidden = {Event.MESSAGE, Event.HOP_EW, Event.HOP_NS, Event.CHIP_LINK}
        return hidden | {Event.INPUT} if outside else hidden
    unknown: set[Event] = set()
    for name, route in routes(workload.shapes, placement, profile).items():
        spikes = counted.get(name, Counts()).spikes
        if workload.shapes[name].off_chip:
            sums[Event.INPUT] += spikes * route.messages
            continue
        sums[Event.MESSAGE] += spikes * route.messages
        sums[Event.CHIP_LINK] += spikes * route.chip_links
        if route.hops_ew is None or route.hops_ns is None:
            unknown |= {Event.HOP_EW, Event.HOP_NS}
            continue
        sums[Event.HOP_EW] += spikes * route.hops_ew
        sums[Event.HOP_NS] += spikes * route.hops_ns
    return unknown


def longest(counted: Mapping[str, Counts]) -> int:
    """Steps of all samples; every population runs the same."""
    return max((counts.steps for counts in counted.values()), default=0)


def per_core(
    workload: Workload, placement: Placement, *, learning: bool
) -> dict[str, dict[str, float]]:
    """Of each population on the chip, what one of its cores does in a step on average."""
    counted = workload.phases(learning=learning)
    steps = longest(counted)
    load: dict[str, dict[str, float]] = {}
    for seat in placement.seats:
        mine = counted.get(seat.name, Counts())
        more = seat.compartments - 1
        updates = mine.updates_active + mine.updates_idle
        share = 1.0 / (seat.cores * steps)
        load[seat.name] = {
            "time.neuron_spiking": mine.updates_active * share,
            "time.neuron_update": (mine.updates_idle + more * updates) * share,
            "time.weight_update": mine.weight_updates * share if learning else 0.0,
            "time.synop": 0.0,
        }
    for name, counts in counted.items():
        links = workload.shapes.out_of(name)
        total = sum(link.synapses for link in links)
        for link in links:
            if total:
                arriving = counts.synops * link.synapses / total
                cores = placement.seat(link.target).cores
                load[link.target]["time.synop"] += arriving / (cores * steps)
    return load


def slowest(
    workload: Workload, placement: Placement, profile: Profile, draws: Draws, *, learning: bool
) -> Duration:
    """A step ends with the slowest core and the barrier.

    step = max over cores of (synops t_synop + updates t_update) + barrier
    """
    barrier = profile.known("time.barrier")
    if barrier is None:
        return Duration(None, 0.0, "unknown: the profile has no time of a barrier")
    if not placement.seats:
        words = "unknown: without a placement no core is the slowest; give --step-seconds"
        return Duration(None, 0.0, words)
    steps = longest(workload.phases(learning=learning)) / workload.samples
    worst, nominal = np.zeros(draws.size), 0.0
    for load in per_core(workload, placement, learning=learning).values():
        drawn, plain = np.zeros(draws.size), 0.0
        for key, events in load.items():
            each = profile.known(key)
            if events and each is None:
                return Duration(None, 0.0, f"unknown: the profile has no {key}")
            if each is not None:
                drawn = drawn + events * draws.quantity(key, each)
                plain += events * each.value
        worst, nominal = np.maximum(worst, drawn), max(nominal, plain)
    per_step = worst + draws.quantity("time.barrier", barrier)
    words = "model: slowest core and barrier, free running, no waiting for a host"
    return Duration(steps * per_step, steps * (nominal + barrier.value), words)


def clocked(synops: float, profile: Profile, draws: Draws) -> Duration:
    """One synapse after the other on a clocked chip."""
    each = profile.known("time.synop")
    if each is None:
        return Duration(None, 0.0, "unknown: the profile has no time.synop")
    words = "model: one synapse after the other at the profile's clock"
    return Duration(synops * draws.quantity("time.synop", each), synops * each.value, words)


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
    """Seconds of a sample, by the model of the chip, by its real-time tick, or as given."""
    steps = longest(workload.phases(learning=learning)) / workload.samples
    if step_seconds is not None:
        words = f"given: {step_seconds:g} s a step"
        return Duration(np.full(draws.size, steps * step_seconds), steps * step_seconds, words)
    if clock is Clock.TICK or (clock is None and profile.timing is Timing.TICK):
        return ticking(profile, draws, steps=steps)
    if profile.timing is Timing.BARRIER:
        return slowest(workload, placement, profile, draws, learning=learning)
    if profile.timing is Timing.CLOCK:
        counted = workload.phases(learning=learning).values()
        return clocked(sum(c.synops for c in counted) / workload.samples, profile, draws)
    return Duration(None, 0.0, "unknown: no time of a step was found published")


def ticking(profile: Profile, draws: Draws, *, steps: float) -> Duration:
    """Every step takes a tick of real time."""
    tick = profile.known("time.tick")
    if not isinstance(tick, Quantity):
        return Duration(None, 0.0, "unknown: the profile has no real-time tick")
    words = f"real time: {tick.value:g} s a step"
    return Duration(steps * draws.quantity("time.tick", tick), steps * tick.value, words)
