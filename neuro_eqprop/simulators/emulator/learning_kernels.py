"""Compiled loops of the rule of `neuro_eqprop.spiking.plasticity`, event by event.

Units, weights and tags are stored in flat arrays, and the synapses of a source unit next to each
other; a:z is a range of units. Synapses whose source has a trace of zero are skipped, which does
not change the result. Operations on a unit or synapse are never reordered, so that results equal
those of the reference bit for bit.

Everything is compiled as a part of `learn_all`, which Numba caches on disk and recompiles when this
file changes. So every function that it calls must be in this file.
"""

# ruff: noqa: PLR0913, PLR0917 - compiled loops take flat arrays; objects are slower

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numpy import uint64

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.jit import inner, outer

Marks: TypeAlias = npt.NDArray[np.uint8]

FLOAT, INTEGER, ENGINE = range(3)
"""Number formats: floating point, integers, Lava's learning engine."""
START, STOP, GRADED, SENDS_ONCE, HAS_INPUT = range(5)
"""Columns of the table of populations; one that SENDS_ONCE does so in the first step."""
SOURCE, TARGET, BY_BETA, OFFSET = range(4)
"""Columns of the table of projections; OFFSET is where its weights begin."""
PROJECTION, MIRROR, TAGS = range(3)
"""Columns of the table of plastic parts; TAGS is where their tags begin, MIRROR -1 if none."""
LEAST_WEIGHT, MOST_WEIGHT, MIRROR_FACTOR = range(3)
"""Columns of the limits of plastic parts; the mirror has MIRROR_FACTOR times the weight."""
INPUT, INPUT_BETA, CURRENT, HELD, SUM_BETA, SENT, DRIVE, EXTERNAL, MESSAGE = range(9)
"""Rows of the state.

INPUT and INPUT_BETA are the input of this step with a gain of one and of beta. CURRENT is that of a
spiking unit, or the sum of INPUT of a graded one, whose sum of INPUT_BETA is SUM_BETA. HELD is the
voltage or the graded state, SENT the sum of graded messages.
"""
LOW, HIGH, IS_TANH = range(3)
"""Constants of a population: the range of its activation, which tanh does not use."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(3, 9)
"""Further constants of spiking units."""
THETA, INVERSE, DAMPING, UNIT = range(3, 7)
"""Further constants of graded units; INVERSE is 1 / theta if that is exact, else 0."""
KEEP, IMPULSE, LARGEST_TRACE, TAG_FACTOR, MARGIN = range(5)
"""Constants of the rule; TAG_FACTOR is what the engine multiplies a committed tag by."""
BATCH, FRESH, MODE, FIRST, CONTINUED, FINAL = range(6)
"""Settings of a call: batch size, whether samples start from rest, number format, number of the
first sample, whether an earlier call has run, whether this is the last one."""
TRACED, TAGGED, CHANGED = range(3)
"""Counters by phase and population: changed traces, tags and weights."""
CLIPPED, OVERFLOWS = range(2)
"""Counters over the whole run."""
BLOCK = 8
"""Steps of a window that one pass adds to the tags, in order: a multiple of 4."""

LEAST = 2.0**-60
"""Smaller traces are set to zero."""
ENGINE_DECAY, COMMIT_PULSE = float(np.exp(-1.0 / 65535)), 32.0
"""Decay that the engine applies to the values sent by a neuron; its y3 in a commit."""
TOP, MODULUS, FRACTION = 2.0**23, 2.0**24, 2.0**6
"""24-bit numbers: limit of their size, modulus of a wrap; scale of the fractional bits."""
BOTTOM16, TOP16 = -(2.0**15) - 1.0, 2.0**15 - 1.0
POWERS = 2.0 ** np.arange(59)
STRIDE = uint64(0x9E3779B97F4A7C15)


@inner
def mixed(z: np.uint64) -> np.uint64:
    """`neuro_eqprop.spiking.counter_rng.mix` of one number."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@inner
def row_of(start: np.uint64, group: int, t: int) -> np.uint64:
    """Counter of the first random number of a group at step t."""
    return mixed(mixed(start + STRIDE * uint64(group + 1)) + STRIDE * uint64(t))


