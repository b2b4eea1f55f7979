"""The interface of a backend, its description and the result of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.recordings import Counts, Record, Sink
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.ir import Gain, Reset, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.phases import PhaseLengths


class BackendError(RuntimeError):
    """A backend is missing, lacks a feature that the run needs, or failed."""


class Feature(Enum):
    """A capability that not every backend has."""

    SPIKING = "binary spikes"
    RESET_TO_ZERO = "reset to zero"
    DELAY = "delays above one step"
    GATED_GAIN = "gains switched between phases"
    GRADED = "graded messages"
    CURVED = "graded activations that are no clip"
    FOLLOW = "spikes that track a rate"
    FIXED_POINT = "24-bit fixed point"
    EXACT = "the same spikes as the reference"


@dataclass(frozen=True, slots=True)
class Support:
    """The features of a backend: all but those with a reason why it lacks them."""

    reasons: Mapping[Feature, str]

    def __contains__(self, feature: Feature) -> bool:
        return feature not in self.reasons


EVERYTHING = Support({})
FLOAT_ONLY = Support(
    {
        Feature.FOLLOW: "its spikes track no rate",
        Feature.FIXED_POINT: "it runs in floating point",
    }
)


STEP_COST = (1e-2, 1e-7)
"""Default of `BackendInfo.step_cost`."""


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """Description of a backend, the source of help texts, error messages, `doctor` and tables.

    Parameters
    ----------
    name
        As in `--on`.
    label
        Display name, as in tables and plots.
    summary
        How it runs a network, in one line.
    simulator
        The `Backend` class as "module:attribute"; imported on first use, called without arguments.
    support
        Its features, with a reason for each that it lacks.
    learner
        The `Learner` class as "module:attribute"; empty if it cannot learn.
    cannot_learn
        Why it has no learner.
    chunk
        Samples to pass to one `run` when there are many: enough to be fast, few enough to show
        progress and to bound memory.
    requires
        Installed distributions it needs, each with its version constraint.
    install
        Command that installs it on Pythons that its packages refuse; empty where pip does.
    python_variable
        Environment variable that names another Python to run it with.
    deadline
        Seconds without progress after which its child process is ended; None if it runs in this
        process.
    step_cost
        Seconds of a step of one sample on a slow machine: a constant, and per neuron and synapse.
        The default deadline of a simulation is a multiple of the time estimated from it.
    """

    name: str
    label: str
    summary: str
    simulator: str
    support: Support
    learner: str = ""
    cannot_learn: str = "its synapses do not change"
    chunk: int = 120
    requires: Mapping[str, str] = field(default_factory=dict)
    install: str = ""
    python_variable: str = ""
    deadline: float | None = None
    step_cost: tuple[float, float] = STEP_COST


@dataclass(frozen=True, slots=True)
class Overflow:
    """Number of 24-bit overflows of a population in fixed point, over units and steps."""

    wraps: int
    """Currents, or sums of graded units, that wrapped around."""
    saturations: int
    """Voltages, or states of graded units, that were clipped."""


@dataclass(frozen=True, slots=True)
class Result:
    """Measurements of a run: arrays (samples, phases, units) by population."""

    messages: Mapping[str, Ints]
    """Number of spikes or messages of each unit in each phase."""
    firing: Mapping[str, Array]
    """Rate: mean over the window of the spikes s, of the sum of messages of a graded unit, or of x
    of a unit that tracks a rate."""
    drive: Mapping[str, Array]
    """Mean of the drive, the pre-activation, over the window."""
    overflows: Mapping[str, Overflow] = field(default_factory=dict)
    """By population, if the network is in fixed point."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """By population, neurons per unit if not one: two for a pair that obeys Dale's law."""
    receivers: Mapping[str, int] = field(default_factory=dict)
    """By population, neurons of a unit that a message reaches, if not one."""


class Backend(Protocol):
    """A simulator that runs the step of `neuro_eqprop.spiking.ir`."""

    @property
    def name(self) -> str:
        """Its name, as in `--on`."""
        ...

    @property
    def support(self) -> Support:
        """Its features."""
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
        """Run all samples through the schedule, each from rest; pass recordings to the sink."""
        ...


@runtime_checkable
class Threaded(Protocol):
    """A backend that divides samples among threads."""

    def with_threads(self, threads: int) -> Backend:
        """The same backend with that many threads."""
        ...


