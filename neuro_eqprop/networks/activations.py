"""Activations: rate functions rho(u) of the drive u, with their range, slope and energy.

A `RateFunction` states everything about a shape once, and nothing else special-cases it: training,
the spike codes and the simulators take value, slope, energy and integers from it. Compiled code
exists for the curves of this module; other curves run in the same loops, which call them back.
Another package adds an activation with an entry point in the group `neuro_eqprop.activations` that
names an `Activation`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.plugins import Registry


@dataclass(frozen=True, slots=True, repr=False)
class RateFunction:
    """The shape of an activation, inside its range.

    Parameters
    ----------
    name
        Its name in files.
    value
        rho(u), from u and a module with the functions of NumPy: `numpy` or `torch`.
    slope
        rho'(u), of NumPy arrays.
    energy
        G(s), the integral of the inverse function of rho, of NumPy arrays.
    smooth
        Whether rho has derivatives of all orders on the real line.
    clips
        Whether rates are clipped to the range of the activation; `value` is then the identity.
    exact
        rho(u) of float64 arrays, as the simulators compute it; by default `value` with NumPy.
    integers
        rho in fixed point: from a drive in multiples of a unit, and the unit, to a rate in such
        multiples; by default the nearest multiple of the exact value.
    shift
        rho(u + du) - rho(u) from s = rho(u), du and a module, without a difference of nearly equal
        rates. With it, a network trains on the path of displacements.
    """

    name: str
    value: Callable[[Any, Any], Any]
    slope: Callable[[Array], Array]
    energy: Callable[[Array], Array]
    smooth: bool = False
    clips: bool = False
    exact: Callable[[Array], Array] | None = None
    integers: Callable[[Ints, float], Ints] | None = None
    shift: Callable[[Any, Any, Any], Any] | None = None

    def __repr__(self) -> str:
        return f"<Curve.{self.name.upper()}: {self.name!r}>"


def identity(u: Any, _module: Any) -> Any:  # noqa: ANN401
    """u."""
    return u


def half_square(s: Array) -> Array:
    """s^2 / 2."""
    return 0.5 * s**2


CLIP = RateFunction("clip", identity, np.ones_like, half_square, smooth=True, clips=True)
"""Piecewise linear: the identity, clipped to a range."""


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


def fast_tanh(u: Any, module: Any) -> Any:  # noqa: ANN401
    """tanh(u) of a module."""
    return module.tanh(u)


def tanh_slope(u: Array) -> Array:
    """1 - tanh(u)^2."""
    return np.asarray(1.0 - np.tanh(u) ** 2)


def tanh_energy(s: Array) -> Array:
    """s artanh(s) + 1/2 log(1 - s^2)."""
    inside = np.clip(s, -1 + 1e-15, 1 - 1e-15)
    return np.asarray(s * np.arctanh(inside) + 0.5 * np.log1p(-(inside**2)))


def tanh_shift(s: Any, du: Any, module: Any) -> Any:  # noqa: ANN401
    """(1 - s^2) t / (1 + s t) with t = tanh(du)."""
    t = module.tanh(du)
    return (1.0 - s * s) * t / (1.0 + s * t)


HYPERBOLIC = RateFunction(
    "tanh",
    fast_tanh,
    tanh_slope,
    tanh_energy,
    smooth=True,
    exact=tanh,
    shift=tanh_shift,
)
"""The hyperbolic tangent."""


@dataclass(frozen=True, slots=True)
class Activation:
    """rho(u) = min(max(u, low), high) for the curve `CLIP`, the value of the curve for others.

    `low` and `high` are the range of rates that a spike code has to carry. Formula and layers are
    for help texts and for settings; they do not count when activations are compared.
    """

    name: str
    low: float
    high: float
    curve: RateFunction = CLIP
    formula: str = field(default="", repr=False, compare=False)
    hidden: bool = field(default=True, repr=False, compare=False)
    """Whether hidden layers may have it."""
    output: bool = field(default=False, repr=False, compare=False)
    """Whether output layers may have it."""

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, float(getattr(self, end)))
        if not self.low < self.high:
            raise ValueError(f"activation {self.name}: low {self.low} is not below {self.high}")

    @property
    def piecewise_linear(self) -> bool:
        """Whether rho is the identity, clipped to the range."""
        return self.curve.clips

    @property
    def smooth(self) -> bool:
        """Whether rho has no kinks, as holomorphic nudging requires."""
        clipped = self.piecewise_linear and (self.low > -inf or self.high < inf)
        return self.curve.smooth and not clipped

    @property
    def spiking(self) -> bool:
        """Whether integrate-and-fire neurons can represent it; graded spikes can represent all."""
        return self.piecewise_linear and (self.low, self.high) in ((0.0, 1.0), (-1.0, 1.0))

    def value(self, u: Array) -> Array:
        """rho(u), bit-identical on every simulator."""
        if self.piecewise_linear:
            return np.asarray(np.clip(u, self.low, self.high))
        exact = self.curve.exact
        return np.asarray(self.curve.value(u, np) if exact is None else exact(u))

    def integers(self, u: Ints, unit: float) -> Ints:
        """rho of a drive in multiples of `unit`, which the range consists of, in multiples of it.

        Ties round to even.
        """
        if self.curve.integers is not None:
            return self.curve.integers(u, unit)
        drive = np.asarray(u * unit, dtype=np.float64)
        return np.asarray(np.rint(self.value(drive) / unit), dtype=np.int64)

    def slope(self, u: Array) -> Array:
        """rho'(u); zero where u is clipped."""
        inside = (u > self.low) & (u < self.high) if self.piecewise_linear else True
        return np.where(inside, self.curve.slope(u), 0.0)

    def energy(self, s: Array) -> Array:
        """G(s); infinite outside the range."""
        allowed = (s >= self.low) & (s <= self.high)
        return np.where(allowed, self.curve.energy(s), inf)

    def to_json(self) -> dict[str, Any]:
        """Name, curve and range; JSON has no infinity, so a range without an end is null."""
        low, high = (end if isfinite(end) else None for end in (self.low, self.high))
        return {"name": self.name, "low": low, "high": high, "curve": self.curve.name}

    @staticmethod
    def from_json(described: Mapping[str, Any]) -> Activation:
        """The activation that `to_json` described; raises ValueError for an unknown curve."""
        low, high, name = described["low"], described["high"], described["name"]
        if not isinstance(name, str) or not all(is_number(end) for end in (low, high)):
            raise ValueError(f"{dict(described)} is no activation")
        return Activation(
            name,
            -inf if low is None else low,
            inf if high is None else high,
            find_curve(described["curve"]),
        )


