"""Maps between sequences of tokens: the same matrix for each, patches of an image, one token."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators.base import largest_singular
from neuro_eqprop.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class PerToken:
    """y_i = W x_i for each token i."""

    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = True

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 2 or len(target) != 2 or source[0] != target[0]:
            raise ValueError(
                f"a map per token joins layers of shape (tokens, width) with as many tokens, "
                f"not {source} and {target}"
            )
        return (target[1], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W x_i."""
        return x @ weight.T + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W^T y_i."""
        back = y @ weight
        return onto + (back if gain == 1.0 else gain * back)

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post pre^T."""
        return post.reshape(-1, post.shape[-1]).T @ pre.reshape(-1, pre.shape[-1])

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By singular values."""
        return [ops.norm(weight)]


@dataclass(frozen=True, slots=True)
class Patches:
    """y_i = W p_i, with p_i the i-th square of `size` by `size` of an image, row by row."""

    size: int
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        count = self.count(source)
        if len(target) != 2 or target[0] != count:
            raise ValueError(f"{count} patches need as many tokens, not {target}")
        return (target[1], source[0], self.size, self.size)

    def count(self, image: Shape) -> int:
        """How many patches the image has."""
        if len(image) != 3:
            raise ValueError(f"patches are cut from (channels, height, width), not from {image}")
        high, wide = image[1:]
        if high % self.size or wide % self.size:
            raise ValueError(
                f"an image of {high} by {wide} cannot be cut into patches of {self.size}: their "
                f"side has to divide both; use --set patch={fitting(high, wide, self.size)}"
            )
        return (high // self.size) * (wide // self.size)

    def cut(self, x: Values) -> Values:
        """The image by channel, row of patches, row, column of patches, column."""
        n, c, high, wide = x.shape
        return x.reshape(n, c, high // self.size, self.size, wide // self.size, self.size)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W p_i."""
        tokens = ops.einsum("ncipjq,dcpq->nijd", self.cut(x), weight)
        return tokens.reshape(len(x), -1, weight.shape[0]) + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W^T y_i, each in its place."""
        grid = y.reshape(len(y), shape[1] // self.size, shape[2] // self.size, -1)
        back = ops.einsum("nijd,dcpq->ncipjq", grid, weight)
        return onto + gain * back.reshape(len(y), *shape)

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and patches of post p^T."""
        cut = self.cut(pre)
        grid = post.reshape(len(post), cut.shape[2], cut.shape[4], -1)
        return ops.einsum("nijd,ncipjq->dcpq", grid, cut)

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By singular values: the patches do not overlap."""
        return [ops.norm(weight.reshape(weight.shape[0], -1))]


def fitting(high: int, wide: int, size: int) -> int:
    """The side of patches nearest to `size` that fits; all of the image only where it must be."""
    sides = [n for n in range(1, gcd(high, wide) + 1) if high % n == 0 and wide % n == 0]
    parts = [n for n in sides if (high, wide) != (n, n)]
    return min(parts or sides, key=lambda n: abs(n - size))


@dataclass(frozen=True, slots=True)
class AtToken:
    """y = W x_i for the one token i = `index`; counted from the end if negative."""

    index: int
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 2 or len(target) != 1 or not -source[0] <= self.index < source[0]:
            raise ValueError(f"token {self.index} of {source} cannot drive {target}")
        return (target[0], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W x_i."""
        return ops.affine(onto, x[:, self.index], weight.T)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W^T y in the place of the token."""
        total = onto + ops.zeros((len(y), *shape))
        total[:, self.index] += gain * (y @ weight)
        return total

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post x_i^T."""
        return post.T @ pre[:, self.index]

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By power iteration."""
        return [largest_singular(self, ops, weight, source)]
