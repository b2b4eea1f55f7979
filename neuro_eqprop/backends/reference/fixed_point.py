"""The integer step of `neuro_eqprop.spiking.ir`, in NumPy: what is right in fixed point."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.base import Overflow
from neuro_eqprop.spiking.fixed_point import (
    FRACTION_BITS,
    GradedIntegers,
    SpikingIntegers,
    divide,
    integers,
    nearest,
    saturate,
    scale,
    twelve,
    weights,
    wrap,
)
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork, Stimulus


@dataclass(slots=True)
class IntegerState:
    """Of a population, arrays (samples, neurons); messages are spikes, or whole thetas."""

    u: Ints
    v: Ints
    g_one: Ints
    g_beta: Ints
    x: Ints
    sent: Ints
    drive: Ints
    message: Ints
    wraps: int
    saturations: int

    def wrapped(self, x: Ints) -> Ints:
        """x wrapped, and counted where that made a difference."""
        fits = wrap(x)
        self.wraps += int(np.count_nonzero(fits != x))
        return fits

    def saturated(self, x: Ints) -> Ints:
        """x saturated, and counted where that made a difference."""
        fits = saturate(x)
        self.saturations += int(np.count_nonzero(fits != x))
        return fits


def rest(shape: tuple[int, int]) -> IntegerState:
    """Everything zero."""
    u, v, g_one, g_beta, x, sent, drive, message = np.zeros((8, *shape), dtype=np.int64)
    return IntegerState(u, v, g_one, g_beta, x, sent, drive, message, 0, 0)


def step_spiking(
    neuron: SpikingIntegers, state: IntegerState, arriving: Ints, outside: Ints
) -> None:
    """One step of a spiking population; `outside` is bias + current + beta pull."""
    state.u = state.wrapped(scale(state.u, neuron.keep_current) + (arriving << FRACTION_BITS))
    state.drive = state.u + (outside << FRACTION_BITS)
    v = state.saturated(scale(state.v, neuron.keep_voltage) + state.drive)
    spike = v >= neuron.threshold
    v = np.where(spike, v - neuron.threshold if neuron.subtract else 0, v)
    state.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
    state.message = spike.astype(np.int64)


def step_graded(
    neuron: GradedIntegers,
    state: IntegerState,
    one: Ints,
    *,
    by_beta: Ints,
    beta: int,
    outside: Ints,
) -> None:
    """One step of a graded population."""
    state.g_one = state.wrapped(state.g_one + one)
    state.g_beta = state.wrapped(state.g_beta + by_beta)
    state.drive = (state.g_one + scale(state.g_beta, beta)) + outside
    move = scale(neuron.activate(state.drive) - state.x, neuron.damping)
    state.x = state.saturated(state.x + move)
    state.message = divide(state.x - state.sent, neuron.shift)
    state.sent = state.sent + (state.message << neuron.shift)


class View(Protocol):
    """What is read of a population after a step, in real numbers."""

    v: Array
    x: Array
    sent: Array
    drive: Array
    message: Array


class Machine:
    """A network in whole numbers with all samples side by side, at rest."""

    def __init__(self, network: SpikingNetwork, stimulus: Stimulus) -> None:
        self.network = network
        self.neurons = {p.name: integers(network, p) for p in network.populations}
        self.weights = [
            (projection, weights(network, projection)) for projection in network.projections
        ]
        self.current: dict[str, Ints] = {}
        self.pull: dict[str, Ints] = {}
        self.states: dict[str, IntegerState] = {}
        longest = max((projection.delay for projection in network.projections), default=1)
        self.past: deque[dict[str, Ints]] = deque(maxlen=longest)
        for name, neuron in self.neurons.items():
            shape = (stimulus.samples, neuron.bias.size)
            nothing = np.zeros(shape)
            self.current[name] = nearest(stimulus.current.get(name, nothing), neuron.unit)
            self.pull[name] = nearest(stimulus.pull.get(name, nothing), neuron.unit)
            self.states[name] = rest(shape)
            if isinstance(neuron, SpikingIntegers):
                self.states[name].v += neuron.threshold >> 1

    def arriving(self, target: str, gain: Gain) -> Ints:
        """What reaches a population in this step by the projections of one gain."""
        total = np.zeros_like(self.states[target].message)
        for projection, weight in self.weights:
            here = projection.target == target and projection.gain is gain
            if here and projection.delay <= len(self.past):
                total += self.past[-projection.delay][projection.source] @ weight.T
        return total

    def advance(self, views: Mapping[str, View], *, beta: float) -> None:
        """One step of every population, and what there is to see of it."""
        part = twelve(beta)
        arrived = {
            name: (self.arriving(name, Gain.ONE), self.arriving(name, Gain.BETA))
            for name in self.neurons
        }
        for name, neuron in self.neurons.items():
            state, (one, by_beta) = self.states[name], arrived[name]
            outside = neuron.bias + self.current[name] + scale(self.pull[name], part)
            if isinstance(neuron, GradedIntegers):
                step_graded(neuron, state, one, by_beta=by_beta, beta=part, outside=outside)
            else:
                step_spiking(neuron, state, one + scale(by_beta, part), outside)
            show(neuron, state, views[name])
        self.past.append({name: state.message for name, state in self.states.items()})

    def overflows(self) -> dict[str, Overflow]:
        """What did not fit, so far."""
        return {
            name: Overflow(state.wraps, state.saturations) for name, state in self.states.items()
        }


def show(neuron: SpikingIntegers | GradedIntegers, state: IntegerState, view: View) -> None:
    """Turn whole numbers into real ones; units are powers of two, so that nothing is rounded."""
    view.drive = state.drive * neuron.shown
    if isinstance(neuron, SpikingIntegers):
        view.v, view.message = state.v * neuron.shown, state.message.astype(float)
    else:
        theta = neuron.unit * (1 << neuron.shift)
        view.x, view.sent = state.x * neuron.unit, state.sent * neuron.unit
        view.message = state.message * theta
