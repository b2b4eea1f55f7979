"""The compiled loop of `messages`: every message of a step through its buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuro_eqprop.chips.energy.messages import BUFFER, RECEIVED, Seconds, Senders
from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.common.jit import inner, outer


@inner
def pass_link(link: int, arrival: float, hop: float, left: Array, count: Ints) -> float:
    """The time at which a message that arrives enters the buffer of a link."""
    enter = arrival
    held = count[link]
    if held > 0:
        # The previous entry, kept in the place behind the ring of departures.
        enter = max(enter, left[link, BUFFER] + hop)
    if held >= BUFFER:
        enter = max(enter, left[link, held % BUFFER])
    left[link, BUFFER] = enter
    return enter


@inner
def leave(link: int, time: float, left: Array, count: Ints) -> None:
    """Note the time at which a message leaves the buffer of a link."""
    left[link, count[link] % BUFFER] = time
    count[link] += 1


class CoreProgress(NamedTuple):
    """How far each core has come in a step."""

    first: Ints
    """Index of its first neuron, and the end."""
    neuron: Ints
    message: Ints
    """The message that waits to be sent; -1 if there is none."""
    clock: Array
    ready: Array
    """When that message is ready; infinite if the core is done."""


@inner
def advance(
    core: int, senders: Senders, seconds: Seconds, fired: Bits, resting: Bits, at: CoreProgress
) -> None:
    """Work through the neurons of a core until its next message."""
    outside = core == len(at.ready) - 1
    if at.message[core] >= 0:
        at.message[core] += 1
        if at.message[core] < senders.first[at.neuron[core] + 1]:
            at.clock[core] += seconds.send
            at.ready[core] = at.clock[core]
            return
        at.neuron[core] += 1
        at.message[core] = -1
    while at.neuron[core] < at.first[core + 1]:
        k = at.neuron[core]
        if not outside:
            spent = seconds.rest if resting[k] else seconds.idle
            at.clock[core] += seconds.spiking if fired[k] else spent
        if fired[k] and senders.first[k + 1] > senders.first[k]:
            at.message[core] = senders.first[k]
            at.clock[core] += seconds.send
            at.ready[core] = at.clock[core]
            return
        at.neuron[core] += 1
    at.ready[core] = np.inf


@outer
def follow(  # noqa: C901, PLR0912, PLR0915 - one loop over messages, all of it compiled
    senders: Senders, seconds: Seconds, place: Ints, fired: Bits, resting: Bits
) -> Array:
    """Seconds of each step until every core has sent and received all of its messages."""
    steps, neurons = fired.shape
    cores = len(place)
    width, height = place[:, 0].max() + 1, place[:, 1].max() + 1
    tiles = width * height
    found = np.zeros(steps)
    first = np.zeros(cores + 1, dtype=np.int64)
    for k in range(neurons):
        first[senders.core[k] + 1] += 1
    for k in range(cores):
        first[k + 1] += first[k]
    for step in range(steps):
        left = np.zeros((4 * tiles, BUFFER + 1))
        count = np.zeros(4 * tiles, dtype=np.int64)
        starts = np.zeros((cores, RECEIVED))
        received = np.zeros(cores, dtype=np.int64)
        served = np.zeros(cores)
        last_in = np.zeros(cores)
        at = CoreProgress(
            first,
            first[:cores].copy(),
            np.full(cores, -1, dtype=np.int64),
            np.zeros(cores),
            np.full(cores, np.inf),
        )
        for core in range(cores):
            advance(core, senders, seconds, fired[step], resting[step], at)
        end = at.clock.max()
        while True:
            core = 0
            for other in range(1, cores):
                if at.ready[other] < at.ready[core]:
                    core = other
            if at.ready[core] == np.inf:
                break
            target = senders.target[at.message[core]]
            now, hops = at.ready[core], 0
            x, y = place[core, 0], place[core, 1]
            before = -1
            entered = now
            while x != place[target, 0] or y != place[target, 1]:
                if x != place[target, 0]:
                    right = place[target, 0] > x
                    link = 4 * (y * width + x) + (0 if right else 1)
                    hop = seconds.hop_x
                    x += 1 if right else -1
                else:
                    down = place[target, 1] > y
                    link = 4 * (y * width + x) + (2 if down else 3)
                    hop = seconds.hop_y
                    y += 1 if down else -1
                now = pass_link(link, now, hop, left, count)
                if hops == 0:
                    entered = now
                else:
                    leave(before, now, left, count)
                before = link
                hops += 1
                now += hop
            number = received[target]
            if number > 0:
                now = max(now, last_in[target])
            if number >= RECEIVED:
                now = max(now, starts[target, number % RECEIVED])
            last_in[target] = now
            if hops > 0:
                leave(before, now, left, count)
            else:
                entered = now
            start = max(now, served[target])
            starts[target, number % RECEIVED] = start
            received[target] = number + 1
            served[target] = start + senders.service[at.message[core]]
            at.clock[core] = max(at.clock[core], entered)
            advance(core, senders, seconds, fired[step], resting[step], at)
            end = max(end, at.clock[core])
        found[step] = max(end, served.max())
    return found
