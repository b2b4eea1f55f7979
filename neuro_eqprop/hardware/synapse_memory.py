"""Memory and axons that synapses take on a core, by the storage format of the chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from neuro_eqprop.hardware.limits import Unchecked
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.workload import NetworkShape, ProjectionShape


@dataclass(frozen=True, slots=True)
class MemoryFormat:
    """How a chip stores the synapses of an axon; without blocks, bits are packed."""

    block: int | None
    block_bits: int
    word_bits: int
    extra_bits: int
    widths: tuple[int, ...]
    index_widths: tuple[int, ...]

    def axon_bits(self, n: int, bits: int) -> int:
        """Memory of `n` synapses of `bits` each on one axon.

        A block of at most `block` synapses takes ceil((n * bits + block_bits) / word_bits) words.
        """
        if self.block is None:
            return n * bits
        blocks, rest = divmod(n, self.block)
        total = blocks * self.block_size(self.block * bits)
        return total + (self.block_size(rest * bits) if rest else 0)

    def block_size(self, bits: int) -> int:
        """Memory of one block with that many bits of content."""
        return ceil((bits + self.block_bits) / self.word_bits) * self.word_bits


def next_width(bits: int, widths: tuple[int, ...]) -> int:
    """The smallest available width of at least `bits`; `bits` itself where any is available."""
    return min((width for width in widths if width >= bits), default=bits)


@dataclass(frozen=True, slots=True)
class SynapseMemory:
    """The synapses of a network as a chip stores them; sparse ones are spread evenly."""

    shape: NetworkShape
    format: MemoryFormat
    tag_bits: int | None
    unchecked: tuple[Unchecked, ...]

    def axons_of(self, projection: ProjectionShape, n: int) -> tuple[int, int]:
        """Axons of a projection onto `n` neurons of its target, and synapses on each."""
        source, target = self.shape[projection.source], self.shape[projection.target]
        if self.shape.dense(projection):
            return source.size, n
        synapses = ceil(projection.synapses * n / target.size)
        axons = min(source.size, synapses)
        return axons, ceil(synapses / axons) if axons else 0

    def synapse_bits(self, projection: ProjectionShape) -> int:
        """Bits of one synapse: weight, delay beyond one step, tag, and extra bits."""
        delay = (projection.delay - 1).bit_length()
        tag = (self.tag_bits or 0) if projection.plastic else 0
        weight = next_width(projection.bits, self.format.widths)
        return weight + delay + tag + self.format.extra_bits

    def bits(self, name: str, n: int) -> int:
        """Memory of a core with `n` neurons of a population."""
        total = 0
        for projection in self.shape.into(name):
            axons, synapses = self.axons_of(projection, n)
            bits = self.synapse_bits(projection)
            if self.shape.dense(projection):
                total += axons * self.format.axon_bits(synapses, bits)
            else:
                index = next_width(max(1, (n - 1).bit_length()), self.format.index_widths)
                sparse = axons * self.format.axon_bits(synapses, bits + index)
                dense = self.shape[projection.source].size * self.format.axon_bits(n, bits)
                total += min(sparse, dense)
        return total

    def synapses(self, name: str, n: int) -> int:
        """Synapses of a core with `n` neurons of a population."""
        parts = (self.axons_of(projection, n) for projection in self.shape.into(name))
        return sum(axons * synapses for axons, synapses in parts)

    def axons(self, name: str, n: int) -> int:
        """Input axons of a core with `n` neurons of a population."""
        return sum(self.axons_of(projection, n)[0] for projection in self.shape.into(name))

    def destinations(self, name: str, cores: Mapping[str, int]) -> int:
        """Cores that one neuron of a population sends spikes to."""
        return sum(
            min(cores[projection.target], projection.max_fan_out)
            for projection in self.shape.out_of(name)
        )


def synapse_memory(shape: NetworkShape, profile: Profile, *, tag_bits: int | None) -> SynapseMemory:
    """The synapses of a network on a chip; `tag_bits` are the profile's unless given."""

    def widths(key: str) -> tuple[int, ...]:
        quantity = profile.known(f"capacity.{key}")
        return () if quantity is None else tuple(int(width) for width in quantity.choices)

    tag = tag_bits if tag_bits is not None else profile.limit("tag_bits")
    limits = ("synapse_bits_per_core", "synapses_per_core", "synapse_bits_per_chip")
    unchecked = []
    if all(profile.limit(key) is None for key in limits):
        reason = "that of the chip is unknown"
        unchecked.append(Unchecked("synapse memory", reason, essential=True))
    layout = MemoryFormat(
        block=profile.limit("synapse_block"),
        block_bits=profile.limit("synapse_block_bits") or 0,
        word_bits=profile.limit("synapse_word_bits") or 1,
        extra_bits=profile.limit("synapse_bits") or 0,
        widths=widths("weight_bits"),
        index_widths=widths("index_bits"),
    )
    return SynapseMemory(shape, layout, tag if shape.plastic else 0, tuple(unchecked))
