"""Counter-based random numbers: hashes of seed, sample, step and unit, equal on every simulator."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array

STRIDE = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A bijective hash of 64 bits (the finalizer of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return z ^ (z >> np.uint64(31))


def uniform(seed: int, t: int, shape: tuple[int, int]) -> Array:
    """Uniform random numbers in [0, 1) at step t, for each sample and unit of `shape`.

    They are the upper 53 bits of the hash

        mix(mix(mix(mix(seed) + stride (sample + 1)) + stride t) + stride unit)
    """
    stride = np.uint64(STRIDE)
    samples, units = (np.arange(n, dtype=np.uint64) for n in shape)
    start = mix(np.array([seed], dtype=np.uint64))
    row = mix(mix(start + stride * (samples + np.uint64(1))) + stride * np.array([t], np.uint64))
    drawn = mix(row[:, None] + stride * units)
    return np.asarray((drawn >> np.uint64(11)) * 2.0**-53)


def chances(seed: int, group: int, t: int, shape: tuple[int, ...]) -> Array:
    """Uniform random numbers in [0, 1) of that shape, in C order.

    They equal those of `uniform` for sample `group` at step t.
    """
    stride, places = np.uint64(STRIDE), np.arange(int(np.prod(shape)), dtype=np.uint64)
    start = mix(np.array([seed], dtype=np.uint64))
    there = start + stride * np.array([group + 1], dtype=np.uint64)
    drawn = mix(mix(mix(there) + stride * np.array([t], np.uint64)) + stride * places)
    return np.asarray(((drawn >> np.uint64(11)) * 2.0**-53).reshape(shape))
