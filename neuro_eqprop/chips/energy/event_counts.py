"""Events per sample that cost energy on a chip, from the counts of a run and its placement."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from neuro_eqprop.chips.noc_traffic import noc_traffic
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Profile, Timing
from neuro_eqprop.chips.workload import Workload
from neuro_eqprop.simulators.recordings import Counts


class Event(Enum):
    """An event that costs energy; the value is its key in the section `energy` of a profile."""

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


def events_per_sample(
    workload: Workload, placement: Placement, profile: Profile, *, learning: bool
) -> dict[Event, float | None]:
    """Events of one inference or one learning sample; None where their number is unknown."""
    counted = workload.phases(learning=learning)
    sums = dict.fromkeys(Event, 0.0)
    row = profile.limit("row_synapses")
    for name, counts in counted.items():
        # A crossbar processes whole rows: every synapse of a row costs energy, used or not.
        sums[Event.SYNOP] += counts.synops if row is None else counts.spikes * row
        if learning:
            # Also of populations off the chip: the traces of their axons are on the chip.
            sums[Event.TRACE_UPDATE] += counts.trace_updates
        if workload.shape[name].off_chip:
            continue
        extra = placement[name].compartments - 1 if placement.allocations else 0
        sums[Event.NEURON_ACTIVE] += counts.updates_active
        sums[Event.NEURON_IDLE] += counts.updates_idle
        sums[Event.NEURON_IDLE] += extra * (counts.updates_active + counts.updates_idle)
        sums[Event.SPIKE] += counts.spikes
        if counts.host_macs:
            sums[Event.INPUT] += workload.shape[name].size * workload.samples
        if learning:
            sums[Event.WEIGHT_UPDATE] += counts.weight_updates
            sums[Event.TAG_UPDATE] += counts.tag_updates
    per_core, cores = profile.limit("neurons_per_core"), profile.limit("cores_per_chip")
    if profile.allows("updates_all") and per_core and cores:
        every = per_core * cores * (placement.chips or 1) * total_steps(counted)
        sums[Event.NEURON_IDLE] = max(sums[Event.NEURON_IDLE], every - sums[Event.NEURON_ACTIVE])
    sums[Event.OUTPUT] = workload.shape[workload.shape.output].size * workload.samples
    if profile.timing is Timing.BARRIER:
        sums[Event.BARRIER] = total_steps(counted) * (placement.chips or 1)
    unknown = add_traffic(workload, placement, profile, counted, sums)
    each: dict[Event, float | None] = {e: total / workload.samples for e, total in sums.items()}
    return each | dict.fromkeys(unknown)


def add_traffic(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    counted: Mapping[str, Counts],
    sums: dict[Event, float],
) -> set[Event]:
    """Add the events of spikes between cores to `sums`; return those with unknown numbers."""
    if not placement.allocations:
        outside = any(workload.shape[name].off_chip for name in counted)
        hidden = {Event.MESSAGE, Event.HOP_EW, Event.HOP_NS, Event.CHIP_LINK}
        return hidden | {Event.INPUT} if outside else hidden
    unknown: set[Event] = set()
    for name, traffic in noc_traffic(workload.shape, placement, profile).items():
        spikes = counted.get(name, Counts()).spikes
        if workload.shape[name].off_chip:
            sums[Event.INPUT] += spikes * traffic.messages
            continue
        sums[Event.MESSAGE] += spikes * traffic.messages
        sums[Event.CHIP_LINK] += spikes * traffic.chip_links
        if traffic.hops_ew is None or traffic.hops_ns is None:
            unknown |= {Event.HOP_EW, Event.HOP_NS}
            continue
        sums[Event.HOP_EW] += spikes * traffic.hops_ew
        sums[Event.HOP_NS] += spikes * traffic.hops_ns
    return unknown


def total_steps(counted: Mapping[str, Counts]) -> int:
    """Steps of all samples; every population runs the same number."""
    return max((counts.steps for counts in counted.values()), default=0)
