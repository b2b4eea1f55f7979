"""A membrane in continuous time: its parameters in SI units, and its equations for Brian2.

    dv/dt = rmax (I + g + beta g_beta) - (v - rest) / tau_m + noise theta sqrt(2 rmax / dt) eta
    dg/dt = -g / tau_s                       on a spike that arrives: g = g + w / (rmax tau_s)
    spike   v >= theta, outside of the refractory period; then v = v - theta, or v = 0
    limits  v = min(max(v, floor), ceiling)

I = bias + current + beta pull, theta is the threshold, rest = theta / 2, and eta is a standard
normal number drawn for each neuron and dt. Voltages are dimensionless. A spike adds w in total, so
that a neuron fires at rmax times its drive I + g + beta g_beta: the hard sigmoid, whose upper clamp
is the refractory period 1 / rmax. Forward Euler preserves these sums exactly for any dt.

This is the neuron `lif`. The models in `neuro_eqprop.simulators.brian2.neuron_models` receive the
drive as a current. A Poisson neuron fires in each dt with the probability rmax dt clip(drive).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from types import ModuleType

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.simulators.brian2.neuron_models import (
    LIF,
    NAMES,
    MembraneModel,
    dimension,
    find_model,
    gain,
    unit_of,
    with_units,
)
from neuro_eqprop.simulators.brian2.setup import Handle
from neuro_eqprop.spiking.ir import Reset, Spiking

DALE = ("pairs", "interneurons")
"""Ways to obey Dale's law."""


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
    dale: bool | str = False
    """Dale's law: "pairs" or True, or "interneurons".

    A pair is a neuron that only excites and one that only inhibits, with the same input and noise.
    With interneurons, each population excites an inhibitory population of the same size, whose
    synapses have its negative weights.
    """
    neuron: str = LIF
    """Neuron model: "lif", "adex", "conductance" or "izhikevich"."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Parameters of the neuron model that differ from its source, as name and value with unit."""
    poisson: bool = False
    """Whether populations that only carry the input fire as Poisson processes."""
    record_dt: float | None = None
    """Interval of recordings, in seconds; None for one step, or less if a neuron can fire twice
    in it."""

    def __post_init__(self) -> None:
        self._check_names()
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
        if self.model is not None and self.refractory_kind is not Refractory.HOLD:
            object.__setattr__(self, "refractory_kind", Refractory.HOLD)

    def _check_names(self) -> None:
        """Raise an error for an unknown neuron, parameter or kind of Dale's law."""
        if self.dale not in (False, True, *DALE):
            raise UnknownNameError("kind of Dale's law", str(self.dale), DALE)
        if self.neuron not in NAMES:
            raise UnknownNameError("neuron", self.neuron, NAMES)
        if self.neuron == LIF and self.parameters:
            raise UnknownNameError("parameter of neuron 'lif'", self.parameters[0][0], ())

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
        interval, step = self.record_ticks * self.dt, self.step
        if self.record_dt is not None and abs(interval - self.record_dt) > 1e-6 * self.dt:
            raise ValueError(f"record_dt of {self.record_dt} s is no multiple of dt, {self.dt} s")
        if self.ticks % self.record_ticks:
            raise ValueError(f"a step of {step} s is no multiple of record_dt, {interval} s")
        if self.record_dt is not None and interval > max(self.period, self.dt) * (1 + 1e-6):
            raise ValueError(
                f"a neuron with a refractory period of {self.period} s can fire twice within "
                f"record_dt, {interval} s; record more often"
            )

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
        if self.refractory is not None:
            return self.refractory
        return self.step if self.model is None else self.model.refractory

    @property
    def model(self) -> MembraneModel | None:
        """The neuron model with its parameters; None for `lif`."""
        if self.neuron == LIF:
            return None
        return find_model(self.neuron, dict(self.parameters), self.tau_m)

    @property
    def pairs(self) -> bool:
        """Whether each neuron is a pair that obeys Dale's law."""
        return self.dale in (True, DALE[0])

    @property
    def interneurons(self) -> bool:
        """Whether populations inhibit by interneurons."""
        return self.dale == DALE[1]

    @property
    def record_ticks(self) -> int:
        """Steps of integration in an interval of recordings."""
        if self.record_dt is not None:
            return max(1, round(self.record_dt / self.dt))
        most = max(1, min(self.ticks, int(self.period / self.dt + 1e-6)))
        return next(k for k in range(most, 0, -1) if self.ticks % k == 0)

    @property
    def substeps(self) -> int:
        """Recorded values in a step of a schedule."""
        return self.ticks // self.record_ticks


