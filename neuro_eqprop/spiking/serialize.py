"""Conversion of a spiking network to JSON values and arrays, and back.

Job files for Lava and the metadata of NIR files use this format. JSON has no infinity, so an
infinite limit is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import inf, isfinite
from typing import Any

import numpy.typing as npt

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.spiking.ir import (
    DecreasingGain,
    FixedPoint,
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    RateTracking,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.spiking.synapses import DenseSynapses, Synapses, rebuild_synapses


class DescriptionError(ValueError):
    """A description holds a value of the wrong type."""


def to_json(value: Any) -> Any:  # noqa: ANN401
    """Dataclass fields as JSON values: enums by value, infinite numbers as null."""
    if isinstance(value, Activation):
        return value.to_json()
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not isfinite(value) else value


def describe(network: SpikingNetwork) -> dict[str, Any]:
    """Everything of a network except its arrays, as JSON values."""
    described: dict[str, Any] = {
        "dt": network.dt,
        "output": network.output,
        "populations": [
            {"name": p.name, "neuron": described_neuron(p.neuron)} for p in network.populations
        ],
        "projections": [
            {
                "source": p.source,
                "target": p.target,
                "delay": p.delay,
                "gain": p.gain.value,
                **described_synapses(p.synapses),
            }
            for p in network.projections
        ],
    }
    if network.fixed is not None:
        described["units"] = dict(network.fixed.units)
    return described


def described_neuron(neuron: Neuron) -> Any:  # noqa: ANN401
    """The fields of a neuron; without `start` where it is half the threshold, as in version 0.1."""
    found = to_json(neuron)
    return {name: value for name, value in found.items() if (name, value) != ("start", None)}


def described_synapses(synapses: Synapses) -> dict[str, Any]:
    """The kind and settings of synapses; empty for a dense matrix, as in version 0.1."""
    if isinstance(synapses, DenseSynapses):
        return {}
    return {"synapses": {"kind": synapses.kind, **synapses.settings}}


def synapse_arrays(synapses: Synapses, key: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of synapses by name: `key` for a dense matrix, else `key.name`."""
    if isinstance(synapses, DenseSynapses):
        return {key: synapses.weight}
    return {f"{key}.{name}": array for name, array in synapses.arrays.items()}


def read_synapses(
    described: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], key: str
) -> Synapses:
    """The synapses that `described_synapses` and `synapse_arrays` wrote."""
    settings = described.get("synapses")
    if settings is None:
        return DenseSynapses(arrays[key])
    own = {name[len(key) + 1 :]: a for name, a in arrays.items() if name.startswith(f"{key}.")}
    return rebuild_synapses(text(settings["kind"]), settings, own)


def rebuild(
    described: Mapping[str, Any], biases: Sequence[Array], synapses: Sequence[Synapses | Array]
) -> SpikingNetwork:
    """The network of a description, with a bias per population and synapses per projection."""
    populations = tuple(
        Population(text(p["name"]), rebuild_neuron(p["neuron"]), bias)
        for p, bias in zip(described["populations"], biases, strict=True)
    )
    projections = tuple(
        Projection(text(p["source"]), text(p["target"]), each, integer(p["delay"]), Gain(p["gain"]))
        for p, each in zip(described["projections"], synapses, strict=True)
    )
    units = {text(name): number(unit) for name, unit in described.get("units", {}).items()}
    dt, output = number(described["dt"]), text(described["output"])
    return SpikingNetwork(
        dt, populations, projections, output, FixedPoint(units) if units else None
    )


def rebuild_neuron(described: Mapping[str, Any]) -> Neuron:
    """The neuron of a description."""
    if "theta" in described:
        activation = Activation.from_json(described["activation"])
        return Graded(activation, number(described["theta"]), number(described["damping"]))
    return Spiking(
        number(described["current_decay"]),
        number(described["voltage_decay"]),
        number(described["threshold"]),
        Reset(described["reset"]),
        number(described["floor"], -inf),
        number(described["ceiling"], inf),
        rebuild_tracking(described.get("follow")),
        None if described.get("start") is None else number(described["start"]),
    )


def rebuild_tracking(described: Mapping[str, Any] | None) -> RateTracking | None:
    """The rate tracking of a description; None if there is none."""
    if described is None:
        return None
    gain, step = (
        DecreasingGain(number(described[key]["first"]), number(described[key]["power"]))
        for key in ("gain", "step")
    )
    seed = described["seed"]
    return RateTracking(
        Activation.from_json(described["activation"]),
        gain,
        step,
        None if seed is None else integer(seed),
    )


def text(value: object) -> str:
    """The value, if it is a string; else raises DescriptionError."""
    if not isinstance(value, str):
        raise DescriptionError(f"{value!r} is no text")
    return value


def number(value: Any, default: float | None = None) -> float:  # noqa: ANN401
    """The value, if it is a number, or `default` for null; else raises DescriptionError."""
    found = default if value is None else value
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise DescriptionError(f"{value!r} is no number")
    return found


def integer(value: object) -> int:
    """The value, if it is an integer; else raises DescriptionError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DescriptionError(f"{value!r} is no integer")
    return value
