"""How training sees its samples: as they are, or pictures moved about a little each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch.nn import functional

from neuro_eqprop.arrays import Shape
from neuro_eqprop.ops.protocol import Values

Augmentation: TypeAlias = Callable[[Values, np.random.Generator], Values]
"""What a network is shown of the samples x (samples, features)."""


def no_augmentation(x: Values, rng: np.random.Generator) -> Values:
    """The samples themselves."""
    return x


def random_shift(most: int, shape: Shape) -> Augmentation:
    """Each picture moved by up to `most` pixels both ways, drawn anew each time; zeros come in."""
    if not most:
        return no_augmentation
    if len(shape) != 3:
        raise ValueError(f"only pictures can be moved, and samples have the shape {shape}: shift=0")
    _, high, wide = shape
    if most >= min(high, wide):
        raise ValueError(f"a shift of {most} pixels can move a picture of {high} by {wide} away")

    def view(x: Values, rng: np.random.Generator) -> Values:
        padded = functional.pad(x.reshape(-1, *shape), (most,) * 4)
        places = padded.unfold(2, high, 1).unfold(3, wide, 1)
        down, right = torch.from_numpy(rng.integers(0, 2 * most + 1, (2, len(x))))
        return places[torch.arange(len(x)), :, down, right].reshape(x.shape)

    return view
