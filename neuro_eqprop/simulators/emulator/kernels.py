"""Compiled loops of the emulator: the step of `neuro_eqprop.spiking.ir`, event by event.

A population occupies whole tiles of 64 lanes. Several samples step side by side, and messages
arrive in the order projection, tile of the target, sample, source: so a tile of weights stays in
the cache for all samples. The units that send are listed, and only their weights are added.

Numbers have the formats that `neuro_eqprop.simulators.emulator.packed` has proven exact: weights in
int16 on a dyadic grid and sums in int32, or both in floating point; states in float64, or in
float32 where no value needs more bits. Operations on a unit are never reordered or fused, so that
results equal those of the reference bit for bit. Indices are unsigned, so that the compiler adds no
checks for negative ones. All variables of a tile are neighbors in one array at constant distances,
so that the compiler knows them to be distinct and uses vector instructions.

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
from neuro_eqprop.common.jit import inlined_leaf as leaf
from neuro_eqprop.common.jit import intrinsic, outer_leaf, types

Numbers: TypeAlias = npt.NDArray[Any]
"""An array in one of the formats."""
Places: TypeAlias = npt.NDArray[np.uint64]
Units: TypeAlias = npt.NDArray[np.uint32]
Marks: TypeAlias = npt.NDArray[np.uint8]
Rows: TypeAlias = npt.NDArray[np.int32]

SPIKING, GRADED = 0, 1
"""Kinds of neuron."""
START, STOP, KIND, GATED, FOLLOWS, FIRST = range(6)
"""Columns of the table of populations: its units, and its FIRST lane; GATED if input with a gain of
beta arrives."""
PREDICTIVE, RANDOM = 1, 2
"""How a population encodes the rate that it FOLLOWS; zero if it follows none."""
SOURCE, TARGET, DELAY, BY_BETA, FORM, OFFSET, IMAGE = range(7)
"""Columns of the table of projections; OFFSET is where its weights, or its heads, begin."""
DENSE_TILES, SPARSE_COLUMNS, CONVOLUTION, TRANSPOSED = range(4)
"""Forms of a projection: dense tiles, sparse columns, convolution and its transpose."""
CHANNELS, HEIGHT_IN, WIDTH_IN, OUTPUTS, HEIGHT_OUT, WIDTH_OUT = range(6)
KERNEL_HEIGHT, KERNEL_WIDTH, KERNEL_STRIDE, PADDING, POOL = range(6, 11)
"""Columns of the table of images: the shapes of a convolution; HEIGHT_IN and WIDTH_IN are those
after pooling."""
LOW, HIGH, CURVE = range(3)
"""Constants of a population: the range of its activation, which only clips use, and its curve."""
CLIPPED, TANH, OTHER = range(3)
"""Curves: clipped, tanh, and one that Python computes."""
KEEP_CURRENT, KEEP_VOLTAGE, THRESHOLD, SUBTRACT, FLOOR, CEILING = range(3, 9)
"""Further constants of spiking units."""
THETA, INVERSE, DAMPING, UNIT = range(3, 7)
"""Further constants of graded units; INVERSE is 1 / theta if that is exact, else 0."""
SCALE, RESTING = 9, 10
"""The value of one in the sums of a population, and the voltage at which a sample starts."""
BEFORE, GAIN, STEP = range(3)
"""Columns of the courses of what follows a rate: lambda of the step before, lambda, eps."""
WRAPS, SATURATIONS = range(2)
"""Columns of the table of overflows, which has a row for each population."""

LANES = 64
"""Lanes of a tile."""
FEW = 16
"""Lanes that are added of a tile that has no more units."""
TILE = uint64(LANES)
ROWS = 13
"""Variables of a tile."""
(
    HELD,
    OUTSIDE,
    DRIVE,
    DRIVES,
    MESSAGE,
    COUNT,
    FIRING,
    CURRENT,
    SUM_BETA,
    SENT,
    AIM,
    WORK,
    SCALED,
) = (uint64(LANES * row) for row in range(ROWS))
"""Where each variable begins in a tile.

