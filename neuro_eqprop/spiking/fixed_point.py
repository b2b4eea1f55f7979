"""The integers of a network in fixed point."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.spiking.arithmetic import TOP, check_multiples
from neuro_eqprop.spiking.ir import Projection, SpikingNetwork
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.synapses import Synapses


def unit_of(network: SpikingNetwork, name: str) -> float:
    """The value of one integer step of a population."""
    if network.fixed is None:
        raise ValueError("the network is not in fixed point; quantise it first")
    return network.fixed.units[name]


def integer_synapses(network: SpikingNetwork, projection: Projection) -> Synapses:
    """The synapses of a projection, with weights per spike or theta in units of the target.

    The integers are stored as float64. Sums over messages stay below 2^52 and are exact.
    """
    source, name = network[projection.source].neuron, projection.name
    theta = source.sizes.payload
    unit, values = unit_of(network, projection.target), projection.synapses.values
    check_multiples(values * theta, unit, f"a weight of {name!r}")
    whole = projection.synapses.with_values(values * theta / unit)
    sent = 2 * TOP * unit_of(network, projection.source) / theta if source.graded else 1.0
    if float(absolute_row_sums(whole).max(initial=0.0)) * sent >= 2.0**52:
        raise ValueError(f"the weights of {name!r} are too large for exact sums in 53 bits")
    return whole


def absolute_row_sums(synapses: Synapses) -> Array:
    """The sum of |w| of each target neuron."""
    return synapses.with_values(np.abs(synapses.values)).row_sums()


def weights(network: SpikingNetwork, projection: Projection) -> Ints:
    """`integer_synapses` as a matrix of integers."""
    return integer_synapses(network, projection).dense().astype(np.int64)


def state_bits(network: SpikingNetwork) -> int | None:
    """Bits of the widest state of a network in fixed point; None in floating point."""
    if network.fixed is None:
        return None
    return max(neurons_of(network, population).state_bits for population in network.populations)
