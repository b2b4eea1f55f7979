"""Compiled loops of the rule of `neuro_eqprop.spiking.plasticity`, event by event.

Units, weights and tags are stored in flat arrays, and the synapses of a source unit next to each
other; a:z is a range of units. Synapses whose source has a trace of zero are skipped, which does
not change the result. Operations on a unit or synapse are never reordered, so that results equal
those of the reference bit for bit.

Everything is compiled as a part of `learn_all`, which Numba caches on disk and recompiles when this
file changes. So every function that it calls must be in this file.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy import uint64

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.jit import leaf, outer_leaf

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
LOW, HIGH, IS_TANH = range(3)
"""Constants of a population: the range of its activation, which tanh does not use."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(3, 9)
"""Further constants of spiking units."""
THETA, INVERSE, DAMPING, UNIT = range(3, 7)
"""Further constants of graded units; INVERSE is 1 / theta if that is exact, else 0."""
TRACED, TAGGED, CHANGED = range(3)
"""Counters by phase and population: changed traces, tags and weights."""
CLIPPED, OVERFLOWS = range(2)
"""Counters over the whole run."""
PRE, POST, OWN = range(3)
"""Random numbers of the engine in a step: of presynaptic and postsynaptic traces, and of tags and
weights."""
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


class PlasticTables(NamedTuple):
    """A plastic network."""

    populations: Ints
    constants: Array
    """By population."""
    projections: Ints
    gains: Array
    """Of all synapses."""
    parts: Ints
    limits: Array
    """By plastic part."""
    output: int
    """Row of the output population."""


class RuleTables(NamedTuple):
    """A learning rule."""

    mode: int
    """The number format."""
    batch: int
    fresh: int
    """Whether samples start from rest."""
    phases: Ints
    """Phase of each step of a sample; the last step, the commit, has one of its own."""
    betas: Array
    """Of each step."""
    gates: Array
    """Third factor of each step."""
    reads: Ints
    """Whether each step lies in the window of the free phase, where the output is read."""
    free: int
    """Steps of the free phase."""
    keep: float
    impulse: float
    largest: float
    """The largest trace."""
    tag_factor: float
    """What the engine multiplies a committed tag by."""
    margin: float
    start: np.uint64
    """The mixed seed of stochastic rounding."""


class SampleTables(NamedTuple):
    """Consecutive samples of a run."""

    begin: int
    """Number of samples that this run has learned."""
    first: int
    """Number of samples learned in all, from which random numbers continue."""
    is_last: int
    """Whether the last sample of the run is among them."""
    given: Array
    """Bias + current (samples, units)."""
    pull: Array
    targets: Array
    """Traces of the output at its targets (samples, outputs)."""
    commits: Array
    """Factors of tags and of weights in a commit (samples, parts, 2)."""
    third_factors: Array
    """The engine's y2 of each sample."""
    draws: Array
    """The engine's random numbers (3, steps of all samples)."""


class UnitState(NamedTuple):
    """State of all units."""

    one: Array
    """Input of this step with a gain of one."""
    by_beta: Array
    """Input of this step with a gain of beta."""
    current: Array
    """Current of a spiking unit; sum of `one` of a graded unit."""
    held: Array
    """Voltage, or state of a graded unit."""
    sum_beta: Array
    """Sum of `by_beta` of a graded unit."""
    sent: Array
    """Sum of the messages of a graded unit."""
    drive: Array
    outside: Array
    """External input."""
    message: Array


class Memory(NamedTuple):
    """What changes from step to step."""

    units: UnitState
    sends: Marks
    """Whether each unit sends a message in this step."""
    senders: Ints
    """By population, from its first unit on, the units that send."""
    sender_counts: Ints
    """By population, the number of units that send."""
    traces: Array
    gated: Array
    """The third factor times the traces, in the steps that are not yet added to the tags."""
    past: Array
    """The traces in these steps."""
    scaled: Array
    """Workspace with an entry for each unit."""
    chance: Array
    """Random numbers PRE, POST and OWN of the step."""
    weights: Array
    effective: Array
    """Weights times gains, which deliver messages."""
    tags: Array
    touched: Marks
    """Whether a source unit has nonzero tags (parts, units)."""


