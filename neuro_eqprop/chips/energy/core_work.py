"""The work of each core in each step: messages, synapses and neurons, from counts and placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.chips.energy.event_counts import total_steps
from neuro_eqprop.chips.noc_traffic import mesh_of, noc_traffic
from neuro_eqprop.chips.placement import CoreAllocation, Placement
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.synapse_memory import synapse_memory
from neuro_eqprop.chips.workload import SPIKES, STEP_EVENTS, Workload
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.recordings import Counts

PEAK = 2.0
"""Messages on the busiest link relative to the mean link, with dimension-order (XY) routing."""
LEARNING = tuple(event for event in STEP_EVENTS if event != SPIKES)


@dataclass(frozen=True, slots=True)
class Work:
    """Events by key of the section `time`: for each population an array (steps, cores)."""

    events: Mapping[str, Mapping[str, Array]]
    links: Mapping[str, Array] = field(default_factory=dict)
    """Messages over the busiest link of each direction (steps, 1), by key of its hop time."""
    hops: Mapping[str, float] = field(default_factory=dict)
    """Hops of the last message of a step, by key."""

    def slowest(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Events of the slowest core or link of each step, and of its last message, as a mean.

        The slowest one has the largest sum of events times `seconds`. A link passes one message per
        hop time, so it can be the bottleneck of a step, too.
        """
        worst: Array | None = None
        chosen: dict[str, Array] = {}
        for work in (*self.events.values(), *({key: n} for key, n in self.links.items())):
            cost = np.sum([array * seconds[key] for key, array in work.items()], axis=0)
            core = np.argmax(cost, axis=1)[:, None]
            time = np.take_along_axis(cost, core, axis=1)[:, 0]
            picked = {
                key: np.take_along_axis(np.broadcast_to(array, cost.shape), core, axis=1)[:, 0]
                for key, array in work.items()
            }
            better = np.ones(len(time), dtype=bool) if worst is None else time > worst
            worst = time if worst is None else np.maximum(worst, time)
            for key in {*chosen, *picked}:
                old = chosen.get(key, np.zeros(len(time)))
                chosen[key] = np.where(better, picked.get(key, 0.0), old)
        for key, hops in self.hops.items():
            step = np.zeros(len(self.links[key])) if worst is None else worst
            waits = queue_length(self.links[key][:, 0], seconds[key], step)
            chosen[key] = chosen.get(key, 0.0) + hops * (1.0 + waits)
        return {key: float(array.mean()) for key, array in chosen.items()}


def queue_length(messages: Array, hop: float, step: Array) -> Array:
    """Mean number of messages that wait before a message at the busiest link, in each step.

    The link is an M/D/1 queue: Poisson arrivals and a fixed service time. With the utilisation
    rho = messages * hop / step, the Pollaczek-Khinchine formula gives

        rho / (2 (1 - rho)).

    The upper limit is half of the other messages, the mean if all of them arrived at once.
    """
    rho = np.divide(messages * hop, step, out=np.zeros_like(step), where=step > 0)
    others = np.maximum(0.0, messages - 1.0) / 2.0
    steady = np.divide(rho, 2.0 * (1.0 - rho), out=np.full_like(rho, np.inf), where=rho < 1.0)
    return np.asarray(np.minimum(steady, others))


