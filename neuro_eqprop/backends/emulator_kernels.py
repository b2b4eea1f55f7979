"""The compiled loops of the emulator: the step of `neuro_eqprop.spiking.ir`, event by event.

The units of all populations lie one after the other in flat arrays, a..z being the range at hand. A
unit that sends something puts its number on a list; when the list is due, the weights of the units
on it are added up, and no others. No operation on a unit is reordered or fused, so that bits are
those of the reference. Indices are unsigned: the compiler then has no negative ones to look for.
All loops become one compiled function that is kept on disk and made anew when this file changes;
what it calls must therefore be in this file.
"""

# ruff: noqa: PLR0913 - compiled loops take flat arrays, for objects would cost more than the step

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numpy import uint64

from neuro_eqprop.arrays import Array, Ints

Places: TypeAlias = npt.NDArray[np.uint64]
State: TypeAlias = tuple[Array, ...]
Marks: TypeAlias = npt.NDArray[np.uint8]
Function = TypeVar("Function", bound=Callable[..., Any])

SPIKING, GRADED = 0, 1
"""Kinds of neuron."""
START, STOP, KIND, GATED = range(4)
"""Columns of the tables of populations and of blocks; GATED: something arrives by beta."""
SOURCE, TARGET, DELAY, BY_BETA, SPARSE, OFFSET = range(6)
"""Columns of the table of projections; OFFSET is where its weights, or its heads, begin."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(6)
"""Constants of a block of spiking units."""
THETA, INVERSE, DAMPING, LOW, HIGH, BENT = range(6)
"""Constants of a block of graded units; INVERSE is 1 / theta if that is exact, else 0."""
ONE, BETA, U, V, G_BETA, SENT, OUTSIDE, DRIVE, MESSAGE, AIM, REST, POWER = range(12)
"""Rows of the state; ONE and BETA are what arrives. Of a graded unit U is g_one, and V is x."""
ROWS, MEMORY = 12, 6
"""How many rows there are, and how many, the first ones, are emptied for each sample."""

POWERS = 2.0 ** np.arange(59)
FOUR, NEXT = uint64(4), uint64(1)


def inner(function: Function) -> Function:
    """Compile as a part of what calls it."""
    return cast(Function, numba.njit(error_model="numpy", inline="always")(function))


def outer(function: Function) -> Function:
    """Compile when first called, and keep the machine code on disk where there is a place."""
    try:
        return cast(Function, numba.njit(error_model="numpy", cache=True)(function))
    except RuntimeError:
        return cast(Function, numba.njit(error_model="numpy")(function))


@inner
def tanh(state: State, a: int, z: int) -> None:
    """`neuro_eqprop.activations.tanh` of the drive, with the same bits."""
    drive, rest, power, aim = state[DRIVE], state[REST], state[POWER], state[AIM]
    for i in range(uint64(a), uint64(z)):
        size = abs(drive[i])
        doubled = 2.0 * (size if size < 20.0 else 20.0)
        k = np.rint(doubled * 1.4426950408889634)
        rest[i] = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
        power[i] = POWERS[uint64(k)]
        aim[i] = 1.0
    for n in range(14, 0, -1):
        for i in range(uint64(a), uint64(z)):
            aim[i] = 1.0 + rest[i] * aim[i] / n
    for i in range(uint64(a), uint64(z)):
        positive = 1.0 - 2.0 / (aim[i] * power[i] + 1.0)
        negative = -positive if drive[i] < 0.0 else 0.0
        aim[i] = positive if drive[i] > 0.0 else negative


@inner
def clip(state: State, c: Array, a: int, z: int) -> None:
    """The activation that is straight inside its range, of the drive."""
    drive, aim = state[DRIVE], state[AIM]
    low, high = c[LOW], c[HIGH]
    for i in range(uint64(a), uint64(z)):
        d = drive[i]
        d = low if d < low else d
        aim[i] = high if d > high else d


@inner
def add_spikes(
    weights: Array, offset: int, lists: Places, e: int, stop: int, arriving: Array, a: int, z: int
) -> None:
    """arriving += the columns of the units on the list, four at a time."""
    first, size, base, now = uint64(a), uint64(z - a), uint64(offset), uint64(e)
    while now + FOUR <= uint64(stop):
        w, x = base + lists[now] * size, base + lists[now + NEXT] * size
        y, v = base + lists[now + NEXT + NEXT] * size, base + lists[now + FOUR - NEXT] * size
        for i in range(size):
            pair = weights[w + i] + weights[x + i]
            arriving[first + i] += pair + (weights[y + i] + weights[v + i])
        now += FOUR
    while now < uint64(stop):
        w = base + lists[now] * size
        for i in range(size):
            arriving[first + i] += weights[w + i]
        now += NEXT


@inner
def add_messages(
    weights: Array,
    offset: int,
    lists: Places,
    payloads: Array,
    e: int,
    stop: int,
    arriving: Array,
    a: int,
    z: int,
) -> None:
    """Add up the columns of the units on the list, each times its payload."""
    first, size, base = uint64(a), uint64(z - a), uint64(offset)
    for now in range(uint64(e), uint64(stop)):
        w, q = base + lists[now] * size, payloads[now]
        for i in range(size):
            arriving[first + i] += weights[w + i] * q


@inner
def add_sparse(
    heads: Ints,
    rows: Ints,
    weights: Array,
    offset: int,
    lists: Places,
    payloads: Array,
    e: int,
    stop: int,
    arriving: Array,
    a: int,
) -> None:
    """The same with columns that hold only what is not zero: from one head to the next."""
    for now in range(uint64(e), uint64(stop)):
        j, q = uint64(offset) + lists[now], payloads[now]
        for k in range(uint64(heads[j]), uint64(heads[j + NEXT])):
            arriving[uint64(a + rows[k])] += weights[k] * q


@inner
def deliver(
    populations: Ints,
    projections: Ints,
    heads: Ints,
    rows: Ints,
    weights: Array,
    state: State,
    lists: Places,
    payloads: Array,
    ends: Ints,
    t: int,
    beta: float,
) -> None:
    """Bring what was sent to where it is due at step t."""
    depth, width = ends.shape[0], lists.size // ends.shape[0]
    for j in range(projections.shape[0]):
        source, target, offset = (
            projections[j, SOURCE],
            projections[j, TARGET],
            projections[j, OFFSET],
        )
        slot = (t + depth - projections[j, DELAY]) % depth
        e, stop = slot * width + populations[source, START], ends[slot, source]
        gated, a, z = projections[j, BY_BETA], populations[target, START], populations[target, STOP]
        lost = gated and beta == 0.0 and populations[target, KIND] == SPIKING
        if stop > e and not lost:
            arriving = state[BETA] if gated else state[ONE]
            if projections[j, SPARSE]:
                add_sparse(heads, rows, weights, offset, lists, payloads, e, stop, arriving, a)
            elif populations[source, KIND] == SPIKING:
                add_spikes(weights, offset, lists, e, stop, arriving, a, z)
            else:
                add_messages(weights, offset, lists, payloads, e, stop, arriving, a, z)


@inner
def mix(state: State, a: int, z: int, beta: float) -> None:
    """Scale what arrived with a gain of beta and add it to the rest."""
    one, by_beta = state[ONE], state[BETA]
    for i in range(uint64(a), uint64(z)):
        one[i] += beta * by_beta[i]
        by_beta[i] = 0.0


@inner
def smooth(state: State, a: int, z: int, keep: float) -> None:
    """Let what arrived pass through the current."""
    one, u = state[ONE], state[U]
    for i in range(uint64(a), uint64(z)):
        u[i] = keep * u[i] + one[i]
        one[i] = u[i]


@inner
def fire(state: State, sends: Marks, c: Array, a: int, z: int) -> None:
    """Drive, voltage and spike of units whose current is in ONE, which is emptied."""
    one, outside, drive, held = state[ONE], state[OUTSIDE], state[DRIVE], state[V]
    keep, threshold, subtract = c[KEEP_VOLTAGE], c[THRESHOLD], c[SUBTRACT] != 0.0
    floor, ceiling = c[FLOOR], c[CEILING]
    for i in range(uint64(a), uint64(z)):
        d = one[i] + outside[i]
        one[i] = 0.0
        drive[i] = d
        v = keep * held[i] + d
        spike = v >= threshold
        after = v - threshold if subtract else 0.0
        v = after if spike else v
        v = floor if v < floor else v
        held[i] = ceiling if v > ceiling else v
        sends[i] = spike


@inner
def gather(state: State, a: int, z: int, beta: float) -> None:
    """Sums and drive of graded units; what arrived is taken away."""
    one, by_beta, g_one, g_beta = state[ONE], state[BETA], state[U], state[G_BETA]
    outside, drive = state[OUTSIDE], state[DRIVE]
    for i in range(uint64(a), uint64(z)):
        g_one[i] += one[i]
        one[i] = 0.0
        g_beta[i] += by_beta[i]
        by_beta[i] = 0.0
        drive[i] = (g_one[i] + beta * g_beta[i]) + outside[i]


@inner
def speak(state: State, sends: Marks, c: Array, a: int, z: int) -> None:
    """State and message of graded units."""
    aim, held, sent, message = state[AIM], state[V], state[SENT], state[MESSAGE]
    theta, inverse, damping = c[THETA], c[INVERSE], c[DAMPING]
    for i in range(uint64(a), uint64(z)):
        x = held[i] + damping * (aim[i] - held[i])
        held[i] = x
        apart = x - sent[i]
        q = theta * np.rint(apart * inverse if inverse != 0.0 else apart / theta)
        sent[i] += q
        message[i] = q
        sends[i] = q != 0.0


@inner
def advance(blocks: Ints, constants: Array, state: State, sends: Marks, beta: float) -> None:
    """One step of every unit."""
    for b in range(blocks.shape[0]):
        a, z, c = blocks[b, START], blocks[b, STOP], constants[b]
        if blocks[b, KIND] == SPIKING:
            if blocks[b, GATED] and beta != 0.0:
                mix(state, a, z, beta)
            if c[KEEP_CURRENT] != 0.0:
                smooth(state, a, z, c[KEEP_CURRENT])
            fire(state, sends, c, a, z)
        else:
            gather(state, a, z, beta)
            if c[BENT] != 0.0:
                tanh(state, a, z)
            else:
                clip(state, c, a, z)
            speak(state, sends, c, a, z)


@inner
def book(
    populations: Ints,
    state: State,
    sends: Marks,
    lists: Places,
    payloads: Array,
    ends: Ints,
    t: int,
    counts: bool,
    messages: Ints,
    firing: Array,
    drives: Array,
) -> None:
    """List and count what is sent at step t, and within the window add up firing and drive."""
    sent, message, drive = state[SENT], state[MESSAGE], state[DRIVE]
    slot, width = t % ends.shape[0], lists.size // ends.shape[0]
    for p in range(populations.shape[0]):
        first, last, kind = populations[p, START], populations[p, STOP], populations[p, KIND]
        e = uint64(slot * width + first)
        stop = e
        for i in range(uint64(last - first)):
            lists[stop] = i
            stop += sends[uint64(first) + i]
        ends[slot, p] = stop
        for now in range(e, stop):
            unit = uint64(first) + lists[now]
            messages[unit] += 1
            if kind == GRADED:
                payloads[now] = message[unit]
            elif counts:
                firing[unit] += 1.0
        if kind == GRADED and counts:
            for i in range(uint64(first), uint64(last)):
                firing[i] += sent[i]
    if counts:
        for i in range(uint64(drives.size)):
            drives[i] += drive[i]


@inner
def show(populations: Ints, state: State, sends: Marks, columns: Ints, log: Array) -> None:
    """Write what is recorded of this step: messages, what is held, drive."""
    message, held, drive = state[MESSAGE], state[V], state[DRIVE]
    for p in range(populations.shape[0]):
        first, size = populations[p, START], populations[p, STOP] - populations[p, START]
        sent, kept, driven = columns[p, 0], columns[p, 1], columns[p, 2]
        for i in range(size):
            if sent >= 0:
                spiking = populations[p, KIND] == SPIKING
                log[sent + i] = float(sends[first + i]) if spiking else message[first + i]
            if kept >= 0:
                log[kept + i] = held[first + i]
            if driven >= 0:
                log[driven + i] = drive[first + i]


@inner
def begin(blocks: Ints, constants: Array, state: State, ends: Ints) -> None:
    """Put every unit at rest, with nothing under way."""
    held = state[V]
    for row in state[:MEMORY]:
        for i in range(uint64(row.size)):
            row[i] = 0.0
    ends[:] = 0
    for b in range(blocks.shape[0]):
        if blocks[b, KIND] == SPIKING:
            for i in range(uint64(blocks[b, START]), uint64(blocks[b, STOP])):
                held[i] = constants[b, THRESHOLD] / 2


@outer
def emulate(
    populations: Ints,
    blocks: Ints,
    constants: Array,
    projections: Ints,
    heads: Ints,
    rows: Ints,
    weights: Array,
    lengths: Ints,
    betas: Array,
    given: Array,
    pull: Array,
    columns: Ints,
    messages: Ints,
    firing: Array,
    drives: Array,
    log: Array,
) -> None:
    """Run every sample from rest through all phases, of `lengths` (steps, window).

    `given` is bias + current and `pull` the pull, (samples, units); `messages`, `firing` and
    `drives` are (samples, phases, units), `log` (samples, steps, columns). Those that no one needs,
    of pull, columns and log, are empty.
    """
    units, depth = given.shape[1], 1
    for j in range(projections.shape[0]):
        depth = max(depth, projections[j, DELAY])
    s = np.zeros((ROWS, units))
    state = (s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11])
    outside, sends = state[OUTSIDE], np.zeros(units, dtype=np.uint8)
    lists, payloads = np.zeros(depth * (units + 1), dtype=np.uint64), np.ones(depth * (units + 1))
    ends = np.zeros((depth, populations.shape[0]), dtype=np.int64)
    for sample in range(given.shape[0]):
        begin(blocks, constants, state, ends)
        t = 0
        for k in range(betas.size):
            beta, steps, window = betas[k], lengths[k, 0], lengths[k, 1]
            for i in range(uint64(units)):
                outside[i] = given[sample, i]
            if pull.size:
                for i in range(uint64(units)):
                    outside[i] += beta * pull[sample, i]
            sent, rate, mean = messages[sample, k], firing[sample, k], drives[sample, k]
            for tick in range(steps):
                deliver(
                    populations,
                    projections,
                    heads,
                    rows,
                    weights,
                    state,
                    lists,
                    payloads,
                    ends,
                    t,
                    beta,
                )
                advance(blocks, constants, state, sends, beta)
                book(
                    populations,
                    state,
                    sends,
                    lists,
                    payloads,
                    ends,
                    t,
                    tick >= steps - window,
                    sent,
                    rate,
                    mean,
                )
                if columns.size:
                    show(populations, state, sends, columns, log[sample, t])
                t += 1
            for i in range(uint64(units)):
                rate[i] /= window
                mean[i] /= window
