"""The geometry of a convolution between two populations, without its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from neuro_eqprop.arrays import Ints


@dataclass(frozen=True)
class ConvolutionShape:
    """Feature maps (channels, height, width) of source and target, and the kernel between them.

    A target at row y meets the source rows y stride - padding + k, k = 0 ... kernel - 1, and
    likewise for columns. A convolution after mean pooling is one with a larger kernel and stride,
    of which `parameters` are distinct. With `transposed`, the geometry is that of the projection in
    the other direction, and source and target change places.
    """

    source: tuple[int, int, int]
    target: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    transposed: bool = False
    distinct: int = 0
    """Distinct weights, where a kernel repeats them; 0 where every weight of the kernel differs."""

    def __post_init__(self) -> None:
        if min((*self.source, *self.target, *self.kernel, *self.stride)) < 1:
            raise ValueError("sizes of maps, kernel and stride must be at least 1")
        if min(self.padding) < 0:
            raise ValueError(f"a padding of {self.padding} is negative")

    def check(self, source: int, target: int, name: str) -> None:
        """Raise an error unless the maps have the sizes of the populations."""
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
        """Distinct weights."""
        return self.distinct or self.source[0] * self.target[0] * prod(self.kernel)

    @cached_property
    def synapses(self) -> int:
        """Synapses, those that the border cuts off not counted."""
        return self.source[0] * self.target[0] * prod(int(self.links(a).sum()) for a in (0, 1))

    @cached_property
    def max_fan_in(self) -> int:
        """Synapses of the target with the most."""
        return self.source[0] * prod(int(self.links(a).sum(axis=1).max()) for a in (0, 1))

    @cached_property
    def max_fan_out(self) -> int:
        """Synapses of the source with the most."""
        return self.target[0] * prod(int(self.links(a).sum(axis=0).max()) for a in (0, 1))

    def links(self, axis: int) -> Ints:
        """Synapses between rows (axis 0) or columns (axis 1): (targets, sources), 0 or 1."""
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
