"""The compiled loops of learning: the rule of `neuro_eqprop.spiking.plasticity`, event by event.

Units, weights and tags lie in flat arrays; the synapses of a source unit lie together. Synapses
whose source has no trace are skipped, which changes no result. No operation on a unit or synapse is
reordered, so that results equal those of the reference bit for bit. All loops become one compiled
function, which is cached on disk and recompiled when this file changes; every function it calls
must therefore be in this file.
"""

# ruff: noqa: PLR0913, PLR0917 - compiled loops take flat arrays; objects cost more than the step

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numpy import uint64

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.jit import inner, outer

Places: TypeAlias = npt.NDArray[np.uint64]
Marks: TypeAlias = npt.NDArray[np.uint8]

REAL, WHOLE, ENGINE = range(3)
"""Kinds of numbers."""
START, STOP, GRADED, STILL, REACHED = range(5)
"""Columns of the table of populations; one that is STILL sends only in the first step."""
SOURCE, TARGET, BY_BETA, OFFSET = range(4)
"""Columns of the table of projections; OFFSET is where its weights begin."""
PROJECTION, MIRROR, TAGS = range(3)
"""Columns of the table of plastic parts; TAGS is where their tags begin, MIRROR -1 if none."""
LEAST_WEIGHT, MOST_WEIGHT, MIRRORED = range(3)
"""Columns of the constants of plastic parts."""
LOW, HIGH, BENT = range(3)
"""Constants of a population: the activation; of tanh, only BENT."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(3, 9)
"""Further constants of spiking units."""
THETA, INVERSE, DAMPING, UNIT = range(3, 7)
"""Further constants of graded units; INVERSE is 1 / theta if that is exact, else 0."""
KEEP, IMPULSE, LARGEST, SCALED, MARGIN = range(5)
"""Numbers of the rule: trace decay, impulse, maximum, the engine's factor of tags, the margin."""
BATCH, FRESH, MODE, FIRST, BEGUN, FINAL = range(6)
"""Integers of the rule."""
TRACED, TAGGED, CHANGED = range(3)
"""Counters by phase and population."""
BLOCK = 8
"""Steps of a window that are added in one pass over the tags, in their order: a multiple of 4."""
CLIPPED, OVERFLOWS = range(2)
"""Counters over the whole run."""

LEAST, TAIL, PULSE = 2.0**-60, float(np.exp(-1.0 / 65535)), 32.0
TOP, ROUND, FRACTION = 2.0**23, 2.0**24, 2.0**6
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
    """Where the draws of a group begin at step t."""
    return mixed(mixed(start + STRIDE * uint64(group + 1)) + STRIDE * uint64(t))


@inner
def drawn(row: np.uint64, place: int) -> float:
    """One of the draws, uniform in [0, 1)."""
    return float(mixed(row + STRIDE * uint64(place)) >> uint64(11)) * 2.0**-53


@inner
def rounded(x: float, p: float) -> float:
    """x rounded up if p is below its fractional part, else rounded down."""
    floor = float(np.floor(x))
    return floor + 1.0 if p < x - floor else floor


@inner
def within(x: float) -> float:
    """Cut to 16 bits."""
    return min(max(x, BOTTOM16), TOP16)


@inner
def tanh(u: float) -> float:
    """`neuro_eqprop.activations.tanh`, bit for bit."""
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
    passed: Array, offset: int, senders: Ints, a: int, stop: int, message: Array, into: Array
) -> None:
    """Add the weighted messages of a population to the input `into` of its target, in order."""
    size, fours = uint64(into.size), stop - stop % 4
    for k in range(a, a + fours, 4):
        s, t, u, v = senders[k], senders[k + 1], senders[k + 2], senders[k + 3]
        first, second = uint64(offset + (s - a) * into.size), uint64(offset + (t - a) * into.size)
        third, fourth = uint64(offset + (u - a) * into.size), uint64(offset + (v - a) * into.size)
        for i in range(size):
            x = into[i] + passed[first + i] * message[s]
            x = x + passed[second + i] * message[t]
            x = x + passed[third + i] * message[u]
            into[i] = x + passed[fourth + i] * message[v]
    for k in range(a + fours, a + stop):
        s, q = senders[k], message[senders[k]]
        column = uint64(offset) + uint64(s - a) * size
        for i in range(size):
            into[i] += passed[column + i] * q