@runtime_checkable
class TimedPhases(Protocol):
    """A backend whose time constants set the lengths of learning phases."""

    def phase_lengths(self, steps: int | None = None) -> PhaseLengths:
        """The default lengths, or those of nudged phases of `steps` steps."""
        ...


def step_seconds(backend: Backend, network: SpikingNetwork) -> float:
    """Seconds of a step: the clock of the network, or the backend's own `step_seconds`."""
    return float(getattr(backend, "step_seconds", network.dt))


def needed_features(network: SpikingNetwork, stimulus: Stimulus | None = None) -> list[Feature]:
    """The features that a backend needs to run a network."""
    neurons = [population.neuron for population in network.populations]
    graded = [neuron for neuron in neurons if neuron.graded]
    gated = any(p.gain is Gain.BETA for p in network.projections)
    needed = {
        Feature.SPIKING: len(graded) < len(neurons),
        Feature.RESET_TO_ZERO: any(neuron.reset is Reset.ZERO for neuron in neurons),
        Feature.DELAY: any(p.delay > 1 for p in network.projections),
        Feature.GATED_GAIN: gated or (stimulus is not None and bool(stimulus.pull)),
        Feature.GRADED: bool(graded),
        Feature.CURVED: any(n.activation and not n.activation.piecewise_linear for n in graded),
        Feature.FOLLOW: any(neuron.follow is not None for neuron in neurons),
        Feature.FIXED_POINT: network.fixed is not None,
    }
    return [feature for feature, present in needed.items() if present]


def kinds(network: SpikingNetwork) -> dict[str, ActivityKind]:
    """The kind of activity of each population."""
    return {p.name: p.neuron.activity for p in network.populations}


def check_record(network: SpikingNetwork, record: Record) -> None:
    """Raise UnknownNameError for a population or variable that does not exist."""
    known = kinds(network)
    for name in (*record.spikes, *(name for name, _ in record.signals)):
        if name not in known:
            raise UnknownNameError("population to record", name, known)
    for name, variable in record.signals:
        signals = [each for each in known[name].variables if each != "spikes"]
        if variable not in signals:
            raise UnknownNameError(f"variable of {name!r}", variable, signals)


def zeros(network: SpikingNetwork, samples: int, phases: int) -> Result:
    """A result filled with zeros."""
    shapes = {p.name: (samples, phases, p.size) for p in network.populations}
    return Result(
        {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()},
        {name: np.zeros(shape) for name, shape in shapes.items()},
        {name: np.zeros(shape) for name, shape in shapes.items()},
    )


def nothing(network: SpikingNetwork, schedule: Schedule) -> Result:
    """The result of a run without samples."""
    return zeros(network, 0, len(schedule))


def concatenate(parts: Sequence[Result]) -> Result:
    """The result of all samples, from the results of consecutive chunks of them."""
    names = parts[0].messages
    return Result(
        {name: np.concatenate([part.messages[name] for part in parts]) for name in names},
        {name: np.concatenate([part.firing[name] for part in parts]) for name in names},
        {name: np.concatenate([part.drive[name] for part in parts]) for name in names},
    )


def tally(
    network: SpikingNetwork, stimulus: Stimulus, schedule: Schedule, result: Result
) -> dict[tuple[str, str], Counts]:
    """Event counts by population and phase.

    Host operations are counted once, in the first phase of the first population with a current.
    """
    counts: dict[tuple[str, str], Counts] = {}
    first = next((p.name for p in network.populations if p.name in stimulus.current), None)
    for population in network.populations:
        fan_out = np.zeros(population.size, dtype=np.int64)
        for projection in network.projections:
            if projection.source == population.name:
                fan_out += projection.fan_out * result.receivers.get(projection.target, 1)
        neurons = population.size * result.copies.get(population.name, 1)
        for k, phase in enumerate(schedule):
            sent = result.messages[population.name][:, k].sum(axis=0)
            steps = phase.steps * stimulus.samples
            fed = k == 0 and population.name == first
            counts[population.name, phase.name] = Counts(
                steps=steps,
                spikes=int(sent.sum()),
                synops=int(sent @ fan_out),
                updates_active=int(sent.sum()),
                updates_idle=steps * neurons - int(sent.sum()),
                host_macs=stimulus.host_macs * stimulus.samples if fed else 0,
            )
    return counts
