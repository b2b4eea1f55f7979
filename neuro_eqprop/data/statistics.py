"""Mean and deviation of the channels of training samples, to standardise inputs by."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.arrays import Array, Shape
from neuro_eqprop.data.dataset import DataError, Dataset


def channel_statistics(data: Dataset) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over the training samples.

    The channels of an image are its first axis, those of vectors and tokens the last. A channel
    that never changes has a deviation of one, so that normalised it is zero.
    """
    if data.vocabulary:
        raise DataError(f"{data.name!r} has token ids, which cannot be normalised: leave it out")
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    for part in data.train.parts():
        x = by_channel(part.x, data.shape)
        count, total, squares = count + len(x), total + x.sum(axis=0), squares + (x * x).sum(axis=0)
    mean = total / count
    variance = squares / count - mean * mean
    small = variance <= 1e-12 * np.maximum(squares / count, 1e-300)
    deviation = np.where(small, 1.0, np.sqrt(np.maximum(variance, 0.0)))
    return tuple(mean.tolist()), tuple(deviation.tolist())


def by_channel(x: Array, shape: Shape) -> Array:
    """The samples (samples, features) as (values, channels)."""
    if len(shape) == 3:
        planes = x.reshape(len(x), shape[0], -1)
        return np.moveaxis(planes, 1, 2).reshape(-1, shape[0])
    return x.reshape(-1, shape[-1])
