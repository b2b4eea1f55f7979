"""What a C program is made of: the integers of a spiking network, their tables, types and sizes.

Sums of inputs are kept modulo 2^32 in unsigned registers. The step wraps them to 24 bits, which
gives the same value, since 2^24 divides 2^32. Everything else is checked here to stay below 2^31.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import frexp

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.networks.activations import HYPERBOLIC
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.learning_rules import effective_weights
from neuro_eqprop.spiking.arithmetic import FRACTION, TOP, UNREACHED, FixedArithmetic, to_12_bits
from neuro_eqprop.spiking.fixed_point import absolute_row_sums, integer_synapses
from neuro_eqprop.spiking.ir import Gain, Projection, SpikingNetwork
from neuro_eqprop.spiking.kinds import GradedNeurons, Neurons, SpikingNeurons
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.plasticity import IntegerArithmetic, PlasticNetwork
from neuro_eqprop.spiking.synapses import DenseSynapses, Synapses

INPUT_ONE = 256
"""The integer input of a value of 1.0."""
INPUT_TOP = 2**15 - 1
"""The largest integer input."""
SUMS = 2**31
"""What signed sums must stay below."""
OUTSIDE = {GradedNeurons: 2**28, SpikingNeurons: 2**23}
"""What bias and current must stay below, in units; the step of spiking units multiplies by 64."""


def safe_text(text: object) -> str:
    """Text for a comment or a string of C: letters, digits and harmless signs, at most 200."""
    return re.sub(r"[^A-Za-z0-9 _.,:;+\->()=%]", "_", str(text))[:200]


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """A valid and unique part of C identifiers for each name.

    It is so short that identifiers differ in their first 31 characters, and does not end like a
    type.
    """
    found: dict[str, str] = {}
    for k, name in enumerate(names):
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:16] or "population"
        if plain in found.values() or plain != name.lower() or plain.endswith("_t"):
            plain = f"{plain}_{k}"
        while plain in found.values():
            plain += "x"
        found[name] = plain
    return found


def c_type(low: float, high: float) -> str:
    """The smallest signed type that holds these values."""
    for bits in (8, 16, 32):
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return f"int{bits}_t"
    raise BackendError(f"values of {low:g} to {high:g} do not fit 32 bits")


def type_bytes(name: str) -> int:
    """The size of a type of `stdint.h`."""
    return int(re.sub(r"\D", "", name)) // 8


def power(ratio: float) -> int:
    """The exponent of a power of two."""
    mantissa, exponent = frexp(ratio)
    if mantissa != 0.5:
        raise ValueError(f"{ratio} is no power of two")
    return exponent - 1


@dataclass(frozen=True, slots=True)
class Table:
    """An array of integer weights, which several paths can share."""

    name: str
    synapses: Synapses
    learns: bool = False

    @property
    def type(self) -> str:
        """The type of a weight; those that learn have 8 bits."""
        if self.learns:
            return "int8_t"
        values = self.synapses.values
        return c_type(float(values.min(initial=0)), float(values.max(initial=0)))


@dataclass(frozen=True, slots=True)
class SynapsePath:
    """A projection, or the way of an input to a population; `source` is empty for inputs."""

    source: str
    target: str
    table: Table
    backwards: bool
    """Whether the table has the weights of the transposed matrix."""
    factor: int
    """A power of two, or minus one, by which messages are multiplied."""
    delay: int = 1
    beta: bool = False
    fan_out: float = 0.0
    """Mean number of synapses of a source unit."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A population in integers."""

    name: str
    label: str
    """Its name in the network."""
    neurons: Neurons
    driven: tuple[int, ...] | None
    """Shifts of its current: left if positive, rounded division if negative; None without one."""
    pulled: bool
    past: int
    """Messages of how many earlier steps are kept."""

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.neurons.bias)

    @property
    def graded(self) -> bool:
        """Whether it sends graded messages."""
        return isinstance(self.neurons, GradedNeurons)

    @property
    def message_type(self) -> str:
        """The type of a message."""
        if not isinstance(self.neurons, GradedNeurons):
            return "int8_t"
        most = most_sent(self.neurons)
        return c_type(-most, most)

    @property
    def bias_type(self) -> str:
        """The type of a bias."""
        bias = self.neurons.bias
        return c_type(float(bias.min()), float(bias.max()))