def is_number(value: object) -> bool:
    """Whether a value of JSON is a number or null."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


HARD_SIGMOID = Activation("hard_sigmoid", 0.0, 1.0, formula="clip(u, 0, 1)", output=True)
HARD_TANH = Activation("hard_tanh", -1.0, 1.0, formula="clip(u, -1, 1)")
BOX = Activation("box", 0.0, 4.0, formula="clip(u, 0, height)")
RELU = Activation("relu", 0.0, inf, formula="max(u, 0)")
TANH = Activation("tanh", -1.0, 1.0, HYPERBOLIC, formula="tanh(u)")
LINEAR = Activation("linear", -inf, inf, formula="u", hidden=False, output=True)

ACTIVATIONS = Registry(
    "activation",
    Activation,
    {
        each.name: f"{__name__}:{each.name.upper()}"
        for each in (HARD_SIGMOID, HARD_TANH, BOX, RELU, TANH, LINEAR)
    },
    "neuro_eqprop.activations",
)
"""All activations by name, including those of other packages."""


def box(height: float) -> Activation:
    """Rates clipped to 0..height."""
    return replace(BOX, high=height)


def activation(name: str, height: float = BOX.high) -> Activation:
    """The activation of that name; `height` is the largest rate of `box`."""
    found = ACTIVATIONS.find(name)
    return box(height) if found is BOX else found


def find_curve(name: str) -> RateFunction:
    """The curve of that name, of this module or of an activation of another package."""
    for each in (CLIP, HYPERBOLIC):
        if each.name == name:
            return each
    others = {each.curve.name: each.curve for each in ACTIVATIONS.loadable().values()}
    if name not in others:
        raise ValueError(
            f"no activation has the curve {name!r}; install the package that the network was "
            f"trained with (known curves: {', '.join(others)})"
        )
    return others[name]


class LayerActivations(Collection[str]):
    """The names of the activations that layers of one role may have.

    Plug-ins are loaded when names are listed, or when a name is not built in.
    """

    def __init__(self, role: str) -> None:
        self.role = role

    def __contains__(self, name: object) -> bool:
        return name in ACTIVATIONS and bool(getattr(ACTIVATIONS[str(name)], self.role))

    def __iter__(self) -> Iterator[str]:
        return (name for name, each in ACTIVATIONS.loadable().items() if getattr(each, self.role))

    def __len__(self) -> int:
        return sum(1 for _ in self)


HIDDEN, OUTPUT = LayerActivations("hidden"), LayerActivations("output")
"""Names of the activations of hidden layers, and of output layers."""