HELD is the voltage or the graded state, OUTSIDE the external input. DRIVES, COUNT and FIRING are
sums: of the drive and of what fires over a window, of messages over a phase. CURRENT is that of a
spiking unit, or the sum of the input of a graded one, whose sum with a gain of beta is SUM_BETA;
SENT is the sum of graded messages, or the rate that is followed. AIM, WORK and SCALED are
workspace.
"""
REACH = uint64(2**16)
"""Targets that 16 bits of a word of sparse columns tell apart."""
AHEAD = uint64(3)
"""Sparse columns that are fetched ahead."""
LINE = uint64(16)
"""Words in a line of the cache."""

POWERS = 2.0 ** np.arange(59)
TOP, MODULUS, FRACTION = 2.0**23, 2.0**24, 2.0**6
"""24-bit numbers: limit of their size, modulus of a wrap; scale of the fractional bits."""
NEXT, STRIDE = uint64(1), uint64(0x9E3779B97F4A7C15)

SET_BITS = np.zeros(256 * 8, dtype=np.uint8)
"""The places of the bits that are set, eight entries for each byte."""
for _byte in range(256):
    _places = [place for place in range(8) if _byte >> place & 1]
    SET_BITS[8 * _byte : 8 * _byte + len(_places)] = _places


class FlatNetwork(NamedTuple):
    """A network as flat arrays, see `neuro_eqprop.simulators.emulator.packed.Tables`."""

    populations: Ints
    constants: Numbers
    curves: Ints
    """Addresses of the activations of populations that Python computes."""
    projections: Ints
    weights: Numbers
    """Dense tiles: by tile of the target and source, the weights of 64 lanes."""
    kernels: Array
    heads: Units
    """Where the sparse column of each block of targets and source begins."""
    words: Rows
    """Sparse columns: 16 bits of the target, and above them 16 bits of the weight."""
    sparse_weights: Array
    """The weights of sparse columns if they do not fit into 16 bits, else empty."""


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
    """Mixed seed of the random numbers of each population."""
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
    grid: float
    """In float32, what external input times it has to be: an integer, and at most `most`."""
    most: float
    refused: Ints
    """Set where external input is not; the call returns early then."""


class Workspace(NamedTuple):
    """State of the samples that step side by side, and buffers."""

    one: Numbers
    """Input of this step with a gain of one (samples, lanes), flat."""
    by_beta: Numbers
    """Input of this step with a gain of beta; empty if there is none."""
    state: Numbers
    """Variables (samples, tiles, ROWS, 64), flat."""
    lists: Units
    """The units that sent a message (delays, samples, lanes), flat."""
    payloads: Array
    """Their messages; empty if all are spikes."""
    ends: Ints
    """Length of the list of each step, sample and population."""
    settled: Marks
    """Tiles of graded units that change no more unless input arrives (samples, tiles), flat."""
    buffer: Array
    """Drives and rates of a population whose activation Python computes."""
    image_buffers: Array
    places: Places


class Sent(NamedTuple):
    """The messages that arrive from a population: lists[begin:end], with their payloads."""

    lists: Units
    payloads: Any
    """An array; None if all are one."""
    begin: np.uint64
    end: np.uint64


def element(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Pointer to an element of an array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def lanes(builder: Any, pointer: Any, width: int = LANES) -> Any:
    """The elements from a pointer on as a pointer to a vector."""
    kind = ir.VectorType(pointer.type.pointee, width)
    return builder.bitcast(pointer, kind.as_pointer())


def cast_like(_typing: Any, value: Any, array: Any) -> Any:
    """A number, in the type of the elements of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return array.dtype(value, array), generate


def find_messages(_typing: Any, state: Any, place: Any) -> Any:
    """The lanes from a place on that are not zero, as the bits of a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = lanes(builder, element(context, builder, state, *arguments))
        values = builder.load(pointer, align=state.dtype.bitwidth // 8)
        zero = ir.Constant(values.type, None)
        return builder.bitcast(builder.fcmp_unordered("!=", values, zero), ir.IntType(LANES))

    return types.uint64(state, types.uint64), generate


def tile_adder(width: int) -> Callable[..., Any]:
    """An operation on the first `width` lanes of a tile."""

    def add_tile(
        _typing: Any,
        into: Any,
        place: Any,
        weights: Any,
        offset: Any,
        sent: Any,
    ) -> Any:
        """Add the weights of the sources that sent, one source after the other."""
        flat = dict(zip(Sent._fields, sent.types, strict=True))
        graded = flat["payloads"] != types.none

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            sums, first, tiles, begin_of_tile, messages = arguments
            lists, payloads, begin, end = (
                builder.extract_value(messages, k) for k in range(len(Sent._fields))
            )
            target = lanes(builder, element(context, builder, into, sums, first), width)
            size, source_type = into.dtype.bitwidth // 8, weights.dtype
            start, before = builder.load(target, align=size), builder.block
            loop, after = builder.append_basic_block("add"), builder.append_basic_block("added")
            builder.cbranch(builder.icmp_unsigned("<", begin, end), loop, after)
            builder.position_at_end(loop)
            now, total = builder.phi(begin.type), builder.phi(start.type)
            now.add_incoming(begin, before)
            total.add_incoming(start, before)
            listed = builder.load(element(context, builder, flat["lists"], lists, now))
            source = builder.mul(builder.zext(listed, now.type), ir.Constant(now.type, LANES))
            at = element(context, builder, weights, tiles, builder.add(begin_of_tile, source))
            column = builder.load(lanes(builder, at, width), align=source_type.bitwidth // 8)
            if isinstance(source_type, types.Integer):
                whole = isinstance(into.dtype, types.Integer)
                column = (builder.sext if whole else builder.sitofp)(column, start.type)
            if graded:
                pointer = element(context, builder, flat["payloads"], payloads, now)
                undefined, index = ir.Constant(start.type, ir.Undefined), ir.IntType(32)
                single = builder.insert_element(
                    undefined, builder.load(pointer), ir.Constant(index, 0)
                )
                zeros = ir.Constant(ir.VectorType(index, width), None)
                column = builder.fmul(column, builder.shuffle_vector(single, undefined, zeros))
            add = builder.add if isinstance(into.dtype, types.Integer) else builder.fadd
            new, then = add(total, column), builder.add(now, ir.Constant(now.type, 1))
            now.add_incoming(then, loop)
            total.add_incoming(new, loop)
            builder.cbranch(builder.icmp_unsigned("<", then, end), loop, after)
            builder.position_at_end(after)
            result = builder.phi(start.type)
            result.add_incoming(start, before)
            result.add_incoming(new, loop)
            builder.store(result, target, align=size)
            return context.get_dummy_value()

        return types.void(into, types.uint64, weights, types.uint64, sent), generate

    return add_tile


def write_list(_typing: Any, word: Any, unit: Any, end: Any, lists: Any, table: Any) -> Any:
    """List the bits of a word that are set, counted from `unit`, from `end` on; the new end.

    Eight bits at a time are looked up in SET_BITS, and eight entries are written.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, first, begin, to, places = arguments
        word_type, index, few = bits.type, ir.IntType(32), 8
        eight, bytes_ = ir.VectorType(index, few), ir.VectorType(ir.IntType(few), few)
        none, zeros = ir.Constant(eight, ir.Undefined), ir.Constant(eight, None)
        single = builder.insert_element(none, builder.trunc(first, index), ir.Constant(index, 0))
        base, at = builder.shuffle_vector(single, none, zeros), begin
        for shift in range(0, LANES, few):
            part = builder.lshr(bits, ir.Constant(word_type, shift))
            byte = builder.and_(part, ir.Constant(word_type, 255))
            row = builder.mul(byte, ir.Constant(word_type, few))
            pointer = element(context, builder, table, places, row)
            found = builder.load(builder.bitcast(pointer, bytes_.as_pointer()), align=1)
            moved = builder.add(builder.zext(found, eight), ir.Constant(eight, [shift] * few))
            target = element(context, builder, lists, to, at)
            target = builder.bitcast(target, eight.as_pointer())
            builder.store(builder.add(moved, base), target, align=4)
            below = builder.and_(bits, ir.Constant(word_type, 2 ** (shift + few) - 1))
            at = builder.add(begin, builder.ctpop(below))
        return at

    return types.uint64(types.uint64, types.uint64, types.uint64, lists, table), generate


