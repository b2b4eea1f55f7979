"""Synapses of the reference as dense blocks of rows."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.spiking.synapses import BLOCK, DenseSynapses, Synapses


class Blocks:
    """The matrix of synapses in dense blocks of rows; a small matrix is kept as one block."""

    def __init__(self, synapses: Synapses) -> None:
        self.synapses = synapses
        entries = synapses.shape[0] * synapses.shape[1]
        small = entries <= BLOCK or isinstance(synapses, DenseSynapses)
        self.kept = [(slice(None), synapses.dense())] if small else None

    def apply(self, messages: Array) -> Array:
        """weight @ message for each row of messages."""
        found = np.empty((len(messages), self.synapses.shape[0]))
        for rows, block in self.kept or self.synapses.blocks():
            found[:, rows] = messages @ block.T
        return found
