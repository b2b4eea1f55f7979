"""A spiking network as the flat arrays that the emulator's compiled loops read."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p, cast
from dataclasses import dataclass
from math import frexp, inf
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.networks.activations import HYPERBOLIC, Activation
from neuro_eqprop.simulators.emulator.formats import (
    ExactRange,
    Multiples,
    exact_range,
    multiples,
    shared_exponent,
)
from neuro_eqprop.simulators.emulator.kernels import (
    CLIPPED,
    CONVOLUTION,
    CURVE,
    DENSE_TILES,
    FIRST,
    LANES,
    OTHER,
    PREDICTIVE,
    RANDOM,
    SPARSE_COLUMNS,
    STOP,
    TANH,
    TRANSPOSED,
    FlatNetwork,
    Numbers,
    Rows,
    Units,
)
from neuro_eqprop.simulators.emulator.sparse_columns import sparse_columns
from neuro_eqprop.spiking.arithmetic import ONE, FloatArithmetic, to_12_bits
from neuro_eqprop.spiking.counter_rng import mix
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, Neuron, RateTracking, SpikingNetwork
from neuro_eqprop.spiking.kinds import GradedNeurons, SpikingNeurons
from neuro_eqprop.spiking.neurons import Neurons, neurons_of
from neuro_eqprop.spiking.neurons import Numbers as Values
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    Synapses,
)

Number = TypeVar("Number", np.float64, np.int64)

CALL = CFUNCTYPE(None, c_int64, c_int64, c_int64)
NO_RATE = (-inf, inf, float(CLIPPED))
DENSE = 0.2
"""Fraction of nonzero weights above which dense tiles are faster than sparse columns."""
CACHED = 2**19
"""Bytes of weights that stay in the cache of a processor."""
TOGETHER = 64
"""Samples that step side by side if the weights do not stay in the cache."""


@dataclass(frozen=True, slots=True)
class Tables:
    """A network as flat arrays, with the columns of `neuro_eqprop.simulators.emulator.kernels`.

    A row of `populations` is (start, stop, kind, gated, follows, first lane), one of `projections`
    (source, target, delay, by_beta, form, offset, image). Weights are in 16 bits where possible, in
    multiples of what one is in the sums of their target.
    """

    network: SpikingNetwork
    digest: int
    """Of the biases and dense weights that the tables were built from."""
    numbers: dict[str, Neurons]
    """The populations, with their values in floats or integers."""
    place: dict[str, tuple[int, int]]
    """The range (start, stop) of the units of each population."""
    populations: Ints
    constants: Array
    projections: Ints
    packed: Packed
    exact: ExactRange | None
    """When float32 is exact; None if never."""

    @property
    def units(self) -> int:
        """Total number of units."""
        return int(self.populations[-1, STOP])

    @property
    def lanes(self) -> int:
        """Total number of lanes: those of whole tiles."""
        start, stop, first = self.populations[-1, [0, STOP, FIRST]].tolist()
        return int(first + to_tiles(stop - start))

    @property
    def together(self) -> int:
        """Samples that step side by side, which share each tile of weights."""
        return 1 if self.packed.weights.nbytes <= CACHED else TOGETHER

    def flat(self, curves: Ints, *, short: bool) -> FlatNetwork:
        """The network as `emulate` takes it, with the addresses of `CurveCalls`.

        `short` asks for constants in float32, and for weights of that type if there are few.
        """
        packed, constants, weights = self.packed, self.constants, self.packed.weights
        if short:
            constants = constants.astype(np.float32)
            weights = weights.astype(np.float32) if self.together == 1 else weights
        sparse = (packed.heads, packed.words, packed.sparse_weights)
        return FlatNetwork(
            self.populations, constants, curves, self.projections, weights, packed.kernels, *sparse
        )

    def split(self, values: npt.NDArray[Number]) -> dict[str, npt.NDArray[Number]]:
        """Values by population; units are the last axis."""
        return {name: values[..., a:z] for name, (a, z) in self.place.items()}

    def to_float(self, values: Array, variable: str) -> dict[str, Array]:
        """Values of a variable by population, in floating point."""
        sizes = {name: self.size(name, variable) for name in self.place}
        parts = self.split(values)
        return {n: part if sizes[n] == 1.0 else part * sizes[n] for n, part in parts.items()}

    def size(self, name: str, variable: str) -> float:
        """The scale of a population's variable: its value is scale times the number stored."""
        neurons = self.numbers[name]
        if variable == "spikes":
            return float(neurons.payload(np.ones(1))[0])
        return neurons.firing_unit if variable == "sent" else neurons.shown

    def to_units(self, name: str, values: Array | None) -> Values | float:
        """A current or pull in the number format of a population."""
        return 0.0 if values is None else self.numbers[name].arithmetic.rounded(values)

    def beta(self, beta: float) -> float:
        """The beta of a phase; in integers rounded to 12 bits."""
        return beta if self.network.fixed is None else to_12_bits(beta) / ONE

    def courses(self, steps: int) -> Array | None:
        """Previous lambda, lambda and eps (populations, steps, 3); None if none follows a rate."""
        followed = list(self.following())
        if not followed:
            return None
        found = np.ones((len(self.populations), steps, 3))
        for p, follow in followed:
            for t in range(1, steps + 1):
                found[p, t - 1] = (
                    follow.gain.at(t - 1) if t > 1 else 1.0,
                    follow.gain.at(t),
                    follow.step.at(t),
                )
        return found

    def starts(self) -> npt.NDArray[np.uint64]:
        """Mixed seed of the random numbers of each population."""
        seeds = np.zeros(len(self.populations), dtype=np.uint64)
        for p, follow in self.following():
            seeds[p] = follow.seed or 0
        return mix(seeds)

    def following(self) -> Iterator[tuple[int, RateTracking]]:
        """Index and parameters of the populations that follow a rate."""
        for p, population in enumerate(self.network.populations):
            if population.neuron.follow is not None:
                yield p, population.neuron.follow

    def built_from(self, network: SpikingNetwork) -> bool:
        """Whether the tables still match the arrays of the network, which may have changed."""
        return network is self.network and digest(network) == self.digest


