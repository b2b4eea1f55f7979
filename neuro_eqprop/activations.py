"""Rate functions: what a unit makes of its drive, with its range and its slope."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf

import numpy as np

from neuro_eqprop.arrays import Array, UnknownNameError


class ActivationKind(Enum):
    """The two families: straight inside a range, or the hyperbolic tangent."""

    CLIP = "clip"
    TANH = "tanh"


@dataclass(frozen=True, slots=True)
class Activation:
    """rho(u) = min(max(u, low), high) for CLIP, tanh(u) for TANH.

    `low` and `high` tell a spike code what range it has to carry.
    """

    name: str
    low: float
    high: float
    curve: ActivationKind = ActivationKind.CLIP

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"activation {self.name}: low {self.low} is not below {self.high}")

    @property
    def bounded(self) -> bool:
        """Whether the range is finite, as a rate of spikes has to be."""
        return self.low > -inf and self.high < inf


HARD_SIGMOID = Activation("hard_sigmoid", 0.0, 1.0)
HARD_TANH = Activation("hard_tanh", -1.0, 1.0)
RELU = Activation("relu", 0.0, inf)
TANH = Activation("tanh", -1.0, 1.0, ActivationKind.TANH)
LINEAR = Activation("linear", -inf, inf)


def box(height: float) -> Activation:
    """Rates from zero to `height`."""
    return Activation("box", 0.0, height)


BY_NAME = {a.name: a for a in (HARD_SIGMOID, HARD_TANH, RELU, TANH, LINEAR)}
HIDDEN = ("hard_sigmoid", "hard_tanh", "box", "relu", "tanh")
"""Names of the activations of hidden layers."""
OUTPUT = ("hard_sigmoid", "linear")
"""Names of the activations of output layers."""


def activation(name: str, height: float = 4.0) -> Activation:
    """The activation of that name; `height` is the largest rate of `box`."""
    if name == "box":
        return box(height)
    if name not in BY_NAME:
        raise UnknownNameError("activation", name, (*BY_NAME, "box"))
    return BY_NAME[name]


def tanh(u: Array) -> Array:
    """tanh by one sequence of exactly rounded operations, so that every simulator gets these bits.

    With u clipped to 20 in size (beyond, tanh rounds to one), and 2 u = k log 2 + r:
    exp(2 u) = 2^k (1 + r + r^2/2! + ... + r^14/14!), tanh(u) = 1 - 2 / (exp(2 u) + 1).
    """
    doubled = 2.0 * np.minimum(np.abs(u), 20.0)
    k = np.rint(doubled * 1.4426950408889634)
    r = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    total = np.ones_like(r)
    for n in range(14, 0, -1):
        total = 1.0 + r * total / n
    grown = np.ldexp(total, k.astype(np.int64))
    return np.asarray(np.sign(u) * (1.0 - 2.0 / (grown + 1.0)))


def activate(activation: Activation, u: Array) -> Array:
    """rho(u), in NumPy."""
    if activation.curve is ActivationKind.TANH:
        return tanh(u)
    return np.asarray(np.clip(u, activation.low, activation.high))
