"""Attention as the research notes have it: queries from a state, keys and values from the data.

A layer of 3 D units a token holds (q_i, k_i, v_i). `Query` brings W n(h_i) into its first third;
the data bring the rest. With heads of d units, `CrossAttention` makes of it

    y_i = W sum_j p_ij v_j,    softmax   p_ij = exp(q_i . k_j / sqrt d) / sum_j of it
                               linear    p_ij = f(q_i) . f(k_j) / sum_j of it,  f(u) = elu(u) + 1

Neither is the gradient of an energy: q, k and v have weights of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators.attention import Kind
from neuro_eqprop.operators.layer_norm import norm_pull
from neuro_eqprop.ops.protocol import Ops, Values


def rows(values: Values) -> Values:
    """One row for each token of each sample."""
    return values.reshape(-1, values.shape[-1])


@dataclass(frozen=True, slots=True)
class Query:
    """y_i = (W n(x_i), 0, 0), with n as in `Normed`."""

    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 2 or target != (source[0], 3 * source[1]):
            raise ValueError(f"queries of {source} need a target of three parts, not {target}")
        return (source[1], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W n(x_i) in the first third."""
        total = onto + ops.zeros((len(x), x.shape[1], 3 * x.shape[2]))
        total[..., : x.shape[2]] += ops.normalise(x) @ weight.T
        return total

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """There is none."""
        raise ValueError("a query is not linear and has no transpose")

    def pull(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed slope at x, times y."""
        return norm_pull(ops, x, y[..., : x.shape[2]] @ weight)

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post n(pre)^T."""
        return rows(post[..., : pre.shape[2]]).T @ rows(ops.normalise(pre))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Of the matrix alone."""
        return [ops.norm(weight)]


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """y_i = W sum_j p_ij v_j, see the module."""

    kind: Kind
    heads: int
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(target) != 2 or source != (target[0], 3 * target[1]):
            raise ValueError(f"a lookup takes three parts of each token, not {source} to {target}")
        if target[1] % self.heads:
            raise ValueError(f"{target[1]} units cannot be cut into {self.heads} heads")
        return (target[1], target[1])

    def parts(self, x: Values) -> tuple[Values, Values, Values]:
        """q, k, v by head (n, S, heads, d); q and k as features if attention is linear."""
        width = x.shape[2] // 3
        cut = (*x.shape[:2], self.heads, width // self.heads)
        return tuple(x[..., k * width : (k + 1) * width].reshape(cut) for k in range(3))

    def share(self, ops: Ops, q: Values, k: Values) -> tuple[Values, Values, Values, Values]:
        """p (n, heads, i, j), what q and k were matched as, and what the matches summed to."""
        if self.kind is Kind.SOFTMAX:
            match = ops.einsum("nihd,njhd->nhij", q, k) / q.shape[-1] ** 0.5
            return ops.softmax(match), q, k, None
        f, g = ops.positive(q), ops.positive(k)
        match = ops.einsum("nihd,njhd->nhij", f, g)
        total = match.sum(axis=-1, keepdims=True)
        return match / total, f, g, total

    def found(self, ops: Ops, x: Values) -> Values:
        """sum_j p_ij v_j (n, S, D)."""
        q, k, v = self.parts(x)
        p = self.share(ops, q, k)[0]
        return ops.einsum("nhij,njhd->nihd", p, v).reshape(*x.shape[:2], -1)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        return self.found(ops, x) @ weight.T + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """There is none."""
        raise ValueError("a lookup is not linear and has no transpose")

    def pull(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed slope at x, times y."""
        q, k, v = self.parts(x)
        p, f, g, total = self.share(ops, q, k)
        a = (y @ weight).reshape(q.shape)
        on_v = ops.einsum("nhij,nihd->njhd", p, a)
        on_p = ops.einsum("nihd,njhd->nhij", a, v)
        centred = on_p - (p * on_p).sum(axis=-1, keepdims=True)
        on_match = p * centred / q.shape[-1] ** 0.5 if total is None else centred / total
        on_q = ops.einsum("nhij,njhd->nihd", on_match, g)
        on_k = ops.einsum("nhij,nihd->njhd", on_match, f)
        if total is not None:  # the slope of f is f below zero, one above: never more than either
            on_q, on_k = on_q * (f * (f < 1.0) + (f >= 1.0)), on_k * (g * (g < 1.0) + (g >= 1.0))
        whole = ops.zeros(tuple(x.shape))
        width = x.shape[2] // 3
        for place, part in enumerate((on_q, on_k, on_v)):
            whole[..., place * width : (place + 1) * width] = part.reshape(*x.shape[:2], width)
        return whole

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post times what was found."""
        return rows(post).T @ rows(self.found(ops, pre))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Of the matrix alone."""
        return [ops.norm(weight)]
