"""What a simulator must do, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Protocol, cast

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.ir import Graded, SpikingNetwork, Stimulus
from neuro_eqprop.traces import ActivityKind, Counts, Record, Sink


class BackendError(RuntimeError):
    """A simulator is missing, cannot do what was asked, or failed; the message says which."""


class Feature(Enum):
    """What a backend may or may not be able to do."""

    SPIKING = "binary spikes"
    RESET_TO_ZERO = "reset to zero"
    DELAY = "delays above one step"
    GATED_GAIN = "gains switched between phases"
    GRADED = "graded messages"
    TANH = "graded tanh"
    FOLLOW = "spikes that follow a rate"
    FIXED_POINT = "whole numbers of 24 bits"
    EXACT = "the same spikes as the reference"


@dataclass(frozen=True, slots=True)
class Support:
    """The features a backend has, and for each it lacks the reason."""

    reasons: Mapping[Feature, str]

    def __contains__(self, feature: Feature) -> bool:
        return feature not in self.reasons


EVERYTHING = Support({})
FLOAT_ONLY = Support(
    {
        Feature.FOLLOW: "its spikes follow no rate; use the reference or the emulator",
        Feature.FIXED_POINT: "it runs in floating point; use the reference, the emulator or lava",
    }
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """How often a value of a population in fixed point did not fit, over all units and steps."""

    wraps: int
    """Of a current, or of a graded unit's sums: the value went on at the other end."""
    saturations: int
    """Of a voltage, or of a graded unit's state: the value stayed at the end."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run measured: arrays (samples, phases, units) by population."""

    messages: Mapping[str, Ints]
    """Spikes or messages each unit sent in each phase."""
    firing: Mapping[str, Array]
    """Mean over the window of s, for a graded unit of what it has sent in sum, or of the rate x
    that a unit follows."""
    drive: Mapping[str, Array]
    """Mean over the window of the drive: the pre-activation."""
    overflows: Mapping[str, Overflow] = field(default_factory=dict)
    """By population, if the network is in fixed point."""
    copies: int = 1
    """Neurons that stand for each unit: two where each is a pair that obeys Dale's law."""


class Backend(Protocol):
    """A simulator that runs the step of `neuro_eqprop.spiking.ir`."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    @property
    def support(self) -> Support:
        """What it can do."""
        ...

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule, each from rest; hand recordings to the sink."""
        ...


BACKENDS: Mapping[str, tuple[str, str]] = {
    "reference": ("neuro_eqprop.backends.reference.simulator", "Reference"),
    "emulator": ("neuro_eqprop.backends.emulator.simulator", "Emulator"),
    "lava": ("neuro_eqprop.backends.lava.simulator", "Lava"),
    "lava-fused": ("neuro_eqprop.backends.lava.variants", "LavaFused"),
    "lava-stock": ("neuro_eqprop.backends.lava.variants", "LavaStock"),
    "brian2": ("neuro_eqprop.backends.brian2.simulator", "Brian2"),
    "brian2-biology": ("neuro_eqprop.backends.brian2.continuous", "Brian2Biology"),
    "snntorch": ("neuro_eqprop.backends.snntorch.simulator", "SnnTorch"),
}


def load(name: str) -> Backend:
    """The backend of that name; its simulator is imported when it runs, not before."""
    if name not in BACKENDS:
        raise UnknownNameError("backend", name, BACKENDS)
    module, attribute = BACKENDS[name]
    return cast(Backend, getattr(import_module(module), attribute)())


def kinds(network: SpikingNetwork) -> dict[str, ActivityKind]:
    """How the rate of each population is read."""
    return {
        p.name: ActivityKind.GRADED if isinstance(p.neuron, Graded) else ActivityKind.SPIKES
        for p in network.populations
    }


def nothing(network: SpikingNetwork, schedule: Schedule) -> Result:
    """What no samples come to."""
    shapes = {p.name: (0, len(schedule), p.size) for p in network.populations}
    whole = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    real = {name: np.zeros(shape) for name, shape in shapes.items()}
    return Result(whole, real, real)


def tally(
    network: SpikingNetwork, stimulus: Stimulus, schedule: Schedule, result: Result
) -> dict[tuple[str, str], Counts]:
    """Events by population and phase. The host's work is booked once: on the first phase of the
    first population it feeds.
    """
    counts: dict[tuple[str, str], Counts] = {}
    first = next((p.name for p in network.populations if p.name in stimulus.current), None)
    for population in network.populations:
        fan_out = np.zeros(population.size, dtype=np.int64)
        for projection in network.projections:
            if projection.source == population.name:
                fan_out += projection.fan_out
        for k, phase in enumerate(schedule):
            sent = result.messages[population.name][:, k].sum(axis=0)
            steps = phase.steps * stimulus.samples
            fed = k == 0 and population.name == first
            counts[population.name, phase.name] = Counts(
                steps=steps,
                spikes=int(sent.sum()),
                synops=int(sent @ fan_out),
                updates_active=int(sent.sum()),
                updates_idle=steps * population.size * result.copies - int(sent.sum()),
                host_macs=stimulus.host_macs * stimulus.samples if fed else 0,
            )
    return counts
