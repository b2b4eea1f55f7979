"""The network that runs in continuous time, made from the spiking network of a description."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.base import BackendError, Feature
from neuro_eqprop.simulators.biology import SUPPORT
from neuro_eqprop.simulators.biology.dale import pair_stimulus, paired, with_interneurons
from neuro_eqprop.simulators.biology.equations import Equations, describe
from neuro_eqprop.simulators.biology.gain_curve import gain_curve
from neuro_eqprop.simulators.biology.settings import Biology
from neuro_eqprop.spiking.ir import Gain, Population, Projection, Spiking, SpikingNetwork, Stimulus


@dataclass(frozen=True, slots=True)
class ContinuousNetwork:
    """Populations, projections and inputs of one run."""

    biology: Biology
    network: SpikingNetwork
    stimulus: Stimulus
    own: dict[str, Array]
    """By population that is nudged by its own drive, the strength for each neuron."""

    @property
    def gated(self) -> bool:
        """Whether synapses with a gain of beta arrive at some population."""
        return any(p.gain is Gain.BETA for p in self.network.projections)

    def equations(self, population: Population, **white: str) -> Equations:
        """The equations of the neurons of a population."""
        neuron = integrator(population)
        curve = gain_curve(self.biology, neuron)
        nudged = bool(self.own)
        return describe(self.biology, neuron, curve, gated=self.gated, nudged=nudged, **white)

    def inputs(self, population: Population) -> Array:
        """Constant input, target and strength of the own nudge (3, samples, neurons)."""
        name, samples = population.name, self.stimulus.samples
        given = np.zeros((3, samples, population.size))
        given[0] = population.bias + self.stimulus.current.get(name, 0.0)
        given[1] = self.stimulus.pull.get(name, 0.0)
        given[2] = self.own.get(name, 0.0)
        return given

    def is_poisson(self, population: Population) -> bool:
        """Whether the neurons of a population fire as Poisson processes."""
        return self.biology.poisson and is_input(self.network, population)

    def ticks(self, projection: Projection) -> int:
        """The delay of a projection in dt; each step beyond the first adds 1 / rmax."""
        extra = (projection.delay - 1) * self.biology.ticks
        return round(self.biology.delay / self.biology.dt) + extra


def realize(biology: Biology, network: SpikingNetwork) -> SpikingNetwork:
    """The network with the inhibitory populations that Dale's law requires."""
    return with_interneurons(network) if biology.interneurons else network


def continuous(biology: Biology, network: SpikingNetwork, stimulus: Stimulus) -> ContinuousNetwork:
    """The network of a run, with the nudge of the biology and pairs if it obeys Dale's law so."""
    network, own = own_nudge(network) if biology.nudge == "drive" else (network, {})
    network = realize(biology, network)
    for population in network.populations:
        integrator(population)
    if biology.poisson and not any(is_input(network, p) for p in network.populations):
        raise BackendError(
            "Poisson input needs a population that carries the input; use input coding 'rate'"
        )
    if biology.pairs:
        network, stimulus = paired(network), pair_stimulus(stimulus)
        own = {name: np.tile(strength, 2) for name, strength in own.items()}
    return ContinuousNetwork(biology, network, stimulus, own)


def own_nudge(network: SpikingNetwork) -> tuple[SpikingNetwork, dict[str, Array]]:
    """The network without synapses of neurons onto themselves that only the nudge opens.

    Their strengths, by population: what a neuron subtracts from its target.
    """
    own, kept = dict[str, Array](), []
    for p in network.projections:
        alone = p.gain is Gain.BETA and p.source == p.target and p.delay == 1
        weight = p.weight if alone else np.zeros((0, 0))
        if alone and np.array_equal(weight, np.diag(np.diag(weight))):
            own[p.target] = own.get(p.target, 0.0) - np.diag(weight)
        else:
            kept.append(p)
    return replace(network, projections=tuple(kept)), own


def is_input(network: SpikingNetwork, population: Population) -> bool:
    """Whether a population only carries the input: no synapse arrives at it, and it has no bias."""
    reached = any(p.target == population.name for p in network.projections)
    return not reached and not population.bias.any()


def integrator(population: Population) -> Spiking:
    """The neuron of a population; raises BackendError if it is graded or decays by itself."""
    neuron = population.neuron
    if not isinstance(neuron, Spiking):
        reason = SUPPORT.reasons[Feature.GRADED]
        raise BackendError(f"population {population.name!r} is graded: {reason}; use brian2")
    if (neuron.current_decay, neuron.voltage_decay) != (1.0, 0.0):
        raise BackendError(
            f"population {population.name!r} decays by {neuron.current_decay} and "
            f"{neuron.voltage_decay} a step, but in continuous time tau_s and tau_m set the decay; "
            f"lower the network with code 'rate', or use the backend brian2"
        )
    return neuron