class Results(NamedTuple):
    """Results of a run."""

    drives: Array
    """Summed drive of the output in the free phase (samples, outputs)."""
    nudged: Ints
    """Whether the nudged phases ran (samples)."""
    committed: Array
    """The tags before the last commit."""
    sent: Ints
    """Messages (phases + 1, units)."""
    counted: Ints
    """TRACED, TAGGED and CHANGED (3, phases + 1, populations)."""
    totals: Ints
    """CLIPPED and OVERFLOWS."""
    chosen: Ints
    """Indices of the traces, the tag and the weight of the recorded synapses (synapses, 4)."""
    weight_steps: Array
    """The value of a weight step of each of them."""
    history: Array
    """Both traces, tag and weight (samples, steps, synapses, 4)."""
    activity: Array
    """Message, drive and state (samples, steps, 3, units), or no samples."""


@leaf
def mixed(z: np.uint64) -> np.uint64:
    """`neuro_eqprop.spiking.counter_rng.mix` of one number."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@leaf
def row_of(start: np.uint64, group: int, t: int) -> np.uint64:
    """Counter of the first random number of a group at step t."""
    return mixed(mixed(start + STRIDE * uint64(group + 1)) + STRIDE * uint64(t))


@leaf
def drawn(row: np.uint64, place: int) -> float:
    """Random number at a place after the counter `row`, uniform in [0, 1)."""
    return float(mixed(row + STRIDE * uint64(place)) >> uint64(11)) * 2.0**-53


@leaf
def rounded(x: float, p: float) -> float:
    """Stochastic rounding of x: up if p is below its fractional part, else down."""
    floor = float(np.floor(x))
    return floor + 1.0 if p < x - floor else floor


@leaf
def clip_16_bits(x: float) -> float:
    """x clipped to 16 bits."""
    return min(max(x, BOTTOM16), TOP16)


@leaf
def wrapped(x: float) -> float:
    """x wrapped to 24 bits."""
    return x - MODULUS * float(np.floor((x + (TOP - 1.0)) / MODULUS))


@leaf
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


@leaf
def copy(values: Array, into: Array) -> None:
    """into = values."""
    for i in range(into.size):
        into[i] = values[i]


@leaf
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


@leaf
def integrate(c: Array, beta: float, has_input: int, a: int, z: int, units: UnitState) -> None:
    """Current, drive and voltage of spiking units in floating point; resets the input to zero."""
    one, by_beta, u, held = units.one[a:z], units.by_beta[a:z], units.current[a:z], units.held[a:z]
    drive, outside, size = units.drive[a:z], units.outside[a:z], uint64(z - a)
    keep, kept = c[KEEP_CURRENT], c[KEEP_VOLTAGE]
    if has_input:
        for i in range(size):
            u[i] = keep * u[i] + (one[i] + beta * by_beta[i])
            drive[i] = u[i] + outside[i]
        one[:] = 0.0
        by_beta[:] = 0.0
    else:
        copy(outside, drive)
    for i in range(size):
        held[i] = kept * held[i] + drive[i]


@leaf
def integrate_integer(
    c: Array, beta: float, a: int, z: int, units: UnitState, totals: Ints
) -> None:
    """Current, drive and voltage of spiking units in 24-bit integers; resets the input to zero."""
    one, by_beta, u, held = units.one[a:z], units.by_beta[a:z], units.current[a:z], units.held[a:z]
    drive, outside, over = units.drive[a:z], units.outside[a:z], 0
    keep, kept = c[KEEP_CURRENT], c[KEEP_VOLTAGE]
    for i in range(uint64(z - a)):
        current = np.trunc(keep * u[i]) + FRACTION * (one[i] + np.trunc(beta * by_beta[i]))
        u[i] = wrapped(current)
        drive[i] = u[i] + FRACTION * outside[i]
        voltage = np.trunc(kept * held[i]) + drive[i]
        held[i] = min(max(voltage, 1.0 - TOP), TOP - 1.0)
        over += int(u[i] != current) + int(held[i] != voltage)
    one[:] = 0.0
    by_beta[:] = 0.0
    totals[OVERFLOWS] += over


@leaf
def fire(c: Array, a: int, z: int, units: UnitState, sends: Marks) -> None:
    """Spike and reset of spiking units, whose voltage has been integrated."""
    held, message = units.held[a:z], units.message[a:z]
    threshold, subtract, floor, ceiling = c[THRESHOLD], c[SUBTRACT], c[FLOOR], c[CEILING]
    for i in range(uint64(z - a)):
        v = held[i]
        spike = v >= threshold
        after = v - threshold if subtract != 0.0 else 0.0
        held[i] = min(max(after if spike else v, floor), ceiling)
        message[i] = 1.0 if spike else 0.0
    for i in range(uint64(z - a)):
        sends[uint64(a) + i] = message[i] != 0.0


@leaf
def send_graded(
    c: Array,
    beta: float,
    integer: bool,
    a: int,
    z: int,
    units: UnitState,
    sends: Marks,
    totals: Ints,
) -> None:
    """One step of graded units; resets the input to zero."""
    one, by_beta, g_one, held, g_beta, sent, drive, outside, message = units
    theta, inverse, damping = c[THETA], c[INVERSE], c[DAMPING]
    for i in range(a, z):
        first, second = g_one[i] + one[i], g_beta[i] + by_beta[i]
        one[i] = 0.0
        by_beta[i] = 0.0
        if integer:
            g_one[i], g_beta[i] = wrapped(first), wrapped(second)
            totals[OVERFLOWS] += int(g_one[i] != first) + int(g_beta[i] != second)
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
            totals[OVERFLOWS] += fits != x
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


@leaf
def decay(rule: RuleTables, a: int, z: int, memory: Memory) -> int:
    """Update the traces of spiking units in floating point; return how many changed."""
    changed, keep, impulse, traces, sends = 0, rule.keep, rule.impulse, memory.traces, memory.sends
    for i in range(uint64(a), uint64(z)):
        new = keep * traces[i]
        new = new + impulse if sends[i] else new
        new = 0.0 if new < LEAST else new
        changed += new != traces[i]
        traces[i] = new
    return changed


@leaf
def decay_integer(
    rule: RuleTables, a: int, z: int, row: np.uint64, p: float, memory: Memory
) -> int:
    """Update the traces of spiking units in integers; return how many changed."""
    changed, traces, sends = 0, memory.traces, memory.sends
    for i in range(a, z):
        old = traces[i]
        if old == 0.0 and not sends[i]:
            continue
        new = rounded(rule.keep * old, drawn(row, i) if rule.mode == INTEGER else p)
        new = min(new + rule.impulse, rule.largest) if sends[i] else new
        changed += new != old
        traces[i] = new
    return changed


@leaf
def follow(rule: RuleTables, c: Array, a: int, z: int, row: np.uint64, memory: Memory) -> int:
    """Update the traces of graded units; return how many changed."""
    changed, largest, traces, sent = 0, rule.largest, memory.traces, memory.units.sent
    for i in range(a, z):
        new = sent[i]
        if rule.mode != FLOAT and new != 0.0:
            new = np.floor(largest * (new * c[UNIT]) + drawn(row, i))
            new = min(max(new, 0.0), largest)
        changed += new != traces[i]
        traces[i] = new
    return changed


@leaf
def nonzero(values: Array) -> int:
    """Number of values that are not zero."""
    count = 0
    for i in range(values.size):
        count += values[i] != 0.0
    return count


@leaf
def gather(
    steps: int,
    memory: Memory,
    ends: tuple[int, int, int, int],
    begin: int,
    touched: Marks,
) -> None:
    """tags += (gate r_pre) r_post of a projection, step by step.

    `ends` are the first and the last unit of sources and targets. Four steps are added in a pass,
    so `gated` must be zero from `steps` to the next multiple of four.
    """
    size, b, tags, pre, post = (
        uint64(ends[3] - ends[2]),
        uint64(ends[2]),
        memory.tags,
        memory.gated,
        memory.past,
    )
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


@leaf
def gather_engine(
    factor: float, pre: Array, post: Array, begin: int, chance: Array, memory: Memory
) -> int:
    """Add one step to the tags as Lava's engine does; return how many tags changed.

    `factor` is the third factor, the gate times y2.
    """
    changed, size, tags, scaled_post = 0, uint64(post.size), memory.tags, memory.scaled
    own, third = chance[OWN], rounded(ENGINE_DECAY * factor, chance[POST])
    for i in range(size):
        scaled_post[i] = rounded(ENGINE_DECAY * post[i], chance[POST]) * third
    for s in range(pre.size):
        x, column = pre[s] / 1024.0, uint64(begin) + uint64(s) * size
        for i in range(size):
            m = tags[column + i]
            new = rounded(clip_16_bits(128.0 * m + np.floor(x * scaled_post[i])) / 128.0, own)
            new = min(max(new, -257.0), 255.0)
            changed += new != m
            tags[column + i] = new
    return changed


@leaf
def ends_of(net: PlasticTables, j: int) -> tuple[int, int, int, int]:
    """First and last unit of the sources and of the targets of projection j."""
    p, target = net.projections[j, SOURCE], net.projections[j, TARGET]
    return (
        net.populations[p, START],
        net.populations[p, STOP],
        net.populations[target, START],
        net.populations[target, STOP],
    )


@leaf
def change(
    net: PlasticTables,
    rule: RuleTables,
    part: int,
    factors: Array,
    row: np.uint64,
    memory: Memory,
    totals: Ints,
) -> int:
    """Commit the tags of a part: w = clip(keep w + eta m), m = 0; return how many w changed.

    In integers, eta m is rounded stochastically.
    """
    eta, keep = factors[0], factors[1]
    j, begin = net.parts[part, PROJECTION], net.parts[part, TAGS]
    a, z, b, y = ends_of(net, j)
    weights, tags, touched, offset = (
        memory.weights,
        memory.tags,
        memory.touched[part],
        net.projections[j, OFFSET],
    )
    changed = clipped = 0
    size, low, high = uint64(y - b), net.limits[part, LEAST_WEIGHT], net.limits[part, MOST_WEIGHT]
    for s in range(z - a):
        if not touched[s] and keep == 1.0:
            continue
        column, at = uint64(begin) + uint64(s) * size, uint64(offset) + uint64(s) * size
        if rule.mode == INTEGER:
            for i in range(size):
                m = tags[column + i]
                if m != 0.0:
                    tags[column + i] = np.floor(eta * m + drawn(row, s * (y - b) + i))
        else:
            for i in range(size):
                tags[column + i] = eta * tags[column + i]
        for i in range(size):
            old = weights[at + i]
            wanted = keep * old + tags[column + i]
            new = min(max(wanted, low), high)
            tags[column + i] = 0.0
            clipped += new != wanted
            changed += new != old
            weights[at + i] = new
            memory.effective[at + i] = new * net.gains[at + i]
    totals[CLIPPED] += clipped
    return changed


@leaf
def mirror_back(net: PlasticTables, part: int, memory: Memory) -> None:
    """Set the feedback weights that mirror a part: the factor times its transpose."""
    j, factor = net.parts[part, PROJECTION], net.limits[part, MIRROR_FACTOR]
    offset, back = net.projections[j, OFFSET], net.projections[net.parts[part, MIRROR], OFFSET]
    a, z, b, y = ends_of(net, j)
    for s in range(z - a):
        if memory.touched[part, s]:
            for i in range(y - b):
                at = back + i * (z - a) + s
                memory.weights[at] = factor * memory.weights[offset + s * (y - b) + i]
                memory.effective[at] = memory.weights[at] * net.gains[at]


@leaf
def change_engine(
    net: PlasticTables, rule: RuleTables, part: int, chance: Array, memory: Memory, totals: Ints
) -> int:
    """Commit the tags of a part as Lava's engine does; return how many w changed."""
    j, begin = net.parts[part, PROJECTION], uint64(net.parts[part, TAGS])
    a, z, b, y = ends_of(net, j)
    pulse, own = rounded(ENGINE_DECAY * COMMIT_PULSE, chance[POST]), chance[OWN]
    tags, weights, offset = memory.tags, memory.weights, uint64(net.projections[j, OFFSET])
    changed = clipped = 0
    for k in range(uint64((z - a) * (y - b))):
        m, w = tags[begin + k], weights[offset + k]
        left = clip_16_bits(np.floor(-m * pulse / 32.0) * 128.0)
        after = rounded(clip_16_bits(128.0 * m + left) / 128.0, own)
        tags[begin + k] = min(max(after, -257.0), 255.0)
        increment = clip_16_bits(np.floor(m * pulse / 32.0) * rule.tag_factor)
        wanted = rounded(clip_16_bits(128.0 * w + increment) / 128.0, own)
        new = min(max(wanted, -256.0), 255.0)
        clipped += new != wanted
        changed += new != w
        weights[offset + k] = new
        memory.effective[offset + k] = new * net.gains[offset + k]
    totals[CLIPPED] += clipped
    return changed


