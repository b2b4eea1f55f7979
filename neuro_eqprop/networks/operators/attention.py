"""Attention between the tokens of a layer, as the gradient of an energy.

The softmax form is that of Hoover et al. 2023 (Energy Transformer). With queries q_i = W_q h_i and
keys k_j = W_k h_j, split into heads of d units, c = scale / (S sqrt d) for S tokens and
g = sharpness / sqrt d, each head adds -A(h) to the layer's energy,

    linear    A = c/2 sum over i, j of (q_i . k_j)^2
    softmax   A = scale/g sum over i of log sum over j of exp(g q_i . k_j)

(without i = j if `others`), and drives the layer by dA/dh = W_q^T dA/dq + W_k^T dA/dk:

    linear    dA/dq_i = c sum_j (q_i . k_j) k_j         dA/dk_j = c sum_i (q_i . k_j) q_i
    softmax   dA/dq_i = scale sum_j p_ij k_j            dA/dk_j = scale sum_i p_ij q_i

where p_ij is the softmax over j of g q_i . k_j. The gradients of the weights are local too:
dA/dW_q = sum_i dA/dq_i h_i^T, dA/dW_k = sum_j dA/dk_j h_j^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.protocol import Ops, Values


class AttentionKind(Enum):
    """How queries are compared with keys."""

    LINEAR = "linear"
    SOFTMAX = "softmax"


@dataclass(frozen=True, slots=True)
class Attention:
    """y = dA/dh with A as in the module docstring; W stacks W_q and W_k as (2, D, D)."""

    kind: AttentionKind
    heads: int
    scale: float
    sharpness: float = 1.0
    others: bool = False
    """Whether a token attends to the other tokens only."""
    stored_name: ClassVar[str] = "attention"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = False

    def with_mask(self, mask: Values) -> MaskedAttention:
        """Attention between the tokens of the mask (samples, tokens); padding takes no part."""
        same = (self.kind, self.heads, self.scale, self.sharpness, self.others)
        return MaskedAttention(*same, mask=mask)

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(2, D, D) for D units per token."""
        if source != target or len(source) != 2:
            raise ValueError(
                f"attention connects a layer of shape (tokens, units) to itself, not {source} to "
                f"{target}"
            )
        if source[1] % self.heads:
            raise ValueError(f"{source[1]} units cannot be split into {self.heads} heads")
        return (2, source[1], source[1])

    def scores(self, ops: Ops, weight: Values, h: Values) -> tuple[Values, Values, Values]:
        """q and k by head (n, S, heads, d), and all q_i . k_j (n, heads, i, j)."""
        split = (*h.shape[:2], self.heads, h.shape[2] // self.heads)
        q, k = (h @ weight[0].T).reshape(split), (h @ weight[1].T).reshape(split)
        return q, k, ops.einsum("nihd,njhd->nhij", q, k)

    def attention_weights(self, ops: Ops, match: Values, width: int) -> Values:
        """The coefficient of k_j in dA/dq_i (n, heads, i, j)."""
        tokens = match.shape[-1]
        keep, real = self.kept_pairs(ops, tokens)
        if self.kind is AttentionKind.LINEAR:
            return (self.scale / (tokens * width**0.5)) * match * keep * real[..., None]
        scaled = (self.sharpness / width**0.5) * match
        return self.scale * ops.softmax(scaled - 1e9 * (1.0 - keep)) * real[..., None]

    def kept_pairs(self, ops: Ops, tokens: int) -> tuple[Values, Values]:
        """1 for each key j that a query i may attend to, and 1 for each query that takes part.

        The shapes broadcast to (n, heads, i, j) and (n, heads, i).
        """
        every = ops.zeros((1,)) + 1.0
        return (ops.from_numpy(1.0 - np.eye(tokens)) if self.others else every), every

    def query_key_gradients(self, ops: Ops, weight: Values, h: Values) -> tuple[Values, Values]:
        """dA/dq and dA/dk, each (n, S, D)."""
        q, k, match = self.scores(ops, weight, h)
        weights = self.attention_weights(ops, match, q.shape[-1])
        on_q = ops.einsum("nhij,njhd->nihd", weights, k).reshape(h.shape)
        on_k = ops.einsum("nhij,nihd->njhd", weights, q).reshape(h.shape)
        return on_q, on_k

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + dA/dh."""
        on_q, on_k = self.query_key_gradients(ops, weight, x)
        return onto + on_q @ weight[0] + on_k @ weight[1]

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: attention is not linear."""
        raise ValueError("attention is not linear and has no transpose")

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """dA/dW at h = post = pre, summed over the batch."""
        on_q, on_k = self.query_key_gradients(ops, weight, pre)
        gradient = ops.zeros((2, pre.shape[-1], pre.shape[-1]))
        gradient[0] = ops.einsum("nid,nie->de", on_q, pre)
        gradient[1] = ops.einsum("nid,nie->de", on_k, pre)
        return gradient

    def energy(self, ops: Ops, weight: Values, h: Values) -> Values:
        """A for each sample."""
        _, _, match = self.scores(ops, weight, h)
        tokens, width = match.shape[-1], h.shape[2] // self.heads
        keep, real = self.kept_pairs(ops, tokens)
        if self.kind is AttentionKind.LINEAR:
            squares = match * match * keep * real[..., None]
            return (0.5 * self.scale / (tokens * width**0.5)) * squares.sum((1, 2, 3))
        sharp = self.sharpness / width**0.5
        sums = (np.exp(sharp * match) * keep).sum(3)
        return (self.scale / sharp) * (np.log(sums + (1.0 - real)) * real).sum((1, 2))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norms of W_q and W_k."""
        return [ops.spectral_norm(weight[0]), ops.spectral_norm(weight[1])]


@dataclass(frozen=True, slots=True, eq=False)
class MaskedAttention(Attention):
    """`Attention` on a batch with padding: only tokens of the mask attend and are attended to."""

    mask: Any = None
    """1 at tokens, 0 at padding (samples, tokens)."""

    def kept_pairs(self, ops: Ops, tokens: int) -> tuple[Values, Values]:
        """As `Attention.kept_pairs`, restricted to the tokens of the mask."""
        pairs, _ = Attention.kept_pairs(self, ops, tokens)
        return pairs * self.mask[:, None, None, :], self.mask[:, None, :]
