"""What synapses take of a core: bits by the chip's own formula, axons, destinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from neuro_eqprop.hardware.limits import Unchecked
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.workload import Link, Shapes


@dataclass(frozen=True, slots=True)
class Format:
    """How a chip stores the synapses of an axon; without blocks they lie side by side."""

    block: int | None
    block_bits: int
    word_bits: int
    extra_bits: int
    widths: tuple[int, ...]
    index_widths: tuple[int, ...]

    def axon(self, n: int, bits: int) -> int:
        """Bits of `n` synapses of `bits` each on one axon.

        Each block of at most `block` synapses costs ceil((n bits + block_bits) / word) words.
        """
        if self.block is None:
            return n * bits
        whole, rest = divmod(n, self.block)
        total = whole * self.words(self.block * bits)
        return total + (self.words(rest * bits) if rest else 0)

    def words(self, bits: int) -> int:
        """The bits of the words that one block takes."""
        return ceil((bits + self.block_bits) / self.word_bits) * self.word_bits


def step_up(bits: int, widths: tuple[int, ...]) -> int:
    """The smallest width that holds `bits`; `bits` itself where any width can be had."""
    return min((width for width in widths if width >= bits), default=bits)


@dataclass(frozen=True, slots=True)
class Store:
    """The synapses of a network as a chip keeps them. Sparse ones are taken as evenly spread."""

    shapes: Shapes
    format: Format
    tag_bits: int | None
    unchecked: tuple[Unchecked, ...]

    def part(self, link: Link, n: int) -> tuple[int, int]:
        """Of a projection onto `n` of its target's neurons: axons, and synapses on each."""
        source, target = self.shapes[link.source], self.shapes[link.target]
        if self.shapes.dense(link):
            return source.size, n
        here = ceil(link.synapses * n / target.size)
        axons = min(source.size, here)
        return axons, ceil(here / axons) if axons else 0

    def width(self, link: Link) -> int:
        """Bits of one synapse: weight, delay beyond a step, tag, and whatever else."""
        delay = (link.delay - 1).bit_length()
        tag = (self.tag_bits or 0) if link.plastic else 0
        weight = step_up(link.bits, self.format.widths)
        return weight + delay + tag + self.format.extra_bits

    def bits(self, name: str, n: int) -> int:
        """Synapse memory of a core with `n` neurons of a population."""
        total = 0
        for link in self.shapes.into(name):
            axons, each = self.part(link, n)
            stored = axons * self.format.axon(each, self.width(link))
            if not self.shapes.dense(link):
                index = step_up(max(1, (n - 1).bit_length()), self.format.index_widths)
                source = self.shapes[link.source].size
                sparse = axons * self.format.axon(each, self.width(link) + index)
                stored = min(sparse, source * self.format.axon(n, self.width(link)))
            total += stored
        return total

    def synapses(self, name: str, n: int) -> int:
        """Synapses of a core with `n` neurons of a population."""
        parts = (self.part(link, n) for link in self.shapes.into(name))
        return sum(axons * each for axons, each in parts)

    def axons(self, name: str, n: int) -> int:
        """Sources that reach a core with `n` neurons of a population."""
        return sum(self.part(link, n)[0] for link in self.shapes.into(name))

    def reached(self, link: Link, cores: int) -> int:
        """Of `cores` that the target takes, how many one source neuron sends to."""
        return min(cores, link.max_fan_out)

    def destinations(self, name: str, cores: Mapping[str, int]) -> int:
        """Cores that one neuron of a population sends to."""
        return sum(self.reached(link, cores[link.target]) for link in self.shapes.out_of(name))


def store(shapes: Shapes, profile: Profile, *, tag_bits: int | None) -> Store:
    """The store of a chip, and what of it is not known."""

    def widths(key: str) -> tuple[int, ...]:
        found = profile.known(f"capacity.{key}")
        return () if found is None else tuple(int(width) for width in found.choices)

    plastic = any(link.plastic for link in shapes.links)
    tag = tag_bits if tag_bits is not None else profile.limit("tag_bits")
    limits = ("synapse_bits_per_core", "synapses_per_core", "synapse_bits_per_chip")
    unchecked = []
    if all(profile.limit(key) is None for key in limits):
        unchecked.append(Unchecked("synapse memory", "the chip's is unknown", essential=True))
    layout = Format(
        profile.limit("synapse_block"),
        profile.limit("synapse_block_bits") or 0,
        profile.limit("synapse_word_bits") or 1,
        profile.limit("synapse_bits") or 0,
        widths("weight_bits"),
        widths("index_bits"),
    )
    return Store(shapes, layout, tag if plastic else 0, tuple(unchecked))