@inner
def fire(c: Array, beta: float, reached: int, a: int, z: int, state: Array, sends: Marks) -> None:
    """One step of spiking units in floating point; resets the input to zero."""
    one, by_beta, u, held, drive, outside, message = (
        state[0, a:z],
        state[1, a:z],
        state[2, a:z],
        state[3, a:z],
        state[6, a:z],
        state[7, a:z],
        state[8, a:z],
    )
    threshold, floor, ceiling = c[THRESHOLD], c[FLOOR], c[CEILING]
    keep, kept, subtract, size = c[KEEP_CURRENT], c[KEEP_VOLTAGE], c[SUBTRACT], uint64(z - a)
    if reached:
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
    """The same in integers."""
    one, by_beta, u, held, drive, outside, message = (
        state[0, a:z],
        state[1, a:z],
        state[2, a:z],
        state[3, a:z],
        state[6, a:z],
        state[7, a:z],
        state[8, a:z],
    )
    threshold, floor, ceiling, over = c[THRESHOLD], c[FLOOR], c[CEILING], 0
    keep, kept, subtract, size = c[KEEP_CURRENT], c[KEEP_VOLTAGE], c[SUBTRACT], uint64(z - a)
    for i in range(size):
        current = np.trunc(keep * u[i]) + FRACTION * (one[i] + np.trunc(beta * by_beta[i]))
        fits = current - ROUND * np.floor((current + (TOP - 1.0)) / ROUND)
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
        state[0],
        state[1],
        state[2],
        state[3],
        state[4],
        state[5],
        state[6],
        state[7],
        state[8],
    )
    theta, inverse, damping = c[THETA], c[INVERSE], c[DAMPING]
    for i in range(a, z):
        first, second = g_one[i] + one[i], g_beta[i] + by_beta[i]
        one[i] = 0.0
        by_beta[i] = 0.0
        if integer:
            g_one[i] = first - ROUND * np.floor((first + (TOP - 1.0)) / ROUND)
            g_beta[i] = second - ROUND * np.floor((second + (TOP - 1.0)) / ROUND)
            counts[OVERFLOWS] += int(g_one[i] != first) + int(g_beta[i] != second)
            d = (g_one[i] + np.trunc(beta * g_beta[i])) + outside[i]
        else:
            g_one[i], g_beta[i] = first, second
            d = (first + beta * second) + outside[i]
        drive[i] = d
        if c[BENT] == 0.0:
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
    """The same in integers."""
    changed, keep, impulse, largest = 0, numbers[KEEP], numbers[IMPULSE], numbers[LARGEST]
    for i in range(a, z):
        old = traces[i]
        if old == 0.0 and not sends[i]:
            continue
        new = rounded(keep * old, drawn(row, i) if mode == WHOLE else p)
        new = min(new + impulse, largest) if sends[i] else new
        changed += new != old
        traces[i] = new
    return changed


@inner
def follow(
    c: Array, numbers: Array, mode: int, a: int, z: int, sent: Array, row: np.uint64, traces: Array
) -> int:
    """Update the traces of graded units; return how many changed."""
    changed, largest = 0, numbers[LARGEST]
    for i in range(a, z):
        new = sent[i]
        if mode != REAL and new != 0.0:
            new = np.floor(largest * (new * c[UNIT]) + drawn(row, i))
            new = min(max(new, 0.0), largest)
        changed += new != traces[i]
        traces[i] = new
    return changed


