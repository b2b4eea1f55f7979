"""The rates of a layer on a batch, and their displacement by a nudge.

A layer settles at s = rho(u) of its drive u. A nudge changes the drive by Du and the rate by

    D = clip(Du + (u - s), low - s, high - s)          rho the identity, clipped to low..high
    D = (1 - s^2) t / (1 + s t),  t = tanh(Du)         rho = tanh

which equal rho(u + Du) - rho(u) exactly, kinks included. Neither subtracts two nearly equal rates,
so a small beta loses no digits in float32.

`PlainState` serves every layer, `PooledState` images that only pooled connections leave: it never
stores the feedback to single pixels. On the CPU both run in compiled code (`layer_kernels`,
`pooling_kernels`), which makes one pass of several operations of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Array
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.fast import couplings
from neuro_eqprop.training.fast.couplings import Coupling, Tensor

if TYPE_CHECKING:
    from neuro_eqprop.training.fast.output_kernels import Readout


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
    """A layer whose rates reach other layers unchanged.

    Attributes
    ----------
    rates, full
        The rates, as later layers see them and of each unit; here the same.
    shift, full_shift
        Their displacements; None while they are zero.
    finished
        Whether it was settled for the last time, so that it can be displaced.
    """

    def __init__(self, ops: TorchOps, rate: Activation) -> None:
        self.ops, self.rate = ops, rate
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
        """Drop the displacements: none is known yet."""
        self.shift = None

    def stay(self) -> None:
        """Set the displacements to zero."""
        self.shift = torch.zeros_like(self.rates)

    @cached_property
    def compiled(self) -> bool:
        """Whether compiled code can be used: on the CPU, without autograd; tanh in float32."""
        known = self.rate.piecewise_linear or self.base.dtype is torch.float32
        return known and self.ops.numpy_view(self.base) is not None

    @cached_property
    def limits(self) -> Array:
        """Lowest and highest rate, at the precision of the drive."""
        return np.array([self.rate.low, self.rate.high], dtype=as_array(self.base).dtype)

    def settle(self, held: Tensor | None, feedback: Feedback, *, last: bool) -> None:
        """New rates; the last time u - s is kept too, and `held` may be overwritten."""
        fed = feedback(held, None)
        keeps = last and self.rate.piecewise_linear
        if self.compiled:
            self.settle_compiled(fed, keeps=keeps)
        else:
            u = self.base if fed is None else self.base + fed
            self.rates = settle(self.rate, u, self.rates if self.started else None)
            self.excess = u - self.rates if keeps else None
        self.started, self.finished = True, last

    def settle_compiled(self, fed: Tensor | None, *, keeps: bool) -> None:
        """New rates, and u - s if `keeps`."""
        from neuro_eqprop.training.fast import layer_kernels

        base = self.base = self.base.contiguous()
        above = NOTHING.to(base.dtype) if fed is None else fed.contiguous()
        if not self.started:
            self.rates = torch.empty_like(base)
        if not self.rate.piecewise_linear:
            layer_kernels.settle_tanh(flat(base), flat(above), flat(self.rates))
            return
        # u - s may take the place of the feedback, which is not needed again.
        excess = NOTHING.to(base.dtype)
        if keeps:
            self.excess = excess = torch.empty_like(base) if fed is None else above
        layer_kernels.settle_clipped(
            flat(base), flat(above), self.limits, flat(self.rates), flat(excess)
        )

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """Write the displacements over du."""
        if du is None and from_below is not None:
            du, from_below = from_below.clone(), None
        if du is None:
            self.shift = None
            return
        if not self.compiled:
            du = du if from_below is None else du.add_(from_below)
            self.shift = displace(self.rate, du, self.rates, self.excess)
            return
        from neuro_eqprop.training.fast import layer_kernels

        self.shift = du = du.contiguous()
        more = NOTHING.to(du.dtype) if from_below is None else from_below.contiguous()
        if self.excess is None:
            layer_kernels.displace_tanh(flat(du), flat(more), flat(self.rates))
        else:
            layer_kernels.displace_clipped(
                flat(du), flat(more), flat(self.rates), flat(self.excess), self.limits
            )

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

    Attributes as of `PlainState`; `full`, one rate for each pixel, is computed when it is read, and
    kept after `release` only if the contrast of a connection needs it (`keeps`).
    """

    def __init__(self, ops: TorchOps, rate: Activation, size: int, *, keeps: bool) -> None:
        self.ops, self.rate, self.size, self.keeps = ops, rate, size, keeps
        self.base: Tensor
        self.fed: Tensor | None = None
        self.rates: Tensor
        self.pixels: Tensor | None = None
        self.shift: Tensor | None = None
        self.full_shift: Tensor | None = None
        self.started, self.finished = False, True

    @property
    def full(self) -> Tensor:
        """The rate of each pixel."""
        if self.pixels is None:
            from neuro_eqprop.training.fast import pooling_kernels

            self.pixels = torch.empty_like(self.base)
            pooling_kernels.rates(*self.arguments(), flat(self.pixels))
        return self.pixels

    def drive(self, base: Tensor) -> None:
        """Set the drive from below."""
        self.base = base

    def clear(self) -> None:
        """Drop the displacements: none is known yet."""
        self.shift = self.full_shift = None

    def stay(self) -> None:
        """Set the displacements to zero."""
        self.shift, self.full_shift = torch.zeros_like(self.rates), torch.zeros_like(self.base)

    @cached_property
    def compiled(self) -> bool:
        """Whether compiled code can be used: a clipped activation, on the CPU, without autograd."""
        return self.rate.piecewise_linear and self.ops.numpy_view(self.base) is not None

    @cached_property
    def limits(self) -> Array:
        """Lowest and highest rate and the weight of a pixel, at the precision of the drive."""
        limits = [self.rate.low, self.rate.high, 1.0 / self.size**2]
        return np.array(limits, dtype=as_array(self.base).dtype)

    def settle(self, held: Tensor | None, feedback: Feedback, *, last: bool) -> None:
        """New rates and their averages."""
        self.fed = feedback(held, None)
        if not self.compiled:
            self.pixels = settle(self.rate, self.drives())
            self.rates = couplings.pooled(self.pixels, self.size)
            return
        from neuro_eqprop.training.fast import pooling_kernels

        self.pixels = None
        if not self.started:
            samples, height, width, channels = self.base.shape
            few = (samples, height // self.size, width // self.size, channels)
            self.rates = self.base.new_empty(few)
            self.started = True
        pooling_kernels.settle(*self.arguments(), flat(self.rates))

    def arguments(self) -> tuple[Array, Array, Array, tuple[int, ...], tuple[int, int]]:
        """The first arguments of compiled code: drive, feedback, limits and layout."""
        return flat(self.base), flat(self.feedback()), self.limits, *self.layout()

    def feedback(self) -> Tensor:
        """The feedback to each square."""
        return torch.zeros_like(self.rates) if self.fed is None else self.fed.contiguous()

    def layout(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        """A square as compiled code takes it, then squares in a row and channels."""
        return (0,) * self.size, (self.rates.shape[2], self.rates.shape[3])

    def drives(self) -> Tensor:
        """u, the drive of each unit; may be `base` itself."""
        if self.fed is None:
            return self.base
        return couplings.unpooled(self.fed, self.size).add_(self.base)

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """New displacements and their averages."""
        if du is not None and from_below is None and self.compiled:
            from neuro_eqprop.training.fast import pooling_kernels

            self.full_shift = torch.empty_like(self.base)
            self.shift = torch.empty_like(self.rates)
            known = flat(self.base), flat(self.feedback()), flat(du.contiguous()), self.limits
            results = flat(self.full_shift), flat(self.shift)
            pooling_kernels.displace(*known, *self.layout(), *results)
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
        self.pixels = self.full if self.keeps else None
        self.base = self.base.new_empty(0)
        self.fed = None

    def advance(self, rates: Tensor, full: Tensor, part: float) -> None:
        """Move the rates and, where an earlier layer needs them, those of single units."""
        self.rates.add_(rates, alpha=part)
        if self.keeps:
            self.full.add_(full, alpha=part)


LayerState: TypeAlias = PlainState | PooledState


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """The output with the one plain layer that it reads, settled by compiled code."""

    state: PlainState
    readout: Readout

    def settle(self, bias: Tensor, before: Tensor | None, *, last: bool) -> tuple[Tensor, Tensor]:
        """Drive and rates of the output; those of the layer are new, too."""
        from neuro_eqprop.training.fast import output_kernels

        state = self.state
        base = state.base = state.base.contiguous()
        if not state.started:
            state.rates = torch.empty_like(base)
        state.started, state.finished = True, last
        state.excess = torch.empty_like(base) if last else base[:0]
        drive, output = base.new_empty(2, len(base), len(self.readout.weight))
        found = state.rates, state.excess, drive, output
        output_kernels.settle(
            self.readout,
            as_array(base),
            as_array(bias),
            as_array(base[:0] if before is None else before),
            tuple(as_array(values) for values in found),
        )
        return drive, output

    def displace(self, pull: Tensor, beta: float, at: tuple[Tensor, Tensor]) -> Tensor:
        """The displacement of the output, whose drive and rates are `at`; the layer's is new."""
        from neuro_eqprop.training.fast import output_kernels

        state, readout = self.state, self.readout
        assert state.excess is not None
        state.shift, found = torch.empty_like(state.rates), torch.empty_like(pull)
        known, results = (state.rates, state.excess, *at), (state.shift, found)
        output_kernels.displace(
            readout,
            tuple(as_array(values) for values in known),
            as_array(pull),
            readout.weight.dtype.type(beta),
            tuple(as_array(values) for values in results),
        )
        return found


def output_block_of(
    state: PlainState, weight: Tensor, rate: Activation, gain: float, turns: int
) -> OutputBlock:
    """The block of a layer and an output with activation `rate`, for weights (outputs, units)."""
    from neuro_eqprop.training.fast.output_kernels import Readout

    array = as_array(weight.contiguous())
    limits = [state.rate.low, state.rate.high, rate.low, rate.high]
    known = array.dtype.type(gain), np.array(limits, array.dtype), turns
    return OutputBlock(state, Readout(array, *known))


def add_transpose(ops: TorchOps, matrix: Tensor) -> Tensor:
    """The matrix, which may be overwritten, plus its transpose."""
    if ops.numpy_view(matrix) is None or not matrix.is_contiguous():
        return matrix + matrix.T
    from neuro_eqprop.training.fast import layer_kernels

    layer_kernels.add_transpose(as_array(matrix))
    return matrix


NOTHING = torch.empty(0)
"""Compiled code takes it for zeros."""


def as_array(values: Tensor) -> Array:
    """A NumPy view."""
    found: Array = (values.detach() if values.requires_grad else values).numpy()
    return found


def flat(values: Tensor) -> Array:
    """A NumPy view of one dimension of contiguous values."""
    return as_array(values).reshape(-1)


def feedback_of(coupling: Coupling | None, y: Tensor | None, gain: float) -> Feedback:
    """The feedback of the output's rates or displacements y; nothing if one is None."""

    def add(onto: Tensor | None, out: Tensor | None) -> Tensor | None:
        if coupling is None or y is None:
            return onto
        return coupling.down(y, onto, gain, out)

    return add
