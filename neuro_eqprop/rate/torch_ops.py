"""The operations of rate networks in torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from neuro_eqprop.activations import Activation, Curve
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.operators import Operator
from neuro_eqprop.rate.ops import Values


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

    def forward(self, operator: Operator, weight: Values, x: Values, onto: Values) -> Values:
        """Dense: onto + x W^T for rows x."""
        return torch.addmm(onto, x, weight.T)

    def backward(
        self, operator: Operator, weight: Values, y: Values, onto: Values, gain: float
    ) -> Values:
        """Dense: onto + gain y W for rows y."""
        return torch.addmm(onto, y, weight, alpha=gain)

    def correlate(self, operator: Operator, post: Values, pre: Values) -> Values:
        """Dense: the sum over the batch of post pre^T."""
        return post.T @ pre

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if activation.curve is Curve.TANH:
            return torch.tanh(u)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        # The drive is a fresh tensor here, so it can be overwritten where no graph needs it.
        out = None if torch.is_grad_enabled() else u
        return torch.clamp(u, activation.low, activation.high, out=out)

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

    def norm(self, weight: Values) -> float:
        """The largest singular value."""
        return float(torch.linalg.matrix_norm(weight.flatten(1), ord=2))
