"""Linear couplings between two layers of a network: the products of the displacement path.

A coupling multiplies by the weight of a connection in three ways, with s the rates of the source,
y those of the target, and A the linear map of the connection's operator:

    up      onto + A s               the drive of the target
    down    onto + gain A^T y        the feedback to the source
    slope   a factor times the gradient of post . A pre by the weight, in its shape

Images are stored as (samples, height, width, channels), with which convolutions and pooling are
faster on a CPU. The other layers are (samples, *shape) as everywhere else. If every connection from
a layer pools it, the layer passes on pooled rates (`source_pool`), and a coupling applies only the
rest of its pooling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import torch
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import Conv2d, Dense, Operator, PerToken, Pooled
from neuro_eqprop.networks.ops.torch import ROW_MAJOR_COLUMNS, TorchOps

Tensor = torch.Tensor
Term = tuple[Tensor, Tensor]
"""post and pre, the values of the target and of the source whose products make a slope."""


class Coupling(Protocol):
    """Products with the weight of a connection."""

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """onto + A s, written to `out` where the product allows it."""
        ...

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """onto + gain A^T y, written to `out` where the product allows it."""
        ...

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """`factor` times the gradient of post . A pre by the weight, summed over terms and batch.

        Written to `out`, which has the shape of the weight, where the product allows it.
        """
        ...

    def refresh(self) -> None:
        """Copy the parameter anew if it is stored in another layout."""
        ...


@dataclass(frozen=True, slots=True)
class DenseCoupling:
    """A matrix; if its source is an image, its columns are in the order of the stored image."""

    weight: Tensor
    """(targets, sources)."""
    image: Shape | None
    """Shape (channels, height, width) of the source; None for a vector."""
    parameter: Tensor
    """The weight, with the columns of an image in the order (channels, height, width)."""

    def refresh(self) -> None:
        """Copy the parameter in the order of the stored image."""
        if self.image is not None:
            channels, height, width = self.image
            rows = self.parameter.view(-1, channels, height, width).permute(0, 2, 3, 1)
            self.weight.view(rows.shape).copy_(rows)

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """onto + W s."""
        s = s.reshape(len(s), -1)
        if len(self.weight) >= ROW_MAJOR_COLUMNS:
            return torch.addmm(onto, s, self.weight.T, out=out)
        # By columns: a product with few columns takes twice the time of one with few rows.
        columns = onto.T if onto.ndim == 2 else onto[:, None]
        return torch.addmm(columns, self.weight, s.T).T

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """onto + gain W^T y."""
        shape = None
        if self.image is not None:
            channels, height, width = self.image
            shape = (len(y), height, width, channels)
            onto = None if onto is None else onto.reshape(len(y), -1)
            out = None
        if onto is None:
            first = y.new_empty((1, 1)) if out is None else out
            found = torch.addmm(first, y, self.weight, beta=0.0, alpha=gain, out=out)
        else:
            found = torch.addmm(onto, y, self.weight, alpha=gain, out=out)
        return found if shape is None else found.view(shape)

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """factor times the sum over terms and batch of post pre^T."""
        found = torch.empty_like(self.weight) if out is None or self.image is not None else out
        for k, (post, pre) in enumerate(terms):
            rows = pre.reshape(len(pre), -1)
            torch.addmm(found, post.T, rows, beta=float(k > 0), alpha=factor, out=found)
        if self.image is None:
            return found
        channels, height, width = self.image
        stored = found.view(len(found), height, width, channels)
        return stored.permute(0, 3, 1, 2).reshape(len(found), -1)


@dataclass(frozen=True, slots=True)
class ConvCoupling:
    """A convolution of stored images."""

    weight: Tensor
    """(target channels, source channels, kernel, kernel), in torch's channels_last format."""
    stride: int
    padding: int
    size: tuple[int, int]
    """Height and width of the source."""
    parameter: Tensor
    """The weight in the layout of the parameters."""

    def refresh(self) -> None:
        """Copy the parameter in the layout channels_last."""
        self.weight.copy_(self.parameter)

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """onto + W * s; `onto` is a bias of each channel, or an image."""
        bias = onto if onto.ndim == 1 else None
        found = functional.conv2d(
            as_channels_first(s), self.weight, bias, stride=self.stride, padding=self.padding
        )
        stored = as_stored(found)
        return stored if bias is not None else stored.add_(onto)

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """onto + gain times the transposed convolution of y."""
        found = functional.conv_transpose2d(
            as_channels_first(y),
            self.weight * gain,  # it has fewer values than the result
            stride=self.stride,
            padding=self.padding,
            output_padding=self.left_over(y),
        )
        stored = as_stored(found)
        return stored if onto is None else stored.add_(onto)

    def left_over(self, y: Tensor) -> tuple[int, int]:
        """Rows and columns at the edge of the source that no window of a stride covers."""
        covered = [
            (n - 1) * self.stride + self.weight.shape[-1] - 2 * self.padding for n in y.shape[1:3]
        ]
        return self.size[0] - covered[0], self.size[1] - covered[1]

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """factor times the sum over terms, batch and positions of post times the window of pre."""
        found = [
            conv2d_weight(  # type: ignore[no-untyped-call]
                as_channels_first(pre),
                self.weight.shape,
                as_channels_first(post),
                stride=self.stride,
                padding=self.padding,
            )
            for post, pre in terms
        ]
        return torch.mul(total(found), factor, out=out)


