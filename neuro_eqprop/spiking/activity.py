"""How the rate of a layer is computed from its recorded activity."""

from __future__ import annotations

from enum import Enum

import numpy as np

from neuro_eqprop.common.arrays import Array


class ActivityKind(Enum):
    """How the rate of a population is computed from its recorded activity."""

    RATE = "rate"
    """The signal `rate`; its value at the end of a phase is the equilibrium."""
    SPIKES = "spikes"
    """Binary spikes; the rate is their mean over the window."""
    GRADED = "graded"
    """Graded spikes that carry changes; the rate is the mean of their running sum."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that can be recorded; the rate is computed from the first one."""
        return {
            ActivityKind.RATE: ("rate", "drive"),
            ActivityKind.SPIKES: ("spikes", "voltage", "drive"),
            ActivityKind.GRADED: ("spikes", "state", "drive"),
        }[self]

    @property
    def spikes(self) -> bool:
        """Whether it consists of spikes, binary or graded."""
        return self is not ActivityKind.RATE

    @property
    def binary(self) -> bool:
        """Whether it consists of binary spikes."""
        return self is ActivityKind.SPIKES

    @property
    def graded(self) -> bool:
        """Whether it consists of graded spikes."""
        return self is ActivityKind.GRADED

    def course(self, spikes: Array) -> Array:
        """What the rate is a mean of, from spikes (..., steps, units)."""
        return np.cumsum(spikes, axis=-2) if self.graded else spikes
