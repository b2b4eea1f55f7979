"""The array operations of rate networks in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from neuro_eqprop.common.arrays import Array, Bits, Ints, Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.ops.array_api import EPSILON
from neuro_eqprop.networks.ops.protocol import Values

ROW_MAJOR_COLUMNS = 64
"""Smallest number of columns at which the row-major product is as fast as the transposed one."""


def channels_last(images: Values) -> Values:
    """Images with their channels adjacent in memory, where convolutions and pooling are fastest."""
    return images.contiguous(memory_format=torch.channels_last)


def by_parts(product: Callable[[Values, Values], Values], a: Values, b: Values) -> Values:
    """A bilinear product of complex tensors by real ones: torch has no complex convolution."""
    real = product(a.real, b.real) - product(a.imag, b.imag)
    return torch.complex(real, product(a.real, b.imag) + product(a.imag, b.real))


@dataclass(frozen=True, slots=True)
class TorchOps:
    """Torch tensors of one type on one device."""

    dtype: torch.dtype = torch.float32
    device: str = "cpu"

    def from_numpy(self, array: Array) -> Values:
        """The array as a tensor."""
        return torch.tensor(np.asarray(array), dtype=self.dtype, device=self.device)

    def to_numpy(self, values: Values) -> Array:
        """The values as float64."""
        return np.asarray(values.detach().cpu().numpy(), dtype=np.float64)

    def numpy_view(self, values: Values) -> Array | None:
        """A view of a CPU tensor; None for other devices and where autograd records."""
        if values.requires_grad:
            if torch.is_grad_enabled():
                return None
            values = values.detach()
        return values.numpy() if values.is_cpu else None

    def empty(self, shape: Shape) -> Values:
        """An uninitialized tensor."""
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def zeros(self, shape: Shape) -> Values:
        """A tensor of zeros."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
        if matrix.shape[1] >= ROW_MAJOR_COLUMNS:
            return torch.addmm(onto, x, matrix, alpha=gain)
        # Transposed: a product with few columns takes twice the time of one with few rows.
        onto = onto.T if onto.ndim == 2 else onto[:, None]
        return torch.addmm(onto, matrix.T, x.T, alpha=gain).T

    def addmm(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b."""
        return torch.addmm(onto, a, b, alpha=gain, out=into)

    def take_rows(self, table: Values, index: Values) -> Values:
        """table[index]."""
        return functional.embedding(index.real.long(), table)

    def add_rows(self, values: Values, index: Values, rows: int) -> Values:
        """y[k] = the sum of `values` where the index is k."""
        flat = index.real.long().reshape(-1)
        total = values.new_zeros((rows, values.shape[-1]))
        return total.index_add_(0, flat, values.reshape(len(flat), -1))

    def einsum(self, spec: str, *values: Values) -> Values:
        """Sum of products by index."""
        return torch.einsum(spec, *values)

    def conv(self, x: Values, kernel: Values, padding: int = 0) -> Values:
        """y[o, i, j] = sum kernel[o, c, a, b] x[c, i + a, j + b]."""
        if x.is_complex():
            return by_parts(partial(self.conv, padding=padding), x, kernel)
        return functional.conv2d(channels_last(x), kernel, padding=padding)

    def conv_transpose(self, y: Values, kernel: Values, padding: int = 0) -> Values:
        """The transpose of `conv`."""
        if y.is_complex():
            return by_parts(partial(self.conv_transpose, padding=padding), y, kernel)
        return functional.conv_transpose2d(channels_last(y), kernel, padding=padding)

    def conv_weight_gradient(self, y: Values, x: Values, padding: int = 0) -> Values:
        """The gradient of y . conv(x, kernel) with respect to the kernel."""
        if x.is_complex():
            return by_parts(partial(self.conv_weight_gradient, padding=padding), y, x)
        size = (
            x.shape[2] + 2 * padding - y.shape[2] + 1,
            x.shape[3] + 2 * padding - y.shape[3] + 1,
        )
        shape = (y.shape[1], x.shape[1], *size)
        x, y = channels_last(x), channels_last(y)
        found = conv2d_weight(x, shape, y, padding=padding)  # type: ignore[no-untyped-call]
        return (
            found.contiguous()
        )  # the optimizer is faster if gradients have the layout of the weights

    def pool(self, x: Values, size: int) -> Values:
        """Average pooling over squares of `size` by `size`."""
        if x.is_complex():  # torch has no complex version
            return torch.complex(self.pool(x.real, size), self.pool(x.imag, size))
        return functional.avg_pool2d(channels_last(x), size)

    def unpool(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        if y.is_complex():  # torch has no complex version
            return torch.complex(self.unpool(y.real, size), self.unpool(y.imag, size))
        return functional.interpolate(channels_last(y * (1.0 / size**2)), scale_factor=size)

    def max_pool(self, x: Values, size: int) -> tuple[Values, Values]:
        """The largest value of each square of `size` by `size`, and its place in the image."""
        found, places = functional.max_pool2d(x, size, return_indices=True)
        return found, places

    def max_unpool(self, y: Values, places: Values, size: int) -> Values:
        """y at those places of the image, and zeros beside them."""
        return functional.max_unpool2d(y, places, [size, size])

    def sum_at(self, values: Values, index: Ints, size: int) -> Values:
        """y[:, k] = the sum of the columns j with index[j] = k."""
        places = torch.from_numpy(index.copy()).to(values.device)
        return values.new_zeros((len(values), size)).index_add(1, places, values)

    def take_columns(self, x: Values, index: Ints) -> Values:
        """x[:, index]."""
        return x[:, index]

    def concat_columns(self, parts: Sequence[Values]) -> Values:
        """The columns of all parts, side by side."""
        return torch.cat(list(parts), dim=1)

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if not activation.piecewise_linear:
            return activation.curve.value(u, torch)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        # The drive is a new tensor, so it can be overwritten unless autograd needs it.
        out = None if torch.is_grad_enabled() else u
        return torch.clamp(u, activation.low, activation.high, out=out)

    def softmax(self, u: Values) -> Values:
        """The softmax along the last axis."""
        if u.is_complex():  # torch has no complex version
            exponentials = torch.exp(u - u.real.amax(dim=-1, keepdim=True))
            return exponentials / exponentials.sum(dim=-1, keepdim=True)
        return torch.softmax(u, dim=-1)

    def log_softmax(self, u: Values) -> Values:
        """The logarithm of the softmax along the last axis."""
        return torch.log_softmax(u, dim=-1)

    def argmax(self, values: Values) -> Values:
        """The index of the largest value of each row."""
        return values.contiguous().argmax(dim=1)

    def layer_norm(self, x: Values) -> Values:
        """(x - mean) / standard deviation along the last axis."""
        if x.is_complex():  # torch has no complex version
            centred = x - x.mean(dim=-1, keepdim=True)
            return centred / torch.sqrt((centred * centred).mean(dim=-1, keepdim=True) + EPSILON)
        return functional.layer_norm(x, x.shape[-1:], eps=EPSILON)

    def elu_plus_one(self, u: Values) -> Values:
        """elu(u) + 1."""
        return functional.elu(u) + 1.0

    def sum(self, values: Values, axes: tuple[int, ...] | None = None) -> Values:
        """The sum over some axes, or over all."""
        return values.sum() if axes is None else values.sum(axes)

    def sum_batch(self, values: Values) -> Values:
        """The sum over the batch."""
        return values.sum(dim=0)

    def max_change(self, new: Values, old: Values) -> Array:
        """The largest absolute difference of each sample."""
        change = new - old
        size = change.abs() if change.is_complex() else change.abs_()
        return self.to_numpy(size.flatten(1).amax(dim=1))

    def dots(self, a: Values, b: Values) -> Array:
        """The scalar product of each sample's values."""
        products = (a.conj() * b).flatten(1).sum(dim=1)
        return np.asarray(products.detach().cpu().numpy())

    def where(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        mask = torch.from_numpy(rows).to(self.device).reshape(-1, *[1] * (yes.ndim - 1))
        return torch.where(mask, yes, no)

    def is_finite(self, values: Values) -> bool:
        """Whether no value is NaN or infinite."""
        return bool(values.isfinite().all())

    def spectral_norm(self, matrix: Values) -> float:
        """The largest singular value."""
        return float(torch.linalg.matrix_norm(matrix, ord=2))
