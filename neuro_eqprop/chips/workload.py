"""Sizes of a spiking network, and event counts of a run.

Sizes do not include weights, so networks with a billion synapses can be placed and estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.common.arrays import Array, Bits, Ints, UnknownNameError
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.fixed_point import state_bits
from neuro_eqprop.spiking.ir import Gain, Population, Projection, Reset, SpikingNetwork
from neuro_eqprop.spiking.make_plastic import ALWAYS
from neuro_eqprop.spiking.plasticity import PlasticNetwork
from neuro_eqprop.spiking.synapses import ConvolutionSynapses, Synapses

FREE = "free"
"""Name of the phase of inference."""
SPIKES = "spikes"
STEP_EVENTS = (SPIKES, "tag_updates", "weight_updates")
"""Events of learning that are recorded in every step; names of fields of `Counts`."""


@dataclass(frozen=True, slots=True)
class PopulationShape:
    """Size and features of a population; an `off_chip` one only sends spikes to the chip."""

    name: str
    size: int
    soft_reset: bool = False
    graded: bool = False
    off_chip: bool = False
    biased: bool = True
    """Whether neurons have biases, so that they are never at rest."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"population {self.name!r} has {self.size} neurons; at least 1 needed")


@dataclass(frozen=True, slots=True)
class ProjectionShape:
    """The number of synapses of a projection, and the largest fan-in and fan-out of a neuron."""

    source: str
    target: str
    synapses: int
    max_fan_in: int
    max_fan_out: int
    bits: int = 8
    delay: int = 1
    plastic: bool = False
    convolution: ConvolutionShape | None = None
    """The geometry of a convolution; None for other projections."""
    spans: Ints | None = field(default=None, compare=False, repr=False)
    """First and last target of each source neuron (neurons, 2) where these differ; else None."""

    def __post_init__(self) -> None:
        if self.synapses < 0 or self.bits < 1 or self.delay < 1:
            raise ValueError(
                f"projection {self.name!r}: synapses must not be negative, bits and delay must be "
                f"at least 1, not {self.synapses}, {self.bits}, {self.delay}"
            )
        if max(self.max_fan_in, self.max_fan_out) > self.synapses:
            raise ValueError(
                f"projection {self.name!r}: max_fan_in or max_fan_out exceeds its "
                f"{self.synapses} synapses"
            )

    @property
    def name(self) -> str:
        """The name of the projection: source->target."""
        return f"{self.source}->{self.target}"

    def touches(self, fired: Bits, size: int) -> Bits:
        """Whether a spike of the sources that `fired` reaches each of `size` targets, by step."""
        if self.convolution is not None and fired.shape[1] > 1:
            links = [self.convolution.links(axis).astype(np.float64) for axis in (0, 1)]
            maps = fired.reshape(len(fired), *self.convolution.source).any(axis=1)
            found = np.einsum("ri,tij,cj->trc", links[0], maps.astype(np.float64), links[1]) > 0
            channels = self.convolution.target[0]
            return np.asarray(np.repeat(found[:, None], channels, axis=1).reshape(-1, size))
        if self.spans is not None and fired.shape[1] > 1:
            places = np.arange(size)
            inside = (self.spans[:, :1] <= places) & (places <= self.spans[:, 1:])
            return np.asarray(fired.astype(np.float64) @ inside > 0)
        return np.repeat(fired.any(axis=1, keepdims=True), size, axis=1)

    @property
    def parameters(self) -> int:
        """Distinct weights: those of the kernel of a convolution, else one per synapse."""
        return self.synapses if self.convolution is None else self.convolution.parameters


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The sizes of populations and projections."""

    populations: tuple[PopulationShape, ...]
    projections: tuple[ProjectionShape, ...]
    output: str
    """The population that is read out."""
    state_bits: int | None = None
    """Bits of the state of a neuron; None if the network does not define them."""
    driven: bool = False
    """Whether neurons receive an input current that is set for each sample."""

    def __post_init__(self) -> None:
        names = [each.name for each in self.populations]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"populations need different names, not {names}")
        if self.output not in names:
            raise ValueError(f"the output {self.output!r} is not one of the populations {names}")
        for each in self.projections:
            for end in (each.source, each.target):
                if end not in names:
                    raise ValueError(f"projection {each.name!r}: there is no population {end!r}")
            if each.synapses > self[each.source].size * self[each.target].size:
                raise ValueError(f"projection {each.name!r} has more synapses than pairs")
            if self[each.target].off_chip:
                raise ValueError(f"projection {each.name!r} has an off-chip target")
            if each.convolution is not None:
                each.convolution.check(self[each.source].size, self[each.target].size, each.name)

    def __getitem__(self, name: str) -> PopulationShape:
        for each in self.populations:
            if each.name == name:
                return each
        raise UnknownNameError("population", name, [each.name for each in self.populations])

    @property
    def on_chip(self) -> tuple[PopulationShape, ...]:
        """The populations that need cores."""
        return tuple(each for each in self.populations if not each.off_chip)

    def into(self, name: str) -> tuple[ProjectionShape, ...]:
        """The projections with that target."""
        return tuple(each for each in self.projections if each.target == name)

    def out_of(self, name: str) -> tuple[ProjectionShape, ...]:
        """The projections with that source."""
        return tuple(each for each in self.projections if each.source == name)

    def dense(self, projection: ProjectionShape) -> bool:
        """Whether a projection has a synapse for every pair of neurons."""
        pairs = self[projection.source].size * self[projection.target].size
        return projection.synapses == pairs

    def maps(self, name: str) -> tuple[int, int, int] | None:
        """(channels, height, width) of a population with a convolution; else None."""
        for each in self.into(name):
            if each.convolution is not None:
                return each.convolution.target
        for each in self.out_of(name):
            if each.convolution is not None:
                return each.convolution.source
        return None

    @property
    def recurrent(self) -> bool:
        """Whether the projections form a cycle."""
        targets = {
            each.name: {projection.target for projection in self.out_of(each.name)}
            for each in self.populations
        }
        for start, reached in targets.items():
            seen: set[str] = set()
            frontier = set(reached)
            while frontier:
                seen |= frontier
                frontier = {far for near in frontier for far in targets[near]} - seen
            if start in seen:
                return True
        return False

    @property
    def plastic(self) -> bool:
        """Whether a projection is plastic."""
        return any(each.plastic for each in self.projections)

    def make_plastic(self) -> NetworkShape:
        """The same network with every projection plastic."""
        return replace(
            self, projections=tuple(replace(each, plastic=True) for each in self.projections)
        )


def population_shape(population: Population, *, off_chip: bool) -> PopulationShape:
    """The size of a population and the features of its neurons."""
    neuron = population.neuron
    return PopulationShape(
        *(population.name, population.size, neuron.reset is Reset.SUBTRACT, neuron.graded),
        off_chip=off_chip,
        biased=bool(population.bias.any()),
    )


def dense_projection(
    source: PopulationShape, target: PopulationShape, *, bits: int, plastic: bool = False
) -> ProjectionShape:
    """A projection with a synapse for every pair of neurons."""
    synapses = source.size * target.size
    fans = (source.size, target.size)
    return ProjectionShape(source.name, target.name, synapses, *fans, bits=bits, plastic=plastic)


def convolution_projection(
    source: str, target: str, convolution: ConvolutionShape, *, bits: int = 8
) -> ProjectionShape:
    """The projection of a convolution; its geometry gives the number of synapses."""
    return ProjectionShape(
        source,
        target,
        convolution.synapses,
        convolution.max_fan_in,
        convolution.max_fan_out,
        bits=bits,
        convolution=convolution,
    )


def projection_shape(projection: Projection, *, bits: int) -> ProjectionShape:
    """The shape of a projection; weights of zero are not counted."""
    fan_in, fan_out = projection.synapses.fan_in(), projection.synapses.fan_out()
    return ProjectionShape(
        projection.source,
        projection.target,
        int(fan_in.sum()),
        int(fan_in.max(initial=0)),
        int(fan_out.max(initial=0)),
        bits=bits,
        delay=projection.delay,
        convolution=convolution_shape(projection.synapses),
        spans=spans_of(projection.synapses, fan_out),
    )


def spans_of(synapses: Synapses, fan_out: Ints) -> Ints | None:
    """First and last target of each source neuron of sparse synapses; None for other ones."""
    size = synapses.shape[0]
    if isinstance(synapses, ConvolutionSynapses) or not fan_out.any() or fan_out.min() >= size:
        return None
    rows = synapses.T.to_csr()
    found = np.tile(np.array([0, -1], dtype=np.int64), (len(fan_out), 1))
    filled = np.flatnonzero(np.diff(rows.indptr))
    found[filled, 0] = rows.indices[rows.indptr[filled]]
    found[filled, 1] = rows.indices[rows.indptr[filled + 1] - 1]
    # Scattered synapses have no ranges to speak of.
    wide = 2 * float(np.mean(found[filled, 1] - found[filled, 0])) > size
    return None if wide else found


def convolution_shape(synapses: Synapses) -> ConvolutionShape | None:
    """The geometry of synapses that share a kernel; None for others.

    Average pooling enlarges the kernel: each weight acts on a square of pixels.
    """
    if not isinstance(synapses, ConvolutionSynapses):
        return None
    pool, stride, padding = synapses.pool, synapses.stride, synapses.padding
    height, width = synapses.kernel.shape[2:]
    image, output = synapses.image, synapses.output
    forwards = ConvolutionShape(
        (image[0], image[1], image[2]),
        (output[0], output[1], output[2]),
        (pool * height, pool * width),
        (pool * stride, pool * stride),
        (pool * padding, pool * padding),
        distinct=synapses.kernel.size,
    )
    return forwards.reverse if synapses.transposed else forwards


def network_shape(
    network: SpikingNetwork,
    *,
    bits: int,
    off_chip: frozenset[str] = frozenset(),
    driven: bool = False,
) -> NetworkShape:
    """The shape of a spiking network.

    Parameters
    ----------
    network
        The spiking network.
    bits
        Bits of a weight on the chip.
    off_chip
        Populations that only send input spikes to the chip.
    driven
        Whether neurons receive an input current that is set for each sample.
    """
    populations = tuple(
        population_shape(each, off_chip=each.name in off_chip) for each in network.populations
    )
    projections = tuple(projection_shape(each, bits=bits) for each in network.projections)
    return NetworkShape(populations, projections, network.output, state_bits(network), driven)


def learning_shape(plastic: PlasticNetwork, *, input_name: str, bits: int) -> NetworkShape:
    """The shape of a network that learns.

    The input population and the bias unit are off-chip: one axon with a trace per unit. A plastic
    projection needs a synapse for every pair of neurons, since any weight can change.
    """
    network = plastic.network
    outside = (input_name, ALWAYS)
    populations = {
        each.name: population_shape(each, off_chip=each.name in outside)
        for each in network.populations
    }
    projections = []
    for each in network.projections:
        if each.gain is Gain.ONE and each.name in plastic.learns:
            ends = populations[each.source], populations[each.target]
            projections.append(dense_projection(*ends, bits=bits, plastic=True))
        else:
            projections.append(projection_shape(each, bits=bits))
    return NetworkShape(
        tuple(populations.values()), tuple(projections), network.output, state_bits(network)
    )


@dataclass(frozen=True, slots=True)
class Workload:
    """The events of a run, summed over its samples, by population and phase."""

    shape: NetworkShape
    counts: Mapping[tuple[str, str], Counts]
    samples: int
    steps: int
    """Steps of one sample in the free phase."""
    input_coding: str
    dense_macs: int
    """Multiplications of one feed-forward pass of the same layers, per sample."""
    by_step: Mapping[str, Ints] = field(default_factory=dict)
    """Spikes in each recorded step of the free phase, by population: of each neuron (steps,
    neurons) or of all neurons (steps, 1); empty if only sums were counted."""
    learning_by_step: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    """Events in each step of all phases and of the commit, by population and event (one of
    `STEP_EVENTS`), in the same shapes."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.steps < 1:
            raise ValueError(
                f"{self.samples} samples of {self.steps} steps hold no events; "
                "count a run of at least one sample and one step"
            )
        names = {each.name for each in self.shape.populations}
        for name, _ in self.counts:
            if name not in names:
                raise ValueError(f"counts of a population {name!r} that the network does not have")
        for name, event, recorded in (
            *((name, SPIKES, each) for name, each in self.by_step.items()),
            *((name, event, each) for (name, event), each in self.learning_by_step.items()),
        ):
            if name not in names or recorded.shape[1:] not in ((self.shape[name].size,), (1,)):
                raise ValueError(
                    f"{event} by step of {name!r} are {recorded.shape}; they need a column for "
                    "each of its neurons, or one"
                )
        total = sum(self.counts.values(), Counts())
        if total.updates_active + total.updates_idle + total.spikes == 0:
            raise ValueError("no events were counted: no neuron was updated; run it again")

    def phases(self, *, learning: bool) -> dict[str, Counts]:
        """Counts by population: of the free phase for inference, of all phases for learning."""
        sums: dict[str, Counts] = {}
        for (name, phase), counts in self.counts.items():
            if learning or phase == FREE:
                sums[name] = sums.get(name, Counts()) + counts
        return sums

    def recorded(self, name: str, event: str, *, learning: bool) -> Array | None:
        """Events of a population in each recorded step; None if steps were not recorded."""
        if learning:
            return self.learning_by_step.get((name, event))
        found = self.by_step.get(name) if event == SPIKES else None
        return None if found is None else found.astype(np.float64)

    def has_steps(self, *, learning: bool) -> bool:
        """Whether events of inference, or of learning, were recorded by step."""
        return bool(self.learning_by_step if learning else self.by_step)

    @property
    def without_steps(self) -> Workload:
        """The same workload with sums only, without events by step."""
        return replace(self, by_step={}, learning_by_step={})

    def per_sample(self, event: str) -> float:
        """Events of one kind, a field of `Counts`, per inference."""
        counts = self.phases(learning=False).values()
        return float(sum(getattr(each, event) for each in counts) / self.samples)

    @property
    def activity(self) -> float:
        """Mean spikes per neuron and step on the chip, in the free phase."""
        inside = {each.name for each in self.shape.on_chip}
        counted = [c for name, c in self.phases(learning=False).items() if name in inside]
        updates = sum(c.updates_active + c.updates_idle for c in counted)
        return sum(c.spikes for c in counted) / updates if updates else 0.0

    def with_bits(self, bits: int) -> Workload:
        """The same workload with weights of `bits` bits."""
        projections = tuple(replace(each, bits=bits) for each in self.shape.projections)
        return replace(self, shape=replace(self.shape, projections=projections))

    def scaled(self, factor: float) -> Workload:
        """The same workload with `factor` times the spikes, at most one per update."""
        counts = {}
        for key, old in self.counts.items():
            updates = old.updates_active + old.updates_idle
            active = min(updates, round(old.updates_active * factor))
            counts[key] = replace(
                old,
                spikes=round(old.spikes * factor),
                synops=round(old.synops * factor),
                updates_active=active,
                updates_idle=updates - active,
            )
        # Counts by step do not scale with the activity, so only the sums are kept.
        return replace(self.without_steps, counts=counts)

    @property
    def learned(self) -> bool:
        """Whether the counted run changed weights."""
        return any(counts.weight_updates for counts in self.counts.values())
