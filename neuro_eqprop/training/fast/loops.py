"""Drives of a layer by itself on the displacement path: a symmetric operator, or attention.

A loop adds f(s) to the drive of a layer with rates s, where f is the gradient of a part A of the
negative energy. A nudge moves the rates by D, the drive by f(s + D) - f(s), and the update of the
weights contrasts dA/dW at s + D and at s. Both are computed as differences, without subtracting
nearly equal numbers, so that a small beta loses no digits.

A symmetric linear operator W has f(s) = W s, whatever the rates. For attention
(`operators.attention`), with q and k the queries and keys, w(m) the weights of all matches
m = q k^T, and D before a name for its change from s to s + D:

    Dm = Dq (k + Dk)^T + q Dk^T
    Df = W_q^T (Dw (k + Dk) + w Dk) + W_k^T (Dw^T (q + Dq) + w^T Dq)
    Dw = c Dm                                       linear
    Dw = w (e - <e>) / (1 + <e>),  e = exp(g Dm) - 1, <e> its mean by the softmax
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from neuro_eqprop.networks.operators.attention import Attention, AttentionKind
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.couplings import Coupling, Tensor
from neuro_eqprop.training.fast.layer_state import add_transpose


class LoopAtRates(Protocol):
    """A loop at given rates s."""

    def change(self, shift: Tensor) -> Tensor:
        """f(s + D) - f(s)."""
        ...

    def slope(self, shift: Tensor, middle: Tensor, factor: float, out: Tensor | None) -> Tensor:
        """`factor` times dA/dW at s + D minus that at s; `middle` is s + D / 2.

        Written to `out`, which has the shape of the weight, where the product allows it.
        """
        ...


class Loop(Protocol):
    """The drive of a layer by itself."""

    def drive(self, s: Tensor, onto: Tensor | None, out: Tensor | None = None) -> Tensor:
        """onto + f(s), written to `out` where possible."""
        ...

    def at(self, s: Tensor) -> LoopAtRates:
        """The loop at rates s."""
        ...


@dataclass(frozen=True, slots=True)
class LinearLoop:
    """A symmetric linear operator; it is the same at all rates."""

    ops: TorchOps
    coupling: Coupling
    matrix: bool
    """Whether its weight is a matrix, which is kept symmetric despite rounding."""

    def drive(self, s: Tensor, onto: Tensor | None, out: Tensor | None = None) -> Tensor:
        """onto + W s."""
        return self.coupling.down(s, onto, 1.0, out)

    def at(self, s: Tensor) -> LinearLoop:
        """Itself."""
        return self

    def change(self, shift: Tensor) -> Tensor:
        """W D."""
        return self.drive(shift, None)

    def slope(self, shift: Tensor, middle: Tensor, factor: float, out: Tensor | None) -> Tensor:
        """Of a matrix half of D m^T + m D^T, summed over the batch; of others D . dW m."""
        if not self.matrix:
            return self.coupling.slope(factor, (shift, middle), out=out)
        return add_transpose(self.ops, self.coupling.slope(0.5 * factor, (shift, middle), out=out))


@dataclass(frozen=True, slots=True)
class AttentionLoop:
    """Attention between the tokens of a layer, with one product for queries and keys together."""

    ops: TorchOps
    operator: Attention
    weight: Tensor
    """W_q and W_k as (2, units, units)."""

    @property
    def stacked(self) -> Tensor:
        """W_q above W_k."""
        return self.weight.reshape(-1, self.weight.shape[-1])

    def split(self, h: Tensor) -> Tensor:
        """Queries and keys by head (2, samples x heads, tokens, units of a head)."""
        samples, tokens, units = h.shape
        heads = self.operator.heads
        found = h.reshape(-1, units) @ self.stacked.T
        by_head = found.view(samples, tokens, 2, heads, units // heads).permute(2, 0, 3, 1, 4)
        return by_head.reshape(2, samples * heads, tokens, units // heads)

    def joined(self, on: Tensor) -> Tensor:
        """The inverse of `split`, queries and keys side by side (samples x tokens, 2 units)."""
        heads = self.operator.heads
        _, _, tokens, width = on.shape
        by_token = on.view(2, -1, heads, tokens, width).permute(1, 3, 0, 2, 4)
        return by_token.reshape(-1, 2 * heads * width)

    def drive(self, s: Tensor, onto: Tensor | None, out: Tensor | None = None) -> Tensor:
        """onto + dA/dh at h = s."""
        found = self.pulled_back(self.at(s).on, s, out)
        return found if onto is None else found.add_(onto)

    def pulled_back(self, on: Tensor, like: Tensor, out: Tensor | None = None) -> Tensor:
        """W_q^T dA/dq + W_k^T dA/dk of the two side by side, in the shape of `like`."""
        flat = None if out is None else out.view(-1, self.weight.shape[-1])
        return torch.mm(on, self.stacked, out=flat).view(like.shape)

    def weights(self, match: Tensor) -> Tensor:
        """w of the matches (samples x heads, queries, keys)."""
        by_head = match.view(-1, self.operator.heads, *match.shape[1:])
        width = self.weight.shape[-1] // self.operator.heads
        found: Tensor = self.operator.attention_weights(self.ops, by_head, width)
        return found.view(match.shape)

    def weights_change(self, w: Tensor, by: Tensor) -> Tensor:
        """Dw where the matches change by `by`."""
        operator = self.operator
        if operator.kind is AttentionKind.LINEAR:
            return self.weights(by)
        width = self.weight.shape[-1] // operator.heads
        grown = torch.expm1(by * (operator.sharpness / width**0.5))
        mean = (w * grown).sum(dim=-1, keepdim=True) / operator.scale
        return w * (grown - mean) / (1.0 + mean)

    def at(self, s: Tensor) -> AttentionAtRates:
        """The attention at rates s."""
        q, k = self.split(s)
        w = self.weights(torch.bmm(q, k.transpose(1, 2)))
        on = torch.stack([torch.bmm(w, k), torch.bmm(w.transpose(1, 2), q)])
        return AttentionAtRates(self, q, k, w, self.joined(on))


@dataclass(frozen=True, slots=True)
class AttentionAtRates:
    """Queries, keys and weights of attention at given rates."""

    loop: AttentionLoop
    q: Tensor
    k: Tensor
    """(samples x heads, tokens, units of a head)."""
    w: Tensor
    on: Tensor
    """dA/dq and dA/dk side by side (samples x tokens, 2 units)."""

    def on_change(self, shift: Tensor) -> Tensor:
        """The change of `on`."""
        q, k, w = self.q, self.k, self.w
        dq, dk = self.loop.split(shift)
        moved_q, moved_k = q + dq, k + dk
        match = torch.baddbmm(torch.bmm(q, dk.transpose(1, 2)), dq, moved_k.transpose(1, 2))
        dw = self.loop.weights_change(w, match)
        on_q = torch.baddbmm(torch.bmm(w, dk), dw, moved_k)
        on_k = torch.baddbmm(torch.bmm(w.transpose(1, 2), dq), dw.transpose(1, 2), moved_q)
        return self.loop.joined(torch.stack([on_q, on_k]))

    def change(self, shift: Tensor) -> Tensor:
        """dA/dh at s + D minus that at s."""
        return self.loop.pulled_back(self.on_change(shift), shift)

    def slope(self, shift: Tensor, middle: Tensor, factor: float, out: Tensor | None) -> Tensor:
        """factor times (D on)^T m + (on + (D on) / 2)^T D, summed over batch and tokens."""
        units = shift.shape[-1]
        change = self.on_change(shift)
        found = torch.mm(change.T, middle.reshape(-1, units))
        found.addmm_(torch.add(self.on, change, alpha=0.5).T, shift.reshape(-1, units))
        return found.mul_(factor).view(self.loop.weight.shape)
