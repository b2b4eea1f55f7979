"""Compiled loops of the emulator: the step of `neuro_eqprop.spiking.ir`, event by event.

The units of all populations are stored in flat arrays; a:z is a range of units. A unit that sends a
message appends its index to a list, and when the list arrives, only the weights of the units on it
are added. Operations on a unit are never reordered or fused, so that results equal those of the
reference bit for bit. Indices are unsigned, so that the compiler adds no checks for negative ones.

Everything is compiled as a part of `emulate`, which Numba caches on disk and recompiles when this
file changes. So every function that it calls must be in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numpy import uint64

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.jit import intrinsic, leaf, outer_leaf, types

Places: TypeAlias = npt.NDArray[np.uint64]
Marks: TypeAlias = npt.NDArray[np.uint8]
Rows: TypeAlias = npt.NDArray[np.int32]

SPIKING, GRADED = 0, 1
"""Kinds of neuron."""
START, STOP, KIND, GATED, FOLLOWS = range(5)
"""Columns of the tables of populations and blocks; GATED if input with a gain of beta arrives."""
PREDICTIVE, RANDOM = 1, 2
"""How a population encodes the rate that it FOLLOWS; zero if it follows none."""
SOURCE, TARGET, DELAY, BY_BETA, FORM, OFFSET, IMAGE = range(7)
"""Columns of the table of projections; OFFSET is where its weights, or its heads, begin."""
DENSE_COLUMNS, SPARSE_COLUMNS, CONVOLUTION, TRANSPOSED = range(4)
"""Forms of a projection: dense columns, sparse columns, convolution and its transpose."""
CHANNELS, HEIGHT_IN, WIDTH_IN, OUTPUTS, HEIGHT_OUT, WIDTH_OUT = range(6)
KERNEL_HEIGHT, KERNEL_WIDTH, KERNEL_STRIDE, PADDING, POOL = range(6, 11)
"""Columns of the table of images: the shapes of a convolution; HEIGHT_IN and WIDTH_IN are those
after pooling."""
LOW, HIGH, CURVE = range(3)
"""Constants of a block: the range of its activation, which only clips use, and its curve."""
CLIPPED, TANH, OTHER = range(3)
"""Curves: clipped, tanh, and one that Python computes."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(3, 9)
"""Further constants of a block of spiking units."""
THETA, INVERSE, DAMPING, UNIT = range(3, 7)
"""Further constants of a block of graded units; INVERSE is 1 / theta if that is exact, else 0."""
BEFORE, GAIN, STEP = range(3)
"""Columns of the courses of a block that follows a rate: lambda of the step before, lambda, eps."""
WRAPS, SATURATIONS = range(2)
"""Columns of the table of overflows, which has a row for each block."""
INPUT, INPUT_BETA, CURRENT, HELD, SUM_BETA, SENT, EXTERNAL, DRIVE, MESSAGE, AIM, REST, POWER = (
    range(12)
)
"""Rows of the state.

INPUT and INPUT_BETA are the input of this step with a gain of one and of beta. CURRENT is that of a
spiking unit, or the sum of INPUT of a graded one, whose sum of INPUT_BETA is SUM_BETA. HELD is the
voltage or the graded state, SENT the sum of graded messages or the rate that is followed. AIM, REST
and POWER are workspace of the activation.
"""
ROWS, MEMORY = 12, 6
"""Rows of the state, and how many of the first rows are zero at the start of a sample."""

POWERS = 2.0 ** np.arange(59)
TOP, MODULUS, FRACTION = 2.0**23, 2.0**24, 2.0**6
"""24-bit numbers: limit of their size, modulus of a wrap; scale of the fractional bits."""
FOUR, NEXT, STRIDE = uint64(4), uint64(1), uint64(0x9E3779B97F4A7C15)


class FlatNetwork(NamedTuple):
    """A network as flat arrays, see `neuro_eqprop.simulators.emulator.packed.Tables`."""

    populations: Ints
    blocks: Ints
    constants: Array
    curves: Ints
    """Addresses of the activations of blocks that Python computes."""
    projections: Ints
    heads: Ints
    rows: Rows
    weights: Array