@inner
def drawn(row: np.uint64, place: int) -> float:
    """Random number at a place after the counter `row`, uniform in [0, 1)."""
    return float(mixed(row + STRIDE * uint64(place)) >> uint64(11)) * 2.0**-53


@inner
def rounded(x: float, p: float) -> float:
    """Stochastic rounding of x: up if p is below its fractional part, else down."""
    floor = float(np.floor(x))
    return floor + 1.0 if p < x - floor else floor


@inner
def clip_16_bits(x: float) -> float:
    """x clipped to 16 bits."""
    return min(max(x, BOTTOM16), TOP16)


@inner
def tanh(u: float) -> float:
    """tanh(u), bit-identical to `neuro_eqprop.networks.activations.tanh`."""
    size = abs(u)
    doubled = 2.0 * (size if size < 20.0 else 20.0)
    k = np.rint(doubled * 1.4426950408889634)
    rest = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    total = 1.0
    for n in range(14, 0, -1):
        total = 1.0 + rest * total / n
    positive = 1.0 - 2.0 / (total * POWERS[int(k)] + 1.0)
    return positive if u > 0.0 else (-positive if u < 0.0 else 0.0)


@inner
def deliver(
    effective: Array, offset: int, senders: Ints, a: int, stop: int, message: Array, into: Array
) -> None:
    """into += effective @ message over the senders, in their order, four at a time."""
    size, fours = uint64(into.size), stop - stop % 4
    for k in range(a, a + fours, 4):
        s, t, u, v = senders[k], senders[k + 1], senders[k + 2], senders[k + 3]
        first, second = uint64(offset + (s - a) * into.size), uint64(offset + (t - a) * into.size)
        third, fourth = uint64(offset + (u - a) * into.size), uint64(offset + (v - a) * into.size)
        for i in range(size):
            x = into[i] + effective[first + i] * message[s]
            x = x + effective[second + i] * message[t]
            x = x + effective[third + i] * message[u]
            into[i] = x + effective[fourth + i] * message[v]
    for k in range(a + fours, a + stop):
        s, q = senders[k], message[senders[k]]
        column = uint64(offset) + uint64(s - a) * size
        for i in range(size):
            into[i] += effective[column + i] * q


@inner
def fire(c: Array, beta: float, has_input: int, a: int, z: int, state: Array, sends: Marks) -> None:
    """One step of spiking units in floating point; resets the input to zero."""
    one, by_beta, u, held, drive, outside, message = (
        state[INPUT, a:z],
        state[INPUT_BETA, a:z],
        state[CURRENT, a:z],
        state[HELD, a:z],
        state[DRIVE, a:z],
        state[EXTERNAL, a:z],
        state[MESSAGE, a:z],
    )
    threshold, floor, ceiling = c[THRESHOLD], c[FLOOR], c[CEILING]
    keep, kept, subtract, size = c[KEEP_CURRENT], c[KEEP_VOLTAGE], c[SUBTRACT], uint64(z - a)
    if has_input:
        for i in range(size):
            u[i] = keep * u[i] + (one[i] + beta * by_beta[i])
            drive[i] = u[i] + outside[i]
        one[:] = 0.0
        by_beta[:] = 0.0
    else:
        drive[:] = outside
    for i in range(size):
        v = kept * held[i] + drive[i]
        spike = v >= threshold
        after = v - threshold if subtract != 0.0 else 0.0
        held[i] = min(max(after if spike else v, floor), ceiling)
        message[i] = 1.0 if spike else 0.0
    for i in range(size):
        sends[uint64(a) + i] = message[i] != 0.0


