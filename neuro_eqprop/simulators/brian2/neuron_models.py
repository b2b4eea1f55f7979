"""Neuron models for continuous time: their equations, parameters with units, and sources.

The input of a neuron is its drive d; a rate of one needs a drive of one. `lif` integrates the drive
in units of its threshold. The other models have membranes in volts and receive a current I(d), the
inverse of their f-I curve (`gain`), so that a constant drive d in [0, 1] makes them fire at rmax d.
For d < 0 the current continues linearly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.common.units import parse_si
from neuro_eqprop.simulators.brian2.setup import Handle, settings, simulator

CURRENTS, LENGTH = 160, 1.2
"""Number of currents of an f-I curve, and how long each is applied, in seconds."""


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
    others: tuple[str, ...]
    """Further equations."""
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
    time_constant: str = ""
    """The parameter that tau_m sets: tau_m itself, or C = tau_m gL; empty if there is none."""


LIF = "lif"
ADEX = MembraneModel(
    "adex",
    "Brette & Gerstner 2005, regular spiking",
    "(gL * (EL - v) + gL * DeltaT * exp(clip((v - VT) / DeltaT, -100, 20)) - w_adapt + I) / C",
    ("dw_adapt/dt = (a * (v - EL) - w_adapt) / tauw : amp",),
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
    ("du/dt = a * (b * v - u) : volt/second",),
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
    return MembraneModel(**{**_fields(model), "parameters": values})


def _fields(model: MembraneModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in MembraneModel.__dataclass_fields__}


def with_units(brian2: ModuleType, model: MembraneModel) -> dict[str, Handle]:
    """The parameters as quantities of Brian2."""
    return {name: p.value * unit_of(brian2, p.unit) for name, p in model.parameters.items()}


def unit_of(brian2: ModuleType, text: str) -> Handle:
    """A unit of Brian2, from its name such as "V/s"."""
    names = {"A": brian2.amp, "F": brian2.farad, "S": brian2.siemens, "V": brian2.volt}
    names |= {"s": brian2.second, "Hz": brian2.Hz}
    first, *rest = (names[part] for part in text.split("/"))
    for each in rest:
        first = first / each
    return first


@cache
def curve(key: tuple[str, tuple[tuple[str, float], ...]], dt: float, period: float) -> Array:
    """f-I curve of a model with these parameter values: currents and steady rates (2, CURRENTS)."""
    name, values = key
    brian2, model = simulator(), MODELS[name]
    units = {p: model.parameters[p].unit for p, _ in values}
    # Denser for small currents, where the curve is steepest.
    currents = model.largest * np.linspace(0.0, 1.0, CURRENTS) ** 2
    with settings(brian2):
        group = brian2.NeuronGroup(
            CURRENTS,
            "\n".join(
                (
                    f"dv/dt = {model.membrane} : volt (unless refractory)",
                    *model.others,
                    f"I : {dimension(model.current)} (constant)",
                )
            ),
            threshold=model.threshold,
            reset=model.reset,
            refractory=period * brian2.second,
            method="euler",
            namespace={n: v * unit_of(brian2, units[n]) for n, v in values}
            | {"mV": brian2.mV, "ms": brian2.ms},
            dt=dt * brian2.second,
        )
        group.I = currents * unit_of(brian2, model.current)
        group.v = model.start
        spikes = brian2.SpikeMonitor(group)
        brian2.Network(group, spikes).run(LENGTH * brian2.second, namespace={})
        times, of = np.asarray(spikes.t), np.asarray(spikes.i)
    rates = np.zeros(CURRENTS)
    for k in range(CURRENTS):
        mine = times[(of == k) & (times > LENGTH / 3)]
        rates[k] = (len(mine) - 1) / (mine[-1] - mine[0]) if len(mine) > 1 else 0.0
    return np.stack([currents, np.maximum.accumulate(rates)])


def dimension(unit: str) -> str:
    """A unit as Brian2's equations name it."""
    names = {"A": "amp", "V": "volt", "s": "second"}
    return "/".join(names[part] for part in unit.split("/"))


def gain(model: MembraneModel, *, dt: float, period: float, rmax: float) -> tuple[Array, Array]:
    """Inverse f-I curve: drives d in [-1, 1], and the currents in SI units that fire at rmax d."""
    values = tuple((name, p.value) for name, p in model.parameters.items())
    currents, rates = curve((model.name, values), dt, period)
    if rates[-1] < rmax:
        raise ValueError(
            f"neuron {model.name!r} fires at {rates[-1]:.0f} Hz at most with these parameters, "
            f"below rmax of {rmax:g} Hz; lower rmax or the refractory period"
        )
    silent = int(np.flatnonzero(rates == 0.0)[-1])
    drives = np.linspace(0.0, 1.0, 101)
    found = np.interp(rmax * drives, rates[silent:], currents[silent:])
    return np.r_[-1.0, drives], np.r_[2 * found[0] - found[-1], found]
