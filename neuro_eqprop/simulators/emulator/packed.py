"""A spiking network as the flat arrays that the emulator's compiled loops read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p, cast
from dataclasses import dataclass
from math import frexp, inf
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.networks.activations import HYPERBOLIC, Activation
from neuro_eqprop.simulators.emulator.kernels import (
    CLIPPED,
    CONVOLUTION,
    CURVE,
    DENSE_COLUMNS,
    FOLLOWS,
    FORM,
    GATED,
    GRADED,
    KIND,
    OFFSET,
    OTHER,
    PREDICTIVE,
    RANDOM,
    SPARSE_COLUMNS,
    SPIKING,
    START,
    STOP,
    TANH,
    TRANSPOSED,
    FlatNetwork,
    Rows,
)
from neuro_eqprop.simulators.emulator.sparse_columns import by_column
from neuro_eqprop.spiking.arithmetic import ONE, FloatArithmetic, to_12_bits
from neuro_eqprop.spiking.counter_rng import mix
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, Neuron, RateTracking, SpikingNetwork
from neuro_eqprop.spiking.kinds import GradedNeurons, SpikingNeurons
from neuro_eqprop.spiking.neurons import Neurons, Numbers, neurons_of
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    SparseSynapses,
    Synapses,
)

Number = TypeVar("Number", np.float64, np.int64)

CALL = CFUNCTYPE(None, c_int64, c_int64, c_int64)
NO_RATE = (-inf, inf, float(CLIPPED))
DENSE = 0.2
"""Fraction of nonzero weights above which dense columns are faster than sparse ones."""
COMPILED = 2**18
"""Number of sparse weights above which sorting them is compiled."""


@dataclass(frozen=True, slots=True)
class Tables:
    """A network as flat arrays, with the columns of `neuro_eqprop.simulators.emulator.kernels`.

    A row of `populations` and `blocks` is (start, stop, kind, gated, follows); a block is a run of
    populations with the same constants. A row of `projections` is (source, target, delay, by_beta,
    form, offset, image). The weights of a source unit are adjacent; a kernel is stored once.
    """

    network: SpikingNetwork
    numbers: dict[str, Neurons]
    """The populations, with their values in floats or integers."""
    copies: tuple[Array, ...]
    """Copies of the biases and dense weights that the tables were built from."""
    place: dict[str, tuple[int, int]]
    """The range (start, stop) of the units of each population."""
    populations: Ints
    blocks: Ints
    constants: Array
    projections: Ints
    heads: Ints
    rows: Rows
    weights: Array
    images: Ints

    @property
    def units(self) -> int:
        """Total number of units."""
        return int(self.populations[-1, STOP])

    def flat(self, curves: Ints) -> FlatNetwork:
        """The network as `emulate` takes it, with the addresses of `CurveCalls`."""
        neurons = (self.populations, self.blocks, self.constants, curves)
        return FlatNetwork(*neurons, self.projections, self.heads, self.rows, self.weights)

    @property
    def parts(self) -> tuple[Ints | None, Ints | None, Ints | None]:
        """Images, spiking blocks and graded blocks; None for parts of the step not needed."""
        graded = self.blocks[:, KIND] == GRADED
        parts = (self.images, self.blocks[~graded], self.blocks[graded])
        images, spiking_blocks, graded_blocks = (each if len(each) else None for each in parts)
        return images, spiking_blocks, graded_blocks

    def split(self, values: npt.NDArray[Number]) -> dict[str, npt.NDArray[Number]]:
        """Values by population; units are the last axis."""
        return {name: values[..., a:z] for name, (a, z) in self.place.items()}

    def to_float(self, values: Array, variable: str) -> dict[str, Array]:
        """Values of a variable by population, in floating point."""
        parts = self.split(values)
        return {name: array * self.size(name, variable) for name, array in parts.items()}

    def size(self, name: str, variable: str) -> float:
        """The scale of a population's variable: its value is scale times the number stored."""
        neurons = self.numbers[name]
        if variable == "spikes":
            return float(neurons.payload(np.ones(1))[0])
        return neurons.firing_unit if variable == "sent" else neurons.shown

    def to_units(self, name: str, values: Array | None) -> Numbers | float:
        """A current or pull in the number format of a population."""
        return 0.0 if values is None else self.numbers[name].arithmetic.rounded(values)

    def beta(self, beta: float) -> float:
        """The beta of a phase; in integers rounded to 12 bits."""
        return beta if self.network.fixed is None else to_12_bits(beta) / ONE

    def courses(self, steps: int) -> Array | None:
        """Previous lambda, lambda and eps (blocks, steps, 3); None if no block follows a rate."""
        if not self.blocks[:, FOLLOWS].any():
            return None
        found = np.ones((len(self.blocks), steps, 3))
        for b, follow in self.following():
            for t in range(1, steps + 1):
                found[b, t - 1] = (
                    follow.gain.at(t - 1) if t > 1 else 1.0,
                    follow.gain.at(t),
                    follow.step.at(t),
                )
        return found

    def starts(self) -> npt.NDArray[np.uint64]:
        """Mixed seed of the random numbers of each block."""
        seeds = np.zeros(len(self.blocks), dtype=np.uint64)
        for b, follow in self.following():
            seeds[b] = follow.seed or 0
        return mix(seeds)

    def block_of(self, name: str) -> int:
        """The block that starts with a population."""
        return int(np.flatnonzero(self.blocks[:, START] == self.place[name][0])[0])

    def following(self) -> Iterator[tuple[int, RateTracking]]:
        """Index and parameters of the blocks that follow a rate; each is one population."""
        for population in self.network.populations:
            if population.neuron.follow is not None:
                yield self.block_of(population.name), population.neuron.follow

    def built_from(self, network: SpikingNetwork) -> bool:
        """Whether the tables still match the arrays of the network, which may have changed."""
        return network is self.network and all(
            bool((old == new).all()) for old, new in zip(self.copies, arrays(network), strict=True)
        )