def digest(network: SpikingNetwork) -> int:
    """A checksum of all biases and dense weights; other synapses are read-only."""
    found = 0
    for population in network.populations:
        found = zlib.crc32(np.ascontiguousarray(population.bias), found)
    for projection in network.projections:
        if isinstance(projection.synapses, DenseSynapses):
            weight = projection.synapses.weight
            # As it lies in memory: weights may be the transpose of others.
            rows = weight.T if weight.flags.f_contiguous else np.ascontiguousarray(weight)
            found = zlib.crc32(repr(weight.shape).encode(), found)
            for row in rows:
                found = zlib.crc32(row, found)
    return found


class CurveCalls:
    """The activations that Python computes, as functions that compiled code can call."""

    def __init__(self, tables: Tables) -> None:
        self.functions: list[Any] = []
        self.error: Exception | None = None
        found = np.zeros(len(tables.populations), dtype=np.int64)
        for number, population in enumerate(tables.network.populations):
            rate, name = population.neuron.activation, population.name
            if rate is not None and is_other(rate):
                function = CALL(self.caller(rate, tables.numbers[name].arithmetic))
                self.functions.append(function)
                found[number] = cast(function, c_void_p).value or 0
        self.addresses = found
        """The address of the function of each population, or zero."""

    def caller(self, rate: Activation, arithmetic: FloatArithmetic) -> Callable[..., None]:
        """A function from a size and the addresses of a drive and of the rates to write."""

        def call(size: int, drive: int, rates: int) -> None:
            values = c_double * size
            u = np.frombuffer(memoryview(values.from_address(drive)))
            rho = np.frombuffer(memoryview(values.from_address(rates)))
            try:
                if arithmetic.fixed:
                    rho[:] = rate.integers(u.astype(np.int64), arithmetic.unit)
                else:
                    rho[:] = rate.value(u)
            except Exception as error:  # compiled code knows no exceptions
                self.error = error

        return call

    def check(self) -> None:
        """Raise the error of an activation."""
        if self.error is not None:
            raise self.error


def exact_inverse(value: float) -> float:
    """1 / value, if multiplying by it gives the same bits as dividing by value; else 0."""
    mantissa, exponent = frexp(value)
    return 1 / value if mantissa == 0.5 and abs(exponent) < 100 else 0.0


