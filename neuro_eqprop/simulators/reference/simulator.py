"""The step of `neuro_eqprop.spiking.ir` in NumPy, the reference for all other backends."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.base import Result, Support
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.reference import BACKEND
from neuro_eqprop.simulators.reference.blocks import Blocks
from neuro_eqprop.simulators.reference.fixed_point import IntegerNetwork
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.float_step import (
    FloatState,
    rest,
    step_graded,
    step_spiking,
    step_tracking,
)
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    SpikingNetwork,
    Stimulus,
    follow_of,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference backend: all samples in parallel, in float64, or in int64 for fixed point."""

    name: str = BACKEND.name
    support: Support = BACKEND.support

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
        samples, names = stimulus.samples, [p.name for p in network.populations]
        shape = {p.name: (samples, len(schedule), p.size) for p in network.populations}
        result = Result(
            {name: np.zeros(shape[name], dtype=np.int64) for name in names},
            {name: np.zeros(shape[name]) for name in names},
            {name: np.zeros(shape[name]) for name in names},
        )
        states = {p.name: rest(p, (samples, p.size)) for p in network.populations}
        neurons = {p.name: p.neuron for p in network.populations}
        longest = max((projection.delay for projection in network.projections), default=1)
        past: deque[dict[str, Array]] = deque(maxlen=longest)
        integer = None if network.fixed is None else IntegerNetwork(network, stimulus)
        blocks = {} if integer else {id(p): Blocks(p.synapses) for p in network.projections}
        kept: dict[str, list[Array]] = {name: [] for name in record.spikes}
        seen: dict[tuple[str, str], list[Array]] = {key: [] for key in record.signals}
        for k, phase in enumerate(schedule):
            for tick in range(phase.steps):
                check_deadline()
                if integer is None:
                    advance(network, stimulus, states, past=past, blocks=blocks, beta=phase.beta)
                    past.append({name: states[name].message for name in names})
                else:
                    integer.advance(states, beta=phase.beta)
                for name in names:
                    state = states[name]
                    result.messages[name][:, k] += state.message != 0
                    if tick >= phase.steps - phase.window:
                        held = isinstance(neurons[name], Graded) or follow_of(neurons[name])
                        result.firing[name][:, k] += state.sent if held else state.message
                        result.drive[name][:, k] += state.drive
                for name in record.spikes:
                    kept[name].append(states[name].message)
                for name, variable in record.signals:
                    seen[name, variable].append(signal(states[name], variable))
            for name in names:
                result.firing[name][:, k] /= phase.window
                result.drive[name][:, k] /= phase.window
        spikes = {name: np.stack(steps, axis=1) for name, steps in kept.items()}
        signals = {key: np.stack(steps, axis=1) for key, steps in seen.items()}
        for i in range(samples):
            recording = Recording(
                {name: array[i] for name, array in spikes.items()},
                {key: array[i] for key, array in signals.items()},
            )
            sink.sample(i, recording)
        return result if integer is None else replace(result, overflows=integer.overflows())


def signal(state: FloatState, variable: str) -> Array:
    """The recorded value of a variable."""
    return {"voltage": state.v, "drive": state.drive, "state": state.x}[variable]


def advance(
    network: SpikingNetwork,
    stimulus: Stimulus,
    states: dict[str, FloatState],
    *,
    past: Sequence[Mapping[str, Array]],
    blocks: Mapping[int, Blocks],
    beta: float,
) -> None:
    """One step of every population; `past` holds the messages of the steps before, newest last.

    `blocks` are the weights by `id` of the projection.
    """
    arriving: dict[tuple[str, Gain], Array] = {}
    for population in network.populations:
        for gain in Gain:
            total = np.zeros((stimulus.samples, population.size))
            for projection in network.into(population.name, gain):
                if projection.delay <= len(past):
                    sent = past[-projection.delay][projection.source]
                    total = total + blocks[id(projection)].apply(sent)
            arriving[population.name, gain] = total
    for population in network.populations:
        name, neuron = population.name, population.neuron
        current = stimulus.current.get(name, np.zeros(population.size))
        pull = stimulus.pull.get(name, np.zeros(population.size))
        outside = population.bias + current + beta * pull
        one, by_beta = arriving[name, Gain.ONE], arriving[name, Gain.BETA]
        if isinstance(neuron, Graded):
            step_graded(neuron, states[name], one, by_beta=by_beta, beta=beta, outside=outside)
        elif neuron.follow is not None:
            step_tracking(
                neuron, neuron.follow, states[name], one + beta * by_beta, outside=outside
            )
        else:
            step_spiking(neuron, states[name], one + beta * by_beta, outside)
