"""Attention between the tokens of a layer, as the gradient of an energy.

With queries q_i = W_q h_i and keys k_j = W_k h_j, cut into heads of d units, c = scale / (S sqrt d)
for S tokens and g = sharpness / sqrt d, each head adds to the layer's energy -A(h),

    linear    A = c/2 sum over i, j of (q_i . k_j)^2
    softmax   A = scale/g sum over i of log sum over j of exp(g q_i . k_j)

(without i = j if only `others` are looked at), and drives it by dA/dh = W_q^T dA/dq + W_k^T dA/dk:

    linear    dA/dq_i = c sum_j (q_i . k_j) k_j         dA/dk_j = c sum_i (q_i . k_j) q_i
    softmax   dA/dq_i = scale sum_j p_ij k_j            dA/dk_j = scale sum_i p_ij q_i

with p_ij the softmax over j of g q_i . k_j. What the weights ask for is as local:
dA/dW_q = sum_i dA/dq_i h_i^T, dA/dW_k = sum_j dA/dk_j h_j^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Ops, Values


class Kind(Enum):
    """How a query looks at keys."""

    LINEAR = "linear"
    SOFTMAX = "softmax"


@dataclass(frozen=True, slots=True)
class Attention:
    """y = dA/dh of the module's A; W holds W_q and W_k one above the other (2, D, D)."""

    kind: Kind
    heads: int
    scale: float
    sharpness: float = 1.0
    others: bool = False
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if source != target or len(source) != 2:
            raise ValueError(f"attention joins tokens to themselves, not {source} to {target}")
        if source[1] % self.heads:
            raise ValueError(f"{source[1]} units cannot be cut into {self.heads} heads")
        return (2, source[1], source[1])

    def looks(self, ops: Ops, weight: Values, h: Values) -> tuple[Values, Values, Values]:
        """q and k by head (n, S, heads, d), and all q_i . k_j (n, heads, i, j)."""
        cut = (*h.shape[:2], self.heads, h.shape[2] // self.heads)
        q, k = (h @ weight[0].T).reshape(cut), (h @ weight[1].T).reshape(cut)
        return q, k, ops.einsum("nihd,njhd->nhij", q, k)

    def share(self, ops: Ops, match: Values, width: int) -> Values:
        """What dA/dq_i takes of each k_j (n, heads, i, j)."""
        tokens = match.shape[-1]
        away = ops.bring(np.eye(tokens)) if self.others else None
        if self.kind is Kind.LINEAR:
            taken = (self.scale / (tokens * width**0.5)) * match
            return taken if away is None else taken * (1.0 - away)
        seen = (self.sharpness / width**0.5) * match
        return self.scale * ops.softmax(seen if away is None else seen - 1e9 * away)

    def pulls(self, ops: Ops, weight: Values, h: Values) -> tuple[Values, Values]:
        """dA/dq and dA/dk, each (n, S, D)."""
        q, k, match = self.looks(ops, weight, h)
        share = self.share(ops, match, q.shape[-1])
        on_q = ops.einsum("nhij,njhd->nihd", share, k).reshape(h.shape)
        on_k = ops.einsum("nhij,nihd->njhd", share, q).reshape(h.shape)
        return on_q, on_k

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + dA/dh."""
        on_q, on_k = self.pulls(ops, weight, x)
        return onto + on_q @ weight[0] + on_k @ weight[1]

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """There is none."""
        raise ValueError("attention is not linear and has no transpose")

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """dA/dW at h = post = pre, summed over the batch."""
        on_q, on_k = self.pulls(ops, weight, pre)
        both = ops.zeros((2, pre.shape[-1], pre.shape[-1]))
        both[0] = ops.einsum("nid,nie->de", on_q, pre)
        both[1] = ops.einsum("nid,nie->de", on_k, pre)
        return both

    def value(self, ops: Ops, weight: Values, h: Values) -> Values:
        """A for each sample."""
        _, _, match = self.looks(ops, weight, h)
        tokens, width = match.shape[-1], h.shape[2] // self.heads
        keep = ops.bring(1.0 - np.eye(tokens)) if self.others else ops.bring(np.ones(1))
        if self.kind is Kind.LINEAR:
            squares = match * match * keep
            return (0.5 * self.scale / (tokens * width**0.5)) * squares.sum((1, 2, 3))
        sharp = self.sharpness / width**0.5
        return (self.scale / sharp) * np.log((np.exp(sharp * match) * keep).sum(3)).sum((1, 2))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Of W_q and of W_k, by singular values."""
        return [ops.norm(weight[0]), ops.norm(weight[1])]