class SampleArrays(NamedTuple):
    """What the samples of a call are given, and the arrays that their results are written to."""

    first: int
    """Index of the first sample, for random numbers."""
    lengths: Ints
    """Steps and window of each phase (phases, 2)."""
    betas: Array
    given: Array
    """Bias + current (samples, units)."""
    pull: Array
    """(samples, units); it may have no columns."""
    starts: Places
    """Mixed seed of the random numbers of each block."""
    messages: Ints
    """Results (samples, phases, units), as are firing and drives."""
    firing: Array
    drives: Array
    columns: Ints
    """Columns of the recorded variables (populations, 3); empty if nothing is recorded."""
    log: Array
    """Recorded values (samples, steps, columns)."""
    halt: Ints
    """The call returns early once this is not zero."""


class Workspace(NamedTuple):
    """State of the units, marks of those that send, and buffers."""

    state: Array
    sends: Marks
    lists: Places
    """The units that sent a message, by step and population."""
    payloads: Array
    """Their messages."""
    ends: Ints
    """End of the list of each step and population."""
    image_buffers: Array
    places: Places


class Sent(NamedTuple):
    """The messages that arrive from a population: lists[begin:end], with their payloads."""

    lists: Places
    payloads: Array
    begin: int
    end: int


@leaf
def tanh(a: int, z: int, u: Array, y: Array, rest: Array, power: Array) -> None:
    """y = `networks.activations.tanh`(u), bit for bit; `rest` and `power` are workspace."""
    for i in range(uint64(a), uint64(z)):
        size = abs(u[i])
        doubled = 2.0 * (size if size < 20.0 else 20.0)
        k = np.rint(doubled * 1.4426950408889634)
        rest[i] = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
        power[i] = POWERS[uint64(k)]
        y[i] = 1.0
    for n in range(14, 0, -1):
        for i in range(uint64(a), uint64(z)):
            y[i] = 1.0 + rest[i] * y[i] / n
    for i in range(uint64(a), uint64(z)):
        positive = 1.0 - 2.0 / (y[i] * power[i] + 1.0)
        y[i] = positive if u[i] > 0.0 else (-positive if u[i] < 0.0 else 0.0)


def call_address(_typing: Any, function: Any, size: Any, u: Any, y: Any) -> Any:  # noqa: ANN401
    """Call the function at an address with the addresses of two arrays of that size."""

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word, word, word]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), call


call_back: Callable[..., None] = intrinsic(call_address)


@leaf
def call_curve(function: int, a: int, z: int, u: Array, y: Array) -> None:
    """y = rho(u), computed by Python."""
    call_back(function, z - a, u[a:].ctypes.data, y[a:].ctypes.data)


@leaf
def add_spikes(weights: Array, offset: int, sent: Sent, arriving: Array, a: int, z: int) -> None:
    """arriving += the weight columns of the units that sent, four at a time."""
    lists = sent.lists
    first, size, base, now = uint64(a), uint64(z - a), uint64(offset), uint64(sent.begin)
    while now + FOUR <= uint64(sent.end):
        w, x = base + lists[now] * size, base + lists[now + NEXT] * size
        y, v = base + lists[now + NEXT + NEXT] * size, base + lists[now + FOUR - NEXT] * size
        for i in range(size):
            pair = weights[w + i] + weights[x + i]
            arriving[first + i] += pair + (weights[y + i] + weights[v + i])
        now += FOUR
    while now < uint64(sent.end):
        w = base + lists[now] * size
        for i in range(size):
            arriving[first + i] += weights[w + i]
        now += NEXT


@leaf
def add_messages(weights: Array, offset: int, sent: Sent, arriving: Array, a: int, z: int) -> None:
    """arriving += the weight columns of the units that sent, each times its payload."""
    lists, payloads = sent.lists, sent.payloads
    first, size, base = uint64(a), uint64(z - a), uint64(offset)
    for now in range(uint64(sent.begin), uint64(sent.end)):
        w, q = base + lists[now] * size, payloads[now]
        for i in range(size):
            arriving[first + i] += weights[w + i] * q


@leaf
def add_sparse(network: FlatNetwork, offset: int, sent: Sent, arriving: Array, a: int) -> None:
    """arriving += sparse columns, each times its payload; column j is heads[j]:heads[j + 1]."""
    heads, rows, weights = network.heads, network.rows, network.weights
    lists, payloads = sent.lists, sent.payloads
    for now in range(uint64(sent.begin), uint64(sent.end)):
        j, q = uint64(offset) + lists[now], payloads[now]
        for k in range(uint64(heads[j]), uint64(heads[j + NEXT])):
            arriving[uint64(a + rows[k])] += weights[k] * q


