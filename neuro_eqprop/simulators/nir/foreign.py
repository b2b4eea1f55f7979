"""NIR graphs of other programs as spiking networks, under explicit assumptions.

Each neuron node becomes a population, or one for every set of time constants in it, since the
neurons of a population have them in common. What lies between two of them, convolutions, pooling
and so on, becomes one matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter, prod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from neuro_eqprop.common.arrays import Array, Ints, Shape
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError, library
from neuro_eqprop.spiking.input_coding import ON
from neuro_eqprop.spiking.ir import Population, Projection, Reset, Spiking, SpikingNetwork
from neuro_eqprop.spiking.synapses import SparseSynapses, Synapses, as_synapses

NEURONS = ("IF", "LIF", "CubaLIF", "LI", "CubaLI", "Threshold")
LINEAR = ("Affine", "Linear", "Scale", "Conv1d", "Conv2d", "SumPool2d", "AvgPool2d", "Flatten")
ENDS = ("Input", "Output", "Delay")
AXES = {"Linear": 1, "Affine": 1, "Conv1d": 2} | dict.fromkeys(
    ("Conv2d", "SumPool2d", "AvgPool2d"), 3
)
"""Axes of what nodes receive, for a sample and a step."""
NEVER = 2.0**60
"""The threshold of a readout, which never fires."""
INPUT = "input"
SPARSE_BELOW = 0.25
"""Share of non-zero weights below which they are kept as a sparse matrix."""
MOST_GROUPS = 64
"""Sets of time constants of a node."""


class PathTerm(NamedTuple):
    """What a node receives from a source: the response to each of its units, after some steps."""

    source: str
    steps: int
    responses: Array
    """(units of the source, *shape of the node)"""


@dataclass(frozen=True)
class Cell:
    """The neurons of a node: values for each, of a voltage whose reset is zero."""

    fade: Array
    """Fraction of the synaptic current lost in a step; 1 where there is none."""
    leak: Array
    gain: Array
    """Factor of what arrives."""
    bias: Array
    """Drive in every step."""
    start: Array
    threshold: float
    reset: Reset

    def waiting(self, name: str, steps: int) -> Cell:
        """The cell that reaches its start after some steps without input, in which it leaks."""
        drift = self.leak * self.start - self.bias
        if steps <= 0 or np.allclose(drift, 0.0):
            return self
        keep = (1 - self.leak) ** steps
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = self.bias / self.leak
            start = np.where(
                self.leak > 0, rest + (self.start - rest) / keep, self.start - steps * self.bias
            )
        if not np.isfinite(start).all() or (start >= self.threshold).any():
            raise NirError(
                f"its node {name!r} leaks to another voltage than it starts at, before its input "
                "arrives; read it with delay=1"
            )
        return replace(self, start=start)

    @property
    def groups(self) -> list[Ints]:
        """Indices of the neurons with equal time constants and start."""
        rows = np.stack([self.fade, self.leak, self.start], axis=1)
        _, group = np.unique(rows, axis=0, return_inverse=True)
        return [np.flatnonzero(group.ravel() == k) for k in range(int(group.max()) + 1)]


class NoConstantInputError(NirError):
    """A graph that takes no constant current; the message gives the reason."""


def assumed(graph: Any, assume: Assumptions) -> Document:  # noqa: ANN401
    """The document of a graph; its notes hold the populations of each node and the latency."""
    if "dt" in (graph.metadata or {}):  # what a graph says itself need not be assumed
        assume = replace(assume, dt=float(np.asarray(graph.metadata["dt"])))
    if assume.spikes is not None:
        return stated(graph, assume)
    try:
        return stated(graph, replace(assume, spikes=False))
    except NoConstantInputError as error:
        warnings.warn(f"the input arrives as spikes at rates of 0..1: {error}", stacklevel=5)
        return stated(graph, replace(assume, spikes=True))


def stated(graph: Any, assume: Assumptions) -> Document:  # noqa: ANN401
    """The document, where it is stated how the input arrives."""
    flat = Flat(graph)
    cells = {
        name: cell_of(name, flat.nodes[name], flat.shape(name), assume) for name in flat.neurons
    }
    terms = {name: flat.arriving(name, assume.dt) for name in flat.neurons}
    depth = depths({name: found for name, (found, _) in terms.items()}, assume)
    built = Built(assume, cells, depth)
    if assume.spikes:
        source = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -inf, inf)
        built.populations[INPUT] = Population(INPUT, source, np.zeros(flat.features))
    for name, (found, bias) in terms.items():
        built.add(name, found, bias.ravel())
    output = built.read_out(flat.output)
    network = SpikingNetwork(
        assume.dt, tuple(built.populations.values()), tuple(built.projections), output
    )
    feeds = [Feed(INPUT, np.eye(flat.features))] if assume.spikes else built.feeds
    if not feeds:
        raise NirError("its input reaches no neurons")
    layers = {name: [[p, index.tolist()] for p, index in built.groups[name]] for name in cells}
    notes = {
        "layers": layers,
        "latency": depth[flat.output] + (output != built.groups[flat.output][0][0]),
        "output": flat.output,
    }
    return Document(network, tuple(feeds), {"foreign": notes})


class Built:
    """The populations and projections of the nodes so far."""

    def __init__(
        self, assume: Assumptions, cells: Mapping[str, Cell], depth: Mapping[str, int]
    ) -> None:
        self.assume, self.depth = assume, depth
        self.cells = {name: cell.waiting(name, depth[name]) for name, cell in cells.items()}
        self.populations: dict[str, Population] = {}
        self.projections: list[Projection] = []
        self.feeds: list[Feed] = []
        self.groups = {name: grouped(name, cell) for name, cell in self.cells.items()}

    def add(self, name: str, terms: Sequence[PathTerm], bias: Array) -> None:
        """Add a node that receives these terms and this bias."""
        cell = self.cells[name]
        late = self.depth[name] > 0 or bool((cell.fade < 1.0).any())
        for population, index in self.groups[name]:
            neuron = Spiking(
                float(cell.fade[index[0]]),
                float(cell.leak[index[0]]),
                cell.threshold,
                cell.reset,
                self.assume.floor,
                self.assume.ceiling,
                start=None if self.assume.start is None else float(cell.start[index[0]]),
            )
            constant = cell.bias + (0.0 if late else cell.gain * bias)
            self.populations[population] = Population(population, neuron, constant[index])
            if late and bias.any():
                self.connect_bias(population, (cell.gain * bias)[index, None], self.depth[name])
        for term in terms:
            self.connect(name, term)

    def connect_bias(self, population: str, weight: Array, depth: int) -> None:
        """Send a bias as the weights of a unit that always fires, so that it comes with input."""
        always = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -inf, inf, start=0.0)
        self.populations.setdefault(ON, Population(ON, always, np.ones(1)))
        delay = max(depth, self.assume.delay, 1)
        self.projections.append(Projection(ON, population, weight, delay))

    def connect(self, name: str, term: PathTerm) -> None:
        """Add the synapses of a term."""
        cell = self.cells[name]
        weight = cell.gain[:, None] * term.responses.reshape(len(term.responses), -1).T
        if term.source == INPUT and not self.assume.spikes:
            self.feed(name, term, weight)
            return
        sources: list[tuple[str, Ints]] = [(INPUT, np.arange(weight.shape[1]))]
        if term.source != INPUT:
            sources = self.groups[term.source]
        if self.assume.delay:
            delay = self.assume.delay + term.steps
        else:
            ahead = self.depth[name] - self.depth.get(term.source, 0)
            delay = (ahead or 1) + term.steps
        for source, columns in sources:
            for target, rows in self.groups[name]:
                part = weight[np.ix_(rows, columns)]
                if part.any():
                    made = synapses_of(part)
                    self.projections.append(Projection(source, target, made, delay))

    def feed(self, name: str, term: PathTerm, weight: Array) -> None:
        """Add the weights of a constant input."""
        reason = None
        if (self.cells[name].fade < 1.0).any():
            reason = "filters its input in synapses"
        elif self.depth[name] > 0:
            reason = "receives the input beside other neurons"
        elif term.steps:
            reason = "receives the input with a delay"
        if reason is not None:
            raise NoConstantInputError(
                f"its node {name!r} {reason}, which a constant current cannot do; let the input "
                "arrive as spikes: replace(find_assumptions(...), spikes=True)"
            )
        for target, rows in self.groups[name]:
            self.feeds = [each for each in self.feeds if each.target != target] + [
                Feed(target, sum_of(self.feeds, target, weight[rows]))
            ]

    def read_out(self, name: str) -> str:
        """The population of the output; several groups are joined by one that repeats them."""
        groups = self.groups[name]
        if len(groups) == 1:
            return groups[0][0]
        size = sum(len(index) for _, index in groups)
        relay = Spiking(1.0, 1.0, 1.0, Reset.ZERO, -inf, inf, start=0.0)
        self.populations[name] = Population(name, relay, np.zeros(size))
        for source, index in groups:
            weight = np.zeros((size, len(index)))
            weight[index, np.arange(len(index))] = 1.0
            self.projections.append(Projection(source, name, synapses_of(weight)))
        return name


def grouped(name: str, cell: Cell) -> list[tuple[str, Ints]]:
    """The populations of a node, with the indices of their neurons."""
    groups = cell.groups
    if len(groups) > MOST_GROUPS:
        raise NirError(
            f"its node {name!r} has {len(groups)} different time constants; at most {MOST_GROUPS} "
            "are supported"
        )
    if len(groups) == 1:
        return [(name, groups[0])]
    return [(f"{name}[{k}]", index) for k, index in enumerate(groups)]


def sum_of(feeds: Sequence[Feed], target: str, weight: Array) -> Synapses:
    """The weights of a feed, added to those that the target has."""
    return as_synapses(weight + sum(each.weight for each in feeds if each.target == target))


def synapses_of(weight: Array) -> Synapses:
    """Weights as a dense matrix, or as a sparse one if most are zero."""
    if np.count_nonzero(weight) >= SPARSE_BELOW * weight.size:
        return as_synapses(weight)
    matrix = csr_matrix(weight)
    return SparseSynapses(weight.shape, matrix.indptr, matrix.indices, matrix.data)


def depths(terms: Mapping[str, Sequence[PathTerm]], assume: Assumptions) -> dict[str, int]:
    """Steps that the messages of the input take to each node, where edges take none themselves.

    Raises NirError for a loop through several nodes, of which NIR does not say which edge waits.
    """
    if assume.delay:
        return dict.fromkeys(terms, 0)
    found: dict[str, int] = {INPUT: -int(not assume.spikes)}
    while len(found) <= len(terms):
        ready = [
            name
            for name in terms
            if name not in found
            and all(term.source in found for term in terms[name] if term.source != name)
        ]
        if not ready:
            stuck = ", ".join(repr(name) for name in terms if name not in found)
            raise NirError(
                f"a loop leads through its nodes {stuck}, and NIR leaves open which edge of it "
                "takes a step; read it with delay=1, where every edge does"
            )
        for name in ready:
            before = [found[t.source] for t in terms[name] if t.source != name]
            found[name] = 1 + max(before, default=-1)
    return found


class Flat:
    """The nodes and edges of a graph with its sub-graphs in their place."""

    def __init__(self, graph: Any) -> None:  # noqa: ANN401
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.place(graph, "")
        inputs, outputs = self.of("Input"), self.of("Output")
        if len(inputs) != 1 or len(outputs) != 1:
            raise NirError("it does not have exactly one input and one output")
        self.input, self.shapes = inputs[0], dict[str, Shape]()
        self.features = prod(self.input_shape())
        self.neurons = [name for name in self.nodes if self.kind(name) in NEURONS]
        self.output = self.read_by(outputs[0])

    def read_by(self, end: str) -> str:
        """The neurons that the output reads, if it does not change what they send; else itself.

        An output that reads weights is a node whose drive is what they give, and that never fires.
        """
        terms, bias = self.total(end, 1.0, ())
        if not terms:
            raise NirError(f"its output {end!r} receives nothing")
        first = terms[0]
        whole = np.eye(len(first.responses)).ravel()
        alone = len(terms) == 1 and not first.steps and not bias.any()
        if (
            alone
            and first.source in self.neurons
            and np.array_equal(first.responses.ravel(), whole)
        ):
            return first.source
        self.neurons.append(end)
        return end

    def of(self, kind: str) -> list[str]:
        """The nodes of a kind."""
        return [name for name in self.nodes if self.kind(name) == kind]

    def kind(self, name: str) -> str:
        """The kind of a node."""
        return type(self.nodes[name]).__name__

    def before(self, name: str) -> list[str]:
        """The nodes with an edge to a node."""
        return [source for source, target in self.edges if target == name]

    def place(self, graph: Any, prefix: str) -> None:  # noqa: ANN401
        """Add the nodes of a graph, and connect what leads into and out of its sub-graphs."""
        nir = library()
        entries, exits = dict[str, list[str]](), dict[str, list[str]]()
        for name, node in graph.nodes.items():
            full = f"{prefix}{name}"
            if isinstance(node, nir.NIRGraph):
                self.place(node, f"{full}.")
                inner = {n: type(each).__name__ for n, each in node.nodes.items()}
                entries[name] = [f"{full}.{n}" for n, kind in inner.items() if kind == "Input"]
                exits[name] = [f"{full}.{n}" for n, kind in inner.items() if kind == "Output"]
            elif prefix and isinstance(node, nir.Input | nir.Output):
                self.nodes[full] = Through()
            elif type(node).__name__ in (*NEURONS, *LINEAR, *ENDS):
                if type(node).__name__ in NEURONS:
                    full = self.free_name(full)
                    entries[name] = exits[name] = [full]
                self.nodes[full] = node
            else:
                kind = type(node).__name__
                raise NirError(f"its node {full!r} is a {kind}, which is not supported")
        for source, target in dict.fromkeys(map(tuple, graph.edges)):
            for a in exits.get(source, [f"{prefix}{source}"]):
                self.edges += [(a, b) for b in entries.get(target, [f"{prefix}{target}"])]

    def arriving(self, name: str, dt: float) -> tuple[list[PathTerm], Array]:
        """The terms and the bias that a neuron node receives, in the shape of its neurons."""
        terms, bias = self.total(name, dt, ())
        size = prod(self.shape(name))
        for term in terms:
            if prod(term.responses.shape[1:]) != size:
                raise NirError(
                    f"its node {name!r} has {size} neurons and receives "
                    f"{prod(term.responses.shape[1:])} values from {term.source!r}"
                )
        return terms, np.zeros(size) + bias.ravel()

    def free_name(self, name: str) -> str:
        """A name for neurons that no others have, also where only letters and digits count."""
        neurons = [each for each in self.nodes if self.kind(each) in NEURONS]
        taken = {spelled(each) for each in (INPUT, ON, *neurons)}
        while spelled(name) in taken:
            name += "'"
        return name

    def input_shape(self) -> Shape:
        """The shape of a sample: that of the input without axes for samples and steps."""
        shape = shape_of(self.nodes[self.input].input_type["input"])
        after = [self.kind(target) for source, target in self.edges if source == self.input]
        axes = min((AXES[kind] for kind in after if kind in AXES), default=len(shape))
        return shape[-axes:] if len(shape) > axes and shape[0] == 1 else shape

    def shape(self, name: str, path: Sequence[str] = ()) -> Shape:
        """The shape of a neuron node; one with a single value for all has that of its input."""
        if name not in self.shapes:
            own: Shape = (1,)
            if self.kind(name) in NEURONS:
                own = neuron_shape(self.nodes[name])
            self.shapes[name] = own if prod(own) > 1 else self.arriving_shape(name, path) or own
        return self.shapes[name]

    def arriving_shape(self, name: str, path: Sequence[str]) -> Shape | None:
        """The shape of what a node receives; None if that is only known from a loop."""
        found = (self.shape_sent(source, (*path, name)) for source in self.before(name))
        return next(filter(None, found), None)

    def shape_sent(self, name: str, path: Sequence[str]) -> Shape | None:
        """The shape of what a node sends; None for a loop."""
        kind = self.kind(name)
        if kind == "Input":
            return self.input_shape()
        if name in path:
            return None
        if kind in NEURONS:
            return self.shape(name, path)
        shape = self.arriving_shape(name, path)
        if shape is None or kind not in LINEAR:
            return shape
        return tuple(fitted(name, self.nodes[name], np.zeros((1, *shape))).shape[1:])

    def total(self, name: str, dt: float, path: Sequence[str]) -> tuple[list[PathTerm], Array]:
        """What the nodes before a node send it, all together."""
        found, bias = dict[tuple[str, int], Array](), np.zeros(())
        for source in self.before(name):
            terms, more = self.sent(source, dt, (*path, name))
            for term in terms:
                key = term.source, term.steps
                found[key] = found[key] + term.responses if key in found else term.responses
            bias = bias + more
        return [PathTerm(*key, responses) for key, responses in found.items()], bias

    def sent(self, name: str, dt: float, path: Sequence[str]) -> tuple[list[PathTerm], Array]:
        """What a node sends: itself if it is a source, else what it makes of what it receives."""
        if name in path and name not in self.neurons:
            raise NirError(f"a loop leads through its node {name!r} and no neurons")
        node, kind = self.nodes[name], self.kind(name)
        if kind == "Input":
            return [unit_term(INPUT, self.input_shape())], np.zeros(())
        if kind in NEURONS:
            return [unit_term(name, self.shape(name))], np.zeros(())
        terms, bias = self.total(name, dt, path)
        if kind == "Through":
            return terms, bias
        if kind == "Delay":
            return list(delayed(terms, node, dt)), bias
        if not terms:
            raise NirError(f"its node {name!r} receives nothing")
        made = [PathTerm(t.source, t.steps, fitted(name, node, t.responses)) for t in terms]
        nothing = np.zeros((1, *terms[0].responses.shape[1:])) + bias
        return made, fitted(name, node, nothing, bias=True)[0]


def spelled(name: str) -> str:
    """A name without the characters that names of ports cannot have."""
    return "".join(c if c.isalnum() else "_" for c in name)


class Through:
    """The input or output of a sub-graph, which passes on what it receives."""


def shape_of(values: Any) -> Shape:  # noqa: ANN401
    """The shape of the neurons of an array, or a shape given as an array of integers."""
    array = np.asarray(values)
    return tuple(int(n) for n in array) if array.dtype.kind == "i" else (array.shape or (1,))


def neuron_shape(node: Any) -> Shape:  # noqa: ANN401
    """The shape of the neurons of a node."""
    names = ("v_threshold", "threshold", "tau_mem", "tau")
    return np.shape(next(getattr(node, name) for name in names if hasattr(node, name))) or (1,)


def unit_term(source: str, shape: Shape) -> PathTerm:
    """A term that is the source itself."""
    size = prod(shape)
    return PathTerm(source, 0, np.eye(size).reshape(size, *shape))


def delayed(terms: Sequence[PathTerm], node: Any, dt: float) -> Iterator[PathTerm]:  # noqa: ANN401
    """Terms after a node of delays, which may differ from value to value."""
    steps = np.rint(np.asarray(node.delay, dtype=np.float64) / dt).astype(int)
    for term in terms:
        for count in np.unique(steps):
            yield PathTerm(term.source, term.steps + int(count), term.responses * (steps == count))


def fitted(name: str, node: Any, x: Array, *, bias: bool = False) -> Array:  # noqa: ANN401
    """A linear node on each row of x; the error where x does not fit names the node."""
    try:
        return apply(node, x, bias=bias)
    except (RuntimeError, ValueError, IndexError) as error:
        raise NirError(f"its node {name!r} does not fit what it receives: {error}") from error


def apply(node: Any, x: Array, *, bias: bool = False) -> Array:  # noqa: ANN401
    """A linear node on each row of x, in float64; without its bias unless asked for."""
    kind = type(node).__name__
    if kind == "Flatten":
        first, last = int(node.start_dim), int(node.end_dim)
        shape = x.shape[1:]
        first, last = first % len(shape), last % len(shape)
        return x.reshape(len(x), *shape[:first], -1, *shape[last + 1 :])
    if kind == "Scale":
        return np.asarray(x * np.asarray(node.scale, dtype=np.float64))
    if kind in ("Linear", "Affine"):
        weight = np.asarray(node.weight, dtype=np.float64)
        found = x @ weight.T
        return found + np.asarray(node.bias, float) if bias and kind == "Affine" else found
    return applied_in_torch(node, x, bias=bias)


def applied_in_torch(node: Any, x: Array, *, bias: bool) -> Array:  # noqa: ANN401
    """A convolution or a pooling."""
    import torch
    from torch.nn import functional

    kind, image = type(node).__name__, torch.tensor(np.ascontiguousarray(x), dtype=torch.float64)
    if kind in ("SumPool2d", "AvgPool2d"):
        size, stride, padding = (
            tuple(int(n) for n in np.broadcast_to(getattr(node, name), (2,)))
            for name in ("kernel_size", "stride", "padding")
        )
        divisor = 1 if kind == "SumPool2d" else prod(size)
        made = functional.avg_pool2d(image, size, stride, padding, divisor_override=divisor)
        return np.asarray(made.numpy())
    dimensions = 2 if kind == "Conv2d" else 1
    weight = torch.tensor(np.asarray(node.weight, dtype=np.float64))
    offset = torch.tensor(np.asarray(node.bias, dtype=np.float64)) if bias else None
    padding = node.padding
    if not isinstance(padding, str):
        padding = tuple(int(n) for n in np.broadcast_to(padding, (dimensions,)))
    stride, dilation = (
        tuple(int(n) for n in np.broadcast_to(getattr(node, name), (dimensions,)))
        for name in ("stride", "dilation")
    )
    convolve = functional.conv2d if dimensions == 2 else functional.conv1d
    made = convolve(image, weight, offset, stride, padding, dilation, int(node.groups))
    return np.asarray(made.numpy())


class NodeValues:
    """The fields of a neuron node, for each of its neurons."""

    def __init__(self, name: str, node: Any, shape: Shape, assume: Assumptions) -> None:  # noqa: ANN401
        self.name, self.node, self.shape, self.assume = name, node, shape, assume

    def __getitem__(self, field: str) -> Array:
        """A field; one that NIR may leave out has its default."""
        given = getattr(self.node, field, None)
        ignored = field == "r" and self.assume.any_r and not hasattr(self.node, "tau_syn")
        if given is None or ignored:
            given = DEFAULTS.get(field, 0.0)
        values = np.broadcast_to(np.asarray(given, dtype=np.float64), self.shape)
        return np.array(values).ravel()

    def lost(self, field: str) -> Array:
        """The fraction lost in a step, from a time constant."""
        tau, dt = self[field], self.assume.dt
        if not (tau > 0).all():
            raise NirError(f"its {self.name}.{field} is not above zero for all neurons")
        if self.assume.tau_times_dt and (tau < dt).any():
            tau = tau / dt
        parts = -np.expm1(-dt / tau) if self.assume.exact else dt / tau
        if str(getattr(self.node, field).dtype).endswith("float32"):
            # As the framework divides, so that dt / tau is the leak from which it made tau.
            whole = (np.float32(dt) / tau.astype(np.float32)).astype(np.float64)
            parts = -np.expm1(-whole) if self.assume.exact else whole
        if parts.max() > 1:
            raise NirError(f"its {self.name}.{field} is shorter than the step of {dt:g} s")
        return parts


DEFAULTS = {"r": 1.0, "w_in": 1.0}


def cell_of(name: str, node: Any, shape: Shape, assume: Assumptions) -> Cell:  # noqa: ANN401
    """The neurons of a node, with voltages whose reset is zero."""
    kind, given = type(node).__name__, NodeValues(name, node, shape, assume)
    ones = np.ones(prod(given.shape))
    zeros = 0.0 * ones
    if kind == "Output":
        return Cell(ones, ones, ones, zeros, zeros, NEVER, Reset.ZERO)
    if kind == "Threshold":
        step = Cell(ones, ones, ones, zeros, zeros, 1.0, Reset.ZERO)
        return normalized(name, step, given["threshold"], zeros, zeros, assume)
    fade, leak, gain = ones, zeros, given["r"]
    if kind == "IF":
        gain = gain if assume.any_r else gain * assume.dt
    else:
        cuba = kind in ("CubaLIF", "CubaLI")
        leak = given.lost("tau_mem" if cuba else "tau")
        gain = gain * leak
        if cuba:
            fade = given.lost("tau_syn")
            gain = gain * fade * given["w_in"]
    rest = given["v_leak"]
    if kind in ("LI", "CubaLI"):
        if assume.start is None:
            raise NirError(f"its node {name!r} has no threshold, so say at which voltage it starts")
        start = ones * assume.start if isinstance(assume.start, float | int) else rest
        return Cell(fade, leak, gain, leak * rest, start, NEVER, Reset.ZERO)
    back = given["v_reset"]
    if assume.reset is Reset.SUBTRACT and back.any():
        raise NirError(f"its node {name!r} resets to {back[back != 0][0]:g}, not by subtraction")
    cell = Cell(fade, leak, gain, leak * (rest - back), zeros, 1.0, assume.reset)
    starts = {"reset": back, "leak": rest if kind != "IF" else back}
    first = starts[assume.start] if isinstance(assume.start, str) else assume.start
    return normalized(name, cell, given["v_threshold"], back, first, assume)


def normalized(
    name: str,
    cell: Cell,
    threshold: Array,
    back: Array,
    first: Array | float | None,
    assume: Assumptions,
) -> Cell:
    """The neurons with one threshold; voltages are divided by it where it differs."""
    height = threshold - back
    if not (height > 0).all():
        raise NirError(f"its {name}.v_threshold is not above its reset for all neurons")
    start = np.zeros(height.shape) if first is None else first - back
    top = float(height[0])
    if (height != top).any():
        cell = replace(cell, gain=cell.gain / height, bias=cell.bias / height)
        start, top = start / height, 1.0
    if first is None:
        start = np.full(height.shape, top / 2)
    return replace(cell, start=start, threshold=nextafter(top, inf) if assume.strict else top)
