"""A network whose populations step together, with all samples side by side, in NumPy."""

from __future__ import annotations

from collections import deque

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.step_recorder import Step
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.neurons import Numbers, neurons_of
from neuro_eqprop.spiking.synapses import BLOCK, DenseSynapses, Synapses


class Blocks:
    """The matrix of synapses in dense blocks of rows; a small matrix is kept as one block."""

    def __init__(self, synapses: Synapses) -> None:
        self.synapses = synapses
        entries = synapses.shape[0] * synapses.shape[1]
        small = entries <= BLOCK or isinstance(synapses, DenseSynapses)
        self.kept = [(slice(None), synapses.dense())] if small else None

    def apply(self, messages: Array) -> Array:
        """weight @ message for each row of messages."""
        found = np.empty((len(messages), self.synapses.shape[0]))
        for rows, block in self.kept or self.synapses.blocks():
            found[:, rows] = messages @ block.T
        return found


class SteppedNetwork:
    """All populations, initially at rest, and the messages on their way."""

    def __init__(self, network: SpikingNetwork, stimulus: Stimulus) -> None:
        self.network = network
        self.neurons = {p.name: neurons_of(network, p) for p in network.populations}
        self.synapses = [
            (p, Blocks(p.synapses if network.fixed is None else integer_synapses(network, p)))
            for p in network.projections
        ]
        longest = max((projection.delay for projection in network.projections), default=1)
        self.past: deque[dict[str, Array]] = deque(maxlen=longest)
        self.messages: dict[str, Numbers] = {}
        self.start(stimulus)

    def start(self, stimulus: Stimulus) -> None:
        """Start other samples from the resting state; counts of overflows continue."""
        self.stimulus = stimulus
        self.past.clear()
        for population in self.network.populations:
            self.neurons[population.name].rest((stimulus.samples, population.size))

    def arriving(self, target: str, gain: Gain) -> Numbers:
        """The sum of weight @ message over the projections of one gain."""
        drive = self.neurons[target].drive
        total = np.zeros(drive.shape, dtype=drive.dtype)
        for projection, synapses in self.synapses:
            here = projection.target == target and projection.gain is gain
            if here and projection.delay <= len(self.past):
                sent = self.past[-projection.delay][projection.source]
                total = total + synapses.apply(sent).astype(total.dtype)
        return total

    def step(self, beta: float) -> None:
        """One step of every population."""
        current, pull = self.stimulus.current, self.stimulus.pull
        arrived = {name: [self.arriving(name, gain) for gain in Gain] for name in self.neurons}
        for name, neurons in self.neurons.items():
            outside = neurons.outside(current.get(name), pull.get(name), beta)
            one, by_beta = arrived[name]
            self.messages[name] = neurons.advance(one, by_beta, beta, outside)
        self.past.append({name: sent.astype(np.float64) for name, sent in self.messages.items()})

    def last(self, name: str) -> Step:
        """What a population did in the last step."""
        neurons = self.neurons[name]
        return Step(neurons.payload(self.messages[name]), neurons.firing(), neurons.values())
