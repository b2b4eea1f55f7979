"""A membrane in continuous time: its parameters in SI units, and its equations for Brian2.

    dv/dt = rmax (I + g + beta g_beta) - (v - rest) / tau_m + noise theta sqrt(2 rmax / dt) eta
    dg/dt = -g / tau_s                       on a spike that arrives: g = g + w / (rmax tau_s)
    spike   v >= theta, outside of the refractory period; then v = v - theta, or v = 0
    limits  v = min(max(v, floor), ceiling)

I = bias + current + beta pull, theta is the threshold, rest = theta / 2, and eta is a standard
normal number drawn for each neuron and dt. Voltages are dimensionless. A spike adds w in total, so
that a neuron fires at rmax times its drive I + g + beta g_beta: the hard sigmoid, whose upper clamp
is the refractory period 1 / rmax. Forward Euler preserves these sums exactly for any dt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from types import ModuleType
from typing import Any, TypeAlias

from neuro_eqprop.spiking.ir import Reset, Spiking

Handle: TypeAlias = Any
"""An object of Brian2, which has no types."""


class Refractory(Enum):
    """Behaviour of a membrane in the refractory period."""

    INTEGRATE = "integrate"
    """It integrates; with a period of 1 / rmax this is the upper clamp of the hard sigmoid."""
    HOLD = "hold"
    """It is held constant and input is ignored, as in textbooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Biology:
    """Neurons and synapses with time constants; all floats are in SI units."""

    dt: float
    """Time step of the integration, in seconds."""
    seed: int
    """Seed of the noise: the same seed gives the same spikes."""
    duration: float = 1.0
    """Duration of a free run (`settle`), in seconds."""
    rmax: float = 100.0
    """Firing rate that represents a rate of one, in hertz."""
    tau_m: float | None = None
    """Membrane time constant, in seconds; None for a membrane without leak."""
    tau_s: float = 5e-3
    """Time constant of the synaptic current, in seconds."""
    delay: float = 0.0
    """Time from a spike to its arrival, in seconds; it acts in the step after that."""
    refractory: float | None = None
    """Refractory period, in seconds; 1 / rmax if None."""
    refractory_kind: Refractory = Refractory.INTEGRATE
    noise: float = 0.0
    """Standard deviation of a membrane with time constant 1 / rmax, in units of the threshold."""
    dale: bool = False
    """Whether each neuron is a pair, one that only excites and one that only inhibits.

    Both receive the same input and the same noise.
    """

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"the seed is {self.seed}; it must not be below zero")
        above = {"dt": self.dt, "duration": self.duration, "rmax": self.rmax, "tau_s": self.tau_s}
        if self.tau_m is not None:
            above["tau_m"] = self.tau_m
        for name, value in above.items():
            if not 0 < value < inf:
                raise ValueError(f"{name} is {value}; it must be above zero and finite")
        for name, value in (("delay", self.delay), ("period", self.period), ("noise", self.noise)):
            if not 0 <= value < inf:
                raise ValueError(f"{name} is {value}; it must be finite and not below zero")
        self._check_dt(above)

    def _check_dt(self, above: Mapping[str, float]) -> None:
        """Raise an error for times that forward Euler with this dt cannot represent."""
        for name in {"tau_s", "tau_m"} & set(above):
            if above[name] < self.dt:
                raise ValueError(
                    f"{name} of {above[name]} s is shorter than dt, {self.dt} s; lower dt"
                )
        whole = {"1 / rmax": self.step, "delay": self.delay, "period": self.period}
        for name, value in whole.items():
            if abs(value / self.dt - round(value / self.dt)) > 1e-6:
                raise ValueError(f"{name} of {value} s is no multiple of dt, {self.dt} s")

    @property
    def step(self) -> float:
        """Seconds that a step of a schedule takes: the shortest interval between two spikes."""
        return 1.0 / self.rmax

    @property
    def ticks(self) -> int:
        """Steps of integration in a step of a schedule."""
        return round(self.step / self.dt)

    @property
    def period(self) -> float:
        """The refractory period, in seconds."""
        return self.step if self.refractory is None else self.refractory


DRAWN, OWN = "sqrt(2 * rmax / dt) * eta", "sqrt(2 * rmax) * xi"
"""White noise: from numbers eta that are set in every dt, or by Brian2's own generator."""


def membrane(biology: Biology, *, gated: bool, white: str = DRAWN) -> str:
    """The equations of a population; `gated` if synapses with a gain of beta arrive at it."""
    leak = "" if biology.tau_m is None else " - (v - rest) / tau_m"
    noise = f" + noise * theta * {white}" if biology.noise else ""
    held = " (unless refractory)" if biology.refractory_kind is Refractory.HOLD else ""
    lines = [
        f"dv/dt = rmax * drive{leak}{noise} : 1{held}",
        f"drive = outside + beta * pull + g{' + beta * g_beta' if gated else ''} : 1",
        "dg/dt = -g / tau_s : 1",
        "dreceived/dt = rmax * drive : 1",
        "outside : 1 (constant)",
        "pull : 1 (constant)",
        "beta : 1 (shared)",
        "sent : 1",
    ]
    if gated:
        lines.append("dg_beta/dt = -g_beta / tau_s : 1")
    if biology.noise and white == DRAWN:
        lines.append("eta : 1")
    return "\n".join(lines)


def reset(neuron: Spiking) -> str:
    """The reset statements of a neuron."""
    after = "v - theta" if neuron.reset is Reset.SUBTRACT else "0"
    return f"v = {after}\nsent = sent + 1"


def constants(brian2: ModuleType, biology: Biology, neuron: Spiking) -> dict[str, Handle]:
    """The constants of the equations, with units."""
    named = {
        "rmax": biology.rmax * brian2.Hz,
        "tau_s": biology.tau_s * brian2.second,
        "theta": neuron.threshold,
        "lowest": neuron.floor,
        "highest": neuron.ceiling,
    }
    if biology.tau_m is not None:
        named |= {"tau_m": biology.tau_m * brian2.second, "rest": neuron.threshold / 2}
    if biology.noise:
        named["noise"] = biology.noise
    return named
