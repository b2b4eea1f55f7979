"""Fixed-point arithmetic of the step, and the integers of a network in fixed point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.networks.activations import Activation, ActivationKind, tanh
from neuro_eqprop.spiking.ir import (
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.spiking.synapses import Synapses

STATE_BITS = 24
"""Bits of u, v, the sums and the state of a graded unit, including the sign."""
FRACTION_BITS = 6
"""Fractional bits of u and v, relative to a weight step."""
DECAY_BITS = 12
"""Bits of decays, dampings and betas."""
TOP = 1 << (STATE_BITS - 1)
ONE = 1 << DECAY_BITS
FRACTION = 1 << FRACTION_BITS
UNREACHED = 2**40
"""A magnitude that no value of 24 bits reaches; sums and products with it are exact."""


def to_12_bits(part: float) -> int:
    """A decay, damping or beta in multiples of 1/4096."""
    return round(part * ONE)


def scale(x: Ints, part: int) -> Ints:
    """x part / 4096, truncated towards zero."""
    product = x * part
    return np.asarray(np.sign(product) * (np.abs(product) >> DECAY_BITS))


def wrap(x: Ints) -> Ints:
    """x plus the multiple of 2^24 that brings it into -2^23 < x <= 2^23."""
    return np.asarray((x + (TOP - 1)) % (TOP << 1) - (TOP - 1))


def saturate(x: Ints) -> Ints:
    """x clipped to 24 bits."""
    return np.asarray(np.minimum(np.maximum(x, 1 - TOP), TOP - 1))


def divide(x: Ints, shift: int) -> Ints:
    """x / 2^shift to the nearest integer, ties to even."""
    floor, rest = x >> shift, x & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    up = (rest > half) | ((rest == half) & (floor & 1 == 1) & (shift > 0))
    return np.asarray(floor + up)


def nearest(values: Array, unit: float) -> Ints:
    """Values as the nearest multiples of the unit, ties to even, clipped to +-2^40.

    Larger values would saturate a 24-bit voltage, too, but their sums and products would not be
    exact in every simulator.
    """
    return np.asarray(np.clip(np.rint(values / unit), -UNREACHED, UNREACHED), dtype=np.int64)


def as_integers(values: Array, unit: float, what: str) -> Ints:
    """Values as integers in units of `unit`; raises an error for other values."""
    check_multiples(values, unit, what)
    return np.asarray(values / unit).astype(np.int64)


def check_multiples(values: Array, unit: float, what: str) -> None:
    """Raise an error if a value is not an integer multiple of the unit."""
    found = np.asarray(values / unit)
    if not (np.abs(found) < 2.0**53).all() or not (found == np.rint(found)).all():
        raise ValueError(f"{what} is not a multiple of {unit}; quantise the entire network")


def limit_as_integer(limit: float, unit: float, what: str) -> int:
    """A limit as an integer; an infinite limit becomes +-2^40, which no value reaches."""
    if np.isinf(limit):
        return int(np.sign(limit)) * UNREACHED
    return int(as_integers(np.array(limit), unit, what))


def bits_of(*values: int) -> int:
    """Bits of the largest absolute value, including the sign; at most STATE_BITS."""
    largest = max(abs(value) for value in values)
    return min(largest, TOP - 1).bit_length() + 1


@dataclass(frozen=True, slots=True)
class SpikingIntegers:
    """A spiking population in integers; threshold, floor and ceiling count unit / 64."""

    unit: float
    bias: Ints
    keep_current: int
    keep_voltage: int
    threshold: int
    subtract: bool
    floor: int
    ceiling: int

    @property
    def shown(self) -> float:
        """The value of one integer step of drive and voltage."""
        return self.unit / FRACTION

    @property
    def state_bits(self) -> int:
        """Bits of a voltage between floor and ceiling, including the sign."""
        return bits_of(self.floor, self.ceiling, self.threshold)


@dataclass(frozen=True, slots=True)
class GradedIntegers:
    """A graded population in integers; theta is 2^shift units."""

    unit: float
    bias: Ints
    damping: int
    shift: int
    low: int
    high: int
    activation: Activation

    @property
    def shown(self) -> float:
        """The value of one integer step of drive and state."""
        return self.unit

    @property
    def theta(self) -> float:
        """Theta in floating point."""
        return self.unit * (1 << self.shift)

    @property
    def state_bits(self) -> int:
        """Bits of a state between the lowest and the highest rate, including the sign."""
        return bits_of(self.low, self.high)

    def activate(self, drive: Ints) -> Ints:
        """The activation of a drive."""
        if self.activation.curve is ActivationKind.TANH:
            return nearest(tanh(drive * self.unit), self.unit)
        return np.asarray(np.minimum(np.maximum(drive, self.low), self.high))


def unit_of(network: SpikingNetwork, name: str) -> float:
    """The value of one integer step of a population."""
    if network.fixed is None:
        raise ValueError("the network is not in fixed point; quantise it first")
    return network.fixed.units[name]


def integers(network: SpikingNetwork, population: Population) -> SpikingIntegers | GradedIntegers:
    """A population in integers; raises an error if a value is not a multiple of its unit."""
    name, unit, neuron = population.name, unit_of(network, population.name), population.neuron
    bias = as_integers(population.bias, unit, f"a bias of {name!r}")
    if isinstance(neuron, Graded):
        return graded(neuron, unit, name=name, bias=bias)
    return spiking(neuron, unit, name=name, bias=bias)


def spiking(neuron: Spiking, unit: float, *, name: str, bias: Ints) -> SpikingIntegers:
    """A spiking population in integers."""
    threshold = limit_as_integer(neuron.threshold, unit, f"the threshold of {name!r}")
    if not 0 < threshold << FRACTION_BITS < TOP:
        raise ValueError(f"the threshold of {name!r} is {threshold} units and does not fit 17 bits")
    return SpikingIntegers(
        unit,
        bias,
        ONE - to_12_bits(neuron.current_decay),
        ONE - to_12_bits(neuron.voltage_decay),
        threshold << FRACTION_BITS,
        neuron.reset is Reset.SUBTRACT,
        limit_as_integer(neuron.floor, unit, f"the floor of {name!r}") << FRACTION_BITS,
        limit_as_integer(neuron.ceiling, unit, f"the ceiling of {name!r}") << FRACTION_BITS,
    )


def graded(neuron: Graded, unit: float, *, name: str, bias: Ints) -> GradedIntegers:
    """A graded population in integers."""
    theta = limit_as_integer(neuron.theta, unit, f"the theta of {name!r}")
    if theta < 1 or theta & (theta - 1):
        raise ValueError(f"the theta of {name!r} is {neuron.theta}, not a power of two")
    damping = max(1, to_12_bits(neuron.damping))
    low = limit_as_integer(neuron.activation.low, unit, f"the least rate of {name!r}")
    high = limit_as_integer(neuron.activation.high, unit, f"the greatest rate of {name!r}")
    return GradedIntegers(unit, bias, damping, theta.bit_length() - 1, low, high, neuron.activation)


def integer_synapses(network: SpikingNetwork, projection: Projection) -> Synapses:
    """The synapses of a projection, with weights per spike or theta in units of the target.

    The integers are stored as float64. Sums over messages stay below 2^52 and are exact.
    """
    source, name = network[projection.source].neuron, projection.name
    theta = source.theta if isinstance(source, Graded) else 1.0
    unit, values = unit_of(network, projection.target), projection.synapses.values
    check_multiples(values * theta, unit, f"a weight of {name!r}")
    found = projection.synapses.with_values(values * theta / unit)
    sent = 1.0
    if isinstance(source, Graded):
        sent = 2 * TOP * unit_of(network, projection.source) / theta
    if float(absolute_row_sums(found).max(initial=0.0)) * sent >= 2.0**52:
        raise ValueError(f"the weights of {name!r} are too large for exact sums in 53 bits")
    return found


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
    return max(integers(network, population).state_bits for population in network.populations)