DRAWN, OWN = "sqrt(2 * rmax / dt) * eta", "sqrt(2 * rmax) * xi"
"""White noise from numbers eta that a callback sets in every dt, or by Brian2's generator."""


def membrane(biology: Biology, *, gated: bool, white: str = DRAWN) -> str:
    """The equations of a population; `gated` if synapses with a gain of beta arrive at it."""
    if biology.model is not None:
        return model_membrane(biology, biology.model, gated=gated, white=white)
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


def model_membrane(biology: Biology, model: MembraneModel, *, gated: bool, white: str) -> str:
    """The equations of a population whose neuron model has a membrane in volts."""
    noise = f" + noise * span * {white}" if biology.noise else ""
    inputs = ["g", *(["g_beta"] if gated else [])]
    given = "outside + beta * pull"
    inputs_at_v = [given]
    lines = [
        f"dv/dt = {model.membrane}{noise} : volt (unless refractory)",
        *model.others,
        "dreceived/dt = rmax * drive : 1",
        "outside : 1 (constant)",
        "pull : 1 (constant)",
        "beta : 1 (shared)",
        "sent : 1",
    ]
    for name, factor in zip(inputs, ("", "beta * "), strict=False):
        if model.conductances:
            lines += [f"d{name}{sign}/dt = -{name}{sign} / tau_s : 1" for sign in ("_e", "_i")]
            lines.append(f"{name} = {name}_e - {name}_i : 1")
            pull = f"{name}_e * (Ee - v) / (Ee - middle) - {name}_i * (v - Ei) / (middle - Ei)"
            inputs_at_v.append(f"{factor}({pull})")
        else:
            lines.append(f"d{name}/dt = -{name} / tau_s : 1")
            inputs_at_v.append(f"{factor}{name}")
    drive = " + ".join([given, *(f"{f}{n}" for n, f in zip(inputs, ("", "beta * "), strict=False))])
    lines.append(f"drive = {drive} : 1")
    lines.append(f"I = unit_current * gain({' + '.join(inputs_at_v)}) : {dimension(model.current)}")
    return "\n".join([*lines, *(["eta : 1"] if biology.noise and white == DRAWN else [])])


POISSON = """
dreceived/dt = rmax * drive : 1
drive = outside : 1
v = 0.0 : 1
outside : 1 (constant)
pull : 1 (constant)
beta : 1 (shared)
sent : 1
chance : 1
"""
"""Neurons that fire as Poisson processes; `chance` is a uniform random number in every dt."""


def reset(neuron: Spiking, model: MembraneModel | None = None) -> str:
    """The reset statements of a neuron."""
    if model is not None:
        return f"{model.reset}\nsent = sent + 1"
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
    if biology.model is not None:
        return named | model_constants(brian2, biology, biology.model)
    if biology.tau_m is not None:
        named |= {"tau_m": biology.tau_m * brian2.second, "rest": neuron.threshold / 2}
    if biology.noise:
        named["noise"] = biology.noise
    return named


def model_constants(
    brian2: ModuleType, biology: Biology, model: MembraneModel
) -> dict[str, Handle]:
    """The constants of a neuron model: its parameters, and its current as a function of drive."""
    drives, currents = gain(model, dt=biology.dt, period=biology.period, rmax=biology.rmax)

    def current(drive: Array) -> Array:
        return np.asarray(np.interp(drive, drives, currents))

    low, high = potentials(brian2, model)
    return (
        with_units(brian2, model)
        | {"mV": brian2.mV, "ms": brian2.ms, "span": (high - low) * brian2.volt}
        | {"middle": (high + low) / 2 * brian2.volt, "noise": biology.noise}
        | {
            "gain": brian2.Function(current, arg_units=[1], return_unit=1),
            "unit_current": unit_of(brian2, model.current),
        }
    )


def potentials(brian2: ModuleType, model: MembraneModel) -> tuple[float, float]:
    """Voltages that count as zero and as one in recordings, in volts."""
    names = with_units(brian2, model) | {"mV": brian2.mV}
    low, high = (
        float(names[text]) if text in names else float(text.split("*")[0]) * 1e-3
        for text in (model.floor, model.top)
    )
    return low, high
