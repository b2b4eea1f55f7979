"""The step of `neuro_eqprop.spiking.ir`, in NumPy: slow, short, and the definition of right."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.activations import activate
from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.base import Result, Support
from neuro_eqprop.backends.reference import BACKEND
from neuro_eqprop.backends.reference.fixed_point import Machine
from neuro_eqprop.backends.registry import check_run
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.counter_rng import uniform
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    RateTracking,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
    follow_of,
)
from neuro_eqprop.traces import Record, Recording, Sink


@dataclass(slots=True)
class SimulationState:
    """Of a population, arrays (samples, neurons): what it holds, and what it did last."""

    u: Array
    v: Array
    g_one: Array
    g_beta: Array
    x: Array
    sent: Array
    drive: Array
    message: Array
    t: int = 0
    """Steps done, counted by a population that follows a rate."""


def rest(population: Population, samples: int) -> SimulationState:
    """A population before its first step."""
    u, v, g_one, g_beta, x, sent, drive, message = np.zeros((8, samples, population.size))
    state = SimulationState(u, v, g_one, g_beta, x, sent, drive, message)
    if isinstance(population.neuron, Spiking):
        state.v += population.neuron.threshold / 2
    return state


def step_spiking(neuron: Spiking, state: SimulationState, arriving: Array, outside: Array) -> None:
    """One step of a spiking population; `outside` is bias + current + beta pull."""
    state.u = (1 - neuron.current_decay) * state.u + arriving
    state.drive = state.u + outside
    v = (1 - neuron.voltage_decay) * state.v + state.drive
    spike = v >= neuron.threshold
    v = np.where(spike, v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0, v)
    state.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
    state.message = spike.astype(float)


def step_following(
    neuron: Spiking,
    follow: RateTracking,
    state: SimulationState,
    arriving: Array,
    *,
    outside: Array,
) -> None:
    """One step of a spiking population that follows a rate; what it holds of it is in `sent`."""
    before = follow.gain.at(state.t) if state.t else 1.0
    state.t += 1
    gain, step = follow.gain.at(state.t), follow.step.at(state.t)
    state.u = (1 - before) * state.u + before * arriving
    state.drive = state.u + outside
    y = state.x + step * (activate(follow.activation, state.drive) - state.x)
    v = (1 - neuron.voltage_decay) * state.v + (y - (1 - gain) * state.x) / gain
    spike = v >= neuron.threshold
    if follow.seed is not None:
        spike = y > uniform(follow.seed, state.t, (y.shape[0], y.shape[1]))
    v = np.where(spike, v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0, v)
    state.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
    state.x = state.sent = y
    state.message = spike.astype(float)


def step_graded(
    neuron: Graded,
    state: SimulationState,
    one: Array,
    *,
    by_beta: Array,
    beta: float,
    outside: Array,
) -> None:
    """One step of a graded population."""
    state.g_one = state.g_one + one
    state.g_beta = state.g_beta + by_beta
    state.drive = (state.g_one + beta * state.g_beta) + outside
    state.x = state.x + neuron.damping * (activate(neuron.activation, state.drive) - state.x)
    state.message = neuron.theta * np.rint((state.x - state.sent) / neuron.theta)
    state.sent = state.sent + state.message


@dataclass(frozen=True, slots=True)
class Reference:
    """All samples side by side, in float64, or in int64 if the network is in fixed point."""

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
        states = {p.name: rest(p, samples) for p in network.populations}
        neurons = {p.name: p.neuron for p in network.populations}
        longest = max((projection.delay for projection in network.projections), default=1)
        past: deque[dict[str, Array]] = deque(maxlen=longest)
        machine = None if network.fixed is None else Machine(network, stimulus)
        kept: dict[str, list[Array]] = {name: [] for name in record.spikes}
        seen: dict[tuple[str, str], list[Array]] = {key: [] for key in record.signals}
        for k, phase in enumerate(schedule):
            for tick in range(phase.steps):
                if machine is None:
                    advance(network, stimulus, states, past=past, beta=phase.beta)
                    past.append({name: states[name].message for name in names})
                else:
                    machine.advance(states, beta=phase.beta)
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
        return result if machine is None else replace(result, overflows=machine.overflows())


def signal(state: SimulationState, variable: str) -> Array:
    """The recorded variable of that name."""
    return {"voltage": state.v, "drive": state.drive, "state": state.x}[variable]


def advance(
    network: SpikingNetwork,
    stimulus: Stimulus,
    states: dict[str, SimulationState],
    *,
    past: Sequence[Mapping[str, Array]],
    beta: float,
) -> None:
    """One step of every population; `past` holds the messages of the steps before, newest last."""
    arriving: dict[tuple[str, Gain], Array] = {}
    for population in network.populations:
        for gain in Gain:
            total = np.zeros((stimulus.samples, population.size))
            for projection in network.into(population.name, gain):
                if projection.delay <= len(past):
                    total = total + past[-projection.delay][projection.source] @ projection.weight.T
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
            step_following(
                neuron, neuron.follow, states[name], one + beta * by_beta, outside=outside
            )
        else:
            step_spiking(neuron, states[name], one + beta * by_beta, outside)
