"""The geometry of a convolution between two populations, without its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from neuro_eqprop.common.arrays import Ints


@dataclass(frozen=True)
class ConvolutionShape:
    """Feature maps (channels, height, width) of source and target, and the kernel between them.

    A target in row y has synapses from source rows y stride - padding + k, k = 0 ... kernel - 1,
    and likewise for columns. A convolution after mean pooling has a larger kernel and stride and
    `parameters` distinct weights. With `transposed`, stride and kernel are those of the convolution
    in the opposite direction, from target to source.
    """

    source: tuple[int, int, int]
    target: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    transposed: bool = False
    distinct: int = 0
    """Number of distinct weights if the kernel repeats them; 0 if all are distinct."""

    def __post_init__(self) -> None:
        if min((*self.source, *self.target, *self.kernel, *self.stride)) < 1:
            raise ValueError("sizes of maps, kernel and stride must be at least 1")
        if min(self.padding) < 0:
            raise ValueError(f"a padding of {self.padding} is negative")

    def check(self, source: int, target: int, name: str) -> None:
        """Raise an error if the feature maps do not have the sizes of the populations."""
        if (prod(self.source), prod(self.target)) != (source, target):
            raise ValueError(
                f"projection {name!r}: maps {self.source} and {self.target} do not have the "
                f"{source} and {target} neurons of its populations"
            )

    @property
    def reverse(self) -> ConvolutionShape:
        """The same synapses in the other direction."""
        return replace(self, source=self.target, target=self.source, transposed=not self.transposed)

    @property
    def parameters(self) -> int:
        """Number of distinct weights."""
        return self.distinct or self.source[0] * self.target[0] * prod(self.kernel)

    @cached_property
    def synapses(self) -> int:
        """Number of synapses, without those that padding cuts off."""
        return self.source[0] * self.target[0] * prod(int(self.links(a).sum()) for a in (0, 1))

    @cached_property
    def max_fan_in(self) -> int:
        """Largest number of synapses onto one target neuron."""
        return self.source[0] * prod(int(self.links(a).sum(axis=1).max()) for a in (0, 1))

    @cached_property
    def max_fan_out(self) -> int:
        """Largest number of synapses from one source neuron."""
        return self.target[0] * prod(int(self.links(a).sum(axis=0).max()) for a in (0, 1))

    def links(self, axis: int) -> Ints:
        """Connectivity of rows (axis 0) or columns (axis 1): 0 or 1, (targets, sources)."""
        near, far = self.source[1 + axis], self.target[1 + axis]
        if self.transposed:
            near, far = far, near
        first = np.arange(far)[:, None] * self.stride[axis] - self.padding[axis]
        offset = np.arange(near)[None, :] - first
        found = ((offset >= 0) & (offset < self.kernel[axis])).astype(np.int64)
        return found.T if self.transposed else found


@lru_cache(maxsize=4096)
def column_blocks(convolution: ConvolutionShape, width: int) -> tuple[float, int]:
    """Mean and largest number of blocks of `width` target columns that a source reaches."""
    links = convolution.links(1)
    blocks = np.add.reduceat(links, np.arange(0, len(links), width), axis=0) > 0
    reached = blocks.sum(axis=0)
    return float(reached.mean()), int(reached.max())
