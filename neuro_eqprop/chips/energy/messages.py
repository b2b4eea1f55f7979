"""The messages of each step through the buffers of finite size of a mesh of cores.

A core works through its neurons in order; a neuron that fires sends a message to every core with a
synapse of it, and waits until the mesh takes it. On its way, a message enters buffer k at the
largest of

    entry into buffer k - 1 + time of a hop,
    the previous entry into buffer k + time of a hop,
    the time at which the message BUFFER places earlier leaves buffer k,
    the time at which the message in front of it leaves buffer k - 1.

The last buffer holds RECEIVED messages and is served one after the other: a message takes the time
of its acceptance and of its synapses. Messages are followed in the order in which they are ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neuro_eqprop.chips.deliveries import cores_of, deliveries
from neuro_eqprop.chips.noc_traffic import Mesh, mesh_of
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.workload import Workload
from neuro_eqprop.common.arrays import Array, Bits, Ints

BUFFER, RECEIVED = 16, 8
"""Messages that a link, and the input of a core, can hold."""
MOST_MESSAGES = 20_000_000
"""Messages above which a step is not followed message by message."""


class Senders(NamedTuple):
    """Neurons in the order of their cores, with the messages of a spike of each."""

    core: Ints
    """Core of each neuron; those outside the chip have one of their own, behind the others."""
    first: Ints
    """Index of the first message of each neuron, and the end."""
    target: Ints
    service: Array
    """Seconds in which the target core accepts the message and works through its synapses."""


class Seconds(NamedTuple):
    """Times of a chip: of neurons, of sending a message, of hops by axis."""

    idle: float
    rest: float
    spiking: float
    send: float
    hop_x: float
    hop_y: float


@dataclass(frozen=True, slots=True)
class MessageNetwork:
    """Neurons and their messages on the cores of a mesh."""

    senders: Senders
    seconds: Seconds
    place: Ints
    """Column and row of the tile of each core (cores, 2)."""
    fired: Bits
    """Whether each neuron fires in each step (steps, neurons)."""
    resting: Bits
    """Whether it is at rest, in the same shape."""

    def step_seconds(self) -> Array:
        """Seconds of each step."""
        from neuro_eqprop.chips.energy.message_kernel import follow

        return np.asarray(follow(self.senders, self.seconds, self.place, self.fired, self.resting))


def message_network(
    workload: Workload,
    placement: Placement,
    profile: Profile,
    fired: Mapping[str, Array],
    resting: Mapping[str, Bits],
) -> MessageNetwork | None:
    """The messages of recorded spikes; None without spikes of each neuron or without a mesh."""
    shape, (mesh, known) = workload.shape, mesh_of(profile)
    sizes = {each.name: each.size for each in shape.populations}
    if not known or any(fired[name].shape[1] != size for name, size in sizes.items()):
        return None
    length = max(len(each) for each in fired.values())
    cores = placement.cores_used
    parts, order = [], []
    for each in shape.populations:
        if each.off_chip:
            order.append(np.full(each.size, cores))
        else:
            own = placement[each.name]
            order.append(own.first_core + cores_of(shape, own))
        parts.append(messages_of(workload, placement, profile, each.name))
    core = np.concatenate(order)
    along = np.argsort(core, kind="stable")
    targets = [part[k] for part in parts for k in range(len(part))]
    number = np.array([len(targets[k]) for k in along])
    spikes = np.concatenate([np.broadcast_to(fired[n], (length, s)) for n, s in sizes.items()], 1)
    if float((spikes.sum(axis=0)[along] * number).sum()) > MOST_MESSAGES:
        return None
    quiet = np.concatenate(
        [
            resting.get(n, np.zeros((1, 1), bool)) & np.ones((length, s), bool)
            for n, s in sizes.items()
        ],
        axis=1,
    )
    together = [targets[k] for k in along]
    flat = np.concatenate(together) if together else np.zeros((0, 2))
    return MessageNetwork(
        Senders(
            core[along].astype(np.int64),
            np.concatenate([[0], np.cumsum(number)]).astype(np.int64),
            flat[:, 0].astype(np.int64),
            flat[:, 1].copy(),
        ),
        seconds_of(profile),
        tile_places(mesh, cores),
        (spikes > 0)[:, along],
        quiet[:, along],
    )


def messages_of(
    workload: Workload, placement: Placement, profile: Profile, name: str
) -> list[Array]:
    """Target core and seconds of service of the messages of each neuron of a population."""
    shape = workload.shape
    accept, synapse = seconds_at(profile, "time.message_in"), seconds_at(profile, "time.synop")
    found: list[list[Array]] = [[] for _ in range(shape[name].size)]
    for projection in shape.out_of(name):
        target = placement[projection.target]
        table = deliveries(shape, projection, target)
        places = np.arange(target.first_core, target.first_core + target.cores)
        for k, row in enumerate(table):
            hit = row > 0
            found[k].append(np.stack([places[hit], accept + synapse * row[hit]], axis=1))
    empty = np.zeros((0, 2))
    return [np.concatenate(each) if each else empty for each in found]


def seconds_at(profile: Profile, key: str) -> float:
    """The nominal seconds of a key; zero where it is not known."""
    cost = profile.known(key)
    return 0.0 if cost is None else cost.value


def seconds_of(profile: Profile) -> Seconds:
    """The times of a chip."""
    idle = seconds_at(profile, "time.neuron_update")
    return Seconds(
        idle,
        seconds_at(profile, "time.neuron_rest") or idle,
        seconds_at(profile, "time.neuron_spiking"),
        seconds_at(profile, "time.message_out"),
        seconds_at(profile, "time.hop_ew"),
        seconds_at(profile, "time.hop_ns"),
    )


def tile_places(mesh: Mesh, cores: int) -> Ints:
    """Column and row of each core, and of the corner where messages from outside enter."""
    row, column = np.divmod(np.arange(cores) // mesh.cores_per_tile, mesh.width)
    return np.concatenate([np.stack([column, row], axis=1), np.zeros((1, 2), dtype=np.int64)])
