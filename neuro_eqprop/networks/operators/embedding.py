"""Token ids: a learned vector for each id, and sums over the tokens of a sample.

Samples are rows of ids t_i in 0..vocabulary - 1; id 0 is padding. Operators that depend
on the number of real tokens of a sample get a mask for each batch, see `PaddedOperator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.base import Operator, power_iteration_norm
from neuro_eqprop.networks.ops.protocol import Ops, Values

PADDING = 0


@runtime_checkable
class PaddedOperator(Protocol):
    """An operator on layers of tokens that ignores padding."""

    def with_mask(self, mask: Values) -> Operator:
        """The operator on a batch; the mask (samples, tokens) is 1 at tokens, 0 at padding."""
        ...


@dataclass(frozen=True, slots=True)
class Embedding:
    """y_i = W[t_i], the row of a table for the id of token i; zero for padding.

    It is a map per token of the one-hot ids, computed without them: the gradient by a row of W is
    the sum of `post` over the tokens of that id.
    """

    vocabulary: int
    stored_name: ClassVar[str] = "embedding"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.vocabulary < 2:
            raise ValueError(
                f"vocabulary is {self.vocabulary}; it needs at least one token id besides padding"
            )

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(vocabulary, units of a token)."""
        if len(source) != 1 or len(target) != 2 or source[0] != target[0]:
            raise ValueError(
                f"an embedding connects ids (tokens,) to a layer (tokens, units) with equal "
                f"tokens, not {source} to {target}"
            )
        return (self.vocabulary, target[1])

    def mask(self, ops: Ops, x: Values) -> Values:
        """1 at tokens, 0 at padding (samples, tokens)."""
        return (x != PADDING) * (ops.zeros((1,)) + 1.0)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W[t_i]."""
        return onto + ops.take_rows(weight, x) * self.mask(ops, x)[..., None]

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: ids get no feedback."""
        raise ValueError("token ids get no feedback: an embedding has no transpose")

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum of post over the tokens of each id; zero for padding."""
        real = post * self.mask(ops, pre)[..., None]
        return ops.add_rows(real, pre, self.vocabulary)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of the table."""
        return [ops.spectral_norm(weight)]


class TokenPooling(Protocol):
    """y = W pool(x), where `pool` reduces the tokens of a sample to one vector."""

    __slots__ = ()

    def pool(self, x: Values) -> Values:
        """The pooled tokens (samples, units)."""
        ...

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        if len(source) != 2 or len(target) != 1:
            raise ValueError(
                f"a sum over tokens connects (tokens, units) to (units,), not {source} to {target}"
            )
        return (target[0], source[1])

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W pool(x)."""
        return ops.affine(onto, self.pool(x), weight.T)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post pool(pre)^T."""
        return post.T @ self.pool(pre)


@dataclass(frozen=True, slots=True)
class TokenSum(TokenPooling):
    """y = scale W sum over tokens of x_i."""

    scale: float
    stored_name: ClassVar[str] = "tokensum"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def pool(self, x: Values) -> Values:
        """The sum over the tokens, times the scale."""
        return x.sum(1) * self.scale

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain scale W^T y at each token."""
        return onto + (ops.zeros((shape[0], 1)) + gain * self.scale) * (y @ weight)[:, None]

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of A(W), by power iteration."""
        return [power_iteration_norm(self, ops, weight, source)]


@dataclass(frozen=True, slots=True)
class TokenMean:
    """y = W times the mean of x_i over the n real tokens of a sample."""

    stored_name: ClassVar[str] = "tokenmean"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def with_mask(self, mask: Values) -> Operator:
        """The mean over the tokens of the mask; zero for a sample without any."""
        return MaskedMean(mask / mask.real.sum(1).clip(1.0)[:, None])

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target units, source units)."""
        return TokenSum(1.0).weight_shape(source, target)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W times the mean of all tokens: for samples without padding."""
        return TokenSum(1.0 / x.shape[1]).forward(ops, weight, x, onto)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain / tokens W^T y at each token."""
        mean = TokenSum(1.0 / shape[0])
        return mean.backward(ops, weight, y, onto, gain=gain, shape=shape)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over the batch of post times the mean of the tokens."""
        return TokenSum(1.0 / pre.shape[1]).weight_gradient(ops, weight, post, pre)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """|W| / sqrt(tokens), the spectral norm for samples without padding."""
        return [ops.spectral_norm(weight) / source[0] ** 0.5]


@dataclass(frozen=True, slots=True, eq=False)
class MaskedMean(TokenPooling):
    """`TokenMean` on a batch: y = W sum over tokens of parts_i x_i."""

    parts: Any
    """1 / n at the n tokens of a sample, 0 at padding (samples, tokens)."""
    stored_name: ClassVar[str] = "maskedmean"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def pool(self, x: Values) -> Values:
        """The mean over the tokens."""
        return (self.parts[..., None] * x).sum(1)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain / n W^T y at each token, nothing at padding."""
        return onto + (gain * self.parts)[..., None] * (y @ weight)[:, None]

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of W."""
        return [ops.spectral_norm(weight)]