@inner
def grown(pre: Array, post: Array) -> int:
    """Number of tags of a projection that change in a step: both traces are nonzero."""
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
    """Add the products of both traces (BLOCK, units) to the tags of a projection, step by step.

    `ends` are those of its sources and targets among the units; `pre` is times the gate. Four steps
    are taken at a time; those after `steps` up to the next four are zero.
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
    """The same as Lava's engine computes it, for one step; return how many tags changed."""
    changed, size, scaled_post = 0, uint64(post.size), np.empty(post.size)
    for i in range(size):
        scaled_post[i] = rounded(TAIL * post[i], p) * third
    for s in range(pre.size):
        x, column = pre[s] / 1024.0, uint64(begin) + uint64(s) * size
        for i in range(size):
            m = tags[column + i]
            new = rounded(within(128.0 * m + np.floor(x * scaled_post[i])) / 128.0, own)
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
    passed: Array,
    counts: Ints,
) -> int:
    """Commit the tags of a projection of `sizes` (sources, targets); count the changed weights."""
    changed = clipped = 0
    size, low, high = uint64(sizes[1]), ends[LEAST_WEIGHT], ends[MOST_WEIGHT]
    for s in range(sizes[0]):
        if not touched[s]:
            continue
        column, at = uint64(begin) + uint64(s) * size, uint64(offset) + uint64(s) * size
        if mode == WHOLE:
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
            passed[at + i] = new * gains[at + i]
    counts[CLIPPED] += clipped
    return changed


@inner
def mirror_back(
    mirrored: float,
    offset: int,
    back: int,
    sizes: tuple[int, int],
    touched: Marks,
    weights: Array,
    gains: Array,
    passed: Array,
) -> None:
    """Update the mirrored feedback weights of a projection."""
    for s in range(sizes[0]):
        if touched[s]:
            for i in range(sizes[1]):
                at = back + i * sizes[0] + s
                weights[at] = mirrored * weights[offset + s * sizes[1] + i]
                passed[at] = weights[at] * gains[at]


@inner
def change_engine(
    scaled: float,
    pulse: float,
    own: float,
    begin: int,
    offset: int,
    size: int,
    tags: Array,
    weights: Array,
    gains: Array,
    passed: Array,
    counts: Ints,
) -> int:
    """The same as Lava's engine computes it."""
    changed = clipped = 0
    for k in range(uint64(size)):
        m, w = tags[uint64(begin) + k], weights[uint64(offset) + k]
        left = within(np.floor(-m * pulse / 32.0) * 128.0)
        after = rounded(within(128.0 * m + left) / 128.0, own)
        tags[uint64(begin) + k] = min(max(after, -257.0), 255.0)
        increment = within(np.floor(m * pulse / 32.0) * scaled)
        wanted = rounded(within(128.0 * w + increment) / 128.0, own)
        new = min(max(wanted, -256.0), 255.0)
        clipped += new != wanted
        changed += new != w
        weights[uint64(offset) + k] = new
        passed[uint64(offset) + k] = new * gains[uint64(offset) + k]
    counts[CLIPPED] += clipped
    return changed


@inner
def rest(populations: Ints, constants: Array, state: Array) -> None:
    """Set every unit to its initial state."""
    for row in range(6):
        for i in range(state.shape[1]):
            state[row, i] = 0.0
    for p in range(populations.shape[0]):
        if not populations[p, GRADED]:
            for i in range(populations[p, START], populations[p, STOP]):
                state[3, i] = constants[p, THRESHOLD] / 2.0


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
    """Record the chosen synapses, given the places of source, target, tag and weight."""
    for k in range(chosen.shape[0]):
        log[k, 0] = traces[chosen[k, 0]]
        log[k, 1] = traces[chosen[k, 1]]
        log[k, 2] = tags[chosen[k, 2]]
        log[k, 3] = weights[chosen[k, 3]] * sizes[k]