def fetch_line(_typing: Any, array: Any, index: Any) -> Any:
    """Ask the processor to fetch the line of the cache that holds an element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(element(context, builder, array, *arguments), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [pointer, *(ir.Constant(flag, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def call_address(_typing: Any, function: Any, size: Any, u: Any, y: Any) -> Any:
    """Call the function at an address with the addresses of two arrays of that size."""

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word, word, word]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), call


like: Callable[..., Any] = intrinsic(cast_like)
sending: Callable[..., Any] = intrinsic(find_messages)
add_columns: Callable[..., None] = intrinsic(tile_adder(LANES))
add_few: Callable[..., None] = intrinsic(tile_adder(FEW))
list_set_bits: Callable[..., Any] = intrinsic(write_list)
fetch: Callable[..., None] = intrinsic(fetch_line)
call_back: Callable[..., None] = intrinsic(call_address)


@leaf
def add_sparse(
    network: FlatNetwork,
    payloads: Array | None,
    sent: Sent,
    reach: tuple[np.uint64, np.uint64, np.uint64],
    arriving: Numbers,
    x: np.uint64,
) -> None:
    """arriving += sparse columns, one block of targets after another; `payloads` None are one.

    `reach` has the first of the columns' heads, and the numbers of sources and of lanes of targets.
    """
    heads, words, weights, lists = network.heads, network.words, network.sparse_weights, sent.lists
    offset, sources, size = reach
    for block in range((size + REACH - NEXT) // REACH):
        base, into = offset + block * sources, x + block * REACH
        for now in range(sent.begin, sent.end):
            if now + AHEAD < sent.end:
                later = base + uint64(lists[now + AHEAD])
                for word in range(uint64(heads[later]), uint64(heads[later + NEXT]), LINE):
                    fetch(words, word)
            j = base + uint64(lists[now])
            first, last = uint64(heads[j]), uint64(heads[j + NEXT])
            if weights.size:
                for k in range(first, last):
                    w = weights[k] if payloads is None else weights[k] * payloads[now]
                    at = into + uint64(words[k] & 0xFFFF)
                    arriving[at] = like(arriving[at] + w, arriving)
            else:
                for k in range(first, last):
                    weight = like(words[k] >> 16, arriving)
                    w = weight if payloads is None else weight * payloads[now]
                    at = into + uint64(words[k] & 0xFFFF)
                    arriving[at] = like(arriving[at] + w, arriving)


@leaf
def pool_messages(image: Ints, sent: Sent, pooled: Array, places: Places) -> int:
    """Sum-pool messages; list the pooled places (y, x, channel), and return how many there are.

    A place whose messages cancel can be listed again, so there may be as many places as messages.
    """
    pool, wide = uint64(image[POOL]), uint64(image[WIDTH_IN])
    across, channels = wide * pool, uint64(image[CHANNELS])
    area, found = uint64(image[HEIGHT_IN]) * pool * across, uint64(0)
    for now in range(sent.begin, sent.end):
        unit = uint64(sent.lists[now])
        c, pixel = unit // area, unit % area
        at = ((pixel // across) // pool * wide + (pixel % across) // pool) * channels + c
        if pooled[at] == 0.0:
            places[found] = at
            found += NEXT
        pooled[at] += sent.payloads[now]
    return int(found)


@leaf
def spread_kernel(
    image: Ints, weights: Array, offset: np.uint64, at: int, q: float, sums: Array
) -> None:
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
            w = offset + uint64((row + stride * j) * image[OUTPUTS])
            t = uint64((i * image[WIDTH_OUT] + j) * image[OUTPUTS])
            for o in range(length):
                sums[t + o] += weights[w + o] * q


@leaf
def add_convolution(
    image: Ints,
    weights: Array,
    offset: np.uint64,
    sent: Sent,
    arriving: Numbers,
    x: np.uint64,
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
    for o in range(outputs):
        for pixel in range(pixels):
            at = x + o * pixels + pixel
            arriving[at] += like(sums[pixel * outputs + o], arriving)
            sums[pixel * outputs + o] = 0.0


@leaf
def add_transposed(
    image: Ints,
    weights: Array,
    offset: np.uint64,
    sent: Sent,
    arriving: Numbers,
    x: np.uint64,
    sums: Array,
) -> None:
    """arriving += the transposed convolution of the messages; resets `sums` to zero."""
    lists, payloads = sent.lists, sent.payloads
    channels, pool = uint64(image[CHANNELS]), uint64(image[POOL])
    high, wide = image[HEIGHT_IN], image[WIDTH_IN]
    tall, broad, wide_out = image[KERNEL_HEIGHT], image[KERNEL_WIDTH], image[WIDTH_OUT]
    area = uint64(image[HEIGHT_OUT] * wide_out)
    for now in range(sent.begin, sent.end):
        unit, q = uint64(lists[now]), payloads[now]
        o, pixel = int(unit // area), int(unit % area)
        y = pixel // wide_out * image[KERNEL_STRIDE] - image[PADDING]
        left = pixel % wide_out * image[KERNEL_STRIDE] - image[PADDING]
        first, last = max(0, -left), min(broad, wide - left)
        for row in range(max(0, -y), min(tall, high - y)):
            w = offset + uint64(((o * tall + row) * broad + first) * image[CHANNELS])
            t = uint64(((y + row) * wide + left + first) * image[CHANNELS])
            for c in range(uint64(max(0, last - first)) * channels):
                sums[t + c] += weights[w + c] * q
    across = uint64(wide) * pool
    for c in range(channels):
        for y_in in range(uint64(high) * pool):
            line = (y_in // pool) * uint64(wide) * channels + c
            for x_in in range(uint64(wide)):
                value = sums[line + x_in * channels]
                for p in range(pool):
                    arriving[x + x_in * pool + p] += like(value, arriving)
            x += across
    for k in range(uint64(high * wide) * channels):
        sums[k] = 0.0


@leaf
def mixed(z: np.uint64) -> np.uint64:
    """The same as `neuro_eqprop.spiking.counter_rng.mix`, for one number."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@leaf
