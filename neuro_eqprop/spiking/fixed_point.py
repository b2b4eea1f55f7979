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
    whole = in_units(network, projection, projection.synapses)
    check_sums(network, projection, absolute_row_sums(whole))
    return whole


def in_units(network: SpikingNetwork, projection: Projection, synapses: Synapses) -> Synapses:
    """The integers of synapses, all of a projection or a part of its rows."""
    unit = unit_of(network, projection.target)
    values = synapses.values * network[projection.source].neuron.sizes.payload
    check_multiples(values, unit, f"a weight of {projection.name!r}")
    values /= unit
    return synapses.with_values(values)


def check_sums(network: SpikingNetwork, projection: Projection, row_sums: Array) -> None:
    """Raise an error if sums over messages may need more bits than float64 has."""
    source = network[projection.source].neuron
    most = 2 * TOP * unit_of(network, projection.source) / source.sizes.payload
    if float(row_sums.max(initial=0.0)) * (most if source.graded else 1.0) >= 2.0**52:
        name = projection.name
        raise ValueError(f"the weights of {name!r} are too large for exact sums in 53 bits")


def absolute_row_sums(synapses: Synapses) -> Array:
    """The sum of |w| of each target neuron."""
    parts = [part.with_values(np.abs(part.values)).row_sums() for part in synapses.row_parts()]
    return np.concatenate(parts)


def integer_sums(network: SpikingNetwork, projection: Projection) -> tuple[Array, float]:
    """The sums of |w| of each target and the largest |w| of `integer_synapses`, part by part."""
    sums, largest = list[Array](), 0.0
    for part in projection.synapses.row_parts():
        whole = in_units(network, projection, part)
        size = whole.with_values(np.abs(whole.values))
        sums.append(size.row_sums())
        largest = max(largest, float(size.values.max(initial=0.0)))
    check_sums(network, projection, np.concatenate(sums))
    return np.concatenate(sums), largest


def weights(network: SpikingNetwork, projection: Projection) -> Ints:
    """`integer_synapses` as a matrix of integers."""
    return integer_synapses(network, projection).dense().astype(np.int64)


def state_bits(network: SpikingNetwork) -> int | None:
    """Bits of the widest state of a network in fixed point; None in floating point."""
    if network.fixed is None:
        return None
    return max(neurons_of(network, population).state_bits for population in network.populations)