@leaf
def rest(net: PlasticTables, units: UnitState) -> None:
    """Set every unit to its resting state."""
    for values in (*units[:6],):
        values[:] = 0.0
    for p in range(net.populations.shape[0]):
        if not net.populations[p, GRADED]:
            for i in range(net.populations[p, START], net.populations[p, STOP]):
                units.held[i] = net.constants[p, THRESHOLD] / 2.0


@leaf
def near(margin: float, targets: Array, traces: Array) -> bool:
    """Whether the traces of all outputs are within the margin of their targets."""
    largest = 0.0
    for i in range(targets.size):
        largest = max(largest, abs(traces[i] - targets[i]))
    return largest <= margin


@leaf
def record(results: Results, place: int, t: int, commit_step: bool, memory: Memory) -> None:
    """Record the chosen synapses, and the activity outside of commits."""
    chosen, log = results.chosen, results.history
    for k in range(chosen.shape[0]):
        log[place, t, k, 0] = memory.traces[chosen[k, 0]]
        log[place, t, k, 1] = memory.traces[chosen[k, 1]]
        log[place, t, k, 2] = memory.tags[chosen[k, 2]]
        log[place, t, k, 3] = memory.weights[chosen[k, 3]] * results.weight_steps[k]
    if results.activity.shape[0] and not commit_step:
        copy(memory.units.message, results.activity[place, t, 0])
        copy(memory.units.drive, results.activity[place, t, 1])
        copy(memory.units.held, results.activity[place, t, 2])


