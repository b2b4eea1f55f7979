"""Metrics of an energy estimate: joules by layer and by phase, and the duty cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from neuro_eqprop.chips.energy.event_counts import Event, events_per_sample, total_steps
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.workload import FREE, Workload
from neuro_eqprop.simulators.recordings import Counts

REST = ("power.idle_loaded", "power.static", "power.board", "power.idle_boot")
"""Keys of the power of a chip that waits for the next sample; the first known one is used."""
WHOLE = (Event.OUTPUT, Event.BARRIER, Event.INPUT)
"""Events of the whole network, which belong to no single layer."""


@dataclass(frozen=True, slots=True)
class DutyCycle:
    """A chip that is always on and gets samples at a rate."""

    rate: float
    """Samples a second."""
    watts: float | None
    """Average power; None where the time, or the power at rest, is unknown."""
    busy: float | None
    """Fraction of the time in which it computes."""
    note: str = ""

    @property
    def keeps_up(self) -> bool | None:
        """Whether a sample is done before the next arrives."""
        return None if self.busy is None else self.busy <= 1


def duty_cycle(
    profile: Profile, rate: float, *, joules: float | None, seconds: float | None, chips: int
) -> DutyCycle:
    """Average power at a rate of samples.

    watts = rate * joules + (1 - rate * seconds) * power at rest
    """
    if joules is None or seconds is None:
        return DutyCycle(rate, None, None, "the time of a sample is unknown")
    busy = rate * seconds
    if busy > 1:
        return DutyCycle(rate, None, busy, f"too slow: at most {1 / seconds:.3g} samples a second")
    known = [(key, cost) for key in REST if (cost := profile.known(key)) is not None]
    if not known:
        return DutyCycle(rate, None, busy, "the power at rest is unknown")
    key, cost = known[0]
    per_board = profile.limit("chips_per_board") or 1
    number = -(-chips // per_board) if key == "power.board" else chips
    return DutyCycle(
        rate, rate * joules + (1 - busy) * number * cost.value, busy, f"rests at {key}"
    )


def event_joules(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    counts: Mapping[tuple[str, str], Counts],
    *,
    learning: bool,
) -> float:
    """Joules of the events that these counts cause, per sample."""
    empty = Counts(steps=1, updates_idle=1)
    kept = {key: counts.get(key, empty if key[1] == FREE else Counts()) for key in workload.counts}
    # A chip that updates all its neurons would count those of the whole chip for each layer.
    entries = {k: e for k, e in profile.entries.items() if k != "support.updates_all"}
    bare, part = replace(profile, entries=entries), replace(workload.without_steps, counts=kept)
    events = events_per_sample(part, placement, bare, learning=learning)
    costs = (
        (profile.known(f"energy.{event.value}"), number)
        for event, number in events.items()
        if event not in WHOLE
    )
    return sum(cost.value * number for cost, number in costs if cost is not None and number)


def by_layer(
    workload: Workload, placement: Placement, profile: Profile, total: float, *, learning: bool
) -> dict[str, float]:
    """Joules of each layer: its spikes with their synapses, and its share of the rest.

    The rest of the `total`, mostly power, is shared out by cores; layers off the chip have none.
    """
    cores = {each.name: each.cores for each in placement.allocations}
    events = {}
    for each in workload.shape.populations:
        own = {key: c for key, c in workload.counts.items() if key[0] == each.name}
        events[each.name] = event_joules(workload, placement, profile, own, learning=learning)
    rest = max(0.0, total - sum(events.values())) / sum(cores.values())
    return {name: value + cores.get(name, 0) * rest for name, value in events.items()}


def by_phase(
    workload: Workload, placement: Placement, profile: Profile, total: float
) -> dict[str, float]:
    """Joules of each phase of learning; the rest of the `total` is shared by steps."""
    phases = list(dict.fromkeys(phase for _, phase in workload.counts))
    parts = {
        phase: {key: c for key, c in workload.counts.items() if key[1] == phase} for phase in phases
    }
    steps = {
        phase: total_steps({name: c for (name, _), c in part.items()})
        for phase, part in parts.items()
    }
    events = {
        phase: event_joules(workload, placement, profile, part, learning=True)
        for phase, part in parts.items()
    }
    rest = max(0.0, total - sum(events.values())) / (sum(steps.values()) or 1)
    return {phase: value + steps[phase] * rest for phase, value in events.items()}