def most_sent(neurons: Neurons) -> int:
    """The largest absolute message: one spike, or a change of the whole range in thetas."""
    if not isinstance(neurons, GradedNeurons):
        return 1
    low, high = max(min(neurons.low, 0), -TOP), min(max(neurons.high, 0), TOP)
    return int((high - low) // int(neurons.theta) + 1)


@dataclass(frozen=True, slots=True)
class HostInput:
    """The way of the input to a population that the host would feed: x W, rounded twice."""

    target: str
    synapses: Synapses
    base: float
    """The value of a weight of one."""


@dataclass(frozen=True, slots=True)
class Program:
    """A network in integers, ready to be written as C."""

    title: str
    cells: tuple[Cells, ...]
    tables: tuple[Table, ...]
    paths: tuple[SynapsePath, ...]
    feeds: tuple[SynapsePath, ...]
    output: str
    features: int
    input_most: int
    """Largest absolute integer input; larger ones are clipped."""
    steps: int
    window: int
    plastic: PlasticNetwork | None = None
    rate: float = 0.0
    """Learning rate."""

    @property
    def nudged(self) -> bool:
        """Whether steps have a beta."""
        return any(path.beta for path in self.paths) or any(each.pulled for each in self.cells)

    def __getitem__(self, name: str) -> Cells:
        return next(each for each in self.cells if each.name == name)


def reduced(values: Array) -> tuple[Array, int]:
    """Integers divided by the power of two that divides all of them, and that power."""
    whole = values.astype(np.int64)
    together = int(np.bitwise_or.reduce(np.abs(whole), axis=None)) if whole.size else 0
    common = together & -together or 1
    return (whole // common).astype(np.float64), common


class WeightTables:
    """The tables of a program; a matrix and its transpose share one."""

    def __init__(self) -> None:
        self.all: list[Table] = []

    def place(self, synapses: Synapses) -> tuple[Table, bool, int]:
        """The table of these weights, whether it is transposed, and its factor."""
        values, factor = reduced(synapses.values)
        whole = synapses.with_values(values)
        for table in self.all:
            for sign in (1, -1):
                signed = whole.scaled(float(sign))
                if not table.learns and table.synapses.equals(signed):
                    return table, False, sign * factor
                if not table.learns and table.synapses.equals(signed.T):
                    return table, True, sign * factor
        return self.add(whole), False, factor

    def add(self, whole: Synapses, *, learns: bool = False) -> Table:
        """A new table."""
        if not np.abs(whole.values).max(initial=0) < SUMS:
            raise BackendError("a weight does not fit 32 bits at the unit of its target")
        self.all.append(Table(f"net_w{len(self.all)}", whole, learns))
        return self.all[-1]


@dataclass(frozen=True, slots=True)
class Entry:
    """How samples enter a network."""

    features: int
    """The number of inputs."""
    feeds: tuple[HostInput, ...] = ()
    """Weights from the inputs to populations."""
    driven: Mapping[str, float] = field(default_factory=dict)
    """Populations with a current, each with the grid that it is rounded to."""
    pulled: frozenset[str] = frozenset()
    """Populations with a pull."""


def make_program(
    network: SpikingNetwork, entry: Entry, schedule: Schedule, *, title: str
) -> Program:
    """The program of a network in fixed point.

    `schedule` has the steps of an inference in its first phase, and all betas for which sums are
    checked. `title` is what a comment calls the network.
    """
    names = identifiers(population.name for population in network.populations)
    tables = WeightTables()
    paths = tuple(
        path_of(network, names, projection, *tables.place(integer_synapses(network, projection)))
        for projection in network.projections
    )
    entries, shifts, most = input_paths(network, names, tables, entry)
    program = Program(
        title=title,
        cells=cells_of(network, names, shifts, entry.pulled),
        tables=tuple(tables.all),
        paths=paths,
        feeds=entries,
        output=names[network.output],
        features=entry.features,
        input_most=most,
        steps=schedule[0].steps,
        window=schedule[0].window,
    )
    check_sums(network, program, [phase.beta for phase in schedule])
    return program


def learning_program(
    plastic: PlasticNetwork, *, title: str, rate: float, grid: float, inference: Phase
) -> Program:
    """The program of a network that learns, whose first population is the input."""
    network, numbers = plastic.network, plastic.rule.numbers
    if not isinstance(numbers, IntegerArithmetic) or numbers.bits > 8 or numbers.trace_bits > 9:
        raise BackendError(
            "C learns with weights of up to 8 bits and traces of up to 9; use bits=8"
        )
    if plastic.rule.margin or not plastic.rule.fresh:
        raise BackendError("C learns without a margin, and resets its neurons after each sample")
    if not set(plastic.rule.gates) <= {-1.0, 0.0, 1.0}:
        raise BackendError("C compares one phase with one other; use three phases or two")
    windows = sum(
        p.window for p, f in zip(plastic.rule.schedule, plastic.rule.gates, strict=True) if f
    )
    if numbers.top**2 * windows * plastic.rule.batch >= SUMS:
        raise BackendError(
            f"tags of a batch of {plastic.rule.batch} samples need more than 32 bits; use a "
            "smaller batch, or shorter phases"
        )
    assert network.fixed is not None
    names = identifiers(population.name for population in network.populations)
    tables, paths = WeightTables(), list[SynapsePath]()
    own: dict[str, Table] = {}
    for each in effective_weights(plastic, 0):
        projection = each.projection
        if not each.learns:
            placed = tables.place(DenseSynapses(each.weight))
            paths.append(path_of(network, names, projection, *placed))
            continue
        part = plastic.part_of(projection.name)
        backwards = part.mirror == projection.name
        if not backwards:
            own[part.name] = tables.add(DenseSynapses(each.weight), learns=True)
        factor = int(each.gain)
        paths.append(path_of(network, names, projection, own[part.name], backwards, factor))
    entry = network.populations[0]
    shifts = {entry.name: current_shifts(1 / INPUT_ONE, grid, network.fixed.units[entry.name])}
    program = Program(
        title=title,
        cells=cells_of(network, names, shifts, frozenset({network.output})),
        tables=tuple(tables.all),
        paths=tuple(paths),
        feeds=(),
        output=names[network.output],
        features=entry.size,
        input_most=INPUT_TOP,
        steps=inference.steps,
        window=inference.window,
        plastic=plastic,
        rate=rate,
    )
    check_sums(network, program, [phase.beta for phase in plastic.rule.schedule])
    return program


def path_of(
    network: SpikingNetwork,
    names: Mapping[str, str],
    projection: Projection,
    table: Table,
    backwards: bool,
    factor: int,
) -> SynapsePath:
    """The path of a projection, with its weights in a table."""
    return SynapsePath(
        names[projection.source],
        names[projection.target],
        table,
        backwards,
        factor,
        projection.delay,
        projection.gain is Gain.BETA,
        projection.synapses.count / network[projection.source].size,
    )


def cells_of(
    network: SpikingNetwork,
    names: Mapping[str, str],
    driven: Mapping[str, tuple[int, ...]],
    pulled: frozenset[str],
) -> tuple[Cells, ...]:
    """The populations in integers."""
    found = []
    for population in network.populations:
        neurons = neurons_of(network, population)
        if not isinstance(neurons, SpikingNeurons | GradedNeurons):
            raise BackendError(f"population {population.name!r} is of a kind that C does not have")
        rate = population.neuron.activation
        if isinstance(neurons, GradedNeurons) and rate is not None:
            known = (rate.piecewise_linear and rate.curve.integers is None) or (
                rate.curve is HYPERBOLIC
            )
            if not known:
                raise BackendError(
                    f"population {population.name!r} has activation {rate.name!r} of another "
                    "package, for which C has no integers; clipped ones and tanh have them"
                )
        delays = [p.delay for p in network.projections if p.source == population.name]
        found.append(
            Cells(
                names[population.name],
                population.name,
                neurons,
                driven.get(population.name),
                population.name in pulled,
                max(delays, default=1) - 1,
            )
        )
        limit = OUTSIDE[SpikingNeurons if isinstance(neurons, SpikingNeurons) else GradedNeurons]
        if np.abs(neurons.bias).max() >= limit:
            raise BackendError(f"a bias of {population.name!r} is too large for 32-bit sums")
    return tuple(found)


def current_shifts(value: float, grid: float, unit: float) -> tuple[int, ...]:
    """Shifts that turn multiples of `value` into ones of the grid, and these into ones of a unit.

    Left if positive; rounded to even if negative, as often as the reference rounds.
    """
    first, second = power(value / grid), power(grid / unit)
    return (first + second,) if first >= 0 else (first, second)


def input_paths(
    network: SpikingNetwork,
    names: Mapping[str, str],
    tables: WeightTables,
    entry: Entry,
) -> tuple[tuple[SynapsePath, ...], dict[str, tuple[int, ...]], int]:
    """The ways of the input, the shifts of each current, and the largest input."""
    assert network.fixed is not None
    paths, shifts, most = list[SynapsePath](), dict[str, tuple[int, ...]](), INPUT_TOP
    for name, grid in entry.driven.items():
        unit = network.fixed.units[name]
        mine = [feed for feed in entry.feeds if feed.target == name]
        base, rows = min((feed.base for feed in mine), default=1.0), np.zeros(network[name].size)
        for feed in mine:
            whole = feed.synapses.with_values(feed.synapses.values / base)
            rows = rows + absolute_row_sums(whole)
            table, backwards, factor = tables.place(whole)
            mean = whole.count / whole.shape[1]
            paths.append(SynapsePath("", names[name], table, backwards, factor, fan_out=mean))
        shifts[name] = current_shifts(base / INPUT_ONE, grid, unit)
        graded = network[name].neuron.graded
        sums = max(float(rows.max()), 1.0)
        limit = OUTSIDE[GradedNeurons if graded else SpikingNeurons] / 2
        left = 2.0 ** sum(shifts[name])
        most = min(most, int((SUMS - 1) // sums), int(limit / left // sums))
    if most < INPUT_ONE:
        raise BackendError(
            "the input weights are too large for 32-bit sums of inputs of 1.0; use fewer bits"
        )
    return tuple(paths), shifts, most


def check_sums(network: SpikingNetwork, program: Program, betas: Iterable[float]) -> None:
    """Raise BackendError if a sum that is not taken modulo 2^32 could exceed 32 bits."""
    largest = max((abs(beta) for beta in betas), default=0.0)
    if largest >= 16:
        raise BackendError(f"a beta of {largest:g} is too large for 32-bit sums; use one below 16")
    for projection, path in zip(network.projections, program.paths, strict=True):
        source, target = program[path.source], program[path.target]
        if path.beta and not target.graded:
            sums = float(absolute_row_sums(integer_synapses(network, projection)).max(initial=0))
            if sums * most_sent(source.neurons) * FRACTION * max(largest, 1.0) >= SUMS:
                raise BackendError(
                    f"nudged synapses {projection.name!r} need more than 32-bit sums"
                )


def limit(value: int) -> int | None:
    """A limit in integers; None where there is none."""
    return None if abs(value) >= UNREACHED else int(value)


def tanh_table(neurons: GradedNeurons) -> tuple[Ints, int]:
    """Whether the rate grows by one at each drive 1, 2, ..., and the drive after which it stays."""
    arithmetic = neurons.arithmetic
    assert isinstance(arithmetic, FixedArithmetic)
    drives = np.arange(int(20.0 / arithmetic.unit) + 2, dtype=np.int64)
    rates = neurons.neuron.activation.integers(drives, arithmetic.unit)
    grows = np.diff(rates)
    mirrored = neurons.neuron.activation.integers(-drives, arithmetic.unit)
    if rates[0] != 0 or not np.isin(grows, (0, 1)).all() or not np.array_equal(mirrored, -rates):
        raise BackendError("the integers of tanh do not grow one by one at this unit")
    last = int(np.flatnonzero(grows)[-1]) + 1
    return grows[:last], last


def integer_input(x: Array, most: int = INPUT_TOP) -> Ints:
    """Samples as integer inputs: the nearest multiples of 1/256, clipped."""
    return np.asarray(np.clip(np.rint(x * INPUT_ONE), -most, most), dtype=np.int16)


def beta_part(beta: float) -> int:
    """A beta as steps take it, in multiples of 1/4096."""
    return to_12_bits(beta)