def random_row(start: np.uint64, sample: int, t: int) -> np.uint64:
    """Counter of the first random number of a sample in a step."""
    return mixed(mixed(start + STRIDE * (uint64(sample) + NEXT)) + STRIDE * uint64(t))


@leaf
def tanh(u: np.uint64, o: np.uint64, state: Array) -> None:
    """AIM = `networks.activations.tanh` of the variable at u, bit for bit; it uses WORK, too."""
    for i in range(TILE):
        size = abs(state[u + i])
        doubled = 2.0 * (size if size < 20.0 else 20.0)
        k = np.rint(doubled * 1.4426950408889634)
        rest = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
        state[o + MESSAGE + i] = rest
        state[o + WORK + i] = POWERS[uint64(k)]
        state[o + AIM + i] = 1.0
    for n in range(14, 0, -1):
        for i in range(TILE):
            state[o + AIM + i] = 1.0 + state[o + MESSAGE + i] * state[o + AIM + i] / n
    for i in range(TILE):
        value = state[u + i]
        positive = 1.0 - 2.0 / (state[o + AIM + i] * state[o + WORK + i] + 1.0)
        state[o + AIM + i] = positive if value > 0.0 else (-positive if value < 0.0 else 0.0)


@leaf
def call_curve(function: int, size: np.uint64, o: np.uint64, state: Array, buffer: Array) -> None:
    """AIM = rho(DRIVE) of a population, computed by Python in one call."""
    u, y = buffer[:size], buffer[size : size + size]
    for i in range(size):
        u[i] = state[o + i // TILE * TILE * uint64(ROWS) + DRIVE + i % TILE]
    call_back(function, np.int64(size), u.ctypes.data, y.ctypes.data)
    for i in range(size):
        state[o + i // TILE * TILE * uint64(ROWS) + AIM + i % TILE] = y[i]


@leaf
def take(arriving: Numbers, x: np.uint64, scale: float, row: np.uint64, state: Numbers) -> None:
    """Move the input of a tile to a row of its variables; resets it to zero."""
    zero = like(0, arriving)
    for i in range(TILE):
        state[row + i] = like(arriving[x + i], state) * scale
        arriving[x + i] = zero


@leaf
def mix(beta: float, o: np.uint64, state: Array) -> None:
    """WORK += beta AIM: the input with a gain of beta."""
    for i in range(TILE):
        state[o + WORK + i] += beta * state[o + AIM + i]


@leaf
def smooth(keep: float, part: float, o: np.uint64, state: Array) -> None:
    """Current u = keep u + part WORK and drive of spiking units; WORK becomes the current."""
    for i in range(TILE):
        u = keep * state[o + CURRENT + i] + part * state[o + WORK + i]
        state[o + CURRENT + i] = u
        state[o + WORK + i] = u
        state[o + DRIVE + i] = u + state[o + OUTSIDE + i]


@leaf
def fire(
    c: Numbers,
    scale: float,
    counted: bool,
    x: np.uint64,
    o: np.uint64,
    arriving: Numbers,
    state: Numbers,
) -> None:
    """One step of plain spiking units whose current is their input; resets it to zero.

    `counted` is one in the window, else zero.
    """
    keep, threshold, subtract = c[KEEP_VOLTAGE], c[THRESHOLD], c[SUBTRACT] != 0
    floor, ceiling, zero, one = c[FLOOR], c[CEILING], like(0, state), like(1, state)
    none, part = like(0, arriving), like(counted, state)
    for i in range(TILE):
        d = scale * like(arriving[x + i], state) + state[o + OUTSIDE + i]
        arriving[x + i] = none
        state[o + DRIVE + i] = d
        state[o + DRIVES + i] += part * d
        v = keep * state[o + HELD + i] + d
        spike = v >= threshold
        after = v - threshold if subtract else zero
        v = after if spike else v
        v = floor if v < floor else v
        state[o + HELD + i] = ceiling if v > ceiling else v
        message = one if spike else zero
        state[o + MESSAGE + i] = message
        state[o + COUNT + i] += message


@leaf
def draw(row: np.uint64, first: np.uint64, o: np.uint64, state: Array) -> None:
    """MESSAGE = random numbers of `neuro_eqprop.spiking.counter_rng.uniform`, from a unit on."""
    for i in range(TILE):
        number = mixed(row + STRIDE * (first + i)) >> uint64(11)
        state[o + MESSAGE + i] = number * 2.0**-53


@leaf
def follow_rate(
    c: Array, course: Array, kind: int, aim: np.uint64, o: np.uint64, state: Array
) -> None:
    """Rate, voltage and spike of units that follow rho(aim); MESSAGE may be a random number."""
    low, high, keep, threshold = c[LOW], c[HIGH], c[KEEP_VOLTAGE], c[THRESHOLD]
    subtract, floor, ceiling = c[SUBTRACT] != 0.0, c[FLOOR], c[CEILING]
    gain, step, random = course[GAIN], course[STEP], kind == RANDOM
    for i in range(TILE):
        rho, x = state[aim + i], state[o + SENT + i]
        rho = low if rho < low else rho
        rho = high if rho > high else rho
        y = x + step * (rho - x)
        v = keep * state[o + HELD + i] + (y - (1.0 - gain) * x) / gain
        spike = y > state[o + MESSAGE + i] if random else v >= threshold
        state[o + SENT + i] = y
        after = v - threshold if subtract else 0.0
        v = after if spike else v
        v = floor if v < floor else v
        state[o + HELD + i] = ceiling if v > ceiling else v
        state[o + MESSAGE + i] = 1.0 if spike else 0.0


@leaf
def gather(o: np.uint64, state: Array) -> None:
    """Summed input and drive of graded units without gated input."""
    for i in range(TILE):
        g = state[o + CURRENT + i] + state[o + WORK + i]
        state[o + CURRENT + i] = g
        state[o + DRIVE + i] = g + state[o + OUTSIDE + i]


@leaf
def gather_both(beta: float, o: np.uint64, state: Array) -> None:
    """Summed inputs and drive of graded units with gated input."""
    for i in range(TILE):
        g = state[o + CURRENT + i] + state[o + WORK + i]
        by_beta = state[o + SUM_BETA + i] + state[o + AIM + i]
        state[o + CURRENT + i] = g
        state[o + SUM_BETA + i] = by_beta
        state[o + DRIVE + i] = (g + beta * by_beta) + state[o + OUTSIDE + i]


@leaf
def send_graded(c: Array, aim: np.uint64, o: np.uint64, state: Array) -> bool:
    """State and message of graded units, which relax towards rho(aim); whether any changes."""
    changed = 0
    theta, inverse, damping, low, high = c[THETA], c[INVERSE], c[DAMPING], c[LOW], c[HIGH]
    for i in range(TILE):
        rho = state[aim + i]
        rho = low if rho < low else rho
        rho = high if rho > high else rho
        held = state[o + HELD + i]
        x = held + damping * (rho - held)
        state[o + HELD + i] = x
        apart = x - state[o + SENT + i]
        q = theta * np.rint(apart * inverse if inverse != 0.0 else apart / theta)
        state[o + SENT + i] += q
        state[o + MESSAGE + i] = q
        changed += int(x != held) + int(q != 0.0)
    return changed != 0


@leaf
def mix_fixed(beta: float, o: np.uint64, state: Array) -> None:
    """WORK += beta AIM in integers."""
    for i in range(TILE):
        state[o + WORK + i] += np.trunc(beta * state[o + AIM + i])


@leaf
def fire_fixed(
    c: Array,
    scale: float,
    counted: bool,
    x: np.uint64,
    o: np.uint64,
    arriving: Numbers,
    state: Array,
) -> tuple[int, int]:
    """As `fire`, in 24-bit integers; returns the numbers of wraps and of saturated voltages."""
    keep_current, keep, threshold = c[KEEP_CURRENT], c[KEEP_VOLTAGE], c[THRESHOLD]
    subtract, floor, ceiling, none = c[SUBTRACT] != 0.0, c[FLOOR], c[CEILING], like(0, arriving)
    part, wraps, saturations = 1.0 if counted else 0.0, 0, 0
    for i in range(TILE):
        arrived = FRACTION * (scale * like(arriving[x + i], state))
        arriving[x + i] = none
        current = np.trunc(keep_current * state[o + CURRENT + i]) + arrived
        fits = current - MODULUS * np.floor((current + (TOP - 1.0)) / MODULUS)
        wraps += int(fits != current)
        state[o + CURRENT + i] = fits
        d = fits + FRACTION * state[o + OUTSIDE + i]
        state[o + DRIVE + i] = d
        state[o + DRIVES + i] += part * d
        voltage = np.trunc(keep * state[o + HELD + i]) + d
        v = 1.0 - TOP if voltage < 1.0 - TOP else voltage
        v = TOP - 1.0 if v > TOP - 1.0 else v
        saturations += int(v != voltage)
        spike = v >= threshold
        after = v - threshold if subtract else 0.0
        v = after if spike else v
        v = floor if v < floor else v
        state[o + HELD + i] = ceiling if v > ceiling else v
        message = 1.0 if spike else 0.0
        state[o + MESSAGE + i] = message
        state[o + COUNT + i] += message
    return wraps, saturations


@leaf
def gather_fixed(beta: float, gated: bool, o: np.uint64, state: Array) -> int:
    """Summed inputs and drive of graded units in 24-bit integers; returns the number of wraps."""
    wraps = 0
    for i in range(TILE):
        first = state[o + CURRENT + i] + state[o + WORK + i]
        second = state[o + SUM_BETA + i] + (state[o + AIM + i] if gated else 0.0)
        one = first - MODULUS * np.floor((first + (TOP - 1.0)) / MODULUS)
        by_beta = second - MODULUS * np.floor((second + (TOP - 1.0)) / MODULUS)
        wraps += int(one != first) + int(by_beta != second)
        state[o + CURRENT + i] = one
        state[o + SUM_BETA + i] = by_beta
        state[o + DRIVE + i] = (one + np.trunc(beta * by_beta)) + state[o + OUTSIDE + i]
    return wraps


@leaf
def tanh_fixed(unit: float, o: np.uint64, state: Array) -> None:
    """AIM = tanh(DRIVE) in multiples of the unit, rounded to the nearest."""
    for i in range(TILE):
        state[o + SCALED + i] = state[o + DRIVE + i] * unit
    tanh(o + SCALED, o, state)
    inverse = 1.0 / unit
    for i in range(TILE):
        state[o + AIM + i] = np.rint(state[o + AIM + i] * inverse)


@leaf
def send_graded_fixed(c: Array, aim: np.uint64, o: np.uint64, state: Array) -> tuple[bool, int]:
    """As `send_graded` in 24-bit integers; also returns the number of saturations."""
    theta, inverse, damping, low, high = c[THETA], c[INVERSE], c[DAMPING], c[LOW], c[HIGH]
    saturations = changed = 0
    for i in range(TILE):
        rho = state[aim + i]
        rho = low if rho < low else rho
        rho = high if rho > high else rho
        held = state[o + HELD + i]
        reached = held + np.trunc(damping * (rho - held))
        x = 1.0 - TOP if reached < 1.0 - TOP else reached
        x = TOP - 1.0 if x > TOP - 1.0 else x
        saturations += int(x != reached)
        changed += int(x != held)
        state[o + HELD + i] = x
        q = np.rint((x - state[o + SENT + i]) * inverse)
        state[o + SENT + i] += theta * q
        state[o + MESSAGE + i] = q
        changed += int(q != 0.0)
    return changed + saturations != 0, saturations


@leaf
def count_messages(o: np.uint64, state: Numbers) -> None:
    """COUNT += the messages of a tile."""
    zero, one = like(0, state), like(1, state)
    for i in range(TILE):
        state[o + COUNT + i] += one if state[o + MESSAGE + i] != zero else zero


@leaf
def set_payloads(sent: Sent, o: np.uint64, state: Numbers) -> None:
    """Copy the messages of the units on the list to their payloads."""
    for now in range(sent.begin, sent.end):
        unit = uint64(sent.lists[now])
        place = o + unit // TILE * TILE * uint64(ROWS) + MESSAGE + unit % TILE
        sent.payloads[now] = state[place]


@leaf
def add(row: np.uint64, sums: np.uint64, state: Numbers) -> None:
    """A row of sums += a row."""
    for i in range(TILE):
        state[sums + i] += state[row + i]


@leaf
def start_window(o: np.uint64, state: Numbers) -> None:
    """FIRING of plain spikes is minus the COUNT before the window, until the phase ends."""
    for i in range(TILE):
        state[o + FIRING + i] = -state[o + COUNT + i]


@leaf
def units_of(populations: Ints, p: int) -> np.uint64:
    """Number of units of a population."""
    return uint64(populations[p, STOP] - populations[p, START])


@leaf
def begin(network: FlatNetwork, x: np.uint64, space: Workspace) -> None:
    """Set every unit of a sample to its resting state, with no input; x is its first lane."""
    state, populations = space.state, network.populations
    for p in range(populations.shape[0]):
        lane, units = x + uint64(populations[p, FIRST]), units_of(populations, p)
        spiking = populations[p, KIND] == SPIKING
        rest = network.constants[p, RESTING] if spiking else like(0, state)
        for first in range(uint64(0), units, TILE):
            o, left = (lane + first) * uint64(ROWS), units - first
            for i in range(TILE):
                space.one[lane + first + i] = 0
                state[o + HELD + i] = rest if i < left else like(0, state)
            for row in (OUTSIDE, CURRENT, SUM_BETA, SENT):
                for i in range(TILE):
                    state[o + row + i] = 0
            if space.by_beta.size:
                for i in range(TILE):
                    space.by_beta[lane + first + i] = 0


@leaf
def feed(
    samples: SampleArrays,
    k: int,
    sample: int,
    units: tuple[int, int],
    fixed: bool,
    o: np.uint64,
    state: Numbers,
) -> None:
    """External input in phase k: OUTSIDE = given + beta pull; in integers the product is cut.

    Resets the sums of the phase; o is the first tile of a population, of which `units` are.
    """
    begin, end = uint64(units[0]), uint64(units[1])
    given, pull, beta, wrong = samples.given[sample], samples.pull[sample], samples.betas[k], 0
    grid, most = samples.grid, samples.most
    for first in range(begin, end, TILE):
        for i in range(min(TILE, end - first)):
            value = given[first + i]
            if pull.size:
                pulled = beta * pull[first + i]
                value += np.trunc(pulled) if fixed else pulled
            scaled = value * grid
            wrong += int(scaled != np.rint(scaled)) + int(abs(scaled) > most)
            state[o + OUTSIDE + i] = like(value, state)
        for row in (DRIVES, COUNT, FIRING):
            for i in range(TILE):
                state[o + row + i] = 0
        o += TILE * uint64(ROWS)
    if wrong:
        samples.refused[0] = 1


@leaf
def finish(
    window: int, plain: bool, o: np.uint64, state: Numbers, results: tuple[Ints, Array, Array]
) -> None:
    """Write the results of a population in a phase; `plain` if its spikes are its rate."""
    messages, firing, drives = results
    for first in range(uint64(0), uint64(messages.size), TILE):
        for i in range(min(TILE, uint64(messages.size) - first)):
            count, fired = state[o + COUNT + i], state[o + FIRING + i]
            messages[first + i] = np.int64(count)
            firing[first + i] = np.float64(fired + count if plain else fired) / window
            drives[first + i] = np.float64(state[o + DRIVES + i]) / window
        o += TILE * uint64(ROWS)


@leaf
def record_step(populations: Ints, columns: Ints, x: np.uint64, state: Numbers, log: Array) -> None:
    """Write the recorded variables of a step to their columns; -1 is a variable not recorded."""
    for p in range(populations.shape[0]):
        o = (x + uint64(populations[p, FIRST])) * uint64(ROWS)
        for variable in range(columns.shape[1]):
            at, row = (
                columns[p, variable],
                MESSAGE if variable == 0 else (HELD if variable == 1 else DRIVE),
            )
            if at >= 0:
                for i in range(uint64(populations[p, STOP] - populations[p, START])):
                    value = state[o + i // TILE * TILE * uint64(ROWS) + row + i % TILE]
                    log[uint64(at) + i] = value


@leaf
def tiles_of(populations: Ints, p: int) -> np.uint64:
    """Number of tiles of a population."""
    return (uint64(populations[p, STOP] - populations[p, START]) + TILE - NEXT) // TILE


@leaf
def valid_lanes(populations: Ints, p: int, tile: Any) -> np.uint64:
    """The lanes of a tile that are units, as bits."""
    left = uint64(populations[p, STOP] - populations[p, START]) - tile * TILE
    return ~uint64(0) if left >= TILE else (NEXT << left) - NEXT


@outer_leaf
def emulate(  # noqa: C901, PLR0912, PLR0915 - more calls cost a third of the speed
    network: FlatNetwork,
    samples: SampleArrays,
    space: Workspace,
    images: Ints | None,
    spiking: bool | None,
    graded: bool | None,
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
    spiking, graded
        None if the network has no such units.
    courses
        Courses of populations that follow a rate (populations, steps, 3).
    overflows
        Counts of overflows (populations, 2) if the network is in fixed point; float64 represents
        its integers exactly.
    """
    populations, projections, constants = (
        network.populations,
        network.projections,
        network.constants,
    )
    lengths, betas, state, lists = samples.lengths, samples.betas, space.state, space.lists
    depth, block, ends = space.ends.shape[0], space.ends.shape[1], space.ends
    tiles = uint64(space.one.size) // TILE // uint64(block)
    width, size = tiles * TILE, uint64(ROWS)
    for start in range(0, samples.given.shape[0], block):
        together = min(block, samples.given.shape[0] - start)
        for s in range(together):
            begin(network, uint64(s) * width, space)
        ends[:] = 0
        t = slot = 0
        for k in range(betas.size):
            beta, steps, window = betas[k], lengths[k, 0], lengths[k, 1]
            for s in range(together):
                for p in range(populations.shape[0]):
                    units = (populations[p, START], populations[p, STOP])
                    o = (uint64(s) * width + uint64(populations[p, FIRST])) * size
                    feed(samples, k, start + s, units, overflows is not None, o, state)
            if samples.refused[0] != 0:
                return
            for tick in range(steps):
                if samples.halt[0] != 0:
                    return
                for j in range(projections.shape[0]):
                    p, target = projections[j, SOURCE], projections[j, TARGET]
                    gated, offset = projections[j, BY_BETA], uint64(projections[j, OFFSET])
                    if gated and beta == 0.0 and populations[target, KIND] == SPIKING:
                        continue
                    then = slot - projections[j, DELAY]
                    then += depth if then < 0 else 0
                    into = space.by_beta if gated else space.one
                    form, sources = (
                        projections[j, FORM],
                        populations[p, STOP] - populations[p, START],
                    )
                    row = uint64(then) * uint64(block) * width + uint64(populations[p, FIRST])
                    to = uint64(populations[target, FIRST])
                    if form == DENSE_TILES:
                        for tile in range(tiles_of(populations, target)):
                            w = offset + tile * uint64(sources) * TILE
                            narrow = units_of(populations, target) <= uint64(FEW)
                            for s in range(uint64(together)):
                                e = uint64(ends[then, s, p])
                                if e == uint64(0):
                                    continue
                                x, first = s * width + to + tile * TILE, row + s * width
                                space.settled[x // TILE] = 0
                                if spiking is not None:  # noqa: SIM102 - a separate test is decided when compiling
                                    if populations[p, KIND] == SPIKING:
                                        spikes = Sent(lists, None, first, first + e)
                                        if narrow:
                                            add_few(into, x, network.weights, w, spikes)
                                        else:
                                            add_columns(into, x, network.weights, w, spikes)
                                if graded is not None:  # noqa: SIM102
                                    if populations[p, KIND] != SPIKING:
                                        sent = Sent(lists, space.payloads, first, first + e)
                                        if narrow:
                                            add_few(into, x, network.weights, w, sent)
                                        else:
                                            add_columns(into, x, network.weights, w, sent)
                        continue
                    for s in range(uint64(together)):
                        x, first = s * width + to, row + s * width
                        sent = Sent(lists, space.payloads, first, first + uint64(ends[then, s, p]))
                        if sent.end == sent.begin:
                            continue
                        for tile in range(tiles_of(populations, target)):
                            space.settled[x // TILE + tile] = 0
                        if form == SPARSE_COLUMNS:
                            reach = (offset, uint64(sources), tiles_of(populations, target) * TILE)
                            if spiking is not None:  # noqa: SIM102
                                if populations[p, KIND] == SPIKING:
                                    add_sparse(network, None, sent, reach, into, x)
                            if graded is not None:  # noqa: SIM102
                                if populations[p, KIND] != SPIKING:
                                    add_sparse(network, space.payloads, sent, reach, into, x)
                        elif images is not None:
                            image = images[projections[j, IMAGE]]
                            if form == TRANSPOSED:
                                sums = space.image_buffers[1]
                                add_transposed(image, network.kernels, offset, sent, into, x, sums)
                            else:
                                add_convolution(
                                    image, network.kernels, offset, sent, into, x, space
                                )
                for s in range(uint64(together)):
                    for p in range(populations.shape[0]):
                        c, scale, curve = constants[p], constants[p, SCALE], constants[p, CURVE]
                        follows, plain = populations[p, FOLLOWS], populations[p, KIND] == SPIKING
                        plain = plain and follows == 0
                        lane = s * width + uint64(populations[p, FIRST])
                        gated = populations[p, GATED] != 0
                        wide = tiles_of(populations, p)
                        mixes = gated and (beta != 0.0 or populations[p, KIND] != SPIKING)
                        directly = plain and not mixes
                        if overflows is None:
                            directly = directly and c[KEEP_CURRENT] == 0
                        active = 0
                        for tile in range(uint64(0) if directly else wide):
                            x = lane + tile * TILE
                            o = x * size
                            if graded is not None:
                                if tick == 0:
                                    space.settled[x // TILE] = 0
                                if space.settled[x // TILE]:
                                    continue
                            active += 1
                            take(space.one, x, scale, o + WORK, state)
                            if mixes:
                                take(space.by_beta, x, scale, o + AIM, state)
                            if spiking is not None:  # noqa: SIM102
                                if populations[p, KIND] == SPIKING:
                                    if overflows is not None:
                                        mix_fixed(beta, o, state)
                                        continue
                                    if mixes:
                                        mix(beta, o, state)
                                    if courses is not None:  # noqa: SIM102
                                        if follows:
                                            before = courses[p, t, BEFORE]
                                            smooth(1.0 - before, before, o, state)
                                            continue
                                    smooth(c[KEEP_CURRENT], 1, o, state)
                                    continue
                            if graded is not None:
                                if overflows is not None:
                                    overflows[p, WRAPS] += gather_fixed(beta, mixes, o, state)
                                elif mixes:
                                    gather_both(beta, o, state)
                                else:
                                    gather(o, state)
                        if courses is not None or graded is not None:  # noqa: SIM102
                            if curve == OTHER and active:
                                function, count = network.curves[p], units_of(populations, p)
                                call_curve(function, count, lane * size, state, space.buffer)
                        begun = uint64(slot) * uint64(block) * width + lane
                        end, counted = begun, tick >= steps - window
                        seed = uint64(0)
                        if courses is not None:  # noqa: SIM102
                            if follows == RANDOM:
                                number = samples.first + start + int(s)
                                seed = random_row(samples.starts[p], number, t + 1)
                        for tile in range(wide):
                            x = lane + tile * TILE
                            o = x * size
                            aim = o + (DRIVE if curve == CLIPPED else AIM)
                            idle = False
                            if spiking is not None:
                                if plain:
                                    if tick == steps - window:
                                        start_window(o, state)
                                    one = like(1, state)
                                    if overflows is not None:
                                        if directly:
                                            over = fire_fixed(
                                                c, scale, counted, x, o, space.one, state
                                            )
                                        else:
                                            over = fire_fixed(
                                                c, one, counted, o + WORK, o, state, state
                                            )
                                        overflows[p, WRAPS] += over[0]
                                        overflows[p, SATURATIONS] += over[1]
                                    elif directly:
                                        fire(c, scale, counted, x, o, space.one, state)
                                    else:
                                        fire(c, one, counted, o + WORK, o, state, state)
                                elif courses is not None and populations[p, KIND] == SPIKING:
                                    if curve == TANH:
                                        tanh(o + DRIVE, o, state)
                                    if follows == RANDOM:
                                        draw(seed, tile * TILE, o, state)
                                    follow_rate(c, courses[p, t], follows, aim, o, state)
                            if graded is not None:  # noqa: SIM102
                                if populations[p, KIND] != SPIKING:
                                    idle = space.settled[x // TILE] != 0
                                    if not idle:
                                        if overflows is not None:
                                            if curve == TANH:
                                                tanh_fixed(c[UNIT], o, state)
                                            changed, clipped = send_graded_fixed(c, aim, o, state)
                                            overflows[p, SATURATIONS] += clipped
                                        else:
                                            if curve == TANH:
                                                tanh(o + DRIVE, o, state)
                                            changed = send_graded(c, aim, o, state)
                                        space.settled[x // TILE] = not changed
                                        idle = not changed
                            if not idle:
                                valid = valid_lanes(populations, p, tile)
                                word = sending(state, o + MESSAGE) & valid
                                end = list_set_bits(word, tile * TILE, end, lists, SET_BITS)
                            if not plain:
                                if not idle:
                                    count_messages(o, state)
                                if counted:
                                    add(o + DRIVE, o + DRIVES, state)
                                    add(o + SENT, o + FIRING, state)
                        ends[slot, s, p] = end - begun
                        if graded is not None:  # noqa: SIM102
                            if populations[p, KIND] != SPIKING:
                                sent = Sent(lists, space.payloads, begun, end)
                                set_payloads(sent, lane * size, state)
                    if samples.columns.size:
                        log = samples.log[start + int(s), t]
                        record_step(populations, samples.columns, s * width, state, log)
                t += 1
                slot = slot + 1 if slot + 1 < depth else 0
            for s in range(together):
                for p in range(populations.shape[0]):
                    a, z = populations[p, START], populations[p, STOP]
                    plain = populations[p, KIND] == SPIKING and populations[p, FOLLOWS] == 0
                    o = (uint64(s) * width + uint64(populations[p, FIRST])) * size
                    results = (
                        samples.messages[start + s, k, a:z],
                        samples.firing[start + s, k, a:z],
                        samples.drives[start + s, k, a:z],
                    )
                    finish(window, plain, o, state, results)
