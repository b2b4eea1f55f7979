"""The populations of a network with their state, in float64 or in fixed point."""

from __future__ import annotations

from neuro_eqprop.spiking.arithmetic import FixedArithmetic, FloatArithmetic, Numbers
from neuro_eqprop.spiking.ir import Population, SpikingNetwork
from neuro_eqprop.spiking.kinds import Neurons

__all__ = ["Neurons", "Numbers", "neurons_of"]


def neurons_of(network: SpikingNetwork, population: Population) -> Neurons:
    """A population in its resting state: in integers if the network is in fixed point."""
    name, fixed = population.name, network.fixed
    arithmetic = FloatArithmetic() if fixed is None else FixedArithmetic(fixed.units[name])
    return population.neuron.at_rest(population.bias, arithmetic, name)
