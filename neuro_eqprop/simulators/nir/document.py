"""The content of a NIR file of this package, its checksum, and the import of `nir`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.synapses import Synapses, as_synapses

SEAL = b"neuro_eqprop sha256 "


class NirError(ValueError):
    """A NIR file cannot be written or read; the message says why."""


@dataclass(frozen=True, slots=True, init=False)
class Feed:
    """Weights W from the input to a population: W x is its current in every step."""

    target: str
    synapses: Synapses

    def __init__(self, target: str, synapses: Synapses | Array) -> None:
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "synapses", as_synapses(synapses))

    @property
    def weight(self) -> Array:
        """W as a matrix."""
        return self.synapses.dense()


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file: the network, its input weights, and notes (plain JSON)."""

    network: SpikingNetwork
    feeds: tuple[Feed, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [population.name for population in self.network.populations]
        for feed in self.feeds:
            if feed.target not in names:
                raise NirError(f"the input has weights to {feed.target!r}, not one of {names}")
            shape = (self.network[feed.target].size, self.features)
            if feed.synapses.shape != shape or not shape[1]:
                raise NirError(f"input weights of {feed.target!r} are {feed.synapses.shape}")
            if not np.isfinite(feed.synapses.values).all():
                raise NirError(f"input weights of {feed.target!r} are not all finite")

    @property
    def features(self) -> int:
        """The size of the input: without feeds, the currents of the first population."""
        if not self.feeds:
            return self.network.populations[0].size
        return self.feeds[0].synapses.shape[1]


def library() -> Any:  # noqa: ANN401
    """The package `nir`."""
    try:
        return import_module("nir")
    except ImportError as error:
        raise NirError(
            f"the package nir cannot be imported ({error}); install it: pip install nir"
        ) from error


def seal(content: bytes) -> bytes:
    """The checksum that is appended to a file.

    HDF5 ignores bytes after its own, and drops them when it changes the file.
    """
    return SEAL + sha256(content).digest()


def damaged(content: bytes) -> bool:
    """Whether a file has a checksum that does not match; HDF5 can loop forever on such a file."""
    size = len(SEAL) + sha256().digest_size
    return sealed(content) and content[-size:] != seal(content[:-size])


def sealed(content: bytes) -> bool:
    """Whether a file ends with a checksum, valid or not."""
    return content[-len(SEAL) - sha256().digest_size :].startswith(SEAL)
