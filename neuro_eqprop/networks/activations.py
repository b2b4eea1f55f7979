"""Activations: rate functions rho(u) of the drive u, with their range, slope and energy.

A new activation is an entry of `ACTIVATIONS`. One of a new shape also needs a member of
`ActivationKind` and an entry of `FUNCTIONS`; it then trains as rates. Graded spikes carry it once
every simulator computes it, which `RateFunction.graded` states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError


class ActivationKind(Enum):
    """The shape of an activation."""

    CLIP = "clip"
    """Piecewise linear: the identity, clipped to a range."""
    TANH = "tanh"
    """The hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class RateFunction:
    """Function, slope and energy of the activations of one shape, inside their range."""

    function: Callable[[Array], Array]
    """rho(u) before clipping to the range, of arrays; of tensors too, if no `Ops` has its own."""
    slope: Callable[[Array], Array]
    """rho'(u)."""
    energy: Callable[[Array], Array]
    """G(s), the integral of the inverse function of rho."""
    smooth: bool
    """Whether rho has derivatives of all orders on the real line, if its range is not clipped."""
    graded: bool = False
    """Whether the graded neurons of the simulators compute it."""


@dataclass(frozen=True, slots=True)
class Activation:
    """rho(u) = min(max(u, low), high) for CLIP, tanh(u) for TANH.

    `low` and `high` are the range of rates that a spike code has to carry.
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
        """Whether the range is finite, as a firing rate must be."""
        return self.low > -inf and self.high < inf

    @property
    def piecewise_linear(self) -> bool:
        """Whether rho is the identity, clipped to the range."""
        return self.curve is ActivationKind.CLIP

    @property
    def smooth(self) -> bool:
        """Whether rho has no kinks, as holomorphic nudging requires."""
        clipped = self.piecewise_linear and (self.low > -inf or self.high < inf)
        return FUNCTIONS[self.curve].smooth and not clipped

    @property
    def spiking(self) -> bool:
        """Whether integrate-and-fire neurons can represent it; graded spikes can represent all."""
        return self.piecewise_linear and (self.low, self.high) in ((0.0, 1.0), (-1.0, 1.0))

    def slope(self, u: Array) -> Array:
        """rho'(u); zero where u is clipped."""
        inside = (u > self.low) & (u < self.high) if self.piecewise_linear else True
        return np.where(inside, FUNCTIONS[self.curve].slope(u), 0.0)

    def energy(self, s: Array) -> Array:
        """G(s); infinite outside the range."""
        allowed = (s >= self.low) & (s <= self.high)
        return np.where(allowed, FUNCTIONS[self.curve].energy(s), inf)


def tanh(u: Array) -> Array:
    """tanh by a fixed sequence of exactly rounded operations, bit-identical on every simulator.

    With u clipped to 20 in size (beyond, tanh rounds to one), and 2 u = k log 2 + r:
    exp(2 u) = 2^k (1 + r + r^2/2! + ... + r^14/14!), tanh(u) = 1 - 2 / (exp(2 u) + 1).
    """
    doubled = 2.0 * np.minimum(np.abs(u), 20.0)
    k = np.rint(doubled * 1.4426950408889634)
    r = (doubled - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    total = np.ones_like(r)
    for n in range(14, 0, -1):
        total = 1.0 + r * total / n
    exponential = np.ldexp(total, k.astype(np.int64))
    return np.asarray(np.sign(u) * (1.0 - 2.0 / (exponential + 1.0)))


def tanh_energy(s: Array) -> Array:
    """s artanh(s) + 1/2 log(1 - s^2)."""
    inside = np.clip(s, -1 + 1e-15, 1 - 1e-15)
    return np.asarray(s * np.arctanh(inside) + 0.5 * np.log1p(-(inside**2)))


FUNCTIONS: Mapping[ActivationKind, RateFunction] = {
    ActivationKind.CLIP: RateFunction(
        function=lambda u: u,
        slope=np.ones_like,
        energy=lambda s: 0.5 * s**2,
        smooth=True,
        graded=True,
    ),
    ActivationKind.TANH: RateFunction(
        function=tanh,
        slope=lambda u: 1.0 - np.tanh(u) ** 2,
        energy=tanh_energy,
        smooth=True,
        graded=True,
    ),
}


def activate(activation: Activation, u: Array) -> Array:
    """rho(u), in NumPy."""
    rate = FUNCTIONS[activation.curve].function(u)
    clips = activation.piecewise_linear
    return np.asarray(np.clip(rate, activation.low, activation.high) if clips else rate)


HARD_SIGMOID = Activation("hard_sigmoid", 0.0, 1.0)
HARD_TANH = Activation("hard_tanh", -1.0, 1.0)
RELU = Activation("relu", 0.0, inf)
TANH = Activation("tanh", -1.0, 1.0, ActivationKind.TANH)
LINEAR = Activation("linear", -inf, inf)


def box(height: float) -> Activation:
    """Rates clipped to 0..height."""
    return Activation("box", 0.0, height)


@dataclass(frozen=True, slots=True)
class ActivationInfo:
    """An activation by name: its formula, the layers that may have it, and how it is made."""

    formula: str
    make: Callable[[float], Activation]
    """Factory; its argument is the largest rate, which only `box` uses."""
    hidden: bool = True
    output: bool = False


ACTIVATIONS: Mapping[str, ActivationInfo] = {
    "hard_sigmoid": ActivationInfo("clip(u, 0, 1)", lambda _: HARD_SIGMOID, output=True),
    "hard_tanh": ActivationInfo("clip(u, -1, 1)", lambda _: HARD_TANH),
    "box": ActivationInfo("clip(u, 0, height)", box),
    "relu": ActivationInfo("max(u, 0)", lambda _: RELU),
    "tanh": ActivationInfo("tanh(u)", lambda _: TANH),
    "linear": ActivationInfo("u", lambda _: LINEAR, hidden=False, output=True),
}
HIDDEN = tuple(name for name, info in ACTIVATIONS.items() if info.hidden)
"""Names of the activations of hidden layers."""
OUTPUT = tuple(name for name, info in ACTIVATIONS.items() if info.output)
"""Names of the activations of output layers."""


def activation(name: str, height: float = 4.0) -> Activation:
    """The activation of that name; `height` is the largest rate of `box`."""
    if name not in ACTIVATIONS:
        raise UnknownNameError("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name].make(height)
