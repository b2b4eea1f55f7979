"""The step of a population on Lava, for the process of one sample and for that of many alike.

Arrays have units last; samples may come before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.activations import activate
from neuro_eqprop.arrays import Array, Bits, Ints, Shape
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
    wrap,
)
from neuro_eqprop.spiking.ir import Graded, Population, Reset, Spiking, SpikingNetwork

Numbers: TypeAlias = npt.NDArray[Any]
"""Real or whole numbers, or bits."""


class Cell(Protocol):
    """The state of a population, and what can be asked of it; values are in real numbers."""

    overflows: Ints
    """Wraps and saturations so far."""

    def rest(self, shape: Shape) -> None:
        """Start anew."""
        ...

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Numbers:
        """bias + current + beta pull."""
        ...

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """One step; returns what is sent."""
        ...

    def told(self, message: Numbers) -> Numbers:
        """What was sent."""
        ...

    def firing(self) -> Numbers:
        """What is averaged over a window for the rate."""
        ...

    def values(self) -> Mapping[str, Array]:
        """The variables that can be recorded."""
        ...


def cell_of(network: SpikingNetwork, population: Population) -> Cell:
    """The cell of a population, in float64 or in whole numbers."""
    if network.fixed is not None:
        numbers = integers(network, population)
        if isinstance(numbers, GradedIntegers):
            return WholeGraded(numbers)
        return WholeSpiking(numbers)
    if isinstance(population.neuron, Graded):
        return RealGraded(population.neuron, population.bias)
    return RealSpiking(population.neuron, population.bias)


def real_outside(bias: Array, current: Array | None, pull: Array | None, beta: float) -> Array:
    """bias + current + beta pull, in this order of additions."""
    total = bias if current is None else bias + current
    return np.asarray(total + beta * (np.zeros_like(bias) if pull is None else pull))


class RealSpiking:
    """Leaky integrators with binary spikes, in float64."""

    def __init__(self, neuron: Spiking, bias: Array) -> None:
        self.neuron, self.bias = neuron, bias
        self.overflows = np.zeros(2, dtype=np.int64)

    def rest(self, shape: Shape) -> None:
        """Voltage at half the threshold, no current."""
        self.u = np.zeros(shape)
        self.v = np.full(shape, self.neuron.threshold / 2)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Array:
        """bias + current + beta pull."""
        return real_outside(self.bias, current, pull, beta)

    def advance(self, one: Array, by_beta: Array, beta: float, outside: Array) -> Bits:
        """Integrate, fire, reset, limit."""
        neuron = self.neuron
        self.u = (1 - neuron.current_decay) * self.u + (one + beta * by_beta)
        self.drive = self.u + outside
        v = (1 - neuron.voltage_decay) * self.v + self.drive
        self.spike: Bits = v >= neuron.threshold
        after = v - neuron.threshold if neuron.reset is Reset.SUBTRACT else 0.0
        v = np.where(self.spike, after, v)
        self.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
        return self.spike

    def told(self, message: Numbers) -> Numbers:
        """The spikes."""
        return message

    def firing(self) -> Bits:
        """The spikes."""
        return self.spike

    def values(self) -> Mapping[str, Array]:
        """Drive and voltage."""
        return {"drive": self.drive, "voltage": self.v}


class RealGraded:
    """Sigma-delta units in float64, which send the changes of their state."""

    def __init__(self, neuron: Graded, bias: Array) -> None:
        self.neuron, self.bias = neuron, bias
        self.overflows = np.zeros(2, dtype=np.int64)

    def rest(self, shape: Shape) -> None:
        """Nothing received, nothing sent."""
        self.g_one = self.g_beta = self.x = self.sent = np.zeros(shape)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Array:
        """bias + current + beta pull."""
        return real_outside(self.bias, current, pull, beta)

    def advance(self, one: Array, by_beta: Array, beta: float, outside: Array) -> Array:
        """Sum, follow the activation, send what changed."""
        neuron = self.neuron
        self.g_one = self.g_one + one
        self.g_beta = self.g_beta + by_beta
        self.drive = (self.g_one + beta * self.g_beta) + outside
        self.x = self.x + neuron.damping * (activate(neuron.activation, self.drive) - self.x)
        message: Array = neuron.theta * np.rint((self.x - self.sent) / neuron.theta)
        self.sent = self.sent + message
        return message

    def told(self, message: Numbers) -> Numbers:
        """The messages."""
        return message

    def firing(self) -> Array:
        """The sum of what was sent."""
        return self.sent

    def values(self) -> Mapping[str, Array]:
        """Drive and state."""
        return {"drive": self.drive, "state": self.x}


def whole_outside(
    neuron: SpikingIntegers | GradedIntegers,
    current: Array | None,
    pull: Array | None,
    beta: float,
) -> Ints:
    """bias + current + beta pull, each a whole number of units."""
    total = neuron.bias
    if current is not None:
        total = total + nearest(current, neuron.unit)
    if pull is not None:
        total = total + scale(nearest(pull, neuron.unit), twelve(beta))
    return total


def wrapped(x: Ints, overflows: Ints) -> Ints:
    """x wrapped, and counted where that made a difference."""
    fits = wrap(x)
    overflows[0] += np.count_nonzero(fits != x)
    return fits


def saturated(x: Ints, overflows: Ints) -> Ints:
    """x saturated, and counted where that made a difference."""
    fits = saturate(x)
    overflows[1] += np.count_nonzero(fits != x)
    return fits


class WholeSpiking:
    """Leaky integrators in whole numbers: u wraps at 24 bits, v saturates."""

    def __init__(self, neuron: SpikingIntegers) -> None:
        self.neuron = neuron
        self.overflows = np.zeros(2, dtype=np.int64)

    def rest(self, shape: Shape) -> None:
        """Voltage at half the threshold, no current."""
        self.u = np.zeros(shape, dtype=np.int64)
        self.v = np.full(shape, self.neuron.threshold >> 1, dtype=np.int64)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Ints:
        """bias + current + beta pull."""
        return whole_outside(self.neuron, current, pull, beta)

    def advance(self, one: Ints, by_beta: Ints, beta: float, outside: Ints) -> Bits:
        """Integrate, fire, reset, limit."""
        neuron, over = self.neuron, self.overflows
        arriving = one + scale(by_beta, twelve(beta))
        self.u = wrapped(scale(self.u, neuron.keep_current) + (arriving << FRACTION_BITS), over)
        self.drive = self.u + (outside << FRACTION_BITS)
        v = saturated(scale(self.v, neuron.keep_voltage) + self.drive, over)
        self.spike: Bits = v >= neuron.threshold
        v = np.where(self.spike, v - neuron.threshold if neuron.subtract else 0, v)
        self.v = np.minimum(np.maximum(v, neuron.floor), neuron.ceiling)
        return self.spike

    def told(self, message: Numbers) -> Numbers:
        """The spikes."""
        return message

    def firing(self) -> Bits:
        """The spikes."""
        return self.spike

    def values(self) -> Mapping[str, Array]:
        """Drive and voltage."""
        shown = self.neuron.shown
        return {"drive": self.drive * shown, "voltage": self.v * shown}


class WholeGraded:
    """Sigma-delta units in whole numbers; what is sent are whole thetas."""

    def __init__(self, neuron: GradedIntegers) -> None:
        self.neuron = neuron
        self.overflows = np.zeros(2, dtype=np.int64)

    def rest(self, shape: Shape) -> None:
        """Nothing received, nothing sent."""
        self.g_one = self.g_beta = self.x = self.sent = np.zeros(shape, dtype=np.int64)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Ints:
        """bias + current + beta pull."""
        return whole_outside(self.neuron, current, pull, beta)

    def advance(self, one: Ints, by_beta: Ints, beta: float, outside: Ints) -> Ints:
        """Sum, follow the activation, send what changed."""
        neuron, over = self.neuron, self.overflows
        self.g_one = wrapped(self.g_one + one, over)
        self.g_beta = wrapped(self.g_beta + by_beta, over)
        self.drive = (self.g_one + scale(self.g_beta, twelve(beta))) + outside
        move = scale(neuron.activate(self.drive) - self.x, neuron.damping)
        self.x = saturated(self.x + move, over)
        message = divide(self.x - self.sent, neuron.shift)
        self.sent = self.sent + (message << neuron.shift)
        return message

    def told(self, message: Numbers) -> Numbers:
        """Thetas in real numbers."""
        return np.asarray(message * (self.neuron.unit * (1 << self.neuron.shift)))

    def firing(self) -> Array:
        """The sum of what was sent."""
        return np.asarray(self.sent * self.neuron.unit)

    def values(self) -> Mapping[str, Array]:
        """Drive and state."""
        return {"drive": self.drive * self.neuron.unit, "state": self.x * self.neuron.unit}
