"""The operations of rate networks in torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from neuro_eqprop.activations import Activation, Curve
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.ops.base import Values
from neuro_eqprop.ops.numpy_ops import STEADY


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

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
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
        return conv2d_weight(x, shape, y)  # type: ignore[no-untyped-call]

    def pool(self, x: Values, size: int) -> Values:
        """The means of squares of `size` by `size`."""
        return functional.avg_pool2d(x, size)

    def spread(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        return functional.interpolate(y / size**2, scale_factor=size)

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if activation.curve is Curve.TANH:
            return torch.tanh(u)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        # The drive is a fresh tensor here, so it can be overwritten where no graph needs it.
        out = None if torch.is_grad_enabled() else u
        return torch.clamp(u, activation.low, activation.high, out=out)

    def softmax(self, u: Values) -> Values:
        """exp(u) over its sum along the last axis."""
        return torch.softmax(u, dim=-1)

    def normalise(self, x: Values) -> Values:
        """x less its mean, over its deviation, along the last axis."""
        return functional.layer_norm(x, x.shape[-1:], eps=STEADY)

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        return values.sum(dim=0)

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        return self.numpy(values.abs().flatten(1).amax(dim=1))

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        mask = torch.from_numpy(rows).to(self.device).reshape(-1, *[1] * (yes.ndim - 1))
        return torch.where(mask, yes, no)

    def norm(self, matrix: Values) -> float:
        """The largest singular value."""
        return float(torch.linalg.matrix_norm(matrix, ord=2))
