"""The seconds that each core sends and receives in each step, from counts and placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.chips.deliveries import cores_of, deliveries
from neuro_eqprop.chips.energy.event_counts import total_steps
from neuro_eqprop.chips.energy.messages import MessageNetwork, message_network
from neuro_eqprop.chips.noc_traffic import mesh_of, noc_traffic
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Included, Profile, Quantity
from neuro_eqprop.chips.workload import SPIKES, STEP_EVENTS, Workload
from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.recordings import Counts

PEAK = 2.0
"""Messages on the busiest link relative to the mean link, with dimension-order (XY) routing."""
LEARNING = tuple(event for event in STEP_EVENTS if event != SPIKES)
OPTIONAL = {
    "time.message_in": "messages received",
    "time.message_out": "messages sent",
    "time.hop_ew": "hops",
    "time.hop_ns": "hops",
    "time.tag_update": "tag updates",
    "time.weight_update": "weight updates",
}
"""Work whose time may be unknown: it is then left out, and named."""


@dataclass(slots=True)
class Times:
    """The times of a profile, and the work that has none."""

    profile: Profile
    missing: set[str] = field(default_factory=set)

    def of(self, key: str, work: Array | float) -> float:
        """The nominal seconds of a key, zero if it is not known; notes it if there is work."""
        entry = self.profile.entry(key)
        if not isinstance(entry, Quantity | Included) and np.any(work):
            self.missing.add(key)
        return entry.value if isinstance(entry, Quantity) else 0.0


@dataclass(frozen=True, slots=True)
class CoreWork:
    """Seconds of every core (steps, cores)."""

    send: Array
    """Updates of its neurons and the messages that they send."""
    receive: Array
    """Messages that arrive, with their synapses."""
    learn: Array
    """Updates of learning, which follow the step."""
    links: Array
    """Seconds in which the busiest link passes its messages (steps)."""
    recorded: bool
    """Whether these are recorded steps rather than the mean step."""
    missing: frozenset[str]
    """Keys of times that are not known although there is work."""
    network: MessageNetwork | None = None
    """The messages of each recorded step, where spikes were recorded by neuron."""

    @property
    def lacking(self) -> str:
        """A key without which there is no time at all; empty if none."""
        return min(self.missing - OPTIONAL.keys(), default="")

    @property
    def left_out(self) -> list[str]:
        """Work without a known time."""
        return list(dict.fromkeys(OPTIONAL[key] for key in OPTIONAL if key in self.missing))

    @property
    def busy(self) -> Array:
        """Seconds of each core: the slower of sending and receiving, then learning."""
        return np.asarray(np.maximum(self.send, self.receive) + self.learn)

    def step_seconds(self) -> Array:
        """Seconds of each step, without the barrier."""
        if self.network is not None:
            return np.asarray(self.network.step_seconds() + self.learn.max(axis=1))
        return np.asarray(np.maximum(self.busy.max(axis=1), self.links))


def core_work(
    workload: Workload, placement: Placement, profile: Profile, *, learning: bool
) -> CoreWork:
    """The work of every core.

    Spikes are those of each recorded step where steps were recorded, else the mean over steps. In
    each step, a core spends

        sending: idle t_neuron_update + firing t_neuron_spiking + messages_out t_message_out
        receiving: messages_in t_message_in + synops t_synop

    Neurons at rest, without bias and without input so far, take t_neuron_rest where it is known.
    Messages from outside the chip are injected one after the other.
    """
    counted = workload.phases(learning=learning)
    steps, times = total_steps(counted), Times(profile)
    fired = {
        each.name: neurons_by_step(workload, each.name, SPIKES, learning=learning)
        for each in workload.shape.populations
    }
    length = max(len(each) for each in fired.values())
    shape = (length, placement.cores_used)
    send, receive, learn = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    resting = at_rest(workload, fired, profile, learning=learning)
    for each in placement.allocations:
        counts = counted.get(each.name, Counts())
        place = slice(each.first_core, each.first_core + each.cores)
        core = cores_of(workload.shape, each)
        active = counts.updates_active / counts.spikes if counts.spikes else 0.0
        spiking = active * by_core(fired[each.name], core, each.cores)
        updates = (counts.updates_active + counts.updates_idle) / (each.cores * steps)
        idle = np.maximum(0.0, each.compartments * updates - spiking)
        send[:, place] += spiking * times.of("time.neuron_spiking", spiking)
        send[:, place] += idle * times.of("time.neuron_update", idle)
        if each.name in resting:
            saved = times.of("time.neuron_update", idle) - times.of("time.neuron_rest", 0.0)
            send[:, place] -= saved * np.minimum(
                idle, by_core(resting[each.name], core, each.cores)
            )
        for event in LEARNING if learning else ():
            changed = neurons_by_step(workload, each.name, event, learning=True)
            learn[:, place] += by_core(changed, core, each.cores) * times.of(
                f"time.{event[:-1]}", changed
            )
    injected = np.zeros(length)
    for link in workload.shape.projections:
        target, source = placement[link.target], workload.shape[link.source]
        spikes, counts = fired[link.source], counted.get(link.source, Counts())
        projections = workload.shape.out_of(link.source)
        total = sum(other.synapses for other in projections)
        fan_out = counts.synops / counts.spikes if counts.spikes else 0.0
        scale = fan_out * source.size / total if total else 0.0
        synapses = deliveries(workload.shape, link, target)
        arrived = spread_over(spikes, np.minimum(1.0, synapses))
        operations = spread_over(spikes, synapses) * scale
        place = slice(target.first_core, target.first_core + target.cores)
        receive[:, place] += arrived * times.of("time.message_in", arrived)
        receive[:, place] += operations * times.of("time.synop", operations)
        leaving = np.asarray(arrived.sum(axis=1))
        seconds = times.of("time.message_out", leaving)
        if source.off_chip:
            injected += leaving * seconds
        else:
            own = placement[link.source]
            core = cores_of(workload.shape, own)
            out = by_core(spikes, core, own.cores)
            share = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-30)
            send[:, own.first_core : own.first_core + own.cores] += (
                share * leaving[:, None] * seconds
            )
    links = np.maximum(injected, link_seconds(workload, placement, profile, fired, times))
    network = None
    if not learning and placement.chips in (None, 1):
        network = message_network(workload, placement, profile, fired, resting)
    recorded = workload.has_steps(learning=learning)
    return CoreWork(
        send, receive, learn, links, recorded, frozenset(times.missing), network=network
    )


def neurons_by_step(workload: Workload, name: str, event: str, *, learning: bool) -> Array:
    """Events of a population in each step, of each neuron or of all (steps, neurons or 1).

    One row with the mean where no step was recorded. Recorded steps are scaled to the mean of all
    counted samples.
    """
    counted = workload.phases(learning=learning)
    mean = getattr(counted.get(name, Counts()), event) / total_steps(counted)
    recorded = workload.recorded(name, event, learning=learning)
    if recorded is None or (mean and not recorded.sum()):
        return np.full((1, 1), mean)
    if not mean:
        return np.zeros(recorded.shape)
    return np.asarray(recorded * (mean * len(recorded) / recorded.sum()))


def by_core(events: Array | Bits, core: Ints, cores: int) -> Array:
    """Events of the neurons of each core (steps, cores); evenly where only their sum is known."""
    if events.shape[1] == 1 and len(core) > 1:
        share = np.bincount(core, minlength=cores) / len(core)
        return np.asarray(events * share)
    held = np.zeros((len(core), cores))
    held[np.arange(len(core)), core] = 1.0
    return np.asarray(events @ held)


def spread_over(spikes: Array, delivered: Array) -> Array:
    """What arrives on each core (steps, cores) if each spike delivers the row of its neuron."""
    if spikes.shape[1] == 1 and len(delivered) > 1:
        return np.asarray(spikes * delivered.mean(axis=0))
    return np.asarray(spikes @ delivered)


def at_rest(
    workload: Workload, fired: Mapping[str, Array], profile: Profile, *, learning: bool
) -> dict[str, Bits]:
    """Whether each neuron is at rest in each recorded step, by population.

    A neuron without a bias rests until the first spike of a sample reaches it.
    """
    if learning or not workload.by_step or profile.known("time.neuron_rest") is None:
        return {}
    found = {}
    for each in workload.shape.on_chip:
        if each.biased or workload.shape.driven:
            continue
        touched = fired[each.name] > 0
        if touched.shape[1] != each.size:
            continue
        touched = touched.copy()
        for projection in workload.shape.into(each.name):
            touched |= projection.touches(fired[projection.source] > 0, each.size)
        samples = touched.reshape(-1, min(workload.steps, len(touched)), each.size)
        found[each.name] = ~np.maximum.accumulate(samples, axis=1).reshape(touched.shape)
    return found


def link_seconds(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    fired: Mapping[str, Array],
    times: Times,
) -> Array:
    """Seconds in which the busiest link of each direction passes its messages, in each step.

    It passes PEAK x hops of the step / links, one message at a time.
    """
    mesh, known = mesh_of(profile)
    length = max(len(each) for each in fired.values())
    slowest = np.zeros(length)
    if not known:
        return slowest
    chips = placement.chips or 1
    traffic = noc_traffic(workload.shape, placement, profile)
    for key, number, hops in (
        ("time.hop_ew", 2 * (mesh.width - 1) * mesh.height * chips, "hops_ew"),
        ("time.hop_ns", 2 * (mesh.height - 1) * mesh.width * chips, "hops_ns"),
    ):
        passed = sum(
            fired[name].sum(axis=1) * (getattr(each, hops) or 0.0)
            for name, each in traffic.items()
            if not workload.shape[name].off_chip
        )
        if number:
            busiest = np.broadcast_to(PEAK * passed / number, (length,))
            slowest = np.maximum(slowest, busiest * times.of(key, busiest))
    return slowest