@leaf
def set_external_input(
    beta: float, given: Array, pull: Array, integer: bool, outside: Array
) -> None:
    """External input in a phase: outside = given + beta pull; in integers the product is cut."""
    for i in range(outside.size):
        pulled = beta * pull[i]
        outside[i] = given[i] + (np.trunc(pulled) if integer else pulled)


@leaf
def deliver_all(net: PlasticTables, beta: float, memory: Memory) -> None:
    """Add the messages of the last step to the input of their targets.

    With beta = 0, gated projections onto spiking units have no effect and are skipped.
    """
    for j in range(net.projections.shape[0]):
        p, target = net.projections[j, SOURCE], net.projections[j, TARGET]
        gated, count = net.projections[j, BY_BETA], memory.sender_counts[p]
        if count == 0 or (gated and beta == 0.0 and not net.populations[target, GRADED]):
            continue
        into = memory.units.by_beta if gated else memory.units.one
        deliver(
            memory.effective,
            net.projections[j, OFFSET],
            memory.senders,
            net.populations[p, START],
            count,
            memory.units.message,
            into[net.populations[target, START] : net.populations[target, STOP]],
        )


@leaf
def step_populations(
    net: PlasticTables,
    beta: float,
    integer: bool,
    t: int,
    memory: Memory,
    sent_counts: Ints,
    totals: Ints,
) -> None:
    """One step of all units at step t of a sample; lists and counts the units that send."""
    populations, sends = net.populations, memory.sends
    for p in range(populations.shape[0]):
        a, z, c = populations[p, START], populations[p, STOP], net.constants[p]
        if populations[p, SENDS_ONCE] and t > 0:
            if t == 1:
                sends[a:z] = 0
                memory.units.message[a:z] = 0.0
                memory.sender_counts[p] = 0
            continue
        if populations[p, GRADED]:
            send_graded(c, beta, integer, a, z, memory.units, sends, totals)
        else:
            if integer:
                integrate_integer(c, beta, a, z, memory.units, totals)
            else:
                integrate(c, beta, populations[p, HAS_INPUT], a, z, memory.units)
            fire(c, a, z, memory.units, sends)
        count = 0
        for i in range(a, z):
            memory.senders[a + count] = i
            count += sends[i]
        for i in range(uint64(a), uint64(z)):
            sent_counts[i] += sends[i]
        memory.sender_counts[p] = count