@inner
def fire_integer(
    c: Array, beta: float, a: int, z: int, state: Array, sends: Marks, counts: Ints
) -> None:
    """One step of spiking units in 24-bit integers; resets the input to zero."""
    one, by_beta, u, held, drive, outside, message = (
        state[INPUT, a:z],
        state[INPUT_BETA, a:z],
        state[CURRENT, a:z],
        state[HELD, a:z],
        state[DRIVE, a:z],
        state[EXTERNAL, a:z],
        state[MESSAGE, a:z],
    )
    threshold, floor, ceiling, over = c[THRESHOLD], c[FLOOR], c[CEILING], 0
    keep, kept, subtract, size = c[KEEP_CURRENT], c[KEEP_VOLTAGE], c[SUBTRACT], uint64(z - a)
    for i in range(size):
        current = np.trunc(keep * u[i]) + FRACTION * (one[i] + np.trunc(beta * by_beta[i]))
        fits = current - MODULUS * np.floor((current + (TOP - 1.0)) / MODULUS)
        over += fits != current
        u[i] = fits
        drive[i] = fits + FRACTION * outside[i]
    one[:] = 0.0
    by_beta[:] = 0.0
    for i in range(size):
        voltage = np.trunc(kept * held[i]) + drive[i]
        v = min(max(voltage, 1.0 - TOP), TOP - 1.0)
        over += v != voltage
        spike = v >= threshold
        after = v - threshold if subtract != 0.0 else 0.0
        held[i] = min(max(after if spike else v, floor), ceiling)
        message[i] = 1.0 if spike else 0.0
    for i in range(size):
        sends[uint64(a) + i] = message[i] != 0.0
    counts[OVERFLOWS] += over


@inner
def send_graded(
    c: Array, beta: float, integer: bool, a: int, z: int, state: Array, sends: Marks, counts: Ints
) -> None:
    """One step of graded units; resets the input to zero."""
    one, by_beta, g_one, held, g_beta, sent, drive, outside, message = (
        state[INPUT],
        state[INPUT_BETA],
        state[CURRENT],
        state[HELD],
        state[SUM_BETA],
        state[SENT],
        state[DRIVE],
        state[EXTERNAL],
        state[MESSAGE],
    )
    theta, inverse, damping = c[THETA], c[INVERSE], c[DAMPING]
    for i in range(a, z):
        first, second = g_one[i] + one[i], g_beta[i] + by_beta[i]
        one[i] = 0.0
        by_beta[i] = 0.0
        if integer:
            g_one[i] = first - MODULUS * np.floor((first + (TOP - 1.0)) / MODULUS)
            g_beta[i] = second - MODULUS * np.floor((second + (TOP - 1.0)) / MODULUS)
            counts[OVERFLOWS] += int(g_one[i] != first) + int(g_beta[i] != second)
            d = (g_one[i] + np.trunc(beta * g_beta[i])) + outside[i]
        else:
            g_one[i], g_beta[i] = first, second
            d = (first + beta * second) + outside[i]
        drive[i] = d
        if c[IS_TANH] == 0.0:
            rho = min(max(d, c[LOW]), c[HIGH])
        else:
            rho = np.rint(tanh(d * c[UNIT]) / c[UNIT]) if integer else tanh(d)
        if integer:
            x = held[i] + np.trunc(damping * (rho - held[i]))
            fits = min(max(x, 1.0 - TOP), TOP - 1.0)
            counts[OVERFLOWS] += fits != x
            held[i] = fits
            q = np.rint((fits - sent[i]) * inverse)
            sent[i] += theta * q
        else:
            held[i] += damping * (rho - held[i])
            apart = held[i] - sent[i]
            q = theta * np.rint(apart * inverse if inverse != 0.0 else apart / theta)
            sent[i] += q
        message[i] = q
        sends[i] = q != 0.0


@inner
def decay(numbers: Array, a: int, z: int, sends: Marks, traces: Array) -> int:
    """Update the traces of spiking units in floating point; return how many changed."""
    changed, keep, impulse = 0, numbers[KEEP], numbers[IMPULSE]
    for i in range(uint64(a), uint64(z)):
        new = keep * traces[i]
        new = new + impulse if sends[i] else new
        new = 0.0 if new < LEAST else new
        changed += new != traces[i]
        traces[i] = new
    return changed


@inner
def decay_integer(
    numbers: Array,
    mode: int,
    a: int,
    z: int,
    sends: Marks,
    row: np.uint64,
    p: float,
    traces: Array,
) -> int:
    """Update the traces of spiking units in integers; return how many changed."""
    changed, keep, impulse, largest = 0, numbers[KEEP], numbers[IMPULSE], numbers[LARGEST_TRACE]
    for i in range(a, z):
        old = traces[i]
        if old == 0.0 and not sends[i]:
            continue
        new = rounded(keep * old, drawn(row, i) if mode == INTEGER else p)
        new = min(new + impulse, largest) if sends[i] else new
        changed += new != old
        traces[i] = new
    return changed


