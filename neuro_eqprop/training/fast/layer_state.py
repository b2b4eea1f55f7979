"""The rates of a layer on a batch, and their displacement by a nudge.

A layer settles at s = rho(u) of its drive u. A nudge changes the drive by Du and the rate by

    D = clip(Du + (u - s), low - s, high - s)          rho the identity, clipped to low..high
    D = (1 - s^2) t / (1 + s t),  t = tanh(Du)         rho = tanh

which equal rho(u + Du) - rho(u) exactly, kinks included; a curve states its own as `shift`. None
subtracts two nearly equal rates, so a small beta loses no digits in float32.

`PlainState` serves every layer, `PooledState` images that only pooled connections leave: it never
stores the feedback to single pixels. On the CPU both run in compiled code (`layer_kernels`,
`pooling_kernels`), which makes one pass of several operations of torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HYPERBOLIC, Activation
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast import couplings, layer_kernels, pooling_kernels
from neuro_eqprop.training.fast.couplings import Tensor


def can_displace(rate: Activation) -> bool:
    """Whether a displacement can be computed without a difference of nearly equal rates."""
    return rate.piecewise_linear or rate.curve.shift is not None


def settle(rate: Activation, u: Tensor, out: Tensor | None = None) -> Tensor:
    """rho(u)."""
    if rate.piecewise_linear:
        return torch.clamp(u, rate.low, rate.high, out=out)
    found: Tensor = rate.curve.value(u, torch)
    return found if out is None else out.copy_(found)


def displace(rate: Activation, du: Tensor, s: Tensor, excess: Tensor | None) -> Tensor:
    """rho(u + du) - rho(u), written over du; `excess` is u - s, which only clipped rates need."""
    if not rate.piecewise_linear:
        assert rate.curve.shift is not None
        return du.copy_(rate.curve.shift(s, du, torch))
    if excess is not None:
        du.add_(excess)
    if rate.low > -np.inf:
        torch.maximum(du, rate.low - s, out=du)
    if rate.high < np.inf:
        torch.minimum(du, rate.high - s, out=du)
    return du


@dataclass(frozen=True, slots=True)
class Units:
    """What is the same for every batch of a layer."""

    rate: Activation
    clipped: bool
    """Whether the activation is a clipped identity."""
    limits: Array
    """Lowest and highest rate and the share of a pixel in a square, at the precision of rates."""
    pool: int
    """Side of the squares over which all later layers see its rates."""
    keeps_pixels: bool
    """Whether the contrast of a connection needs the rate of each pixel of a pooled layer."""
    kernels: ModuleType | None
    """Compiled code (`layer_kernels` or `pooling_kernels`), if it can be used: tanh in float32."""


def units_of(
    ops: TorchOps, rate: Activation, pool: int, keeps_pixels: bool, compiled: bool
) -> Units:
    """The units of a layer; `compiled` says that compiled code can access the values."""
    kind = {torch.float32: np.float32, torch.float64: np.float64}.get(ops.dtype)
    limits = np.array([rate.low, rate.high, 1.0 / pool**2], dtype=kind)
    clipped = rate.piecewise_linear
    fast = clipped or (rate.curve == HYPERBOLIC and kind is np.float32 and pool == 1)
    kernels = kernels_of(pool) if compiled and kind is not None and fast else None
    return Units(rate, clipped, limits, pool, keeps_pixels, kernels)


def kernels_of(pool: int) -> ModuleType:
    """The compiled code of plain or pooled layers."""
    return layer_kernels if pool == 1 else pooling_kernels


class PlainState:
    """A layer whose rates reach other layers unchanged.

    Attributes
    ----------
    rates, full
        The rates, as later layers see them and of each unit; here the same.
    shift, full_shift
        Their displacements; None while they are zero.
    excess
        u - s of clipped rates that are settled for the last time.
    finished
        Whether it was settled for the last time, so that it can be displaced.
    """

    __slots__ = ("base", "excess", "finished", "rates", "shift", "started", "units")

    def __init__(self, units: Units) -> None:
        self.units = units
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
        self.base = base.contiguous()

    def clear(self) -> None:
        """Drop the displacements: none is known yet."""
        self.shift = None

    def stay(self) -> None:
        """Set the displacements to zero."""
        self.shift = torch.zeros_like(self.rates)

    def settle(self, fed: Tensor | None, *, last: bool) -> None:
        """New rates; the last time u - s is kept too, and the feedback may be overwritten."""
        units, base = self.units, self.base
        self.finished, keeps = last, last and units.clipped
        if units.kernels is None or (units.clipped and fed is None):
            u = base if fed is None else base + fed
            self.rates = settle(units.rate, u, self.rates if self.started else None)
            self.excess = u - self.rates if keeps else None
            self.started = True
            return
        self.start()
        fed = None if fed is None else fed.contiguous()
        above = NOTHING if fed is None else flat(fed)
        if not units.clipped:
            units.kernels.settle_tanh(flat(base), above, flat(self.rates))
            return
        # u - s may take the place of the feedback, which is not needed again.
        self.excess = fed if keeps else None
        excess = above if keeps else above[:0]
        units.kernels.settle_clipped(flat(base), above, units.limits, flat(self.rates), excess)

    def start(self) -> None:
        """Make room for the rates, the first time."""
        if not self.started:
            self.rates = torch.empty_like(self.base)
            self.started = True

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """Write the displacements over du."""
        if du is None and from_below is not None:
            du, from_below = from_below.clone(), None
        if du is None:
            self.shift = None
            return
        kernels = self.units.kernels
        if kernels is None:
            du = du if from_below is None else du.add_(from_below)
            self.shift = displace(self.units.rate, du, self.rates, self.excess)
            return
        self.shift = du = du.contiguous()
        by, rates = flat(du), flat(self.rates)
        more = by[:0] if from_below is None else flat(from_below.contiguous())
        if self.excess is None:
            kernels.displace_tanh(by, more, rates)
        else:
            kernels.displace_clipped(by, more, rates, flat(self.excess), self.units.limits)

    def bias_shift(self) -> Tensor:
        """Sum over the batch."""
        assert self.shift is not None
        return self.shift.sum(dim=0)

    def release(self) -> None:
        """Free the drives; the layer can be neither settled nor displaced afterwards."""
        del self.base
        self.excess = None

    def advance(self, rates: Tensor, full: Tensor, part: float) -> None:
        """Move the rates in place by a part of a displacement."""
        self.rates.add_(rates, alpha=part)


class PooledState:
    """An image whose rates others see as averages over squares of `pool` by `pool`.

    Attributes as of `PlainState`; `full`, one rate for each pixel, is computed when it is read, and
    kept after `release` only if the contrast of a connection needs it.
    """

    __slots__ = (
        "base",
        "fed",
        "finished",
        "full_shift",
        "pixels",
        "rates",
        "shift",
        "started",
        "units",
    )

    def __init__(self, units: Units) -> None:
        self.units = units
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
            self.pixels = torch.empty_like(self.base)
            kernels_of(self.units.pool).rates(*self.known(), *self.layout(), flat(self.pixels))
        return self.pixels

    def drive(self, base: Tensor) -> None:
        """Set the drive from below."""
        self.base = base.contiguous()

    def clear(self) -> None:
        """Drop the displacements: none is known yet."""
        self.shift = self.full_shift = None

    def stay(self) -> None:
        """Set the displacements to zero."""
        self.shift, self.full_shift = torch.zeros_like(self.rates), torch.zeros_like(self.base)

    def settle(self, fed: Tensor | None, *, last: bool) -> None:
        """New rates and their averages."""
        kernels = self.units.kernels
        if kernels is None:
            self.fed = fed
            self.pixels = settle(self.units.rate, self.drives())
            self.rates = couplings.pooled(self.pixels, self.units.pool)
            return
        self.pixels = None
        self.start()
        self.fed = None if fed is None else fed.contiguous()
        kernels.settle(*self.known(), *self.layout(), flat(self.rates))

    def start(self) -> None:
        """Make room for the averages of the rates, the first time."""
        if not self.started:
            samples, height, width, channels = self.base.shape
            size = self.units.pool
            self.rates = self.base.new_empty((samples, height // size, width // size, channels))
            self.started = True

    def known(self) -> tuple[Array, Array, Array]:
        """Drive of each pixel, feedback to each square, and limits, for compiled code."""
        fed = self.rates[:0] if self.fed is None else self.fed
        return flat(self.base), flat(fed), self.units.limits

    def layout(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        """A square as compiled code takes it, then squares in a row and channels."""
        size = self.units.pool
        return (0,) * size, (self.base.shape[2] // size, self.base.shape[3])

    def drives(self) -> Tensor:
        """u, the drive of each unit; may be `base` itself."""
        if self.fed is None:
            return self.base
        return couplings.unpooled(self.fed, self.units.pool).add_(self.base)

    def displace(self, du: Tensor | None, from_below: Tensor | None) -> None:
        """New displacements and their averages."""
        if du is not None and from_below is None and self.units.kernels is not None:
            base, fed, limits = self.known()
            known = base, fed, flat(du.contiguous()), limits, *self.layout()
            self.units.kernels.displace(*known, *(flat(values) for values in self.room()))
            return
        size, rate = self.units.pool, self.units.rate
        spread = None if du is None else couplings.unpooled(du, size)
        if from_below is not None:
            spread = from_below.clone() if spread is None else spread.add_(from_below)
        if spread is None:
            self.shift = self.full_shift = None
            return
        u = self.drives()
        rates = settle(rate, u)
        excess = u - rates if rate.piecewise_linear else None
        self.full_shift = displace(rate, spread, rates, excess)
        self.shift = couplings.pooled(self.full_shift, size)

    def room(self) -> tuple[Tensor, Tensor]:
        """New room for the displacements and for their averages."""
        self.full_shift, self.shift = torch.empty_like(self.base), torch.empty_like(self.rates)
        return self.full_shift, self.shift

    def bias_shift(self) -> Tensor:
        """Sum over the batch and the pixels."""
        assert self.shift is not None
        return self.shift.sum(dim=(0, 1, 2)).mul_(self.units.pool**2)

    def release(self) -> None:
        """Free the drives; the layer can be neither settled nor displaced afterwards."""
        self.pixels = self.full if self.units.keeps_pixels else None
        del self.base
        self.fed = None

    def advance(self, rates: Tensor, full: Tensor, part: float) -> None:
        """Move the rates and, where an earlier layer needs them, those of single units."""
        self.rates.add_(rates, alpha=part)
        if self.units.keeps_pixels:
            self.full.add_(full, alpha=part)


LayerState: TypeAlias = PlainState | PooledState


def state_of(units: Units) -> LayerState:
    """The state of a layer on a new batch."""
    return PooledState(units) if units.pool > 1 else PlainState(units)


def add_transpose(ops: TorchOps, matrix: Tensor) -> Tensor:
    """The matrix, which may be overwritten, plus its transpose."""
    if ops.numpy_view(matrix) is None or not matrix.is_contiguous():
        return matrix + matrix.T
    layer_kernels.add_transpose(as_array(matrix))
    return matrix


NOTHING = np.empty(0, dtype=np.float32)
"""Compiled code takes it for zeros."""


def as_array(values: Tensor) -> Array:
    """A NumPy view."""
    found: Array = (values.detach() if values.requires_grad else values).numpy()
    return found


def flat(values: Tensor) -> Array:
    """A NumPy view of one dimension of contiguous values."""
    found: Array = values.numpy().reshape(-1)
    return found
