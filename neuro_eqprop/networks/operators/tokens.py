"""Maps of token sequences: the same matrix for each token, image patches, a single token."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.base import power_iteration_norm
from neuro_eqprop.networks.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class PerToken:
    """y_i = W x_i for each token i."""

    stored_name: ClassVar[str] = "pertoken"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        if len(source) != 2 or len(target) != 2 or source[0] != target[0]:
            raise ValueError(
                f"a map per token connects layers of shape (tokens, units) with equal tokens, "
                f"not {source} to {target}"
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

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post pre^T."""
        return post.reshape(-1, post.shape[-1]).T @ pre.reshape(-1, pre.shape[-1])

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]


@dataclass(frozen=True, slots=True)
class Patches:
    """y_i = W p_i, where p_i is the i-th patch of `size` by `size` of an image, row by row."""

    size: int
    stored_name: ClassVar[str] = "patches"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, channels, size, size)."""
        count = self.count(source)
        if len(target) != 2 or target[0] != count:
            raise ValueError(f"{count} patches need a target of {count} tokens, not {target}")
        return (target[1], source[0], self.size, self.size)

    def count(self, image: Shape) -> int:
        """The number of patches in an image."""
        if len(image) != 3:
            raise ValueError(f"patches need a source of (channels, height, width), not {image}")
        high, wide = image[1:]
        if high % self.size or wide % self.size:
            raise ValueError(
                f"an image of {high} by {wide} cannot be cut into patches of {self.size}: the "
                f"patch size must divide both; use patch={nearest_divisor(high, wide, self.size)}"
            )
        return (high // self.size) * (wide // self.size)

    def split(self, x: Values) -> Values:
        """The image as (n, channel, patch row, row, patch column, column)."""
        n, c, high, wide = x.shape
        return x.reshape(n, c, high // self.size, self.size, wide // self.size, self.size)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W p_i."""
        tokens = ops.einsum("ncipjq,dcpq->nijd", self.split(x), weight)
        return tokens.reshape(len(x), -1, weight.shape[0]) + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain W^T y_i at the position of patch i."""
        grid = y.reshape(len(y), shape[1] // self.size, shape[2] // self.size, -1)
        back = ops.einsum("nijd,dcpq->ncipjq", grid, weight)
        return onto + gain * back.reshape(len(y), *shape)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and patches of post p^T."""
        split = self.split(pre)
        grid = post.reshape(len(post), split.shape[2], split.shape[4], -1)
        return ops.einsum("nijd,ncipjq->dcpq", grid, split)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W as a matrix, since patches do not overlap."""
        return [ops.spectral_norm(weight.reshape(weight.shape[0], -1))]


def nearest_divisor(high: int, wide: int, size: int) -> int:
    """The patch size nearest to `size` that divides both; the whole image only if none other."""
    sides = [n for n in range(1, gcd(high, wide) + 1) if high % n == 0 and wide % n == 0]
    parts = [n for n in sides if (high, wide) != (n, n)]
    return min(parts or sides, key=lambda n: abs(n - size))


@dataclass(frozen=True, slots=True)
class AtToken:
    """y = W x_i for the token i = `index`; a negative index counts from the end."""

    index: int
    stored_name: ClassVar[str] = "attoken"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        if len(source) != 2 or len(target) != 1 or not -source[0] <= self.index < source[0]:
            raise ValueError(
                f"token {self.index} of {source} cannot be read by a target of shape {target}"
            )
        return (target[0], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W x_i."""
        return ops.affine(onto, x[:, self.index], weight.T)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto, with gain W^T y added at the token."""
        total = onto + ops.zeros((len(y), *shape))
        total[:, self.index] += gain * (y @ weight)
        return total

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post x_i^T."""
        return post.T @ pre[:, self.index]

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of A(W), by power iteration."""
        return [power_iteration_norm(self, ops, weight, source)]