@inner
def follow(
    c: Array, numbers: Array, mode: int, a: int, z: int, sent: Array, row: np.uint64, traces: Array
) -> int:
    """Update the traces of graded units; return how many changed."""
    changed, largest = 0, numbers[LARGEST_TRACE]
    for i in range(a, z):
        new = sent[i]
        if mode != FLOAT and new != 0.0:
            new = np.floor(largest * (new * c[UNIT]) + drawn(row, i))
            new = min(max(new, 0.0), largest)
        changed += new != traces[i]
        traces[i] = new
    return changed


@inner
def grown(pre: Array, post: Array) -> int:
    """Number of tags of a projection that change in a step: those with both traces nonzero."""
    sources = targets = 0
    for s in range(pre.size):
        sources += pre[s] != 0.0
    for i in range(post.size):
        targets += post[i] != 0.0
    return sources * targets


@inner
def gather(
    steps: int,
    pre: Array,
    post: Array,
    ends: tuple[int, int, int, int],
    begin: int,
    tags: Array,
    touched: Marks,
) -> None:
    """tags += (gate r_pre) r_post of a projection, step by step.

    `pre` is the gate times the traces, `post` the traces (BLOCK, units); `ends` are the first and
    the last unit of sources and targets. Four steps are added in a pass, so `pre` must be zero from
    `steps` to the next multiple of four.
    """
    size, b = uint64(ends[3] - ends[2]), uint64(ends[2])
    for s in range(ends[1] - ends[0]):
        column = uint64(begin) + uint64(s) * size
        for k in range(0, steps, 4):
            at = ends[0] + s
            e, f, g, h = pre[k, at], pre[k + 1, at], pre[k + 2, at], pre[k + 3, at]
            if e == 0.0 and f == 0.0 and g == 0.0 and h == 0.0:
                continue
            touched[s] = 1
            first, second, third, fourth = post[k], post[k + 1], post[k + 2], post[k + 3]
            for i in range(size):
                m = tags[column + i] + e * first[b + i]
                m = m + f * second[b + i]
                m = m + g * third[b + i]
                tags[column + i] = m + h * fourth[b + i]


@inner
def gather_engine(
    third: float, pre: Array, post: Array, begin: int, tags: Array, p: float, own: float
) -> int:
    """Add one step to the tags as Lava's engine does; return how many tags changed."""
    changed, size, scaled_post = 0, uint64(post.size), np.empty(post.size)
    for i in range(size):
        scaled_post[i] = rounded(ENGINE_DECAY * post[i], p) * third
    for s in range(pre.size):
        x, column = pre[s] / 1024.0, uint64(begin) + uint64(s) * size
        for i in range(size):
            m = tags[column + i]
            new = rounded(clip_16_bits(128.0 * m + np.floor(x * scaled_post[i])) / 128.0, own)
            new = min(max(new, -257.0), 255.0)
            changed += new != m
            tags[column + i] = new
    return changed


@inner
def change(
    eta: float,
    mode: int,
    row: np.uint64,
    ends: Array,
    begin: int,
    offset: int,
    sizes: tuple[int, int],
    touched: Marks,
    tags: Array,
    weights: Array,
    gains: Array,
    effective: Array,
    counts: Ints,
) -> int:
    """Commit the tags of a projection: w = clip(w + eta m), m = 0; return how many w changed.

    `sizes` are its numbers of sources and targets. In integers, eta m is rounded stochastically.
    """
    changed = clipped = 0
    size, low, high = uint64(sizes[1]), ends[LEAST_WEIGHT], ends[MOST_WEIGHT]
    for s in range(sizes[0]):
        if not touched[s]:
            continue
        column, at = uint64(begin) + uint64(s) * size, uint64(offset) + uint64(s) * size
        if mode == INTEGER:
            for i in range(size):
                m = tags[column + i]
                if m != 0.0:
                    tags[column + i] = np.floor(eta * m + drawn(row, s * sizes[1] + i))
        else:
            for i in range(size):
                tags[column + i] = eta * tags[column + i]
        for i in range(size):
            old = weights[at + i]
            wanted = old + tags[column + i]
            new = min(max(wanted, low), high)
            tags[column + i] = 0.0
            clipped += new != wanted
            changed += new != old
            weights[at + i] = new
            effective[at + i] = new * gains[at + i]
    counts[CLIPPED] += clipped
    return changed


