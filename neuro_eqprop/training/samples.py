"""The samples of a split on the device of training, batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.data import Split
from neuro_eqprop.data.split import LARGEST_BYTE
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps

TakeSamples: TypeAlias = Callable[[Ints], Values]
"""Returns the samples of the given rows of a split, as a tensor."""


def sample_source(ops: TorchOps, split: Split) -> TakeSamples:
    """A function that returns samples of the split by row, on the device of `ops`.

    Images stored as bytes become floating point batch by batch, which saves memory.
    """
    if split.in_bytes:
        stored = torch.from_numpy(split.stored).to(ops.device)
        return lambda rows: stored[torch.from_numpy(rows)].to(ops.dtype) / LARGEST_BYTE
    x = ops.from_numpy(split.x)
    return lambda rows: x[torch.from_numpy(rows)]