def core_work(
    workload: Workload, placement: Placement, profile: Profile, *, learning: bool
) -> Work:
    """The work of every core.

    Spikes are those of each recorded step where steps were recorded, else the mean over steps. A
    core spends, in each step,

        messages_in t_message_in + synops t_synop
        + idle updates t_neuron_update + firing updates t_neuron_spiking
        + messages_out t_message_out + learning updates.
    """
    counted = workload.phases(learning=learning)
    memory = synapse_memory(workload.shape, profile, tag_bits=None)

    def by_core(name: str, event: str) -> Array:
        return events_by_core(workload, placement, name, event, learning=learning)

    spikes = {name: by_core(name, SPIKES) for name in counted}
    length = max((len(each) for each in spikes.values()), default=1)
    steps = total_steps(counted)
    events: dict[str, dict[str, Array]] = {}
    for each in placement.allocations:
        counts = counted.get(each.name, Counts())
        own = np.zeros((1, each.cores)) if each.name not in spikes else spikes[each.name]
        own = np.broadcast_to(own, (length, own.shape[1]))
        updates = (counts.updates_active + counts.updates_idle) / (each.cores * steps)
        links = workload.shape.out_of(each.name)
        reached = sum(memory.reach(link, placement[link.target].cores)[0] for link in links)
        active = counts.updates_active / counts.spikes if counts.spikes else 0.0
        events[each.name] = {
            "time.neuron_spiking": own * active,
            "time.neuron_update": np.maximum(0.0, each.compartments * updates - own * active),
            "time.message_out": own * reached,
            "time.message_in": np.zeros_like(own),
            "time.synop": np.zeros_like(own),
        }
        for event in LEARNING if learning else ():
            changed = by_core(each.name, event)
            events[each.name][f"time.{event[:-1]}"] = np.broadcast_to(changed, own.shape)
    for name, counts in counted.items():
        sent = np.broadcast_to(spikes[name].sum(axis=1, keepdims=True), (length, 1))
        projections = workload.shape.out_of(name)
        total = sum(each.synapses for each in projections)
        fan_out = counts.synops / counts.spikes if counts.spikes else 0.0
        for projection in projections if total else ():
            target = placement[projection.target]
            share = projection.synapses / total / target.cores
            reach = memory.reach(projection, target.cores)[0] / target.cores
            work = events[projection.target]
            work["time.synop"] = work["time.synop"] + sent * fan_out * share
            work["time.message_in"] = work["time.message_in"] + sent * reach
    return Work(events, *link_work(workload, placement, profile, spikes, length))


def events_by_core(
    workload: Workload, placement: Placement, name: str, event: str, *, learning: bool
) -> Array:
    """Events of a population (steps, cores); one row with the mean where no step was recorded.

    Recorded steps are scaled to the mean of all counted samples.
    """
    counted = workload.phases(learning=learning)
    mean = getattr(counted.get(name, Counts()), event) / total_steps(counted)
    recorded = workload.recorded(name, event, learning=learning)
    allocation = None if workload.shape[name].off_chip else placement[name]
    if recorded is None or not recorded.sum():
        cores = 1 if allocation is None else allocation.cores
        return np.full((1, cores), mean / cores)
    scale = mean * len(recorded) / recorded.sum()
    if allocation is None:
        return np.asarray(recorded.sum(axis=1, keepdims=True) * scale)
    if recorded.shape[1] == 1:
        return np.repeat(recorded * scale / allocation.cores, allocation.cores, axis=1)
    maps = workload.shape.maps(name)
    if allocation.columns and maps is not None:
        columns = recorded.reshape(len(recorded), -1, maps[2]).sum(axis=1)
        starts = np.arange(0, maps[2], allocation.columns)
        return np.asarray(np.add.reduceat(columns, starts, axis=1) * scale)
    starts = np.arange(0, recorded.shape[1], allocation.neurons_per_core)
    return np.asarray(np.add.reduceat(recorded, starts, axis=1) * scale)


def link_work(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    spikes: Mapping[str, Array],
    length: int,
) -> tuple[dict[str, Array], dict[str, float]]:
    """Messages over the busiest link of each direction in each step, and the last message's hops.

    The busiest link passes PEAK x hops of the step / links; the last message of a step travels the
    mean distance.
    """
    mesh, known = mesh_of(profile)
    if not known:
        return {}, {}
    chips = placement.chips or 1
    links = {
        "time.hop_ew": 2 * (mesh.width - 1) * mesh.height * chips,
        "time.hop_ns": 2 * (mesh.height - 1) * mesh.width * chips,
    }
    hops = {key: np.zeros((length, 1)) for key, number in links.items() if number}
    messages = 0.0
    for name, traffic in noc_traffic(workload.shape, placement, profile).items():
        if workload.shape[name].off_chip or name not in spikes:
            continue
        sent = spikes[name].sum(axis=1, keepdims=True)
        messages += float(sent.mean()) * traffic.messages
        for key, each in (("time.hop_ew", traffic.hops_ew), ("time.hop_ns", traffic.hops_ns)):
            if key in hops:
                hops[key] = hops[key] + sent * (each or 0.0)
    if not messages:
        return {}, {}
    return (
        {key: PEAK * total / links[key] for key, total in hops.items()},
        {key: float(total.mean()) / messages for key, total in hops.items()},
    )


def tiles_used(allocations: tuple[CoreAllocation, ...], profile: Profile) -> int:
    """Tiles of one chip that hold a core of the network."""
    cores = max((each.first_core + each.cores for each in allocations), default=1)
    per_chip = profile.limit("cores_per_chip")
    on_chip = cores if per_chip is None else min(cores, per_chip)
    return -(-on_chip // (profile.limit("cores_per_tile") or 1))