@inner
def mirror_back(
    mirror_factor: float,
    offset: int,
    back: int,
    sizes: tuple[int, int],
    touched: Marks,
    weights: Array,
    gains: Array,
    effective: Array,
) -> None:
    """Set the feedback weights that mirror a projection: mirror_factor times its transpose."""
    for s in range(sizes[0]):
        if touched[s]:
            for i in range(sizes[1]):
                at = back + i * sizes[0] + s
                weights[at] = mirror_factor * weights[offset + s * sizes[1] + i]
                effective[at] = weights[at] * gains[at]


@inner
def change_engine(
    tag_factor: float,
    pulse: float,
    own: float,
    begin: int,
    offset: int,
    size: int,
    tags: Array,
    weights: Array,
    gains: Array,
    effective: Array,
    counts: Ints,
) -> int:
    """Commit the tags of a projection as Lava's engine does; return how many w changed."""
    changed = clipped = 0
    for k in range(uint64(size)):
        m, w = tags[uint64(begin) + k], weights[uint64(offset) + k]
        left = clip_16_bits(np.floor(-m * pulse / 32.0) * 128.0)
        after = rounded(clip_16_bits(128.0 * m + left) / 128.0, own)
        tags[uint64(begin) + k] = min(max(after, -257.0), 255.0)
        increment = clip_16_bits(np.floor(m * pulse / 32.0) * tag_factor)
        wanted = rounded(clip_16_bits(128.0 * w + increment) / 128.0, own)
        new = min(max(wanted, -256.0), 255.0)
        clipped += new != wanted
        changed += new != w
        weights[uint64(offset) + k] = new
        effective[uint64(offset) + k] = new * gains[uint64(offset) + k]
    counts[CLIPPED] += clipped
    return changed


@inner
def rest(populations: Ints, constants: Array, state: Array) -> None:
    """Set every unit to its resting state."""
    for row in range(DRIVE):
        for i in range(state.shape[1]):
            state[row, i] = 0.0
    for p in range(populations.shape[0]):
        if not populations[p, GRADED]:
            for i in range(populations[p, START], populations[p, STOP]):
                state[HELD, i] = constants[p, THRESHOLD] / 2.0


@inner
def near(margin: float, targets: Array, traces: Array) -> bool:
    """Whether the traces of all outputs are within the margin of their targets."""
    largest = 0.0
    for i in range(targets.size):
        largest = max(largest, abs(traces[i] - targets[i]))
    return largest <= margin


@inner
def record_synapses(
    chosen: Ints, sizes: Array, traces: Array, tags: Array, weights: Array, log: Array
) -> None:
    """Record traces, tag and weight of each chosen synapse; `chosen` holds their indices."""
    for k in range(chosen.shape[0]):
        log[k, 0] = traces[chosen[k, 0]]
        log[k, 1] = traces[chosen[k, 1]]
        log[k, 2] = tags[chosen[k, 2]]
        log[k, 3] = weights[chosen[k, 3]] * sizes[k]


@inner
def set_external_input(
    beta: float, given: Array, pull: Array, integer: bool, outside: Array
) -> None:
    """External input in a phase: outside = given + beta pull; in integers the product is cut."""
    for i in range(outside.size):
        pulled = beta * pull[i]
        outside[i] = given[i] + (np.trunc(pulled) if integer else pulled)


@inner
def deliver_all(
    populations: Ints,
    projections: Ints,
    beta: float,
    effective: Array,
    senders: Ints,
    sender_counts: Ints,
    state: Array,
) -> None:
    """Add the messages of the last step to the input of their targets.

    With beta = 0, gated projections onto spiking units have no effect and are skipped.
    """
    for j in range(projections.shape[0]):
        p, target = projections[j, SOURCE], projections[j, TARGET]
        gated = projections[j, BY_BETA]
        if sender_counts[p] == 0 or (gated and beta == 0.0 and not populations[target, GRADED]):
            continue
        into = state[INPUT_BETA] if gated else state[INPUT]
        deliver(
            effective,
            projections[j, OFFSET],
            senders,
            populations[p, START],
            sender_counts[p],
            state[MESSAGE],
            into[populations[target, START] : populations[target, STOP]],
        )