def limits(rate: Activation) -> tuple[float, float, float]:
    """LOW, HIGH and CURVE of an activation; only clipped ones have limits."""
    if rate.piecewise_linear:
        return rate.low, rate.high, float(CLIPPED)
    compiled = rate.curve == HYPERBOLIC
    return -inf, inf, float(TANH if compiled else OTHER)


def is_other(rate: Activation | None) -> bool:
    """Whether Python computes an activation, for no compiled code does."""
    return rate is not None and limits(rate)[CURVE] == OTHER


def constants(neurons: Neurons) -> tuple[float, ...]:
    """The row of `Tables.constants` of a population."""
    part = ONE if neurons.arithmetic.fixed else 1
    if isinstance(neurons, GradedNeurons):
        theta, rate = float(neurons.theta), neurons.neuron.activation
        range_ = limits(rate)
        if rate.piecewise_linear:
            range_ = (float(neurons.low), float(neurons.high), range_[-1])
        followed = (theta, exact_inverse(theta), neurons.damping / part, neurons.arithmetic.unit)
        return (*range_, *followed, 0.0, 0.0)
    assert isinstance(neurons, SpikingNeurons)
    follow = neurons.neuron.follow
    range_ = NO_RATE if follow is None else limits(follow.activation)
    kept = (neurons.keep_current / part, neurons.keep_voltage / part, float(neurons.threshold))
    ends = (float(neurons.subtract), float(neurons.floor), float(neurons.ceiling))
    return (*range_, *kept, *ends)


def follows(neuron: Neuron) -> int:
    """How a neuron encodes the rate that it follows; zero if it follows none."""
    if neuron.follow is None:
        return 0
    return PREDICTIVE if neuron.follow.seed is None else RANDOM


