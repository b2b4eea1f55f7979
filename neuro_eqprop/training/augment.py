"""Data augmentation: random shifts and flips of images, and word dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch.nn import functional

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.ops.protocol import Values

Augmentation: TypeAlias = Callable[[Values, np.random.Generator], Values]
"""Maps the samples x (samples, features) of a batch to augmented ones."""


def random_flip(shape: Shape) -> Augmentation:
    """Flip each image left to right with probability 1/2."""
    if len(shape) != 3:
        raise ValueError(
            f"only images can be mirrored, and samples have the shape {shape}: use flip=false"
        )

    def mirror(x: Values, rng: np.random.Generator) -> Values:
        images = x.reshape(-1, *shape)
        rows = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
        return torch.where(rows[:, None, None, None], images.flip(3), images).reshape(x.shape)

    return mirror


def word_dropout(part: float, vocabulary: int) -> Augmentation:
    """Replace each token id by padding with the probability `part`."""
    if not vocabulary:
        raise ValueError("word_dropout needs token ids: use word_dropout=0 for other samples")

    def leave_out(x: Values, rng: np.random.Generator) -> Values:
        kept = torch.from_numpy(rng.random(tuple(x.shape)) >= part).to(x.device)
        return x * kept

    return leave_out


def random_shift(most: int, shape: Shape, fill: tuple[float, ...] = ()) -> Augmentation:
    """Shift each image by up to `most` pixels in both directions.

    Exposed pixels get the value of their channel in `fill`, such as the mean that the input is
    normalized by; zero by default.
    """
    if len(shape) != 3:
        raise ValueError(
            f"only images can be shifted, and samples have the shape {shape}: use shift=0"
        )
    _, high, wide = shape
    if most >= min(high, wide):
        raise ValueError(
            f"a shift of {most} pixels can move an image of {high} by {wide} out of view: "
            f"use shift={min(high, wide) - 1} or less"
        )

    def shift(x: Values, rng: np.random.Generator) -> Values:
        level = x.new_tensor(fill or (0.0,)).reshape(-1, 1, 1)
        padded = functional.pad(x.reshape(-1, *shape) - level, (most,) * 4) + level
        windows = padded.unfold(2, high, 1).unfold(3, wide, 1)
        down, right = torch.from_numpy(rng.integers(0, 2 * most + 1, (2, len(x))))
        return windows[torch.arange(len(x)), :, down, right].reshape(x.shape)

    return shift