@inner
def step_populations(
    populations: Ints,
    constants: Array,
    beta: float,
    integer: bool,
    t: int,
    state: Array,
    sends: Marks,
    senders: Ints,
    sender_counts: Ints,
    sent_counts: Ints,
    counts: Ints,
) -> None:
    """One step of all units at step t of a sample; lists and counts the units that send."""
    for p in range(populations.shape[0]):
        a, z, c = populations[p, START], populations[p, STOP], constants[p]
        if populations[p, SENDS_ONCE] and t > 0:
            if t == 1:
                sends[a:z] = 0
                state[MESSAGE, a:z] = 0.0
                sender_counts[p] = 0
            continue
        if populations[p, GRADED]:
            send_graded(c, beta, integer, a, z, state, sends, counts)
        elif integer:
            fire_integer(c, beta, a, z, state, sends, counts)
        else:
            fire(c, beta, populations[p, HAS_INPUT], a, z, state, sends)
        count = 0
        for i in range(a, z):
            senders[a + count] = i
            count += sends[i]
        for i in range(uint64(a), uint64(z)):
            sent_counts[i] += sends[i]
        sender_counts[p] = count


@inner
def update_traces(
    populations: Ints,
    constants: Array,
    numbers: Array,
    mode: int,
    commit_step: bool,
    t: int,
    sends: Marks,
    sent: Array,
    row: np.uint64,
    p_pre: float,
    traces: Array,
    counts: Ints,
) -> None:
    """Update the traces of all units; count by population those that change.

    Graded traces stay unchanged in the step of a commit.
    """
    for p in range(populations.shape[0]):
        a, z = populations[p, START], populations[p, STOP]
        if not populations[p, GRADED] and mode != FLOAT:
            counts[p] += decay_integer(numbers, mode, a, z, sends, row, p_pre, traces)
        elif not populations[p, GRADED]:
            counts[p] += decay(numbers, a, z, sends, traces)
        elif not commit_step and (mode != FLOAT or not populations[p, SENDS_ONCE] or t == 0):
            counts[p] += follow(constants[p], numbers, mode, a, z, sent, row, traces)


@inner
def count_events(part: Ints, projections: Ints, events: int, counts: Ints) -> None:
    """Count events of a part at its target population, and at its source if it has a mirror."""
    j = part[PROJECTION]
    counts[projections[j, TARGET]] += events
    if part[MIRROR] >= 0:
        counts[projections[j, SOURCE]] += events


@inner
def add_pending_tags(
    pending: int,
    gated: Array,
    past: Array,
    populations: Ints,
    projections: Ints,
    parts: Ints,
    tags: Array,
    touched: Marks,
) -> None:
    """Add the traces of the pending steps of a window to the tags of all parts."""
    gated[pending:] = 0.0
    for part in range(parts.shape[0]):
        j = parts[part, PROJECTION]
        p, target = projections[j, SOURCE], projections[j, TARGET]
        ends = (
            populations[p, START],
            populations[p, STOP],
            populations[target, START],
            populations[target, STOP],
        )
        gather(pending, gated, past, ends, parts[part, TAGS], tags, touched[part])


@inner
def count_or_add_tags(
    factor: float,
    mode: int,
    populations: Ints,
    projections: Ints,
    parts: Ints,
    traces: Array,
    tags: Array,
    p_post: float,
    p_own: float,
    counts: Ints,
) -> None:
    """Count the tags that change in a step of a window; the engine also changes them here.

    `factor` is the engine's third factor, the gate times y2.
    """
    for part in range(parts.shape[0]):
        j = parts[part, PROJECTION]
        p, target = projections[j, SOURCE], projections[j, TARGET]
        pre = traces[populations[p, START] : populations[p, STOP]]
        post = traces[populations[target, START] : populations[target, STOP]]
        if mode == ENGINE:
            third = rounded(ENGINE_DECAY * factor, p_post)
            events = gather_engine(third, pre, post, parts[part, TAGS], tags, p_post, p_own)
        else:
            events = grown(pre, post)
        count_events(parts[part], projections, events, counts)