def to_tiles(units: int) -> int:
    """The lanes of the tiles that hold so many units."""
    return -(-units // LANES) * LANES


def tabulate(network: SpikingNetwork) -> Tables:
    """The tables of a network."""
    place: dict[str, tuple[int, int]] = {}
    rows, stop, first = [], 0, 0
    numbers = {p.name: neurons_of(network, p) for p in network.populations}
    for population in network.populations:
        start, stop = stop, stop + population.size
        place[population.name] = (start, stop)
        graded = int(population.neuron.graded)
        gated = int(bool(network.into(population.name, Gain.BETA)))
        rows.append([start, stop, graded, gated, follows(population.neuron), first])
        first += to_tiles(population.size)
    packed = Packed(network)
    rests = {name: float(getattr(each, "start", 0.0)) for name, each in numbers.items()}
    values = [[*constants(numbers[name]), packed.unit(name), rests[name]] for name in place]
    exact = packed.exact_range() if network.fixed is None else None
    return Tables(
        network,
        digest(network),
        numbers,
        place,
        table(rows, 6),
        np.array(values),
        packed.projections,
        packed,
        exact,
    )


def table(rows: list[list[int]], width: int) -> Ints:
    """Rows of integers as an array, which may be empty."""
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


class Packed:
    """The synapses of all projections in flat arrays."""

    def __init__(self, network: SpikingNetwork) -> None:
        self.network = network
        self.synapses = [
            p.synapses if network.fixed is None else integer_synapses(network, p)
            for p in network.projections
        ]
        self.multiples = [multiples(each) for each in self.synapses]
        self.exponents = {p.name: shared_exponent(self.into(p.name)) for p in network.populations}
        self.whole = all(each is not None for each in self.exponents.values())
        """Whether all weights are multiples in 16 bits."""
        self.graded = any(population.neuron.graded for population in network.populations)
        images: list[list[int]] = []
        rows, kernels, dense, heads, words, others = (list[Any]() for _ in range(6))
        names = [population.name for population in network.populations]
        for projection, synapses in zip(network.projections, self.synapses, strict=True):
            ends = (names.index(projection.source), names.index(projection.target))
            scale, image = 1.0 / self.unit(projection.target), 0
            if isinstance(synapses, ConvolutionSynapses):
                offset, image = count(kernels), len(images)
                form = TRANSPOSED if synapses.transposed else CONVOLUTION
                images.append(image_row(synapses))
                kernels.append(kernel_table(synapses) * scale)
            elif is_dense(synapses):
                form, offset = DENSE_TILES, sum(to_tiles(s.shape[0]) * s.shape[1] for s, _ in dense)
                dense.append((synapses, scale))
            else:
                form, offset = SPARSE_COLUMNS, count(heads)
                columns = sparse_columns(synapses.to_csr(), scale if self.whole else None)
                heads.append(columns.heads + np.uint32(count(words)))
                words.append(columns.words)
                others.append(columns.weights)
            by_beta = int(projection.gain is Gain.BETA)
            rows.append([*ends, projection.delay, by_beta, form, offset, image])
        self.projections, self.images = table(rows, 7), table(images, 11)
        self.kernels: Array = joined(kernels, np.float64)
        self.heads: Units = joined(heads, np.uint32)
        self.words: Rows = joined(words, np.int32)
        self.sparse_weights: Array = joined(others, np.float64)
        self.weights: Numbers = self.dense_tiles(dense)
        del self.synapses

    def into(self, name: str) -> list[Multiples]:
        """The weights into a population."""
        pairs = zip(self.network.projections, self.multiples, strict=True)
        return [found for projection, found in pairs if projection.target == name]

    def unit(self, name: str) -> float:
        """What a weight of one in the tables is worth in the sums of a population."""
        return 2.0 ** -(self.exponents[name] or 0) if self.whole else 1.0

    @property
    def sums(self) -> type[np.number[Any]]:
        """The type of sums of weights: exact in integers if messages are spikes."""
        return np.int32 if self.whole and not self.graded else np.float64

    def dense_tiles(self, dense: list[tuple[Synapses, float]]) -> Numbers:
        """The weights by tile of the targets, source and target."""
        size = sum(to_tiles(each.shape[0]) * each.shape[1] for each, _ in dense)
        short = self.whole and (not self.graded or 8 * size > CACHED)
        weights = aligned(size, np.int16 if short else np.float64)
        start = 0
        for synapses, scale in dense:
            targets, sources = synapses.shape
            for first in range(0, targets, LANES):
                rows = synapses.dense(first, min(first + LANES, targets))
                tile = weights[start : start + sources * LANES].reshape(sources, LANES)
                tile[:, : len(rows)] = rows.T * scale
                start += tile.size
        return weights

    def exact_range(self) -> ExactRange | None:
        """When the network runs in float32; None if never."""
        if not self.whole or self.graded:
            return None
        neurons: list[Any] = [population.neuron for population in self.network.populations]
        totals = [
            (self.exponents[p.name] or 0, sum(each.row_sum for each in self.into(p.name)))
            for p in self.network.populations
        ]
        return exact_range(neurons, totals)


def is_dense(synapses: Synapses) -> bool:
    """Whether most weights of a matrix are there."""
    if not isinstance(synapses, DenseSynapses):
        return False
    return bool(np.count_nonzero(synapses.weight) >= DENSE * synapses.weight.size)


def image_row(synapses: ConvolutionSynapses) -> list[int]:
    """The shapes of a convolution."""
    (channels, high, wide), (outputs, high_out, wide_out) = synapses.pooled, synapses.output
    sides = [*synapses.kernel.shape[2:], synapses.stride, synapses.padding, synapses.pool]
    return [channels, high, wide, outputs, high_out, wide_out, *sides]


def kernel_table(synapses: ConvolutionSynapses) -> Array:
    """A kernel with the channels of the targets of a message adjacent."""
    if synapses.transposed:
        laid = synapses.kernel.transpose(0, 2, 3, 1)
    else:
        laid = synapses.kernel[:, :, :, ::-1].transpose(1, 2, 3, 0)
    return np.ascontiguousarray(laid).ravel()


def aligned(size: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that begin where a line of the cache does."""
    found = np.zeros(size + LANES, dtype=kind)
    skipped = -found.ctypes.data % LANES // found.itemsize
    return found[skipped : skipped + size]


def joined(parts: list[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The parts in one array; a single one is not copied."""
    if len(parts) == 1 and parts[0].flags.writeable:
        return parts[0]
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def count(parts: list[npt.NDArray[Any]]) -> int:
    """Total number of values."""
    return sum(part.size for part in parts)