@leaf
def update_traces(
    net: PlasticTables,
    rule: RuleTables,
    commit_step: bool,
    t: int,
    row: np.uint64,
    p_pre: float,
    memory: Memory,
    counts: Ints,
) -> None:
    """Update the traces of all units; count by population those that change.

    Graded traces stay unchanged in the step of a commit.
    """
    for p in range(net.populations.shape[0]):
        a, z = net.populations[p, START], net.populations[p, STOP]
        if not net.populations[p, GRADED] and rule.mode != FLOAT:
            counts[p] += decay_integer(rule, a, z, row, p_pre, memory)
        elif not net.populations[p, GRADED]:
            counts[p] += decay(rule, a, z, memory)
        elif not commit_step and (
            rule.mode != FLOAT or not net.populations[p, SENDS_ONCE] or t == 0
        ):
            counts[p] += follow(rule, net.constants[p], a, z, row, memory)


@leaf
def count_events(net: PlasticTables, part: int, events: int, counts: Ints) -> None:
    """Count events of a part at its target population, and at its source if it has a mirror."""
    j = net.parts[part, PROJECTION]
    counts[net.projections[j, TARGET]] += events
    if net.parts[part, MIRROR] >= 0:
        counts[net.projections[j, SOURCE]] += events


@leaf
def add_pending_tags(net: PlasticTables, pending: int, memory: Memory) -> None:
    """Add the traces of the pending steps of a window to the tags of all parts."""
    memory.gated[pending:] = 0.0
    for part in range(net.parts.shape[0]):
        ends = ends_of(net, net.parts[part, PROJECTION])
        gather(pending, memory, ends, net.parts[part, TAGS], memory.touched[part])


