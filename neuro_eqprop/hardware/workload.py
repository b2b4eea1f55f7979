"""A spiking network by its shapes alone, and the events that a run of it counted.

Shapes hold no weights, so that a network of a billion synapses can be placed and priced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.spiking.fixed_point import state_bits
from neuro_eqprop.spiking.ir import Graded, Projection, Reset, SpikingNetwork
from neuro_eqprop.traces import Counts

FREE = "free"
"""The phase that inference consists of."""


@dataclass(frozen=True, slots=True)
class Group:
    """A population by its size; one that is `off_chip` only sends spikes in."""

    name: str
    size: int
    soft_reset: bool = False
    graded: bool = False
    off_chip: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"population {self.name!r} has {self.size} neurons; it needs some")


@dataclass(frozen=True, slots=True)
class Link:
    """A projection by its number of synapses and by the largest fans of one neuron."""

    source: str
    target: str
    synapses: int
    max_fan_in: int
    max_fan_out: int
    bits: int = 8
    delay: int = 1
    plastic: bool = False

    def __post_init__(self) -> None:
        if self.synapses < 0 or self.bits < 1 or self.delay < 1:
            raise ValueError(f"projection {self.name!r}: synapses, bits or delay cannot be")
        if max(self.max_fan_in, self.max_fan_out) > self.synapses:
            raise ValueError(
                f"projection {self.name!r} has fans above its {self.synapses} synapses"
            )

    @property
    def name(self) -> str:
        """Source and target."""
        return f"{self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Shapes:
    """Populations and projections; `state_bits` where the network states what its state needs."""

    groups: tuple[Group, ...]
    links: tuple[Link, ...]
    output: str
    """The population that is read out."""
    state_bits: int | None = None

    def __post_init__(self) -> None:
        names = [group.name for group in self.groups]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"populations need different names, not {names}")
        if self.output not in names:
            raise ValueError(f"the output {self.output!r} is none of the populations {names}")
        for link in self.links:
            for end in (link.source, link.target):
                if end not in names:
                    raise ValueError(f"projection {link.name!r}: no population {end!r}")
            if link.synapses > self[link.source].size * self[link.target].size:
                raise ValueError(f"projection {link.name!r} has more synapses than pairs")
            if self[link.target].off_chip:
                raise ValueError(f"projection {link.name!r} ends outside of the chip")

    def __getitem__(self, name: str) -> Group:
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    @property
    def placed(self) -> tuple[Group, ...]:
        """The populations that need cores."""
        return tuple(group for group in self.groups if not group.off_chip)

    def into(self, name: str) -> tuple[Link, ...]:
        """The projections that arrive at a population."""
        return tuple(link for link in self.links if link.target == name)

    def out_of(self, name: str) -> tuple[Link, ...]:
        """The projections that leave a population."""
        return tuple(link for link in self.links if link.source == name)

    def dense(self, link: Link) -> bool:
        """Whether every pair has its synapse."""
        return link.synapses == self[link.source].size * self[link.target].size

    @property
    def recurrent(self) -> bool:
        """Whether some population can reach itself."""
        onward = {
            group.name: {link.target for link in self.out_of(group.name)} for group in self.groups
        }
        for start, near_by in onward.items():
            seen: set[str] = set()
            edge = set(near_by)
            while edge:
                seen |= edge
                edge = {far for near in edge for far in onward[near]} - seen
            if start in seen:
                return True
        return False

    def learning(self) -> Shapes:
        """The same with every projection plastic."""
        return replace(self, links=tuple(replace(link, plastic=True) for link in self.links))


def full(source: Group, target: Group, *, bits: int, plastic: bool = False) -> Link:
    """The projection with a synapse for every pair."""
    synapses = source.size * target.size
    fans = (source.size, target.size)
    return Link(source.name, target.name, synapses, *fans, bits=bits, plastic=plastic)


def measure(projection: Projection, *, bits: int) -> Link:
    """A projection by its weights other than zero."""
    there = projection.weight != 0
    fan_in, fan_out = np.count_nonzero(there, axis=1), np.count_nonzero(there, axis=0)
    return Link(
        projection.source,
        projection.target,
        int(fan_in.sum()),
        int(fan_in.max(initial=0)),
        int(fan_out.max(initial=0)),
        bits=bits,
        delay=projection.delay,
    )


def describe(
    network: SpikingNetwork, *, bits: int, outside: frozenset[str] = frozenset()
) -> Shapes:
    """The shapes of a network whose weights are kept in `bits` each, its input from `outside`."""
    groups = []
    for population in network.populations:
        neuron = population.neuron
        graded = isinstance(neuron, Graded)
        soft = not isinstance(neuron, Graded) and neuron.reset is Reset.SUBTRACT
        name = population.name
        groups.append(Group(name, population.size, soft, graded, off_chip=name in outside))
    links = tuple(measure(projection, bits=bits) for projection in network.projections)
    return Shapes(tuple(groups), links, network.output, state_bits(network))


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run did, over all of its samples, by population and phase."""

    shapes: Shapes
    counts: Mapping[tuple[str, str], Counts]
    samples: int
    steps: int
    """Steps of one sample in the free phase."""
    input_coding: str
    dense_macs: int
    """Multiplications of one feed-forward pass of the same layers, per sample."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.steps < 1:
            raise ValueError(
                f"{self.samples} samples of {self.steps} steps hold no events to price; "
                "count a run of at least one sample and one step"
            )
        names = {group.name for group in self.shapes.groups}
        for name, _ in self.counts:
            if name not in names:
                raise ValueError(f"counts name a population {name!r} that the network has not")
        total = sum(self.counts.values(), Counts())
        if total.updates_active + total.updates_idle + total.spikes == 0:
            raise ValueError("no events were counted: no neuron was ever updated; run it again")

    def phases(self, *, learning: bool) -> dict[str, Counts]:
        """Counts by population: of the free phase for inference, of all phases for learning."""
        sums: dict[str, Counts] = {}
        for (name, phase), counts in self.counts.items():
            if learning or phase == FREE:
                sums[name] = sums.get(name, Counts()) + counts
        return sums

    @property
    def activity(self) -> float:
        """Mean spikes per neuron and step of the populations on the chip, in the free phase."""
        inside = {group.name for group in self.shapes.placed}
        counted = [c for name, c in self.phases(learning=False).items() if name in inside]
        updates = sum(c.updates_active + c.updates_idle for c in counted)
        return sum(c.spikes for c in counted) / updates if updates else 0.0

    def with_bits(self, bits: int) -> Workload:
        """The same with weights of so many bits."""
        links = tuple(replace(link, bits=bits) for link in self.shapes.links)
        return replace(self, shapes=replace(self.shapes, links=links))

    def scaled(self, factor: float) -> Workload:
        """The same run with `factor` times as many spikes; no neuron fires above once a step."""
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
        return replace(self, counts=counts)

    @property
    def learned(self) -> bool:
        """Whether the counted run changed weights."""
        return any(counts.weight_updates for counts in self.counts.values())
