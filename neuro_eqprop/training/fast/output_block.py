"""The output with the one layer that it reads, settled and displaced by compiled code.

A block serves every batch of a chain: it holds views of the parameters, which are updated in place.
`chain` settles all other outputs by the operations of torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.training.fast import output_kernels
from neuro_eqprop.training.fast.couplings import DenseCoupling, Tensor
from neuro_eqprop.training.fast.layer_state import LayerState, PlainState, PooledState, as_array
from neuro_eqprop.training.fast.output_kernels import Readout

if TYPE_CHECKING:
    from neuro_eqprop.training.fast.structure import Chain


@dataclass(frozen=True, slots=True)
class PlainBlock:
    """A vector of clipped rates, and an output with squared error."""

    readout: Readout
    kernels: ModuleType

    def settle(
        self, state: LayerState, before: Tensor | None, *, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Drive and rates of the output, whose rates were `before`; those of the layer are new."""
        assert isinstance(state, PlainState)
        base = state.base
        state.start()
        state.finished, state.excess = last, torch.empty_like(base) if last else base[:0]
        drive, output = base.new_empty((2, len(base), len(self.readout.weight)))
        self.kernels.settle(
            self.readout,
            base.numpy(),
            (drive[:0] if before is None else before).numpy(),
            (state.rates.numpy(), state.excess.numpy(), drive.numpy(), output.numpy()),
        )
        return drive, output

    def displace(
        self, state: LayerState, at: tuple[Tensor, Tensor], target: Tensor, beta: float
    ) -> Tensor:
        """The displacement of the output, whose drive and rates are `at`; the layer's is new."""
        assert isinstance(state, PlainState)
        assert state.excess is not None
        state.shift, found = torch.empty_like(state.rates), torch.empty_like(target)
        self.kernels.displace(
            self.readout,
            (state.rates.numpy(), state.excess.numpy(), at[0].numpy(), at[1].numpy()),
            target.numpy(),
            self.readout.gain.dtype.type(beta),
            (state.shift.numpy(), found.numpy()),
        )
        return found


@dataclass(frozen=True, slots=True)
class PooledBlock:
    """An image of clipped rates that is read as averages, and an output with squared error."""

    readout: Readout
    kernels: ModuleType

    def settle(
        self, state: LayerState, before: Tensor | None, *, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Drive and rates of the output, whose rates were `before`; those of the layer are new."""
        assert isinstance(state, PooledState)
        base, state.pixels = state.base, None
        state.start()
        state.fed = torch.empty_like(state.rates)
        drive, output = base.new_empty((2, len(base), len(self.readout.weight)))
        self.kernels.settle_pooled(
            self.readout,
            rows(base),
            (drive[:0] if before is None else before).numpy(),
            (state.units.limits, *state.layout()),
            (rows(state.rates), rows(state.fed), drive.numpy(), output.numpy()),
        )
        return drive, output

    def displace(
        self, state: LayerState, at: tuple[Tensor, Tensor], target: Tensor, beta: float
    ) -> Tensor:
        """The displacement of the output, whose drive and rates are `at`; the layer's is new."""
        assert isinstance(state, PooledState)
        assert state.fed is not None
        found, (moved, averages) = torch.empty_like(target), state.room()
        self.kernels.displace_pooled(
            self.readout,
            rows(state.base),
            (rows(state.fed), at[0].numpy(), at[1].numpy()),
            target.numpy(),
            self.readout.gain.dtype.type(beta),
            (state.units.limits, *state.layout()),
            (rows(moved), rows(averages), found.numpy()),
        )
        return found


@dataclass(frozen=True, slots=True)
class SoftmaxBlock:
    """A vector of rates, and a readout with cross-entropy; it does not feed back at rest."""

    readout: Readout
    kernels: ModuleType

    def displace(
        self, state: LayerState, drive: Tensor, target: Tensor, beta: float, below: Tensor | None
    ) -> Tensor:
        """The displacement of the readout; that of the layer, by `below` also, is new."""
        assert isinstance(state, PlainState)
        again, found = state.shift is not None, torch.empty_like(target)
        if state.shift is None:
            state.shift = torch.empty_like(state.rates)
        none = state.rates[:0]
        self.kernels.displace_softmax(
            self.readout,
            (
                state.rates.numpy(),
                (none if state.excess is None else state.excess).numpy(),
                drive.contiguous().numpy(),
            ),
            target.numpy(),
            self.readout.gain.dtype.type(beta),
            (none if below is None else below).numpy(),
            (state.shift.numpy(), found.numpy()),
            again,
        )
        return found


def rows(values: Tensor) -> Array:
    """A NumPy view with one row for each sample."""
    found: Array = values.numpy().reshape(len(values), -1)
    return found


def squared_block_of(chain: Chain) -> PlainBlock | PooledBlock | None:
    """The block of an output with squared error; None where torch settles it."""
    readout, node = readout_of(chain), chain.nodes[chain.readouts[0].other]
    if readout is None or not chain.feeds_back_at_rest or node.loops or not node.units.clipped:
        return None
    kind = PooledBlock if node.units.pool > 1 else PlainBlock
    return kind(readout, output_kernels)


def softmax_block_of(chain: Chain) -> SoftmaxBlock | None:
    """The block of a readout with cross-entropy; None where torch displaces it."""
    readout = readout_of(chain)
    if readout is None or chain.feeds_back_at_rest or chain.nodes[chain.readers[0]].units.pool > 1:
        return None
    return SoftmaxBlock(readout, output_kernels)


def readout_of(chain: Chain) -> Readout | None:
    """The dense weights of an output that reads one vector or pooled image; None for others."""
    link, output = chain.readouts[0], chain.network.output
    node = chain.nodes[link.other]
    if not (
        len(chain.readouts) == 1
        and link.other >= 0
        and isinstance(link.coupling, DenseCoupling)
        and (len(node.layer.shape) == 1 or node.units.pool > 1)
        and node.units.kernels is not None
        and not node.upper
        and link.coupling.weight.is_contiguous()
        and output.bias == output.shape
    ):
        return None
    weight, rates = as_array(link.coupling.weight), (node.layer.activation, output.activation)
    limits = np.array([x for rate in rates for x in (rate.low, rate.high)], dtype=weight.dtype)
    bias, gain = as_array(chain.params[output.name]), weight.dtype.type(link.gain)
    return Readout(weight, bias, gain, limits, chain.inner)