@leaf
def count_or_add_tags(
    net: PlasticTables,
    rule: RuleTables,
    factor: float,
    chance: Array,
    memory: Memory,
    counts: Ints,
) -> None:
    """Count the tags that change in a step of a window; the engine also changes them here.

    `factor` is the engine's third factor, the gate times y2.
    """
    for part in range(net.parts.shape[0]):
        a, z, b, y = ends_of(net, net.parts[part, PROJECTION])
        pre, post = memory.traces[a:z], memory.traces[b:y]
        if rule.mode == ENGINE:
            events = gather_engine(factor, pre, post, net.parts[part, TAGS], chance, memory)
        else:
            events = nonzero(pre) * nonzero(post)
        count_events(net, part, events, counts)


@leaf
def commit(
    net: PlasticTables,
    rule: RuleTables,
    factors: Array,
    number: int,
    chance: Array,
    memory: Memory,
    counts: Ints,
    totals: Ints,
) -> None:
    """Commit the tags of all parts after sample `number`; count the weights that change."""
    for part in range(net.parts.shape[0]):
        if rule.mode == ENGINE:
            events = change_engine(net, rule, part, chance, memory, totals)
        else:
            row = row_of(rule.start, 1 + net.parts[part, PROJECTION], number)
            events = change(net, rule, part, factors[part], row, memory, totals)
            if net.parts[part, MIRROR] >= 0:
                mirror_back(net, part, memory)
            memory.touched[part] = 0
        count_events(net, part, events, counts)


@leaf
def reset_graded_traces(populations: Ints, traces: Array) -> None:
    """Set the traces of graded units to zero."""
    for p in range(populations.shape[0]):
        if populations[p, GRADED]:
            traces[populations[p, START] : populations[p, STOP]] = 0.0


