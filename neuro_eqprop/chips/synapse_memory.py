"""Memory and axons of the synapses on a core, in the storage format of the chip."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, prod

from neuro_eqprop.chips.convolution import ConvolutionShape, column_blocks
from neuro_eqprop.chips.limits import Unchecked
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.workload import NetworkShape, ProjectionShape


@dataclass(frozen=True, slots=True)
class MemoryFormat:
    """How a chip stores the synapses of an axon: in blocks, or packed if `block` is None."""

    block: int | None
    block_bits: int
    word_bits: int
    extra_bits: int
    widths: tuple[int, ...]
    index_widths: tuple[int, ...]

    def axon_bits(self, n: int, bits: int) -> int:
        """Bits of memory for `n` synapses of `bits` bits on one axon.

        A block of at most `block` synapses takes ceil((n * bits + block_bits) / word_bits) words.
        """
        if self.block is None:
            return n * bits
        blocks, rest = divmod(n, self.block)
        total = blocks * self.block_size(self.block * bits)
        return total + (self.block_size(rest * bits) if rest else 0)

    def block_size(self, bits: int) -> int:
        """Bits of memory for a block with `bits` bits of content."""
        return ceil((bits + self.block_bits) / self.word_bits) * self.word_bits


def next_width(bits: int, widths: tuple[int, ...]) -> int:
    """The smallest of `widths` that is at least `bits`; `bits` itself if there is none."""
    return min((width for width in widths if width >= bits), default=bits)


@dataclass(frozen=True, slots=True)
class Division:
    """How the neurons of a population are divided over cores.

    By default, a core takes any number of consecutive neurons, in the order of channels, rows and
    columns. If `column` is set, a core takes a power of two of whole columns of all channels.
    """

    size: int
    map_size: int = 0
    """Neurons of one feature map; 0 if the population has no feature maps."""
    column: int = 0
    """Neurons of one column over all channels; 0 if columns can be split."""

    def largest(self, fits: Callable[[int], bool]) -> int:
        """The largest number of neurons for which `fits` is true; 0 if none.

        If `fits` is false for a number, it must be false for all larger ones.
        """
        if self.column:
            width = 1 << (self.size // self.column - 1).bit_length()
            while width and not fits(min(self.size, width * self.column)):
                width //= 2
            return min(self.size, width * self.column)
        low, high = 0, self.size
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def neurons(self, cores: int) -> int:
        """Neurons of the fullest core if the population is divided over at least `cores` cores."""
        if not self.column:
            return ceil(self.size / cores)
        columns = self.size // self.column
        width = 1 << (columns - 1).bit_length()
        while width > 1 and ceil(columns / width) < cores:
            width //= 2
        return min(self.size, width * self.column)

    def cores(self, neurons: int) -> int:
        """Number of cores if the fullest core has `neurons` neurons."""
        return ceil(self.size / neurons)

    def maps(self, neurons: int) -> int:
        """Number of feature maps that are at least partly on a core with `neurons` neurons."""
        if not self.map_size:
            return 0
        channels = self.size // self.map_size
        if self.column:
            return channels
        part = 1 if neurons % self.map_size else 0
        return min(channels, neurons // self.map_size + part)


@dataclass(frozen=True, slots=True)
class SynapseMemory:
    """The synapses of a network as a chip stores them.

    Sparse synapses are assumed to be spread evenly. If the chip shares kernels, a core needs one
    axon per source channel and stores, for each, the kernels of the target channels that are at
    least partly on the core. Plastic synapses are not shared.
    """

    shape: NetworkShape
    format: MemoryFormat
    tag_bits: int | None
    unchecked: tuple[Unchecked, ...]
    shared_kernels: bool = False
    column_split: bool = False

    def shares(self, projection: ProjectionShape) -> ConvolutionShape | None:
        """The geometry of a projection whose kernel is stored once per core; else None."""
        shared = self.shared_kernels and not projection.plastic
        return projection.convolution if shared else None

    def division(self, name: str) -> Division:
        """How a population is divided over cores."""
        size, maps = self.shape[name].size, self.shape.maps(name)
        links = (*self.shape.into(name), *self.shape.out_of(name))
        if maps is None or not any(self.shares(each) for each in links):
            return Division(size)
        channels, height, width = maps
        column = channels * height if self.column_split else 0
        return Division(size, height * width, column)

    def axons_of(self, projection: ProjectionShape, n: int) -> tuple[int, int]:
        """Number of axons of a projection onto `n` neurons of its target, and synapses per axon."""
        source, target = self.shape[projection.source], self.shape[projection.target]
        convolution = self.shares(projection)
        if convolution is not None:
            maps = self.division(target.name).maps(n)
            return convolution.source[0], maps * prod(convolution.kernel)
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
        """Bits of synapse memory of a core with `n` neurons of a population."""
        total = 0
        for projection in self.shape.into(name):
            axons, synapses = self.axons_of(projection, n)
            bits = self.synapse_bits(projection)
            index = next_width(max(1, (n - 1).bit_length()), self.format.index_widths)
            sparse = axons * self.format.axon_bits(synapses, bits + index)
            if self.shares(projection) is not None:
                # The position in the kernel is the index of the target.
                total += axons * self.format.axon_bits(synapses, bits - self.format.extra_bits)
            elif self.shape.dense(projection):
                total += axons * self.format.axon_bits(synapses, bits)
            else:
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

    def reach(self, projection: ProjectionShape, cores: int) -> tuple[float, int]:
        """Mean and largest number of destination cores of a spike, if the target has `cores`."""
        convolution, division = self.shares(projection), self.division(projection.target)
        if convolution is not None and division.column:
            return column_blocks(convolution, division.neurons(cores) // division.column)
        mean = projection.synapses / self.shape[projection.source].size
        return min(float(cores), mean), min(cores, projection.max_fan_out)

    def out_axons(self, name: str, n: int, cores: Mapping[str, int]) -> int:
        """Output axons of a core with `n` neurons; shared kernels need one per feature map."""
        division, total = self.division(name), 0
        for projection in self.shape.out_of(name):
            shared = self.shares(projection) is not None
            senders = (1 if division.column else division.maps(n)) if shared else n
            total += senders * self.reach(projection, cores[projection.target])[1]
        return total


def synapse_memory(shape: NetworkShape, profile: Profile, *, tag_bits: int | None) -> SynapseMemory:
    """The synapses of a network on a chip; `tag_bits` defaults to the value of the profile."""

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
    return SynapseMemory(
        shape,
        layout,
        tag if shape.plastic else 0,
        tuple(unchecked),
        shared_kernels=bool(profile.allows("shared_kernels")),
        column_split=bool(profile.allows("column_split")),
    )
