"""The step of `neuro_eqprop.spiking.ir` in Brian2: a discrete update of a group once per step.

A population is a `NeuronGroup` with a copy of its neurons for each sample, a projection a
`Synapses` object that adds to the input of its target. Brian2 updates groups, then tests
thresholds, then delivers spikes, which a group reads in the next step. So a delay of d steps is
(d - 1) dt in Brian2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import Result, Support, concatenate, nothing
from neuro_eqprop.simulators.brian2 import BACKEND
from neuro_eqprop.simulators.brian2.equations import tables
from neuro_eqprop.simulators.brian2.groups import neurons, synapses
from neuro_eqprop.simulators.brian2.setup import Handle, run_network, settings, simulator
from neuro_eqprop.simulators.brian2.spike_recorder import SpikeRecorder
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.ir import (
    Graded,
    SpikingNetwork,
    Stimulus,
)

VALUES = 4_000_000
"""Synapses plus recorded values that one Brian2 run may hold."""

VARIABLES = {"voltage": "v", "state": "x", "drive": "drive"}
"""Brian2 variables of the recorded signals."""


@dataclass(frozen=True, slots=True)
class Brian2:
    """Brian2 backend in discrete steps; samples are copies of the network in one run."""

    name: str = BACKEND.name
    support: Support = BACKEND.support
    values: int = VALUES
    """Limits the number of samples per run."""

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule."""
        check_run(self, network, stimulus)
        brian2 = simulator()
        room = max(1, self.values // values_per_sample(network, schedule, record))
        parts: list[Result] = []
        for start in range(0, stimulus.samples, room):
            part = stimulus.take(start, start + room)
            with settings(brian2):
                rendering = render(brian2, network, part, schedule=schedule, record=record)
                run_network(brian2, rendering.whole, rendering.seconds)
            parts.append(measured(rendering, part.samples, schedule))
            for k, recording in enumerate(recorded(rendering, part.samples)):
                sink.sample(start + k, recording)
        return concatenate(parts) if parts else nothing(network, schedule)


def values_per_sample(network: SpikingNetwork, schedule: Schedule, record: Record) -> int:
    """Synapses plus recorded values of one sample; a binary spike counts as an eighth."""
    steps = sum(phase.steps for phase in schedule)
    synapses = sum(int(projection.fan_out.sum()) for projection in network.projections)
    values = steps * sum(network[name].size for name, _ in record.signals)
    sending = [network[name] for name in record.spikes]
    spikes = sum(steps * p.size // (1 if isinstance(p.neuron, Graded) else 8) for p in sending)
    return 1 + synapses + values + spikes


@dataclass(frozen=True, slots=True)
class Rendering:
    """The Brian2 objects of one run that are needed to run it and to read its results."""

    whole: Handle
    seconds: Handle
    ends: dict[str, Handle]
    """Monitors of the sums at the last step of each phase."""
    recorder: SpikeRecorder
    signals: dict[tuple[str, str], Handle]


def render(
    brian2: ModuleType,
    network: SpikingNetwork,
    stimulus: Stimulus,
    *,
    schedule: Schedule,
    record: Record,
) -> Rendering:
    """Build the Brian2 objects of a network, with its own clock."""
    dt = network.dt * brian2.second
    clock = brian2.Clock(dt=dt)
    named = tables(brian2, schedule, dt)
    groups = {
        p.name: neurons(brian2, network, p, stimulus=stimulus, tables=named, clock=clock)
        for p in network.populations
    }
    paths = [
        synapses(brian2, projection, groups, samples=stimulus.samples, clock=clock)
        for projection in network.projections
        if projection.synapses.values.any()
    ]
    ends = {
        name: brian2.EventMonitor(
            group, "phase_end", variables=["messages", "sum_firing", "sum_drive"]
        )
        for name, group in groups.items()
    }
    steps = sum(phase.steps for phase in schedule)
    recorder = SpikeRecorder({name: groups[name] for name in record.spikes}, steps)
    callbacks = (
        [brian2.NetworkOperation(recorder.record_step, clock=clock, when="after_thresholds")]
        if record.spikes
        else []
    )
    signals = {
        (name, variable): brian2.StateMonitor(
            groups[name], VARIABLES[variable], record=True, when="end", clock=clock
        )
        for name, variable in record.signals
    }
    whole = brian2.Network(*groups.values(), *paths)
    whole.add(*ends.values(), *callbacks, *signals.values())
    return Rendering(whole, steps * dt, ends, recorder, signals)


def measured(rendering: Rendering, samples: int, schedule: Schedule) -> Result:
    """Counts and window means of each phase, from the sums at its end."""
    result: tuple[dict[str, Ints], dict[str, Array], dict[str, Array]] = ({}, {}, {})
    windows = np.array([float(phase.window) for phase in schedule])[:, None]

    def phases(values: Handle) -> Array:
        shaped = np.asarray(values[:]).reshape(len(schedule), samples, -1)
        return np.ascontiguousarray(shaped.transpose(1, 0, 2))

    for name, monitor in rendering.ends.items():
        result[0][name] = phases(monitor.messages).astype(np.int64)
        result[1][name] = phases(monitor.sum_firing) / windows
        result[2][name] = phases(monitor.sum_drive) / windows
    return Result(*result)


def recorded(rendering: Rendering, samples: int) -> Iterator[Recording]:
    """The recordings, sample by sample."""
    recorder = rendering.recorder
    signals = {
        key: np.asarray(getattr(monitor, VARIABLES[key[1]])).reshape(samples, -1, recorder.steps)
        for key, monitor in rendering.signals.items()
    }
    for k in range(samples):
        values = {key: array[k].T.copy() for key, array in signals.items()}
        yield Recording(recorder.sample(k, samples), values)
