"""The parameters of neurons and synapses in continuous time, in SI units.

`equations` has the differential equations that they parametrize.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, inf

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.simulators.biology.neuron_models import LIF, NAMES, MembraneModel, find_model
from neuro_eqprop.spiking.phases import PhaseLengths, PhasePolicy

CONTINUOUS = ("biology", "brian2-biology")
"""Backends in continuous time: compiled, and in Brian2."""
DALE = ("pairs", "interneurons")
"""Ways to obey Dale's law."""
NUDGES = ("drive", "spikes")
"""What the nudge subtracts from the target."""
READOUTS = ("spikes", "mixed", "drive")
"""What synapses that learn read of their neurons."""
RECORD_DT = 1e-3
"""Longest default interval of recordings, in seconds."""


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
    """Interval of recordings, in seconds; None for the longest up to 1 ms that divides a step and
    in which a neuron cannot fire twice."""
    nudge: str = "drive"
    """What the nudge subtracts from the target: the neuron's own "drive", low-passed and clipped to
    0..1, or its own "spikes", which arrive at it as at a synapse of its own."""
    invert: bool = True
    """Whether a drive acts through the inverse of the neuron's f-I curve, so that it fires at its
    drive; neuron models always need it."""
    tau_d: float = 20e-3
    """Time constant of the low-passed drive, in seconds."""
    readout: str = "spikes"
    """What synapses that learn read of their neurons: traces of "spikes", of the clipped "drive",
    or "mixed": spikes of the presynaptic and drive of the postsynaptic neuron."""
    common_noise: bool = False
    """Whether all nudged phases of a sample get the same noise. This reduces the variance of the
    update as common random numbers do; it is no model of biology."""

    def __post_init__(self) -> None:
        self._check_names()
        if self.seed < 0:
            raise ValueError(f"the seed is {self.seed}; it must not be below zero")
        above = {"dt": self.dt, "duration": self.duration, "rmax": self.rmax}
        above |= {"tau_s": self.tau_s, "tau_d": self.tau_d}
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
        if self.nudge not in NUDGES:
            raise UnknownNameError("nudge", self.nudge, NUDGES)
        if self.readout not in READOUTS:
            raise UnknownNameError("read-out", self.readout, READOUTS)
        if self.neuron not in NAMES:
            raise UnknownNameError("neuron", self.neuron, NAMES)
        if self.neuron == LIF and self.parameters:
            raise UnknownNameError("parameter of neuron 'lif'", self.parameters[0][0], ())

    def _check_dt(self, above: Mapping[str, float]) -> None:
        """Raise an error for times that forward Euler with this dt cannot represent."""
        for name in sorted({"tau_s", "tau_d", "tau_m"} & set(above)):
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
        longest = min(self.period, RECORD_DT) if self.period else self.dt
        most = max(1, min(self.ticks, int(longest / self.dt + 1e-6)))
        return next(k for k in range(most, 0, -1) if self.ticks % k == 0)

    @property
    def substeps(self) -> int:
        """Recorded values in a step of a schedule."""
        return self.ticks // self.record_ticks


BASE = Biology(dt=1e-3, seed=0)
"""Membranes without leak, synapses of 5 ms, no noise."""
NOISY = replace(BASE, tau_m=20e-3, tau_s=20e-3, noise=0.2, delay=2e-3)
"""A leak of 20 ms, synapses as slow, noise, and 2 ms from spike to arrival."""
SETTLE, WINDOW, TRIPS = 0.48, 0.8, 14
"""Seconds in which a nudged phase settles without delay, those of its window, and the number of
round trips of a delay in which it settles."""


def phase_lengths(biology: Biology, steps: int | None = None) -> PhaseLengths:
    """The lengths of learning phases in steps of 1 / rmax.

    A nudged phase settles for 0.48 s, or for 14 round trips of the delay if that is longer; its
    window lasts 0.8 s more. With a number of `steps`, it is divided in the same proportion. The
    free phase has as many steps before its window as a nudged one settles.
    """
    settle = max(SETTLE, TRIPS * 2 * biology.delay)
    share = WINDOW / (settle + WINDOW)
    total = ceil((settle + WINDOW) / biology.step - 1e-6)
    return PhasePolicy(total, share, 1 - share).lengths(steps)