class CurveCalls:
    """The activations that Python computes, as functions that compiled code can call."""

    def __init__(self, tables: Tables) -> None:
        self.functions: list[Any] = []
        self.error: Exception | None = None
        found = np.zeros(len(tables.blocks), dtype=np.int64)
        for population in tables.network.populations:
            rate, name = population.neuron.activation, population.name
            if rate is not None and is_other(rate):
                function = CALL(self.caller(rate, tables.numbers[name].arithmetic))
                self.functions.append(function)
                found[tables.block_of(name)] = cast(function, c_void_p).value or 0
        self.addresses = found
        """The address of the function of each block, or zero."""

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


def arrays(network: SpikingNetwork) -> Iterator[Array]:
    """All biases and dense weights, which may change in place; other synapses are read-only."""
    yield from (population.bias for population in network.populations)
    for projection in network.projections:
        if isinstance(projection.synapses, DenseSynapses):
            yield projection.synapses.weight


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


def tabulate(network: SpikingNetwork) -> Tables:
    """The tables of a network."""
    names = [population.name for population in network.populations]
    place: dict[str, tuple[int, int]] = {}
    populations: list[list[int]] = []
    blocks: list[list[int]] = []
    rows: list[tuple[float, ...]] = []
    stop, numbers = 0, {p.name: neurons_of(network, p) for p in network.populations}
    for population in network.populations:
        start, stop = stop, stop + population.size
        place[population.name] = (start, stop)
        graded = int(population.neuron.graded)
        gated = int(bool(network.into(population.name, Gain.BETA)))
        populations.append([start, stop, graded, gated, follows(population.neuron)])
        row = constants(numbers[population.name])
        alike = network.fixed is None and rows and rows[-1] == row and row[CURVE] != OTHER
        if alike and can_join(blocks[-1], populations[-1]):
            blocks[-1][STOP], blocks[-1][GATED] = stop, max(blocks[-1][GATED], gated)
        else:
            blocks.append(populations[-1].copy())
            rows.append(row)
    packed = pack(network, names)
    copies = tuple(array.copy() for array in arrays(network))
    return Tables(
        network, numbers, copies, place, table(populations), table(blocks), np.array(rows), *packed
    )


def can_join(block: list[int], population: list[int]) -> bool:
    """Whether a population with the same constants can join a block.

    Graded units without gated input form separate blocks: they skip the sum of gated input.
    """
    if block[FOLLOWS] or population[FOLLOWS] or block[KIND] != population[KIND]:
        return False
    return block[GATED] == population[GATED] or population[KIND] == SPIKING


