"""Torch's quick ways with images are its slow ones."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from neuro_eqprop.networks.ops.torch import TorchOps

OPS = TorchOps(torch.float64)


def drawn(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("size", [2, 3])
def test_pooling_and_spreading_need_no_graph(size: int) -> None:
    x, y = drawn(2, 3, 6, 12), drawn(2, 3, 2, 4)
    with torch.no_grad():
        pooled, spread = OPS.pool(x, size), OPS.unpool(y, size)
    torch.testing.assert_close(pooled, functional.avg_pool2d(x, size))
    torch.testing.assert_close(spread, functional.interpolate(y / size**2, scale_factor=size))
    torch.testing.assert_close(pooled, OPS.pool(x, size))
    torch.testing.assert_close(spread, OPS.unpool(y, size))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_slope_of_a_kernel_is_torchs_own(channels: int) -> None:
    x, y = drawn(3, channels, 7, 8), drawn(3, 2, 5, 4)
    wanted = conv2d_weight(x, (2, channels, 3, 5), y)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(OPS.conv_weight_gradient(y, x), wanted)