@leaf
def pool_messages(image: Ints, sent: Sent, pooled: Array, places: Places) -> int:
    """Sum-pool messages; list the pooled places (y, x, channel), and return how many there are.

    A place whose messages cancel can be listed again, so there may be as many places as messages.
    """
    pool, wide = uint64(image[POOL]), uint64(image[WIDTH_IN])
    across, channels = wide * pool, uint64(image[CHANNELS])
    area, found = uint64(image[HEIGHT_IN]) * pool * across, uint64(0)
    for now in range(uint64(sent.begin), uint64(sent.end)):
        unit = sent.lists[now]
        c, pixel = unit // area, unit % area
        at = ((pixel // across) // pool * wide + (pixel % across) // pool) * channels + c
        if pooled[at] == 0.0:
            places[found] = at
            found += NEXT
        pooled[at] += sent.payloads[now]
    return int(found)


@leaf
def spread_kernel(image: Ints, weights: Array, offset: int, at: int, q: float, sums: Array) -> None:
    """sums (y, x, output) += q times the kernel around the place `at` (y, x, channel)."""
    channels, outputs = image[CHANNELS], uint64(image[OUTPUTS])
    stride, high, wide = image[KERNEL_STRIDE], image[KERNEL_HEIGHT], image[KERNEL_WIDTH]
    c, pixel = at % channels, at // channels
    y = pixel // image[WIDTH_IN] + image[PADDING]
    x = pixel % image[WIDTH_IN] + image[PADDING]
    i_first, j_first = max(0, (y - high + stride) // stride), max(0, (x - wide + stride) // stride)
    i_last = min(image[HEIGHT_OUT] - 1, y // stride)
    j_last = min(image[WIDTH_OUT] - 1, x // stride)
    across = max(0, j_last - j_first + 1)
    # Kernel columns are stored in reverse, so that with stride 1 the weights of all j are adjacent.
    runs = min(across, 1) if stride == 1 else across
    length = uint64(across if stride == 1 else 1) * outputs
    for i in range(i_first, i_last + 1):
        row = (c * high + (y - stride * i)) * wide + wide - 1 - x
        for j in range(j_first, j_first + runs):
            w = uint64(offset + (row + stride * j) * image[OUTPUTS])
            t = uint64((i * image[WIDTH_OUT] + j) * image[OUTPUTS])
            for o in range(length):
                sums[t + o] += weights[w + o] * q


@leaf
def add_convolution(
    image: Ints,
    weights: Array,
    offset: int,
    sent: Sent,
    arriving: Array,
    a: int,
    space: Workspace,
) -> None:
    """arriving += the convolution of the messages; resets the image buffers to zero."""
    pooled, sums = space.image_buffers[0], space.image_buffers[1]
    count = pool_messages(image, sent, pooled, space.places)
    for k in range(uint64(count)):
        at = space.places[k]
        q = pooled[at]
        pooled[at] = 0.0
        if q != 0.0:
            spread_kernel(image, weights, offset, int(at), q, sums)
    outputs, pixels = uint64(image[OUTPUTS]), uint64(image[HEIGHT_OUT] * image[WIDTH_OUT])
    first = uint64(a)
    for o in range(outputs):
        for pixel in range(pixels):
            arriving[first + o * pixels + pixel] += sums[pixel * outputs + o]
            sums[pixel * outputs + o] = 0.0


@leaf
def add_transposed(
    image: Ints,
    weights: Array,
    offset: int,
    sent: Sent,
    arriving: Array,
    a: int,
    sums: Array,
) -> None:
    """arriving += the transposed convolution of the messages; resets `sums` to zero."""
    lists, payloads = sent.lists, sent.payloads
    channels, pool = uint64(image[CHANNELS]), uint64(image[POOL])
    high, wide = image[HEIGHT_IN], image[WIDTH_IN]
    tall, broad, wide_out = image[KERNEL_HEIGHT], image[KERNEL_WIDTH], image[WIDTH_OUT]
    area = uint64(image[HEIGHT_OUT] * wide_out)
    for now in range(uint64(sent.begin), uint64(sent.end)):
        unit, q = lists[now], payloads[now]
        o, pixel = int(unit // area), int(unit % area)
        y = pixel // wide_out * image[KERNEL_STRIDE] - image[PADDING]
        x = pixel % wide_out * image[KERNEL_STRIDE] - image[PADDING]
        first, last = max(0, -x), min(broad, wide - x)
        for row in range(max(0, -y), min(tall, high - y)):
            w = uint64(offset + ((o * tall + row) * broad + first) * image[CHANNELS])
            t = uint64(((y + row) * wide + x + first) * image[CHANNELS])
            for c in range(uint64(max(0, last - first)) * channels):
                sums[t + c] += weights[w + c] * q
    across, start = uint64(wide) * pool, uint64(a)
    for c in range(channels):
        for y_in in range(uint64(high) * pool):
            line = (y_in // pool) * uint64(wide) * channels + c
            for x_in in range(uint64(wide)):
                value = sums[line + x_in * channels]
                for p in range(pool):
                    arriving[start + x_in * pool + p] += value
            start += across
    for k in range(uint64(high * wide) * channels):
        sums[k] = 0.0


@leaf
def mix(beta: float, a: int, z: int, state: Array) -> None:
    """Input += beta times the input with a gain of beta, which is reset to zero."""
    one, by_beta = state[INPUT], state[INPUT_BETA]
    for i in range(uint64(a), uint64(z)):
        one[i] += beta * by_beta[i]
        by_beta[i] = 0.0


@leaf
def smooth(keep: float, a: int, z: int, state: Array) -> None:
    """Current of spiking units, u = keep u + input; writes it to the input."""
    one, u = state[INPUT], state[CURRENT]
    for i in range(uint64(a), uint64(z)):
        u[i] = keep * u[i] + one[i]
        one[i] = u[i]


@leaf
def fire(c: Array, a: int, z: int, state: Array, sends: Marks) -> None:
    """Drive, voltage and spike of spiking units; their input holds the current, and is reset."""
    one, outside, drive, held = state[INPUT], state[EXTERNAL], state[DRIVE], state[HELD]
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


@leaf
def decode(before: float, a: int, z: int, state: Array) -> None:
    """Current and drive of units that follow a rate; resets the input to zero."""
    one, u, outside, drive = state[INPUT], state[CURRENT], state[EXTERNAL], state[DRIVE]
    for i in range(uint64(a), uint64(z)):
        u[i] = (1.0 - before) * u[i] + before * one[i]
        one[i] = 0.0
        drive[i] = u[i] + outside[i]


@leaf
def mixed(z: np.uint64) -> np.uint64:
    """The same as `neuro_eqprop.spiking.counter_rng.mix`, for one number."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@leaf
def draw(a: int, z: int, start: np.uint64, sample: int, t: int, drawn: Array) -> None:
    """The same as `neuro_eqprop.spiking.counter_rng.uniform`, for one sample and a mixed seed."""
    row = mixed(mixed(start + STRIDE * (uint64(sample) + NEXT)) + STRIDE * uint64(t))
    for i in range(uint64(z - a)):
        drawn[uint64(a) + i] = (mixed(row + STRIDE * i) >> uint64(11)) * 2.0**-53


@leaf
def follow_rate(
    c: Array,
    course: Array,
    random: bool,
    a: int,
    z: int,
    aim: Array,
    state: Array,
    sends: Marks,
) -> None:
    """Rate, voltage and spike of units that follow a rate; their message is a random number."""
    x, held, drawn = state[SENT], state[HELD], state[MESSAGE]
    low, high, keep, threshold = c[LOW], c[HIGH], c[KEEP_VOLTAGE], c[THRESHOLD]
    subtract, floor, ceiling = c[SUBTRACT] != 0.0, c[FLOOR], c[CEILING]
    gain, step = course[GAIN], course[STEP]
    for i in range(uint64(a), uint64(z)):
        rho = low if aim[i] < low else aim[i]
        rho = high if rho > high else rho
        y = x[i] + step * (rho - x[i])
        v = keep * held[i] + (y - (1.0 - gain) * x[i]) / gain
        spike = y > drawn[i] if random else v >= threshold
        x[i] = y
        after = v - threshold if subtract else 0.0
        v = after if spike else v
        v = floor if v < floor else v
        held[i] = ceiling if v > ceiling else v
        sends[i] = spike


@leaf
def gather(a: int, z: int, state: Array) -> None:
    """Summed input and drive of graded units without gated input; resets the input to zero."""
    one, g_one, outside, drive = state[INPUT], state[CURRENT], state[EXTERNAL], state[DRIVE]
    for i in range(uint64(a), uint64(z)):
        g = g_one[i] + one[i]
        g_one[i] = g
        one[i] = 0.0
        drive[i] = g + outside[i]


@leaf
def gather_both(beta: float, a: int, z: int, state: Array) -> None:
    """Summed inputs and drive of graded units with gated input; resets both inputs to zero."""
    one, by_beta, g_one, g_beta, outside, drive = (
        state[INPUT],
        state[INPUT_BETA],
        state[CURRENT],
        state[SUM_BETA],
        state[EXTERNAL],
        state[DRIVE],
    )
    for i in range(uint64(a), uint64(z)):
        g_one[i] += one[i]
        one[i] = 0.0
        g_beta[i] += by_beta[i]
        by_beta[i] = 0.0
        drive[i] = (g_one[i] + beta * g_beta[i]) + outside[i]


@leaf
def send_graded(c: Array, a: int, z: int, aim: Array, state: Array, sends: Marks) -> None:
    """State and message of graded units, which relax towards rho(aim)."""
    held, sent, message = state[HELD], state[SENT], state[MESSAGE]
    theta, inverse, damping, low, high = c[THETA], c[INVERSE], c[DAMPING], c[LOW], c[HIGH]
    for i in range(uint64(a), uint64(z)):
        rho = low if aim[i] < low else aim[i]
        rho = high if rho > high else rho
        x = held[i] + damping * (rho - held[i])
        held[i] = x
        apart = x - sent[i]
        q = theta * np.rint(apart * inverse if inverse != 0.0 else apart / theta)
        sent[i] += q
        message[i] = q
        sends[i] = q != 0.0


@leaf
def flow_fixed(c: Array, beta: float, a: int, z: int, state: Array) -> int:
    """Current of spiking units in 24-bit integers; returns the number of wraps."""
    one, by_beta, u = state[INPUT], state[INPUT_BETA], state[CURRENT]
    keep, wraps = c[KEEP_CURRENT], 0
    for i in range(uint64(a), uint64(z)):
        arriving = one[i] + np.trunc(beta * by_beta[i])
        by_beta[i] = 0.0
        current = np.trunc(keep * u[i]) + FRACTION * arriving
        fits = current - MODULUS * np.floor((current + (TOP - 1.0)) / MODULUS)
        wraps += fits != current
        u[i] = fits
        one[i] = fits
    return wraps


@leaf
def fire_fixed(c: Array, a: int, z: int, state: Array, sends: Marks) -> int:
    """Drive, voltage and spike in 24-bit integers; returns the number of saturated voltages."""
    one, outside, drive, held = state[INPUT], state[EXTERNAL], state[DRIVE], state[HELD]
    keep, threshold, subtract = c[KEEP_VOLTAGE], c[THRESHOLD], c[SUBTRACT] != 0.0
    floor, ceiling, saturations = c[FLOOR], c[CEILING], 0
    for i in range(uint64(a), uint64(z)):
        d = one[i] + FRACTION * outside[i]
        one[i] = 0.0
        drive[i] = d
        voltage = np.trunc(keep * held[i]) + d
        v = 1.0 - TOP if voltage < 1.0 - TOP else voltage
        v = TOP - 1.0 if v > TOP - 1.0 else v
        saturations += v != voltage
        spike = v >= threshold
        after = v - threshold if subtract else 0.0
        v = after if spike else v
        v = floor if v < floor else v
        held[i] = ceiling if v > ceiling else v
        sends[i] = spike
    return saturations


@leaf
def gather_fixed(beta: float, a: int, z: int, state: Array) -> int:
    """Summed inputs and drive of graded units in 24-bit integers; returns the number of wraps."""
    one, by_beta, g_one, g_beta, outside, drive = (
        state[INPUT],
        state[INPUT_BETA],
        state[CURRENT],
        state[SUM_BETA],
        state[EXTERNAL],
        state[DRIVE],
    )
    wraps = 0
    for i in range(uint64(a), uint64(z)):
        first, second = g_one[i] + one[i], g_beta[i] + by_beta[i]
        one[i] = 0.0
        by_beta[i] = 0.0
        g_one[i] = first - MODULUS * np.floor((first + (TOP - 1.0)) / MODULUS)
        g_beta[i] = second - MODULUS * np.floor((second + (TOP - 1.0)) / MODULUS)
        wraps += int(g_one[i] != first) + int(g_beta[i] != second)
        drive[i] = (g_one[i] + np.trunc(beta * g_beta[i])) + outside[i]
    return wraps


@leaf
def multiply(a: int, z: int, values: Array, factor: float, into: Array) -> None:
    """into = factor values."""
    for i in range(uint64(a), uint64(z)):
        into[i] = factor * values[i]


@leaf
def round_off(a: int, z: int, values: Array) -> None:
    """Round each value to the nearest integer, ties to even."""
    for i in range(uint64(a), uint64(z)):
        values[i] = np.rint(values[i])


@leaf
def send_graded_fixed(c: Array, a: int, z: int, aim: Array, state: Array, sends: Marks) -> int:
    """State and message of graded units in 24-bit integers; returns the number of saturations."""
    held, sent, message = state[HELD], state[SENT], state[MESSAGE]
    theta, inverse, damping, low, high = c[THETA], c[INVERSE], c[DAMPING], c[LOW], c[HIGH]
    saturations = 0
    for i in range(uint64(a), uint64(z)):
        rho = low if aim[i] < low else aim[i]
        rho = high if rho > high else rho
        state = held[i] + np.trunc(damping * (rho - held[i]))
        x = 1.0 - TOP if state < 1.0 - TOP else state
        x = TOP - 1.0 if x > TOP - 1.0 else x
        saturations += x != state
        held[i] = x
        q = np.rint((x - sent[i]) * inverse)
        sent[i] += theta * q
        message[i] = q
        sends[i] = q != 0.0
    return saturations


@leaf
def collect(a: int, z: int, sends: Marks, lists: Places, e: int, counts: Ints) -> int:
    """List the units that send, from index e on, and count them; returns the end of the list."""
    first, stop = uint64(a), uint64(e)
    for i in range(uint64(z - a)):
        lists[stop] = i
        stop += sends[first + i]
    for now in range(uint64(e), stop):
        counts[first + lists[now]] += 1
    return int(stop)


@leaf
def set_payloads(a: int, sent: Sent, message: Array) -> None:
    """Copy the messages of the units on the list to their payloads."""
    for now in range(uint64(sent.begin), uint64(sent.end)):
        sent.payloads[now] = message[uint64(a) + sent.lists[now]]


@leaf
def add(a: int, z: int, values: Array, sums: Array) -> None:
    """sums += values."""
    for i in range(uint64(a), uint64(z)):
        sums[i] += values[i]


@leaf
def feed(beta: float, given: Array, pull: Array, fixed: bool, outside: Array) -> None:
    """External input in a phase: outside = given + beta pull; in integers the product is cut."""
    for i in range(uint64(outside.size)):
        outside[i] = given[i]
    if pull.size:
        for i in range(uint64(outside.size)):
            pulled = beta * pull[i]
            outside[i] += np.trunc(pulled) if fixed else pulled


@leaf
def add_counts(a: int, z: int, factor: float, counts: Ints, firing: Array) -> None:
    """firing += factor counts."""
    for i in range(uint64(a), uint64(z)):
        firing[i] += factor * counts[i]


@leaf
def record_step(populations: Ints, columns: Ints, sends: Marks, state: Array, log: Array) -> None:
    """Write the recorded variables of a step to their columns; -1 is a variable not recorded."""
    for p in range(populations.shape[0]):
        a, size = populations[p, START], populations[p, STOP] - populations[p, START]
        for variable in range(columns.shape[1]):
            at, marks = columns[p, variable], variable == 0 and populations[p, KIND] == SPIKING
            row = MESSAGE if variable == 0 else (HELD if variable == 1 else DRIVE)
            for i in range(size if at >= 0 else 0):
                log[at + i] = float(sends[a + i]) if marks else state[row, a + i]


@leaf
def begin(network: FlatNetwork, space: Workspace) -> None:
    """Set every unit to its resting state, with no messages in transit."""
    state, blocks = space.state, network.blocks
    for row in range(MEMORY):
        for i in range(uint64(state.shape[1])):
            state[row, i] = 0.0
    space.ends[:] = 0
    for b in range(blocks.shape[0]):
        if blocks[b, KIND] == SPIKING:
            for i in range(uint64(blocks[b, START]), uint64(blocks[b, STOP])):
                state[HELD, i] = network.constants[b, THRESHOLD] / 2


def workspace(units: int, projections: Ints, populations: int, images: Ints) -> Workspace:
    """The workspace of a network: allocated here, since code that allocates compiles slowly."""
    depth = max([1, *projections[:, DELAY].tolist()])
    sides = [[CHANNELS, HEIGHT_IN, WIDTH_IN], [OUTPUTS, HEIGHT_OUT, WIDTH_OUT]]
    pixels = int(images[:, sides].prod(axis=2).max(initial=0))
    length = depth * (units + 1)
    return Workspace(
        np.zeros((ROWS, units)),
        np.zeros(units, dtype=np.uint8),
        np.zeros(length, dtype=np.uint64),
        np.ones(length),
        np.zeros((depth, populations), dtype=np.int64),
        np.zeros((2, pixels)),
        np.zeros(units if pixels else 0, dtype=np.uint64),
    )


@outer_leaf
def emulate(  # noqa: C901, PLR0912, PLR0915 - more calls cost a third of the speed
    network: FlatNetwork,
    samples: SampleArrays,
    space: Workspace,
    images: Ints | None,
    spiking_blocks: Ints | None,
    graded_blocks: Ints | None,
    courses: Array | None,
    overflows: Ints | None,
) -> None:
    """Run every sample from rest through all phases; return early once `halt` is not zero.

    An argument that may be None belongs to one part of the step. If it is None, that part is not
    compiled, which saves a second.

    Parameters
    ----------
    network, samples, space
        The network, what the samples are given and where results go, and the workspace.
    images
        Shapes of convolutions, a row each; None if there are none.
    spiking_blocks, graded_blocks
        None if the network has no such units.
    courses
        Courses of blocks that follow a rate (blocks, steps, 3).
    overflows
        Counts of overflows (blocks, 2) if the network is in fixed point; float64 represents its
        integers exactly.
    """
    populations, blocks, projections = network.populations, network.blocks, network.projections
    weights, lengths, betas, given = network.weights, samples.lengths, samples.betas, samples.given
    units, depth, width = given.shape[1], space.ends.shape[0], given.shape[1] + 1
    state, sends, lists, ends = space.state, space.sends, space.lists, space.ends
    payloads, drive, aim, message = space.payloads, state[DRIVE], state[AIM], state[MESSAGE]
    rest, power = state[REST], state[POWER]
    for sample in range(given.shape[0]):
        begin(network, space)
        t = slot = 0
        for k in range(betas.size):
            beta, steps, window = betas[k], lengths[k, 0], lengths[k, 1]
            counts, rates = samples.messages[sample, k], samples.firing[sample, k]
            means = samples.drives[sample, k]
            feed(beta, given[sample], samples.pull[sample], overflows is not None, state[EXTERNAL])
            for tick in range(steps):
                if samples.halt[0] != 0:
                    return
                for j in range(projections.shape[0]):
                    p, target = projections[j, SOURCE], projections[j, TARGET]
                    then = slot - projections[j, DELAY]
                    then += depth if then < 0 else 0
                    sent = Sent(
                        lists, payloads, then * width + populations[p, START], ends[then, p]
                    )
                    gated, offset = projections[j, BY_BETA], projections[j, OFFSET]
                    lost = gated and beta == 0.0 and populations[target, KIND] == SPIKING
                    if sent.end <= sent.begin or lost:
                        continue
                    a, z = populations[target, START], populations[target, STOP]
                    into = state[INPUT_BETA] if gated else state[INPUT]
                    form = projections[j, FORM]
                    if images is not None:  # noqa: SIM102 - a separate test is decided when compiling
                        if form >= CONVOLUTION:
                            image = images[projections[j, IMAGE]]
                            if form == TRANSPOSED:
                                sums = space.image_buffers[1]
                                add_transposed(image, weights, offset, sent, into, a, sums)
                            else:
                                add_convolution(image, weights, offset, sent, into, a, space)
                            continue
                    if form == SPARSE_COLUMNS:
                        add_sparse(network, offset, sent, into, a)
                        continue
                    if spiking_blocks is not None:  # noqa: SIM102
                        if populations[p, KIND] == SPIKING:
                            add_spikes(weights, offset, sent, into, a, z)
                    if graded_blocks is not None:  # noqa: SIM102
                        if populations[p, KIND] != SPIKING:
                            add_messages(weights, offset, sent, into, a, z)
                for b in range(blocks.shape[0]):
                    a, z, c = blocks[b, START], blocks[b, STOP], network.constants[b]
                    curved, is_tanh = c[CURVE] != CLIPPED, c[CURVE] == TANH
                    if spiking_blocks is not None:  # noqa: SIM102
                        if blocks[b, KIND] == SPIKING:
                            if overflows is not None:
                                overflows[b, WRAPS] += flow_fixed(c, beta, a, z, state)
                                overflows[b, SATURATIONS] += fire_fixed(c, a, z, state, sends)
                                continue
                            if blocks[b, GATED] and beta != 0.0:
                                mix(beta, a, z, state)
                            if courses is not None:  # noqa: SIM102
                                if blocks[b, FOLLOWS]:
                                    course, random = courses[b, t], blocks[b, FOLLOWS] == RANDOM
                                    decode(course[BEFORE], a, z, state)
                                    if is_tanh:
                                        tanh(a, z, drive, aim, rest, power)
                                    if c[CURVE] == OTHER:
                                        call_curve(network.curves[b], a, z, drive, aim)
                                    if random:
                                        start, number = samples.starts[b], samples.first + sample
                                        draw(a, z, start, number, t + 1, message)
                                    goal = aim if curved else drive
                                    follow_rate(c, course, random, a, z, goal, state, sends)
                                    continue
                            if c[KEEP_CURRENT] != 0.0:
                                smooth(c[KEEP_CURRENT], a, z, state)
                            fire(c, a, z, state, sends)
                            continue
                    if graded_blocks is not None:
                        if overflows is not None:
                            overflows[b, WRAPS] += gather_fixed(beta, a, z, state)
                            if is_tanh:
                                multiply(a, z, drive, c[UNIT], message)
                                tanh(a, z, message, aim, rest, power)
                                multiply(a, z, aim, 1.0 / c[UNIT], aim)
                                round_off(a, z, aim)
                            if c[CURVE] == OTHER:
                                call_curve(network.curves[b], a, z, drive, aim)
                            goal = aim if curved else drive
                            clipped = send_graded_fixed(c, a, z, goal, state, sends)
                            overflows[b, SATURATIONS] += clipped
                            continue
                        if blocks[b, GATED]:
                            gather_both(beta, a, z, state)
                        else:
                            gather(a, z, state)
                        if is_tanh:
                            tanh(a, z, drive, aim, rest, power)
                        if c[CURVE] == OTHER:
                            call_curve(network.curves[b], a, z, drive, aim)
                        send_graded(c, a, z, aim if curved else drive, state, sends)
                for p in range(populations.shape[0]):
                    a, z = populations[p, START], populations[p, STOP]
                    spiking, counted = populations[p, KIND] == SPIKING, tick >= steps - window
                    follows, e = populations[p, FOLLOWS] != 0, slot * width + a
                    if spiking and not follows and tick == steps - window:
                        add_counts(a, z, -1.0, counts, rates)
                    ends[slot, p] = collect(a, z, sends, lists, e, counts)
                    if graded_blocks is not None:  # noqa: SIM102
                        if not spiking:
                            set_payloads(a, Sent(lists, payloads, e, ends[slot, p]), message)
                    if (follows or not spiking) and counted:
                        add(a, z, state[SENT], rates)
                if tick >= steps - window:
                    add(populations[0, START], units, drive, means)
                if samples.columns.size:
                    record_step(populations, samples.columns, sends, state, samples.log[sample, t])
                t += 1
                slot = slot + 1 if slot + 1 < depth else 0
            for p in range(populations.shape[0]):
                if populations[p, KIND] == SPIKING and not populations[p, FOLLOWS]:
                    add_counts(populations[p, START], populations[p, STOP], 1.0, counts, rates)
            for i in range(uint64(units)):
                rates[i] /= window
                means[i] /= window
