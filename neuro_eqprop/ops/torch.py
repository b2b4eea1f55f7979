"""The operations of rate networks in torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from neuro_eqprop.activations import Activation, ActivationKind
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.ops.numpy import STEADY
from neuro_eqprop.ops.protocol import Values

MANY = 64
"""Columns from which a product is as soon had by rows as by columns."""
FEW = 3
"""Channels up to which a kernel's slope is sooner had by one product than by torch's own."""


@dataclass(frozen=True, slots=True)
class TorchOps:
    """Torch at a precision, on a device."""

    dtype: torch.dtype = torch.float32
    device: str = "cpu"

    def bring(self, array: Array) -> Values:
        """The array as a tensor."""
        return torch.tensor(np.asarray(array), dtype=self.dtype, device=self.device)

    def numpy(self, values: Values) -> Array:
        """The values in float64."""
        return np.asarray(values.detach().cpu().numpy(), dtype=np.float64)

    def shared(self, values: Values) -> Array | None:
        """The values as an array, on a CPU and where no graph follows them."""
        if values.requires_grad:
            if torch.is_grad_enabled():
                return None
            values = values.detach()
        return values.numpy() if values.is_cpu else None

    def room(self, shape: Shape) -> Values:
        """Values that are not set yet."""
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
        if matrix.shape[1] >= MANY:
            return torch.addmm(onto, x, matrix, alpha=gain)
        # By columns, since a product with few columns takes twice the time of one with few rows.
        onto = onto.T if onto.ndim == 2 else onto[:, None]
        return torch.addmm(onto, matrix.T, x.T, alpha=gain).T

    def add_product(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b."""
        return torch.addmm(onto, a, b, alpha=gain, out=into)

    def einsum(self, spec: str, *values: Values) -> Values:
        """Products summed by index."""
        return torch.einsum(spec, *values)

    def convolve(self, x: Values, kernel: Values) -> Values:
        """y[o, i, j] = sum of kernel[o, c, a, b] x[c, i + a, j + b]."""
        return functional.conv2d(x, kernel)

    def convolve_back(self, y: Values, kernel: Values) -> Values:
        """The transpose of `convolve`."""
        return functional.conv_transpose2d(y, kernel)

    def convolve_slope(self, y: Values, x: Values) -> Values:
        """The gradient of y . convolve(x, kernel) by kernel."""
        size = (x.shape[2] - y.shape[2] + 1, x.shape[3] - y.shape[3] + 1)
        shape = (y.shape[1], x.shape[1], *size)
        if x.shape[1] > FEW:
            return conv2d_weight(x, shape, y)  # type: ignore[no-untyped-call]
        views = x.unfold(2, size[0], 1).unfold(3, size[1], 1).permute(1, 4, 5, 0, 2, 3)
        rows = views.reshape(x.shape[1] * size[0] * size[1], -1)
        return (y.transpose(0, 1).reshape(y.shape[1], -1) @ rows.T).reshape(shape)

    def pool(self, x: Values, size: int) -> Values:
        """The means of squares of `size` by `size`."""
        if torch.is_grad_enabled():
            return functional.avg_pool2d(x, size)
        # Sums of slices: a fifth of avg_pool2d's time on a CPU.
        down = reduce(torch.add, [x[:, :, k::size] for k in range(size)])
        return reduce(torch.add, [down[..., k::size] for k in range(size)]) * (1.0 / size**2)

    def spread(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        y = y * (1.0 / size**2)
        if torch.is_grad_enabled():
            return functional.interpolate(y, scale_factor=size)
        wide = y.new_empty((*y.shape[:3], y.shape[3] * size))
        for k in range(size):
            wide[..., k::size] = y
        whole = y.new_empty((*y.shape[:2], y.shape[2] * size, wide.shape[3]))
        for k in range(size):
            whole[:, :, k::size] = wide
        return whole

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if activation.curve is ActivationKind.TANH:
            return torch.tanh(u)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        # The drive is a fresh tensor here, so it can be overwritten where no graph needs it.
        out = None if torch.is_grad_enabled() else u
        return torch.clamp(u, activation.low, activation.high, out=out)

    def softmax(self, u: Values) -> Values:
        """exp(u) over its sum along the last axis."""
        if u.is_complex():  # torch has none
            grown = torch.exp(u - u.real.amax(dim=-1, keepdim=True))
            return grown / grown.sum(dim=-1, keepdim=True)
        return torch.softmax(u, dim=-1)

    def normalise(self, x: Values) -> Values:
        """x less its mean, over its deviation, along the last axis."""
        if x.is_complex():  # torch has none
            moved = x - x.mean(dim=-1, keepdim=True)
            return moved / torch.sqrt((moved * moved).mean(dim=-1, keepdim=True) + STEADY)
        return functional.layer_norm(x, x.shape[-1:], eps=STEADY)

    def positive(self, u: Values) -> Values:
        """exp(u) below zero, 1 + u above."""
        return functional.elu(u) + 1.0

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        return values.sum(dim=0)

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        return self.numpy(values.abs().flatten(1).amax(dim=1))

    def dots(self, a: Values, b: Values) -> Array:
        """For each sample, the scalar product of its values."""
        products = (a.conj() * b).flatten(1).sum(dim=1)
        return np.asarray(products.detach().cpu().numpy())

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        mask = torch.from_numpy(rows).to(self.device).reshape(-1, *[1] * (yes.ndim - 1))
        return torch.where(mask, yes, no)

    def norm(self, matrix: Values) -> float:
        """The largest singular value."""
        return float(torch.linalg.matrix_norm(matrix, ord=2))