def table(rows: list[list[int]], width: int = 5) -> Ints:
    """Rows of integers as an array, which may be empty."""
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


class Packed:
    """The synapses of all projections in flat arrays; weights of sparse columns come first."""

    def __init__(self) -> None:
        self.heads: list[Ints] = []
        self.rows: list[Rows] = []
        self.sparse: list[Array] = []
        self.others: list[Array] = []
        self.images: list[list[int]] = []

    def add(self, synapses: Synapses) -> tuple[int, int, int]:
        """Append synapses; return the columns FORM, OFFSET and IMAGE of their projection."""
        if isinstance(synapses, ConvolutionSynapses):
            return self.add_kernel(synapses)
        if isinstance(synapses, DenseSynapses):
            filled = np.count_nonzero(synapses.weight)
            if filled >= DENSE * synapses.weight.size:
                offset = count(self.others)
                laid = np.ascontiguousarray(synapses.weight.T, dtype=np.float64)
                self.others.append(laid.ravel())
                return DENSE_COLUMNS, offset, 0
        return self.add_sparse(synapses.to_csr())

    def add_sparse(self, synapses: SparseSynapses) -> tuple[int, int, int]:
        """Append the columns of a sparse matrix."""
        offset, start = count(self.heads), count(self.sparse)
        heads, rows, weights = columns(synapses)
        self.heads.append(heads + start)
        self.rows.append(rows)
        self.sparse.append(weights)
        return SPARSE_COLUMNS, offset, 0

    def add_kernel(self, synapses: ConvolutionSynapses) -> tuple[int, int, int]:
        """Append a kernel, stored with the channels of the targets of a message adjacent."""
        (channels, high, wide), (outputs, high_out, wide_out) = synapses.pooled, synapses.output
        kernel = synapses.kernel
        sides = [*kernel.shape[2:], synapses.stride, synapses.padding, synapses.pool]
        self.images.append([channels, high, wide, outputs, high_out, wide_out, *sides])
        offset = count(self.others)
        if synapses.transposed:
            laid = kernel.transpose(0, 2, 3, 1)
        else:
            laid = kernel[:, :, :, ::-1].transpose(1, 2, 3, 0)
        self.others.append(np.ascontiguousarray(laid).ravel())
        form = TRANSPOSED if synapses.transposed else CONVOLUTION
        return form, offset, len(self.images) - 1

    def arrays(self) -> tuple[Ints, Rows, Array, Ints]:
        """Heads, rows, weights and images."""
        return (
            joined(self.heads, np.int64),
            joined(self.rows, np.int32),
            joined([*self.sparse, *self.others], np.float64),
            table(self.images, 11),
        )


def columns(synapses: SparseSynapses) -> tuple[Ints, Rows, Array]:
    """Heads, rows and weights of the columns of a sparse matrix."""
    if len(synapses.data) > COMPILED:
        matrix = (synapses.indptr, synapses.indices, synapses.data)
        return by_column(*matrix, synapses.shape[1])
    turned = synapses.T
    return turned.indptr, turned.indices, turned.data


def joined(parts: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The parts in one array; a single one is not copied.

    A read-only one is copied: Numba gives it another type and would compile the loops again.
    """
    if len(parts) == 1 and parts[0].flags.writeable:
        return parts[0]
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def pack(network: SpikingNetwork, names: list[str]) -> tuple[Ints, Ints, Rows, Array, Ints]:
    """Projections, heads, rows, weights and images."""
    packed, listed = Packed(), []
    for projection in network.projections:
        synapses = projection.synapses
        if network.fixed is not None:
            synapses = integer_synapses(network, projection)
        ends = (names.index(projection.source), names.index(projection.target))
        by_beta = int(projection.gain is Gain.BETA)
        listed.append([*ends, projection.delay, by_beta, *packed.add(synapses)])
    found = table(listed, 7)
    found[found[:, FORM] != SPARSE_COLUMNS, OFFSET] += count(packed.sparse)
    return found, *packed.arrays()


def count(parts: Sequence[npt.NDArray[Any]]) -> int:
    """Total number of values."""
    return sum(part.size for part in parts)
