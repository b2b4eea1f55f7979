"""Data augmentation: random shifts of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch.nn import functional

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Values

Augmentation: TypeAlias = Callable[[Values, np.random.Generator], Values]
"""Maps the samples x (samples, features) of a batch to augmented ones."""


def no_augmentation(x: Values, rng: np.random.Generator) -> Values:
    """The samples unchanged."""
    return x


def random_shift(most: int, shape: Shape) -> Augmentation:
    """Shift each image by up to `most` pixels in both directions, filled with zeros."""
    if not most:
        return no_augmentation
    if len(shape) != 3:
        raise ValueError(
            f"only images can be shifted, and samples have the shape {shape}: use shift=0"
        )
    _, high, wide = shape
    if most >= min(high, wide):
        raise ValueError(
            f"a shift of {most} pixels can move an image of {high} by {wide} out of view"
        )

    def shift(x: Values, rng: np.random.Generator) -> Values:
        padded = functional.pad(x.reshape(-1, *shape), (most,) * 4)
        windows = padded.unfold(2, high, 1).unfold(3, wide, 1)
        down, right = torch.from_numpy(rng.integers(0, 2 * most + 1, (2, len(x))))
        return windows[torch.arange(len(x)), :, down, right].reshape(x.shape)

    return shift
