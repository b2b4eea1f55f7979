"""Attention with queries from the state, keys and values from the data (Vaswani et al. 2017).

A layer of 3 D units a token holds (q_i, k_i, v_i). `Query` adds W n(h_i) to its first third; the
input drives the rest. With heads of d units, `CrossAttention` computes

    y_i = W sum_j p_ij v_j,    softmax   p_ij = exp(q_i . k_j / sqrt d) / sum_j of it
                               linear    p_ij = f(q_i) . f(k_j) / sum_j of it,  f(u) = elu(u) + 1

The linear form is that of Katharopoulos et al. 2020. Neither is the gradient of an energy, since
q, k and v have separate weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.attention import AttentionKind
from neuro_eqprop.networks.operators.layer_norm import layer_norm_vjp
from neuro_eqprop.networks.ops.protocol import Ops, Values


def token_rows(values: Values) -> Values:
    """The values as (samples * tokens, units)."""
    return values.reshape(-1, values.shape[-1])


@dataclass(frozen=True, slots=True)
class Query:
    """y_i = (W n(x_i), 0, 0), with n as in `LayerNorm`."""

    stored_name: ClassVar[str] = "query"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(D, D) for D units per token."""
        if len(source) != 2 or target != (source[0], 3 * source[1]):
            raise ValueError(
                f"a query connects (tokens, D) to (tokens, 3 D), not {source} to {target}"
            )
        return (source[1], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W n(x_i) in the first third."""
        total = onto + ops.zeros((len(x), x.shape[1], 3 * x.shape[2]))
        total[..., : x.shape[2]] += ops.layer_norm(x) @ weight.T
        return total

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: the operator is not linear."""
        raise ValueError("a query is not linear and has no transpose")

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        return layer_norm_vjp(ops, x, y[..., : x.shape[2]] @ weight)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post n(pre)^T."""
        return token_rows(post[..., : pre.shape[2]]).T @ token_rows(ops.layer_norm(pre))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """y_i = W sum_j p_ij v_j, with p as in the module docstring."""

    kind: AttentionKind
    heads: int
    stored_name: ClassVar[str] = "lookup"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = True

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(D, D) for D units per token."""
        if len(target) != 2 or source != (target[0], 3 * target[1]):
            raise ValueError(
                f"cross-attention connects (tokens, 3 D) to (tokens, D), not {source} to {target}"
            )
        if target[1] % self.heads:
            raise ValueError(f"{target[1]} units cannot be split into {self.heads} heads")
        return (target[1], target[1])

    def parts(self, x: Values) -> tuple[Values, Values, Values]:
        """q, k and v by head (n, S, heads, d)."""
        width = x.shape[2] // 3
        cut = (*x.shape[:2], self.heads, width // self.heads)
        return tuple(x[..., k * width : (k + 1) * width].reshape(cut) for k in range(3))

    def attention_weights(
        self, ops: Ops, q: Values, k: Values
    ) -> tuple[Values, Values, Values, Values]:
        """p (n, heads, i, j), the features of q and k, and the normalizer (None for softmax)."""
        if self.kind is AttentionKind.SOFTMAX:
            match = ops.einsum("nihd,njhd->nhij", q, k) / q.shape[-1] ** 0.5
            return ops.softmax(match), q, k, None
        f, g = ops.elu_plus_one(q), ops.elu_plus_one(k)
        match = ops.einsum("nihd,njhd->nhij", f, g)
        total = match.sum(axis=-1, keepdims=True)
        return match / total, f, g, total

    def attend(self, ops: Ops, x: Values) -> Values:
        """sum_j p_ij v_j (n, S, D)."""
        q, k, v = self.parts(x)
        p = self.attention_weights(ops, q, k)[0]
        return ops.einsum("nhij,njhd->nihd", p, v).reshape(*x.shape[:2], -1)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        return self.attend(ops, x) @ weight.T + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: the operator is not linear."""
        raise ValueError("cross-attention is not linear and has no transpose")

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        q, k, v = self.parts(x)
        p, f, g, total = self.attention_weights(ops, q, k)
        a = (y @ weight).reshape(q.shape)
        on_v = ops.einsum("nhij,nihd->njhd", p, a)
        on_p = ops.einsum("nihd,njhd->nhij", a, v)
        centred = on_p - (p * on_p).sum(axis=-1, keepdims=True)
        on_match = p * centred / q.shape[-1] ** 0.5 if total is None else centred / total
        on_q = ops.einsum("nhij,njhd->nihd", on_match, g)
        on_k = ops.einsum("nhij,nihd->njhd", on_match, f)
        if total is not None:  # the derivative of elu(u) + 1 is f where f < 1, else 1
            on_q, on_k = on_q * (f * (f < 1.0) + (f >= 1.0)), on_k * (g * (g < 1.0) + (g >= 1.0))
        gradient = ops.zeros(tuple(x.shape))
        width = x.shape[2] // 3
        for place, part in enumerate((on_q, on_k, on_v)):
            gradient[..., place * width : (place + 1) * width] = part.reshape(*x.shape[:2], width)
        return gradient

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and tokens of post (sum_j p_ij v_j)^T."""
        return token_rows(post).T @ token_rows(self.attend(ops, pre))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]