@outer
def learn_all(  # noqa: C901, PLR0912, PLR0915 - more calls cost a third of the speed
    populations: Ints,
    constants: Array,
    projections: Ints,
    parts: Ints,
    ends: Array,
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
    thirds: Array,
    draws: Array,
    output: int,
    weights: Array,
    gains: Array,
    passed: Array,
    state: Array,
    traces: Array,
    tags: Array,
    kept: Array,
    touched: Marks,
    drives: Array,
    nudged: Ints,
    sent_counts: Ints,
    counted: Ints,
    totals: Ints,
    chosen: Ints,
    sizes: Array,
    history: Array,
    activity: Array,
    halt: Ints,
) -> None:
    """Learn from all samples.

    `given` is bias + current and `pull` the pull (samples, units); `targets` are the traces of the
    output at its targets (samples, outputs); `etas` is (samples, parts) and
    `thirds` the engine's y2 (samples); `draws` has the engine's numbers of all steps (3, steps).
    Written are weights, what they pass on, the state of the units, traces, tags, tags as they were
    last committed, sources whose tags grew (parts, units), drives of the output (samples, units),
    whether the nudged phases of each sample ran,
    messages (phases, units), counts (3, phases, populations), totals, the history
    (samples, steps, synapses, 4) and, unless it is empty, the activity
    (samples, steps, message and drive and voltage or state, units). It returns early once `halt` is
    not zero.
    """
    units, batch, mode = given.shape[1], settings[BATCH], settings[MODE]
    integer, phases = mode != REAL, betas.size
    sends = np.zeros(units, dtype=np.uint8)
    one, by_beta, sent, drive = state[0], state[1], state[5], state[6]
    outside, message = state[7], state[8]
    senders, ending = (
        np.zeros(units, dtype=np.int64),
        np.zeros(populations.shape[0], dtype=np.int64),
    )
    length = 1
    for k in range(phases):
        length += lengths[k, 0]
    p_post = p_own = p_pre = 0.0
    past, factored = np.zeros((BLOCK, units)), np.zeros((BLOCK, units))
    since = waiting = 0
    for sample in range(given.shape[0]):
        if settings[FRESH] or not (sample or settings[BEGUN]):
            rest(populations, constants, state)
        ending[:] = 0
        t, number = 0, settings[FIRST] + sample
        since += 1
        right = False
        for k in range(phases + 1):
            last = k == phases
            if k == 1 and numbers[MARGIN] > 0.0:
                a, z = populations[output, START], populations[output, STOP]
                right = near(numbers[MARGIN], targets[sample], traces[a:z])
                nudged[sample] = not right
            if right and not last:
                t += lengths[k, 0]
                continue
            beta = 0.0 if last else betas[k]
            steps = 1 if last else lengths[k, 0]
            for i in range(units):
                pulled = beta * pull[sample, i]
                outside[i] = given[sample, i] + (np.trunc(pulled) if integer else pulled)
            for tick in range(steps):
                if halt[0] != 0:
                    return
                clock = number * length + t
                inside = not last and tick >= steps - lengths[k, 1]
                row = row_of(start, 0, clock)
                if mode == ENGINE:
                    here = sample * length + t
                    p_pre, p_post, p_own = draws[0, here], draws[1, here], draws[2, here]
                if last:
                    sends[:] = 0
                else:
                    for j in range(projections.shape[0]):
                        p, target = projections[j, SOURCE], projections[j, TARGET]
                        gated = projections[j, BY_BETA]
                        if ending[p] == 0 or (
                            gated and beta == 0.0 and not populations[target, GRADED]
                        ):
                            continue
                        into = by_beta if gated else one
                        deliver(
                            passed,
                            projections[j, OFFSET],
                            senders,
                            populations[p, START],
                            ending[p],
                            message,
                            into[populations[target, START] : populations[target, STOP]],
                        )
                    for p in range(populations.shape[0]):
                        a, z, c = populations[p, START], populations[p, STOP], constants[p]
                        if populations[p, STILL] and t > 0:
                            if t == 1:
                                sends[a:z] = 0
                                message[a:z] = 0.0
                                ending[p] = 0
                            continue
                        if populations[p, GRADED]:
                            send_graded(c, beta, integer, a, z, state, sends, totals)
                        elif integer:
                            fire_integer(c, beta, a, z, state, sends, totals)
                        else:
                            fire(c, beta, populations[p, REACHED], a, z, state, sends)
                        count = 0
                        for i in range(a, z):
                            senders[a + count] = i
                            count += sends[i]
                        for i in range(uint64(a), uint64(z)):
                            sent_counts[k, i] += sends[i]
                        ending[p] = count
                    if k == 0 and inside:
                        a, z = populations[output, START], populations[output, STOP]
                        for i in range(a, z):
                            drives[sample, i - a] += drive[i]
                for p in range(populations.shape[0]):
                    a, z = populations[p, START], populations[p, STOP]
                    if not populations[p, GRADED] and integer:
                        changed = decay_integer(numbers, mode, a, z, sends, row, p_pre, traces)
                        counted[TRACED, k, p] += changed
                    elif not populations[p, GRADED]:
                        counted[TRACED, k, p] += decay(numbers, a, z, sends, traces)
                    elif not last and (integer or not populations[p, STILL] or t == 0):
                        changed = follow(constants[p], numbers, mode, a, z, sent, row, traces)
                        counted[TRACED, k, p] += changed
                gate = gates[k] if inside else 0.0
                full = last and (since == batch or sample == given.shape[0] - 1)
                if gate != 0.0 and mode != ENGINE:
                    factored[waiting] = gate * traces
                    past[waiting] = traces
                    waiting += 1
                flush = waiting == BLOCK or (waiting > 0 and (last or chosen.shape[0] > 0))
                if flush:
                    factored[waiting:] = 0.0
                for part in range(parts.shape[0] if gate != 0.0 or flush or full else 0):
                    j, begin, mirror = (
                        parts[part, PROJECTION],
                        parts[part, TAGS],
                        parts[part, MIRROR],
                    )
                    p, target = projections[j, SOURCE], projections[j, TARGET]
                    a, z = populations[p, START], populations[p, STOP]
                    b, y = populations[target, START], populations[target, STOP]
                    offset, pair, done = projections[j, OFFSET], (z - a, y - b), 0
                    if flush:
                        gather(waiting, factored, past, (a, z, b, y), begin, tags, touched[part])
                    if gate != 0.0 and mode == ENGINE:
                        third = rounded(TAIL * (gate * thirds[sample]), p_post)
                        done = gather_engine(
                            third, traces[a:z], traces[b:y], begin, tags, p_post, p_own
                        )
                    elif gate != 0.0:
                        done = grown(traces[a:z], traces[b:y])
                    if full and settings[FINAL] and sample == given.shape[0] - 1:
                        stop = begin + (z - a) * (y - b)
                        kept[begin:stop] = tags[begin:stop]
                    if full and mode == ENGINE:
                        done = change_engine(
                            numbers[SCALED],
                            rounded(TAIL * PULSE, p_post),
                            p_own,
                            begin,
                            offset,
                            (z - a) * (y - b),
                            tags,
                            weights,
                            gains,
                            passed,
                            totals,
                        )
                    elif full:
                        done = change(
                            etas[sample, part],
                            mode,
                            row_of(start, 1 + j, number),
                            ends[part],
                            begin,
                            offset,
                            pair,
                            touched[part],
                            tags,
                            weights,
                            gains,
                            passed,
                            totals,
                        )
                        if mirror >= 0:
                            back = projections[mirror, OFFSET]
                            mirror_back(
                                ends[part, MIRRORED],
                                offset,
                                back,
                                pair,
                                touched[part],
                                weights,
                                gains,
                                passed,
                            )
                        touched[part] = 0
                    what = CHANGED if full else TAGGED
                    counted[what, k, target] += done
                    if mirror >= 0:
                        counted[what, k, p] += done
                if flush:
                    waiting = 0
                if full:
                    since = 0
                if last and settings[FRESH]:
                    for p in range(populations.shape[0]):
                        if populations[p, GRADED]:
                            traces[populations[p, START] : populations[p, STOP]] = 0.0
                if chosen.shape[0]:
                    record_synapses(chosen, sizes, traces, tags, weights, history[sample, t])
                if activity.shape[0] and not last:
                    activity[sample, t, 0] = message
                    activity[sample, t, 1] = drive
                    activity[sample, t, 2] = state[3]
                t += 1
