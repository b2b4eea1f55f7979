"""Neuron models for continuous time: their equations, parameters with units, and sources.

The input of a neuron is its drive d; a rate of one needs a drive of one. `lif` integrates the drive
in units of its threshold. The other models have membranes in volts and receive a current I(d), the
inverse of their f-I curve (`gain`), so that a constant drive d in [0, 1] makes them fire at rmax d.
For d < 0 the current continues linearly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.units import parse_si


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in SI units, with its unit."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class MembraneModel:
    """Equations of a membrane v in volts with a current I, in the syntax of Brian2."""

    name: str
    source: str
    """Publication of the equations and parameter values."""
    membrane: str
    """dv/dt without noise."""
    others: tuple[tuple[str, str, str], ...]
    """Further differential equations: variable, right-hand side and unit."""
    threshold: str
    reset: str
    start: str
    """Voltage at rest, as an expression of the parameters."""
    floor: str
    """Voltage that counts as zero in recordings."""
    top: str
    """Voltage that counts as one in recordings: the threshold."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    current: str = "A"
    """Unit of I."""
    largest: float = 1e-8
    """Largest current of the f-I curve."""
    refractory: float = 2e-3
    """Refractory period in seconds."""
    dt: float = 1e-4
    """Default time step of the integration in seconds."""
    conductances: bool = False
    """Whether synapses are conductances with reversal potentials Ee and Ei."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """Initial values of further variables that do not start at zero."""
    tau_s: float = 20e-3
    """Default time constant of its synapses in seconds."""
    time_constant: str = ""
    """The parameter that tau_m sets: tau_m itself, or C = tau_m gL; empty if there is none."""


LIF = "lif"
ADEX = MembraneModel(
    "adex",
    "Brette & Gerstner 2005, regular spiking",
    "(gL * (EL - v) + gL * DeltaT * exp(clip((v - VT) / DeltaT, -100, 20)) - w_adapt + I) / C",
    (("w_adapt", "(a * (v - EL) - w_adapt) / tauw", "A"),),
    "v > VT + 5 * DeltaT",
    "v = Vr\nw_adapt = w_adapt + b",
    "EL",
    "Vr",
    "VT",
    {
        "C": Parameter(281e-12, "F"),
        "gL": Parameter(30e-9, "S"),
        "EL": Parameter(-70.6e-3, "V"),
        "VT": Parameter(-50.4e-3, "V"),
        "DeltaT": Parameter(2e-3, "V"),
        "tauw": Parameter(144e-3, "s"),
        "a": Parameter(4e-9, "S"),
        "b": Parameter(0.0805e-9, "A"),
        "Vr": Parameter(-70.6e-3, "V"),
    },
    largest=8e-9,
    tau_s=50e-3,
    time_constant="C",
)
CONDUCTANCE = MembraneModel(
    "conductance",
    "Vogels & Abbott 2005",
    "(EL - v + I) / tau_m",
    (),
    "v > Vt",
    "v = Vr",
    "EL",
    "Vr",
    "Vt",
    {
        "tau_m": Parameter(20e-3, "s"),
        "EL": Parameter(-60e-3, "V"),
        "Vt": Parameter(-50e-3, "V"),
        "Vr": Parameter(-60e-3, "V"),
        "Ee": Parameter(0.0, "V"),
        "Ei": Parameter(-80e-3, "V"),
    },
    current="V",
    largest=0.3,
    refractory=5e-3,
    dt=5e-4,
    conductances=True,
    time_constant="tau_m",
)
IZHIKEVICH = MembraneModel(
    "izhikevich",
    "Izhikevich 2003, regular spiking",
    "0.04 / ms / mV * v**2 + 5 / ms * v + 140 * mV / ms - u + I",
    (("u", "a * (b * v - u)", "V/s"),),
    "v > 30 * mV",
    "v = c\nu = u + d",
    "c",
    "c",
    "30 * mV",
    {
        "a": Parameter(20.0, "Hz"),
        "b": Parameter(200.0, "Hz"),
        "c": Parameter(-65e-3, "V"),
        "d": Parameter(8.0, "V/s"),
    },
    current="V/s",
    largest=200.0,
    resting={"u": "b * v"},
    tau_s=50e-3,
)
MODELS = {model.name: model for model in (ADEX, CONDUCTANCE, IZHIKEVICH)}
NAMES = (LIF, *MODELS)


def find_model(name: str, parameters: Mapping[str, str], tau_m: float | None) -> MembraneModel:
    """A model with some of its parameters replaced by values with units, such as a="4nS"."""
    if name not in MODELS:
        raise UnknownNameError("neuron", name, NAMES)
    model = MODELS[name]
    values = dict(model.parameters)
    for key, text in parameters.items():
        if key not in values:
            raise UnknownNameError(f"parameter of neuron {name!r}", key, values)
        values[key] = Parameter(parse_si(text, values[key].unit), values[key].unit)
    if tau_m is not None:
        if not model.time_constant:
            raise ValueError(f"neuron {name!r} has no membrane time constant; leave out tau_m")
        scale = values["gL"].value if model.time_constant == "C" else 1.0
        unit = values[model.time_constant].unit
        values[model.time_constant] = Parameter(tau_m * scale, unit)
    return replace(model, parameters=values)