@leaf
def collect_tags(
    net: PlasticTables,
    rule: RuleTables,
    gate: float,
    third: float,
    last: bool,
    pending: int,
    memory: Memory,
    counts: Ints,
) -> int:
    """Collect the traces of a step of a window; returns the steps not yet added to the tags.

    `last` asks for tags that are complete after this step; `third` is the gate times y2.
    """
    if gate != 0.0 and rule.mode != ENGINE:
        for i in range(memory.traces.size):
            memory.gated[pending, i] = gate * memory.traces[i]
        copy(memory.traces, memory.past[pending])
        pending += 1
    if pending == BLOCK or (pending > 0 and last):
        add_pending_tags(net, pending, memory)
        pending = 0
    if gate != 0.0:
        count_or_add_tags(net, rule, third, memory.chance, memory, counts)
    return pending


@leaf
def finish_sample(
    net: PlasticTables,
    rule: RuleTables,
    samples: SampleTables,
    sample: int,
    uncommitted: int,
    memory: Memory,
    results: Results,
) -> int:
    """Commit at the end of a batch or of the run; returns the samples not yet committed."""
    is_last = samples.is_last and sample == samples.given.shape[0] - 1
    if is_last:
        copy(memory.tags, results.committed)
    if uncommitted == rule.batch or is_last:
        changed = results.counted[CHANGED, rule.phases[-1]]
        factors, number = samples.commits[sample], samples.first + sample
        commit(net, rule, factors, number, memory.chance, memory, changed, results.totals)
        uncommitted = 0
    if rule.fresh:
        reset_graded_traces(net.populations, memory.traces)
    return uncommitted


@outer_leaf
def learn_all(  # noqa: C901, PLR0912 - samples and steps in one loop
    net: PlasticTables,
    rule: RuleTables,
    samples: SampleTables,
    memory: Memory,
    results: Results,
    halt: Ints,
) -> None:
    """Learn from the samples, in order; return early once `halt` is not zero.

    Changes `memory` and `results` in place.
    """
    integer, units, totals = rule.mode != FLOAT, memory.units, results.totals
    a_out, z_out = net.populations[net.output, START], net.populations[net.output, STOP]
    length, chance, recorded = rule.phases.size, memory.chance, results.chosen.shape[0] > 0
    uncommitted = pending = 0
    for sample in range(samples.given.shape[0]):
        place, number = samples.begin + sample, samples.first + sample
        if rule.fresh or place == 0:
            rest(net, units)
        memory.sender_counts[:] = 0
        uncommitted += 1
        for t in range(length):
            if halt[0] != 0:
                return
            k, commit_step, gate = rule.phases[t], t == length - 1, rule.gates[t]
            counted = results.counted[:, k]
            if t == rule.free and rule.margin > 0.0:
                outputs = memory.traces[a_out:z_out]
                results.nudged[place] = not near(rule.margin, samples.targets[sample], outputs)
            if t >= rule.free and not commit_step and not results.nudged[place]:
                continue
            if rule.mode == ENGINE:
                copy(samples.draws[:, sample * length + t], chance)
            if commit_step:
                memory.sends[:] = 0
            else:
                if t == 0 or rule.phases[t - 1] != k or rule.betas[t - 1] != rule.betas[t]:
                    given, pull = samples.given[sample], samples.pull[sample]
                    set_external_input(rule.betas[t], given, pull, integer, units.outside)
                deliver_all(net, rule.betas[t], memory)
                sent = results.sent[k]
                step_populations(net, rule.betas[t], integer, t, memory, sent, totals)
                if rule.reads[t]:
                    for i in range(a_out, z_out):
                        results.drives[place, i - a_out] += units.drive[i]
            row = row_of(rule.start, 0, number * length + t)
            update_traces(net, rule, commit_step, t, row, chance[PRE], memory, counted[TRACED])
            # A recorded synapse shows its tag in every step, so that none may be pending.
            third, last = gate * samples.third_factors[sample], commit_step or recorded
            pending = collect_tags(net, rule, gate, third, last, pending, memory, counted[TAGGED])
            if commit_step:
                uncommitted = finish_sample(
                    net, rule, samples, sample, uncommitted, memory, results
                )
            record(results, place, t, commit_step, memory)
