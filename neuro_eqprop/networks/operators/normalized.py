"""Standardized inputs: each channel, or each feature, with mean 0 and standard deviation 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.base import Operator
from neuro_eqprop.networks.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class Normalized:
    """y = A(W) z with z[c] = (x[c] - mean[c]) / deviation[c] for each channel c of x.

    The channels are the first axis of an image, and the last axis of vectors and of tokens. The
    map is affine in x, so it only connects the input, which gets no feedback.
    """

    inner: Operator
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    stored_name: ClassVar[str] = "normalised"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.deviation) or not min(self.deviation, default=0.0) > 0.0:
            raise ValueError(
                "a normalized input needs one mean and one deviation above 0 per channel"
            )

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """The shape of the inner operator's W."""
        if source[channel_axis(source)] != len(self.mean):
            raise ValueError(
                f"{len(self.mean)} means cannot normalize samples of shape {source}, which have "
                f"{source[channel_axis(source)]} channels"
            )
        return self.inner.weight_shape(source, target)

    def normalize(self, ops: Ops, x: Values) -> Values:
        """z, the standardized samples."""
        wide = (-1, *[1] * (x.ndim - 2)) if channel_axis(tuple(x.shape[1:])) == 0 else (-1,)
        mean, deviation = (
            ops.from_numpy(np.reshape(each, wide)) for each in (self.mean, self.deviation)
        )
        return (x - mean) / deviation

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + A(W) z."""
        return self.inner.forward(ops, weight, self.normalize(ops, x), onto)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: the map is affine, and its source is the input."""
        raise ValueError("a normalized input gets no feedback and has no transpose")

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The gradient of the inner operator at z."""
        return self.inner.weight_gradient(ops, weight, post, self.normalize(ops, pre))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norms of the inner operator."""
        return self.inner.spectral_norms(ops, weight, source)


def channel_axis(shape: Shape) -> int:
    """The axis of the channels of a sample: the first of an image, else the last."""
    return 0 if len(shape) == 3 else -1