@dataclass(frozen=True, slots=True)
class PooledCoupling:
    """Another coupling, behind an average of the source over squares."""

    size: int
    inner: Coupling

    def refresh(self) -> None:
        """As the inner coupling."""
        self.inner.refresh()

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """As the inner coupling, of the averages."""
        return self.inner.up(pooled(s, self.size), onto, out)

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """As the inner coupling, each value divided among its square."""
        spread = unpooled(self.inner.down(y, None, gain), self.size)
        return spread if onto is None else spread.add_(onto)

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """As the inner coupling, at the averages."""
        return self.inner.slope(
            factor, *((post, pooled(pre, self.size)) for post, pre in terms), out=out
        )


@dataclass(frozen=True, slots=True)
class TokenCoupling:
    """The same matrix for each token, on arrays (samples, tokens, units)."""

    inner: DenseCoupling

    def refresh(self) -> None:
        """Nothing is copied."""

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """onto + W s_i."""
        shape = (*s.shape[:2], len(self.inner.weight))
        # One bias for all tokens is a row; others are repeated for each sample.
        rows = (
            onto if len(onto) == 1 and onto.ndim == 2 else onto.expand(shape).reshape(-1, shape[2])
        )
        return self.inner.up(s.reshape(-1, s.shape[2]), rows).view(shape)

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """onto + gain W^T y_i."""
        shape = (*y.shape[:2], self.inner.weight.shape[1])
        rows = None if onto is None else onto.reshape(-1, shape[2])
        return self.inner.down(y.reshape(-1, y.shape[2]), rows, gain).view(shape)

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """factor times the sum over terms, batch and tokens of post_i pre_i^T."""
        rows = [
            (post.reshape(-1, post.shape[2]), pre.reshape(-1, pre.shape[2])) for post, pre in terms
        ]
        return self.inner.slope(factor, *rows, out=out)


@dataclass(frozen=True, slots=True)
class OperatorCoupling:
    """Any other linear operator, on arrays (samples, *shape)."""

    ops: TorchOps
    operator: Operator
    weight: Tensor
    source: Shape

    def refresh(self) -> None:
        """Nothing is copied."""

    def up(self, s: Tensor, onto: Tensor, out: Tensor | None = None) -> Tensor:
        """onto + A s."""
        found: Tensor = self.operator.forward(self.ops, self.weight, s, onto)
        return found

    def down(
        self, y: Tensor, onto: Tensor | None, gain: float, out: Tensor | None = None
    ) -> Tensor:
        """onto + gain A^T y."""
        start = self.ops.zeros((1,)) if onto is None else onto
        found: Tensor = self.operator.backward(
            self.ops, self.weight, y, start, gain=gain, shape=self.source
        )
        return found

    def slope(self, factor: float, *terms: Term, out: Tensor | None = None) -> Tensor:
        """By the operator."""
        found = [self.operator.weight_gradient(self.ops, self.weight, *term) for term in terms]
        return total(found) * factor


def total(values: Sequence[Tensor]) -> Tensor:
    """The sum of one or more."""
    return sum(values[1:], values[0])


def as_channels_first(image: Tensor) -> Tensor:
    """The view (samples, channels, height, width) of a stored image."""
    return image.permute(0, 3, 1, 2)


def as_stored(image: Tensor) -> Tensor:
    """The image (samples, channels, height, width) in the stored layout, channels last."""
    return image.permute(0, 2, 3, 1).contiguous()


def pooled(image: Tensor, size: int) -> Tensor:
    """Averages of a stored image over squares of `size` by `size`."""
    return as_stored(functional.avg_pool2d(as_channels_first(image), size))


def unpooled(image: Tensor, size: int) -> Tensor:
    """The transpose of `pooled`."""
    spread = image.repeat_interleave(size, dim=1).repeat_interleave(size, dim=2)
    return spread.mul_(1.0 / size**2)


def is_of_images(operator: Operator) -> bool:
    """Whether the operator has a coupling for stored images."""
    if isinstance(operator, Pooled):
        return not isinstance(operator.inner, Pooled) and is_of_images(operator.inner)
    return isinstance(operator, Dense | Conv2d)


def pool_of(connection: Connection) -> int:
    """The side of the squares over which a connection pools its source; 1 for none."""
    return connection.operator.size if isinstance(connection.operator, Pooled) else 1


def couple(
    ops: TorchOps,
    network: Network,
    connection: Connection,
    weight: Tensor,
    *,
    stored: bool,
    source_pool: int = 1,
) -> Coupling:
    """The coupling of a connection.

    `stored` says that images are stored channels last; `source_pool` is the side of the squares
    over which the rates of the source are averaged already.
    """
    operator, source = connection.operator, network[connection.source].shape
    if isinstance(operator, PerToken):
        return TokenCoupling(DenseCoupling(weight, None, weight))
    if not stored:
        return OperatorCoupling(ops, operator, weight, source)
    left = 1
    if isinstance(operator, Pooled):
        source, left = operator.pooled_shape(source), operator.size // source_pool
        operator = operator.inner
    made: Coupling
    if isinstance(operator, Conv2d):
        last = weight.clone(memory_format=torch.channels_last)
        made = ConvCoupling(last, operator.stride, operator.padding, (source[1], source[2]), weight)
    elif len(source) == 3:
        split = weight.view(len(weight), *source).permute(0, 2, 3, 1)
        last = split.clone(memory_format=torch.contiguous_format).view(len(weight), prod(source))
        made = DenseCoupling(last, source, weight)
    else:
        made = DenseCoupling(weight, None, weight)
    return PooledCoupling(left, made) if left > 1 else made
