"""Options of the backends in continuous time as text with units, for the CLI and for Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.units import parse_si
from neuro_eqprop.simulators.biology.neuron_models import LIF, MODELS, NAMES
from neuro_eqprop.simulators.biology.settings import (
    BASE,
    DALE,
    NUDGES,
    READOUTS,
    Biology,
    Refractory,
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the field of `Biology` it sets, its unit, and what it means."""

    field: str
    unit: str
    """Unit that must be written; empty for a number or a name."""
    meaning: str
    default: str


OPTIONS: Mapping[str, Option] = {
    "neuron": Option("neuron", "", f"neuron model: {', '.join(NAMES)}", LIF),
    "tau_m": Option("tau_m", "s", "membrane time constant, as 20ms", "no leak, or the model's"),
    "tau_syn": Option(
        "tau_s", "s", "time constant of the synaptic current", "5ms, tau_m, or the model's"
    ),
    "refractory": Option(
        "refractory", "s", "refractory period, during which the membrane is held", "1/rmax"
    ),
    "noise": Option("noise", "", "noise of the membrane, in thresholds", "0"),
    "delay": Option("delay", "s", "time from a spike to its arrival", "0s"),
    "dale": Option("dale", "", f"Dale's law: {' or '.join(DALE)}", "none"),
    "rmax": Option("rmax", "Hz", "firing rate of a unit whose rate is one", "100Hz"),
    "dt": Option("dt", "s", "time step of the integration", "1ms, or the model's"),
    "record_dt": Option("record_dt", "s", "interval of recordings", "1ms"),
    "nudge": Option(
        "nudge", "", f"what the nudge subtracts from the target: own {' or '.join(NUDGES)}", "drive"
    ),
    "tau_drive": Option("tau_d", "s", "time constant of the own drive, low-passed", "20ms"),
    "readout": Option(
        "readout", "", f"what synapses that learn read: {', '.join(READOUTS)}", "spikes"
    ),
    "common_noise": Option(
        "common_noise", "", "the same noise in all nudged phases, to reduce variance", "no"
    ),
    "poisson": Option("poisson", "", "input as Poisson spike trains: yes or no", "no"),
    "noise_seed": Option("seed", "", "seed of noise and Poisson input", "0"),
}
"""Options by name; any other name is a parameter of the neuron model."""


def make_biology(**options: str | float | bool) -> Biology:
    """The parameters with these options; times, rates and parameters carry their units.

    Parameters
    ----------
    **options
        Those of `OPTIONS`, such as tau_m="20 ms", tau_syn="5 ms", noise=0.2, dale="interneurons",
        neuron="adex"; and parameters of the neuron model by their names, such as a="4 nS".

    Examples
    --------
    >>> make_biology(tau_m="20 ms", delay="2 ms", noise=0.2).tau_m
    0.02
    >>> make_biology(tau_m=20)
    Traceback (most recent call last):
        ...
    ValueError: tau_m is 20, without a unit; write it as '20 ms'

    """
    values: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    for name, value in options.items():
        if name in OPTIONS:
            values[OPTIONS[name].field] = converted(name, value)
        else:
            parameters[name] = str(value)
    neuron = values.get("neuron", LIF)
    known = MODELS[neuron].parameters if neuron in MODELS else {}
    for name in parameters:
        if name not in known:
            raise UnknownNameError("option of the biology", name, (*OPTIONS, *known))
    values["parameters"] = tuple(sorted(parameters.items()))
    if "dt" not in values and neuron in MODELS:
        values["dt"] = MODELS[neuron].dt
    if "tau_s" not in values:
        slow = MODELS[neuron].tau_s if neuron in MODELS else values.get("tau_m") or 0.0
        values["tau_s"] = max(BASE.tau_s, slow)
    values["dt"] = min(values.get("dt", BASE.dt), values.get("record_dt") or BASE.dt)
    if "refractory" in values:
        values["refractory_kind"] = Refractory.HOLD
    return replace(BASE, **values)


def converted(name: str, value: str | float | bool) -> object:
    """The value of an option in SI units."""
    option = OPTIONS[name]
    if option.unit:
        if not isinstance(value, str):
            unit = f"m{option.unit}" if option.unit == "s" else option.unit
            raise ValueError(f"{name} is {value}, without a unit; write it as '{value} {unit}'")
        try:
            return parse_si(value, option.unit)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if option.field in ("neuron", "dale", "nudge", "readout"):
        return value
    if option.field in ("poisson", "common_noise"):
        if str(value).lower() not in ("yes", "no", "true", "false"):
            raise ValueError(f"{name} is {value!r}; write yes or no")
        return str(value).lower() in ("yes", "true")
    try:
        return int(value) if option.field == "seed" else float(value)
    except ValueError:
        raise ValueError(f"{name} is {value!r}; write a number") from None


def parse_options(text: str) -> dict[str, str | float | bool]:
    """Options from one text: "tau_m=20ms, neuron=adex"."""
    found: dict[str, str | float | bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is no option of the biology; write NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def described(biology: Biology) -> dict[str, str]:
    """The neuron model and the publication of its values."""
    model = biology.model
    source = "integrate and fire, the reference's own step" if model is None else model.source
    return {"neuron": biology.neuron, "source": source}
