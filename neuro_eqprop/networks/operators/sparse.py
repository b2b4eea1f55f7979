"""Random sparse connections: each target unit has the same number of sources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Ints, Shape
from neuro_eqprop.networks.operators.base import flatten, power_iteration_norm
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape

PRODUCTS_AT_ONCE = 2**24
"""Largest number of products in memory at a time."""
CHUNK = 2**16
"""Target units whose sources are drawn at a time."""


@lru_cache(maxsize=8)
def draw_sources(targets: int, sources: int, fan_in: int, seed: int) -> Ints:
    """`fan_in` different random sources of each target (targets, fan_in), in increasing order.

    The array is shared: do not write to it.
    """
    rng, found = np.random.default_rng([seed, targets, sources, fan_in]), []
    for start in range(0, targets, CHUNK):
        rows = min(CHUNK, targets - start)
        if fan_in * fan_in > sources:  # most rows of independent draws would repeat a source
            drawn = np.concatenate(
                [np.sort(rng.permutation(sources)[:fan_in])[None] for _ in range(rows)]
            )
        else:
            drawn = np.sort(rng.integers(0, sources, (rows, fan_in)), axis=1)
            while True:
                again = np.flatnonzero((np.diff(drawn, axis=1) == 0).any(axis=1))
                if not len(again):
                    break
                drawn[again] = np.sort(rng.integers(0, sources, (len(again), fan_in)), axis=1)
        found.append(drawn)
    return np.asarray(np.concatenate(found), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Sparse:
    """y_i = sum over k of W[i, k] x[j(i, k)], with `fan_in` random sources j(i, k) of each target.

    The sources are drawn from the seed. With S the matrix of these weights, y = S x; if
    `symmetric`, which a layer needs that is connected to itself and has an energy, y = (S + S^T) x.
    """

    fan_in: int
    seed: int = 0
    symmetric: bool = False
    stored_name: ClassVar[str] = "sparse"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.fan_in < 1:
            raise ValueError(f"a sparse connection needs a fan-in of at least 1, not {self.fan_in}")

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, fan_in)."""
        sources, targets = int(np.prod(source)), int(np.prod(target))
        if self.fan_in > sources:
            raise ValueError(
                f"a fan-in of {self.fan_in} needs as many sources; the source layer has {sources}"
            )
        if self.symmetric and source != target:
            raise ValueError(
                f"a symmetric sparse connection needs layers of equal shape, not {source} and "
                f"{target}"
            )
        if len(target) != 1:
            raise ValueError(f"a sparse connection needs a target of shape (units,), not {target}")
        return (targets, self.fan_in)

    def sources(self, targets: int, sources: int) -> Ints:
        """The sources j(i, k)."""
        return draw_sources(targets, sources, self.fan_in, self.seed)

    def gather(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + S x for rows x, some targets at a time."""
        at = self.sources(weight.shape[0], x.shape[1])
        rows = max(1, PRODUCTS_AT_ONCE // max(1, x.shape[0] * self.fan_in))
        parts = [slice(k, min(k + rows, len(at))) for k in range(0, len(at), rows)]
        sums = [ops.sum(ops.take_columns(x, at[p]) * weight[p, :], (-1,)) for p in parts]
        return onto + ops.concat_columns(sums)

    def scatter(self, ops: Ops, weight: Values, y: Values, sources: int) -> Values:
        """S^T y for rows y."""
        at = self.sources(weight.shape[0], sources)
        products = reshape(y[:, :, None] * weight, (y.shape[0], -1))
        return ops.sum_at(products, at.reshape(-1), sources)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + S x, or onto + (S + S^T) x."""
        flat = flatten(x)
        total = self.gather(ops, weight, flat, onto)
        return total + self.scatter(ops, weight, flat, flat.shape[1]) if self.symmetric else total

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain times the transposed product."""
        back = self.scatter(ops, weight, y, int(np.prod(shape)))
        if self.symmetric:
            back = self.gather(ops, weight, y, back)
        return onto + gain * reshape(back, (y.shape[0], *shape))

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post_i pre_j(i, k), and of post_j(i, k) pre_i if symmetric."""
        flat = flatten(pre)
        at = self.sources(weight.shape[0], flat.shape[1])
        found = ops.einsum("ni,nik->ik", post, ops.take_columns(flat, at))
        if self.symmetric:
            found = found + ops.einsum("nik,ni->ik", ops.take_columns(post, at), flat)
        return found

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of A(W), by power iteration."""
        return [power_iteration_norm(self, ops, weight, source)]