@inner
def commit_all(
    etas: Array,
    mode: int,
    start: np.uint64,
    number: int,
    populations: Ints,
    projections: Ints,
    parts: Ints,
    limits: Array,
    tag_factor: float,
    p_post: float,
    p_own: float,
    touched: Marks,
    tags: Array,
    weights: Array,
    gains: Array,
    effective: Array,
    counts: Ints,
    totals: Ints,
) -> None:
    """Commit the tags of all parts after sample `number`; count the weights that change."""
    for part in range(parts.shape[0]):
        j, begin, mirror = parts[part, PROJECTION], parts[part, TAGS], parts[part, MIRROR]
        p, target, offset = projections[j, SOURCE], projections[j, TARGET], projections[j, OFFSET]
        sizes = (
            populations[p, STOP] - populations[p, START],
            populations[target, STOP] - populations[target, START],
        )
        if mode == ENGINE:
            events = change_engine(
                tag_factor,
                rounded(ENGINE_DECAY * COMMIT_PULSE, p_post),
                p_own,
                begin,
                offset,
                sizes[0] * sizes[1],
                tags,
                weights,
                gains,
                effective,
                totals,
            )
        else:
            events = change(
                etas[part],
                mode,
                row_of(start, 1 + j, number),
                limits[part],
                begin,
                offset,
                sizes,
                touched[part],
                tags,
                weights,
                gains,
                effective,
                totals,
            )
            if mirror >= 0:
                mirror_back(
                    limits[part, MIRROR_FACTOR],
                    offset,
                    projections[mirror, OFFSET],
                    sizes,
                    touched[part],
                    weights,
                    gains,
                    effective,
                )
            touched[part] = 0
        count_events(parts[part], projections, events, counts)


@inner
def reset_graded_traces(populations: Ints, traces: Array) -> None:
    """Set the traces of graded units to zero."""
    for p in range(populations.shape[0]):
        if populations[p, GRADED]:
            traces[populations[p, START] : populations[p, STOP]] = 0.0


