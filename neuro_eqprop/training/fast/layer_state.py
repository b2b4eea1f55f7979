"""The rates of a layer on a batch, and their displacement by a nudge.

A layer settles at s = rho(u) of its drive u. A nudge changes the drive by Du and the rate by

    D = clip(Du + (u - s), low - s, high - s)          rho the identity, clipped to low..high
    D = (1 - s^2) t / (1 + s t),  t = tanh(Du)         rho = tanh

which equal rho(u + Du) - rho(u) exactly, kinks included. Neither subtracts two nearly equal rates,
so a small beta loses no digits in float32.

`PlainState` serves every layer. `PooledState` serves images that only pooled connections leave: it
never stores the feedback to single pixels and runs in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Array
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.fast import couplings
from neuro_eqprop.training.fast.couplings import Coupling, Tensor


def settle(rate: Activation, u: Tensor, out: Tensor | None = None) -> Tensor:
    """rho(u)."""
    if rate.piecewise_linear:
        return torch.clamp(u, rate.low, rate.high, out=out)
    return torch.tanh(u, out=out)


def displace(rate: Activation, du: Tensor, s: Tensor, excess: Tensor | None) -> Tensor:
    """rho(u + du) - rho(u), written over du; `excess` is u - s, which tanh does not need."""
    if not rate.piecewise_linear:
        t = du.tanh_()
        divisor = torch.addcmul(t.new_ones(()), s, t)
        return t.mul_(1.0 - s * s).div_(divisor)
    if excess is not None:
        du.add_(excess)
    if rate.low > -np.inf:
        torch.maximum(du, rate.low - s, out=du)
    if rate.high < np.inf:
        torch.minimum(du, rate.high - s, out=du)
    return du


Feedback: TypeAlias = Callable[[Tensor | None, Tensor | None], Tensor | None]
"""(onto, out) -> onto + the feedback of the output, written to `out` where possible."""


class PlainState:
    """A layer whose rates other layers see as they are.

    Attributes
    ----------
    rates, full
        The rates, as later layers see them and of each unit; here the same.
    shift, full_shift
        Their displacements; None while they are zero.
    finished
        Whether it was settled for the last time, so that it can be displaced.
    """

    def __init__(self, rate: Activation) -> None:
        self.rate = rate
        self.base: Tensor
        self.rates: Tensor
        self.shift: Tensor | None = None
        self.excess: Tensor | None = None
        self.started = self.finished = False

    @property
    def full(self) -> Tensor:
        """The rates."""
        return self.rates

    @property
    def full_shift(self) -> Tensor | None:
        """The displacement."""
        return self.shift

    def drive(self, base: Tensor) -> None:
        """Set the drive from below."""
        self.base = base

    def clear(self) -> None:
        """Set the displacements to zero."""
        self.shift = None

    def settle(self, held: Tensor | None, feedback: Feedback, *, last: bool) -> None:
        """New rates; the last time, the drive is overwritten and u - s takes its place."""
        into = self.base if last else (self.rates if self.started else None)
        own = self.base if held is None else torch.add(self.base, held, out=into)
        fed = feedback(own, into)
        u = own if fed is None else fed
        self.rates = settle(self.rate, u, self.rates if self.started else None)
        self.started, self.finished = True, last
        if last and self.rate.piecewise_linear:
            self.excess = torch.sub(u, self.rates, out=self.base if u is self.base else None)

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """Write the displacements over du."""
        if from_below is not None:
            du = from_below.clone() if du is None else du.add_(from_below)
        if du is None:
            self.shift = None
            return
        self.shift = displace(self.rate, du, self.rates, self.excess)

    def bias_shift(self) -> Tensor:
        """Sum over the batch."""
        assert self.shift is not None
        return self.shift.sum(dim=0)

    def release(self) -> None:
        """Free the drives; the layer can be neither settled nor displaced afterwards."""
        self.base = self.base.new_empty(0)
        self.excess = None

    def advance(self, rates: Tensor, full: Tensor, part: float) -> None:
        """Move the rates in place by a part of a displacement."""
        self.rates.add_(rates, alpha=part)


class PooledState:
    """An image whose rates others see as averages over squares of `size` by `size`.

    Attributes as of `PlainState`; `full`, one rate for each pixel, is kept only if an earlier layer
    needs it (`keeps`).
    """

    def __init__(self, ops: TorchOps, rate: Activation, size: int, *, keeps: bool) -> None:
        self.ops, self.rate, self.size, self.keeps = ops, rate, size, keeps
        self.base: Tensor
        self.fed: Tensor | None = None
        self.rates: Tensor
        self.full: Tensor
        self.shift: Tensor | None = None
        self.full_shift: Tensor | None = None
        self.started, self.finished = False, True

    def drive(self, base: Tensor) -> None:
        """Set the drive from below."""
        self.base = base

    def clear(self) -> None:
        """Set the displacements to zero."""
        self.shift = self.full_shift = None

    @cached_property
    def compiled(self) -> bool:
        """Whether compiled code can be used: a clipped activation, on the CPU, without autograd."""
        return self.rate.piecewise_linear and self.ops.numpy_view(self.base) is not None

    @cached_property
    def limits(self) -> Array:
        """Lowest and highest rate and the weight of a pixel, at the precision of the drive."""
        limits = [self.rate.low, self.rate.high, 1.0 / self.size**2]
        return np.array(limits, dtype=self.base.detach().numpy().dtype)

    def settle(self, held: Tensor | None, feedback: Feedback, *, last: bool) -> None:
        """New rates and their averages."""
        self.fed = feedback(held, None)
        if not self.compiled:
            self.full = settle(self.rate, self.drives())
            self.rates = couplings.pooled(self.full, self.size)
            return
        from neuro_eqprop.training.fast import pooling_kernels

        if not self.started:
            samples, height, width, channels = self.base.shape
            few = (samples, height // self.size, width // self.size, channels)
            self.rates = self.base.new_empty(few)
            self.full = torch.empty_like(self.base) if self.keeps else nothing(self.base)
            self.started = True
        fed = nothing(self.base) if self.fed is None else self.fed.contiguous()
        base, above, full, rates = as_arrays(self.base, fed, self.full, self.rates)
        pooling_kernels.settle(base, above, self.limits, self.size, full, rates)

    def drives(self) -> Tensor:
        """u, the drive of each unit; may be `base` itself."""
        if self.fed is None:
            return self.base
        return couplings.unpooled(self.fed, self.size).add_(self.base)

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """New displacements and their averages."""
        if du is not None and from_below is None and self.compiled:
            from neuro_eqprop.training.fast import pooling_kernels

            fed = nothing(self.base) if self.fed is None else self.fed.contiguous()
            self.full_shift = torch.empty_like(self.base)
            self.shift = torch.empty_like(self.rates)
            base, above, change = as_arrays(self.base, fed, du.contiguous())
            moved, averages = as_arrays(self.full_shift, self.shift)
            pooling_kernels.displace(base, above, change, self.limits, self.size, moved, averages)
            return
        spread = None if du is None else couplings.unpooled(du, self.size)
        if from_below is not None:
            spread = from_below.clone() if spread is None else spread.add_(from_below)
        if spread is None:
            self.shift = self.full_shift = None
            return
        u = self.drives()
        rates = settle(self.rate, u)
        excess = u - rates if self.rate.piecewise_linear else None
        self.full_shift = displace(self.rate, spread, rates, excess)
        self.shift = couplings.pooled(self.full_shift, self.size)

    def bias_shift(self) -> Tensor:
        """Sum over the batch and the pixels."""
        assert self.shift is not None
        return self.shift.sum(dim=(0, 1, 2)).mul_(self.size**2)

    def release(self) -> None:
        """Free the drives; the layer can be neither settled nor displaced afterwards."""
        self.base = self.base.new_empty(0)
        self.fed = None

    def advance(self, rates: Tensor, full: Tensor, part: float) -> None:
        """Move the rates and, where an earlier layer needs them, those of single units."""
        self.rates.add_(rates, alpha=part)
        if self.keeps:
            self.full.add_(full, alpha=part)


LayerState: TypeAlias = PlainState | PooledState


def nothing(like: Tensor) -> Tensor:
    """An empty image, which compiled code takes for absent."""
    return like.new_empty((0, 0, 0, 0))


def as_arrays(*tensors: Tensor) -> list[Array]:
    """NumPy views."""
    return [tensor.detach().numpy() for tensor in tensors]


def feedback_of(coupling: Coupling | None, y: Tensor | None, gain: float) -> Feedback:
    """The feedback of the output's rates or displacements y; nothing if one is None."""

    def add(onto: Tensor | None, out: Tensor | None) -> Tensor | None:
        if coupling is None or y is None:
            return onto
        return coupling.down(y, onto, gain, out)

    return add
