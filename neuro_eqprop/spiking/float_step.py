"""One step of a population in float64, as `neuro_eqprop.spiking.ir` defines it.

The reference simulator and Lava's Python process models both run these functions. Arrays have
units last; samples may come before them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.activations import activate
from neuro_eqprop.spiking.counter_rng import uniform
from neuro_eqprop.spiking.ir import Graded, Population, RateTracking, Reset, Spiking


@dataclass(slots=True)
class FloatState:
    """State of a population, with its drive and message of the last step."""

    u: Array
    v: Array
    g_one: Array
    g_beta: Array
    x: Array
    sent: Array
    drive: Array
    message: Array
    t: int = 0
    """Steps done; counted only by a population that tracks a rate."""


def rest(population: Population, shape: Shape) -> FloatState:
    """The state before the first step, of arrays of that shape."""
    u, v, g_one, g_beta, x, sent, drive, message = np.zeros((8, *shape))
    state = FloatState(u, v, g_one, g_beta, x, sent, drive, message)
    if isinstance(population.neuron, Spiking):
        state.v += population.neuron.threshold / 2
    return state


def step_spiking(neuron: Spiking, state: FloatState, arriving: Array, outside: Array) -> None:
    """One step of a spiking population; `outside` is bias + current + beta pull."""
    state.u = (1 - neuron.current_decay) * state.u + arriving
    state.drive = state.u + outside
    v = (1 - neuron.voltage_decay) * state.v + state.drive
    spike = v >= neuron.threshold
    v = np.where(spike, v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0, v)
    state.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
    state.message = spike.astype(float)


def step_tracking(
    neuron: Spiking,
    follow: RateTracking,
    state: FloatState,
    arriving: Array,
    *,
    outside: Array,
) -> None:
    """One step of a spiking population that tracks a rate, which is also stored as `sent`."""
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
    state: FloatState,
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
