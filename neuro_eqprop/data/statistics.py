"""Channel statistics of training samples, for input normalization."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.split import DataError


def channel_statistics(
    data: Dataset, *, ids: bool = False
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel over the training samples.

    Channels are the first axis of images, and the last axis of vectors and sequences. Constant
    channels get a standard deviation of one, so that they are normalized to zero. Token ids, by
    the data or by `ids`, raise a DataError.
    """
    if data.vocabulary or ids:
        raise DataError(f"{data.name!r} has token ids, which cannot be normalized: leave it out")
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
    """Reshape samples (samples, features) to (values, channels)."""
    if len(shape) == 3:
        planes = x.reshape(len(x), shape[0], -1)
        return np.moveaxis(planes, 1, 2).reshape(-1, shape[0])
    return x.reshape(-1, shape[-1])