@outer
def learn_all(  # noqa: C901, PLR0912, PLR0915 - samples, phases and steps in one loop
    populations: Ints,
    constants: Array,
    projections: Ints,
    parts: Ints,
    limits: Array,
    lengths: Ints,
    betas: Array,
    gates: Array,
    numbers: Array,
    settings: Ints,
    start: np.uint64,
    given: Array,
    pull: Array,
    targets: Array,
    etas: Array,
    third_factors: Array,
    draws: Array,
    output: int,
    weights: Array,
    gains: Array,
    effective: Array,
    state: Array,
    traces: Array,
    tags: Array,
    committed: Array,
    touched: Marks,
    drives: Array,
    nudged: Ints,
    sent_counts: Ints,
    counted: Ints,
    totals: Ints,
    chosen: Ints,
    scales: Array,
    history: Array,
    activity: Array,
    halt: Ints,
) -> None:
    """Learn from all samples, in order; return early once `halt` is not zero.

    Parameters
    ----------
    populations, constants, projections, parts, limits
        Tables of the network, see the columns above.
    lengths, betas, gates
        Steps and window (phases, 2), beta (phases) and third factor (phases + 1) of each phase; the
        last gate is that of the commit.
    numbers, settings, start
        Constants of the rule, see above, and the mixed seed of stochastic rounding.
    given, pull, targets
        Bias + current and pull (samples, units); traces of the output at its targets
        (samples, outputs).
    etas, third_factors, draws
        Learning rates (samples, parts); the engine's y2 (samples) and random numbers of the pre-
        and postsynaptic traces and of tags and weights (3, steps of all samples).
    output
        Row of the output population.
    weights, gains, effective
        Weights, gains, and weights * gains, which deliver messages. Changed in place.
    state, traces, tags, committed, touched
        State of the units (rows, units); traces; tags; tags before the last commit; whether a
        source unit has nonzero tags (parts, units). Changed in place.
    drives, nudged, sent_counts, counted, totals
        Results: summed drive of the output (samples, outputs); whether the nudged phases ran
        (samples); messages (phases + 1, units); TRACED, TAGGED and CHANGED (3, phases + 1,
        populations); CLIPPED and OVERFLOWS.
    chosen, scales, history, activity
        Synapses to record and the value of a weight step of each; recorded synapses
        (samples, steps, synapses, 4) and activity (samples, steps, 3, units), which may be empty.
    """
    units, mode = given.shape[1], settings[MODE]
    integer, phases = mode != FLOAT, betas.size
    a_out, z_out = populations[output, START], populations[output, STOP]
    sends, senders = np.zeros(units, dtype=np.uint8), np.zeros(units, dtype=np.int64)
    sender_counts = np.zeros(populations.shape[0], dtype=np.int64)
    length = 1
    for k in range(phases):
        length += lengths[k, 0]
    p_pre = p_post = p_own = 0.0
    past, gated = np.zeros((BLOCK, units)), np.zeros((BLOCK, units))
    uncommitted = pending = 0
    for sample in range(given.shape[0]):
        if settings[FRESH] or not (sample or settings[CONTINUED]):
            rest(populations, constants, state)
        sender_counts[:] = 0
        t, number, final = 0, settings[FIRST] + sample, sample == given.shape[0] - 1
        uncommitted += 1
        within_margin = False
        for k in range(phases + 1):
            commit_step = k == phases
            if k == 1 and numbers[MARGIN] > 0.0:
                within_margin = near(numbers[MARGIN], targets[sample], traces[a_out:z_out])
                nudged[sample] = not within_margin
            if within_margin and not commit_step:
                t += lengths[k, 0]
                continue
            beta = 0.0 if commit_step else betas[k]
            steps = 1 if commit_step else lengths[k, 0]
            set_external_input(beta, given[sample], pull[sample], integer, state[EXTERNAL])
            for tick in range(steps):
                if halt[0] != 0:
                    return
                in_window = not commit_step and tick >= steps - lengths[k, 1]
                row = row_of(start, 0, number * length + t)
                if mode == ENGINE:
                    now = sample * length + t
                    p_pre, p_post, p_own = draws[0, now], draws[1, now], draws[2, now]
                if commit_step:
                    sends[:] = 0
                else:
                    deliver_all(
                        populations, projections, beta, effective, senders, sender_counts, state
                    )
                    step_populations(
                        populations,
                        constants,
                        beta,
                        integer,
                        t,
                        state,
                        sends,
                        senders,
                        sender_counts,
                        sent_counts[k],
                        totals,
                    )
                    if k == 0 and in_window:
                        for i in range(a_out, z_out):
                            drives[sample, i - a_out] += state[DRIVE, i]
                update_traces(
                    populations,
                    constants,
                    numbers,
                    mode,
                    commit_step,
                    t,
                    sends,
                    state[SENT],
                    row,
                    p_pre,
                    traces,
                    counted[TRACED, k],
                )
                gate = gates[k] if in_window else 0.0
                if gate != 0.0 and mode != ENGINE:
                    gated[pending] = gate * traces
                    past[pending] = traces
                    pending += 1
                # A recorded synapse shows its tag in every step, so that none may be pending.
                if pending == BLOCK or (pending > 0 and (commit_step or chosen.shape[0] > 0)):
                    add_pending_tags(
                        pending, gated, past, populations, projections, parts, tags, touched
                    )
                    pending = 0
                if gate != 0.0:
                    count_or_add_tags(
                        gate * third_factors[sample],
                        mode,
                        populations,
                        projections,
                        parts,
                        traces,
                        tags,
                        p_post,
                        p_own,
                        counted[TAGGED, k],
                    )
                if commit_step and (uncommitted == settings[BATCH] or final):
                    if final and settings[FINAL]:
                        committed[:] = tags
                    commit_all(
                        etas[sample],
                        mode,
                        start,
                        number,
                        populations,
                        projections,
                        parts,
                        limits,
                        numbers[TAG_FACTOR],
                        p_post,
                        p_own,
                        touched,
                        tags,
                        weights,
                        gains,
                        effective,
                        counted[CHANGED, k],
                        totals,
                    )
                    uncommitted = 0
                if commit_step and settings[FRESH]:
                    reset_graded_traces(populations, traces)
                if chosen.shape[0]:
                    record_synapses(chosen, scales, traces, tags, weights, history[sample, t])
                if activity.shape[0] and not commit_step:
                    activity[sample, t, 0] = state[MESSAGE]
                    activity[sample, t, 1] = state[DRIVE]
                    activity[sample, t, 2] = state[HELD]
                t += 1
