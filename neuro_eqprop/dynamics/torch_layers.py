"""Single torch layers as operators; a layer without an equivalent raises ForeignError."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.operators import Conv2d

KNOWN = (
    "Linear, Conv2d, AvgPool2d, AdaptiveAvgPool2d, BatchNorm1d, BatchNorm2d, Flatten, ReLU, ReLU6, "
    "Hardsigmoid, Hardtanh, Tanh, Dropout and Identity"
)
POOLS = ("AvgPool2d", "AdaptiveAvgPool2d")
NORMS = ("BatchNorm1d", "BatchNorm2d")
REASONS = {
    "MaxPool2d": "max pooling is not linear, so synapses cannot compute it; use AvgPool2d",
    "LayerNorm": "it divides by the standard deviation of its input, which synapses cannot compute",
    "MultiheadAttention": "it multiplies its inputs with each other, which synapses cannot compute",
}


class ForeignError(ValueError):
    """A torch module cannot be converted; the message names the layer and the reason."""


def refused(name: str, kind: str, reason: str) -> ForeignError:
    """The error for a layer that cannot be converted."""
    return ForeignError(f"layer {name!r} is a {kind}: {reason}; known are {KNOWN}")


def numbers(name: str, part: Any, which: str) -> Array:  # noqa: ANN401
    """The weight or bias of a layer in float64; zeros for a missing bias."""
    values, kind = getattr(part, which), type(part).__name__
    if values is None:
        return np.zeros(len(part.weight))
    if not values.is_floating_point():
        raise refused(name, kind, f"its {which} is of type {values.dtype}, not floating point")
    found = np.asarray(values.detach().cpu().double().numpy(), dtype=np.float64)
    if not np.isfinite(found).all():
        raise refused(name, kind, f"its {which} holds values that are not finite")
    return found


def equal_sides(name: str, part: Any, which: str) -> int:  # noqa: ANN401
    """The value of an attribute that must be equal for height and width."""
    value = getattr(part, which)
    sides = value if isinstance(value, tuple) else (value, value)
    if len(set(sides)) != 1 or sides[0] is None:
        kind = type(part).__name__
        raise refused(name, kind, f"its {which} {sides} is not one number for both sides")
    return int(sides[0])


def convolution(
    name: str,
    part: Any,  # noqa: ANN401
    shape: Shape,
) -> tuple[Conv2d, Array, Shape]:
    """The operator of a Conv2d, its kernels, and the shape of its output.

    Kernels with gaps (dilation) or for some channels only (groups) are kernels with zeros.
    """
    if len(shape) != 3:
        reason = f"it is given {shape}, not (channels, height, width)"
        raise refused(name, "Conv2d", reason)
    weight = full_kernels(part, numbers(name, part, "weight"), equal_sides(name, part, "dilation"))
    equal_sides(name, part, "kernel_size")
    if weight.shape[1] != shape[0]:
        reason = f"it takes {weight.shape[1]} channels and is given {shape[0]}"
        raise refused(name, "Conv2d", reason)
    kernel, step, margin = (
        weight.shape[2],
        equal_sides(name, part, "stride"),
        padding_of(name, part),
    )
    sides = tuple((n + 2 * margin - kernel) // step + 1 for n in shape[1:])
    if min(sides) < 1:
        reason = f"its kernels of {kernel} leave nothing of images {shape[1:]}"
        raise refused(name, "Conv2d", reason)
    return Conv2d(kernel, margin, step), weight, (len(weight), *sides)


def padding_of(name: str, part: Any) -> int:  # noqa: ANN401
    """The padding of an image with zeros."""
    if part.padding == "same":
        kernel = (
            equal_sides(name, part, "dilation") * (equal_sides(name, part, "kernel_size") - 1) + 1
        )
        if kernel % 2 == 0:
            raise refused(
                name, "Conv2d", f"padding 'same' with a kernel of {kernel} is not symmetric"
            )
        margin = kernel // 2
    else:
        margin = 0 if part.padding == "valid" else equal_sides(name, part, "padding")
    if margin and part.padding_mode != "zeros":
        raise refused(name, "Conv2d", f"its padding mode is {part.padding_mode!r}, not 'zeros'")
    return margin


def full_kernels(part: Any, weight: Array, dilation: int) -> Array:  # noqa: ANN401
    """Kernels with zeros for dilation and for channels of other groups."""
    out, few, high, wide = weight.shape
    groups = part.groups
    found = np.zeros((out, few * groups, dilation * (high - 1) + 1, dilation * (wide - 1) + 1))
    for g in range(groups):
        rows = slice(g * out // groups, (g + 1) * out // groups)
        found[rows, g * few : (g + 1) * few, ::dilation, ::dilation] = weight[rows]
    return found


def fold_batch_norm(
    name: str,
    part: Any,  # noqa: ANN401
    weight: Array,
    bias: Array,
) -> tuple[Array, Array]:
    """Weight and bias with a batch normalization folded into them."""
    if part.running_mean is None or len(part.running_mean) != len(weight):
        reason = f"it keeps no means and variances of {len(weight)} units or channels"
        raise refused(name, type(part).__name__, reason)
    mean, variance = numbers(name, part, "running_mean"), numbers(name, part, "running_var")
    scale, shift = 1 / np.sqrt(variance + part.eps), np.zeros(len(weight))
    if part.affine:
        scale, shift = numbers(name, part, "weight") * scale, numbers(name, part, "bias")
    rows = (-1, *[1] * (weight.ndim - 1))
    moved = (bias.ravel() - mean) * scale + shift
    return weight * scale.reshape(rows), moved.reshape(bias.shape)


def flattened(name: str, part: Any, shape: Shape) -> Shape:  # noqa: ANN401
    """The shape of a sample after a Flatten."""
    if part.start_dim != 1 or part.end_dim not in (-1, len(shape)):
        raise refused(
            name, "Flatten", f"it flattens axes {part.start_dim}..{part.end_dim}, not a sample"
        )
    return (prod(shape),)


def pooling_size(name: str, part: Any, shape: Shape) -> int:  # noqa: ANN401
    """The side of the squares that a pooling layer averages over."""
    kind = type(part).__name__
    if len(shape) != 3:
        raise refused(name, kind, f"it is given {shape}, not (channels, height, width)")
    if kind == "AvgPool2d":
        size = equal_sides(name, part, "kernel_size")
        if equal_sides(name, part, "stride") != size or equal_sides(name, part, "padding"):
            raise refused(name, kind, "its squares overlap or leave gaps; use stride = kernel_size")
        if part.divisor_override not in (None, size * size):
            raise refused(name, kind, f"it divides by {part.divisor_override}, which is not a mean")
    else:
        size = max(1, shape[1] // equal_sides(name, part, "output_size"))
        if (shape[1] // size, shape[2] // size) != (equal_sides(name, part, "output_size"),) * 2:
            raise refused(name, kind, f"it cannot divide images {shape[1:]} into equal squares")
    if shape[1] % size or shape[2] % size:
        raise refused(name, kind, f"images {shape[1:]} cannot be divided into squares of {size}")
    return size
