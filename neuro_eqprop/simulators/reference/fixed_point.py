"""A network in fixed point on the reference: all samples in parallel, in int64."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.simulators.base import Overflow
from neuro_eqprop.simulators.reference.blocks import Blocks
from neuro_eqprop.spiking.fixed_point import (
    GradedIntegers,
    SpikingIntegers,
    integer_synapses,
    integers,
    nearest,
    scale,
    to_12_bits,
)
from neuro_eqprop.spiking.float_step import FloatState
from neuro_eqprop.spiking.integer_step import IntegerState, rest, step_graded, step_spiking
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork, Stimulus


class IntegerNetwork:
    """A network in fixed point, initially in its resting state."""

    def __init__(self, network: SpikingNetwork, stimulus: Stimulus) -> None:
        self.network = network
        self.neurons = {p.name: integers(network, p) for p in network.populations}
        self.weights = [
            (projection, Blocks(integer_synapses(network, projection)))
            for projection in network.projections
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
            self.states[name] = rest(neuron, shape)

    def arriving(self, target: str, gain: Gain) -> Ints:
        """The sum of weight @ message over the projections of one gain."""
        total = np.zeros_like(self.states[target].message)
        for projection, weight in self.weights:
            here = projection.target == target and projection.gain is gain
            if here and projection.delay <= len(self.past):
                sent = self.past[-projection.delay][projection.source].astype(np.float64)
                total += weight.apply(sent).astype(np.int64)
        return total

    def advance(self, floats: Mapping[str, FloatState], *, beta: float) -> None:
        """One step of every population; writes their states to `floats`."""
        part = to_12_bits(beta)
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
            write_floats(neuron, state, floats[name])
        self.past.append({name: state.message for name, state in self.states.items()})

    def overflows(self) -> dict[str, Overflow]:
        """Overflows so far."""
        return {
            name: Overflow(state.wraps, state.saturations) for name, state in self.states.items()
        }


def write_floats(
    neuron: SpikingIntegers | GradedIntegers, state: IntegerState, target: FloatState
) -> None:
    """Write an integer state as floats; exact, since units are powers of two."""
    target.drive = state.drive * neuron.shown
    if isinstance(neuron, SpikingIntegers):
        target.v, target.message = state.v * neuron.shown, state.message.astype(float)
    else:
        target.x, target.sent = state.x * neuron.unit, state.sent * neuron.unit
        target.message = state.message * neuron.theta
