"""Populations with their state, with one interface for float64 and fixed point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, Shape
from neuro_eqprop.spiking import float_step, integer_step
from neuro_eqprop.spiking.fixed_point import (
    GradedIntegers,
    SpikingIntegers,
    integers,
    nearest,
    scale,
    to_12_bits,
)
from neuro_eqprop.spiking.ir import Graded, Population, SpikingNetwork

Numbers: TypeAlias = npt.NDArray[Any]
"""An array of floats, integers or booleans."""


class FloatNeurons:
    """A population in float64 that does not track a rate."""

    def __init__(self, population: Population) -> None:
        self.population, self.neuron = population, population.neuron
        self.state = float_step.rest(population, (population.size,))

    def rest(self, shape: Shape) -> None:
        """Reset to the resting state, in arrays of that shape."""
        self.state = float_step.rest(self.population, shape)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Numbers:
        """bias + current + beta pull, in this order of additions."""
        nothing = np.zeros_like(self.population.bias)
        total = self.population.bias + (nothing if current is None else current)
        return np.asarray(total + beta * (nothing if pull is None else pull))

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """Run one step; returns the message: spikes as booleans, or multiples of theta."""
        if isinstance(self.neuron, Graded):
            float_step.step_graded(
                self.neuron, self.state, one, by_beta=by_beta, beta=beta, outside=outside
            )
            return self.state.message
        float_step.step_spiking(self.neuron, self.state, one + beta * by_beta, outside)
        return np.asarray(self.state.message != 0)

    def payload(self, message: Numbers) -> Numbers:
        """A message in floating point; spikes stay booleans."""
        return message

    def firing(self) -> Array:
        """The value whose mean over a window is the rate."""
        return self.state.sent if isinstance(self.neuron, Graded) else self.state.message

    def values(self) -> Mapping[str, Array]:
        """The variables that can be recorded."""
        if isinstance(self.neuron, Graded):
            return {"drive": self.state.drive, "state": self.state.x}
        return {"drive": self.state.drive, "voltage": self.state.v}

    @property
    def overflows(self) -> Ints:
        """Wraps and saturations so far: zero in floating point."""
        return np.zeros(2, dtype=np.int64)


class IntegerNeurons:
    """A population in fixed point; recorded values are floats."""

    def __init__(self, numbers: SpikingIntegers | GradedIntegers) -> None:
        self.numbers = numbers
        self.state = integer_step.rest(numbers, numbers.bias.shape)

    def rest(self, shape: Shape) -> None:
        """Reset to the resting state, in arrays of that shape; overflow counts continue."""
        before = self.state
        self.state = integer_step.rest(self.numbers, shape)
        self.state.wraps, self.state.saturations = before.wraps, before.saturations

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Numbers:
        """bias + current + beta pull, each rounded to the unit of the population."""
        total = self.numbers.bias
        if current is not None:
            total = total + nearest(current, self.numbers.unit)
        if pull is not None:
            total = total + scale(nearest(pull, self.numbers.unit), to_12_bits(beta))
        return total

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """Run one step; returns the message: spikes as booleans, or integers in units of theta."""
        part = to_12_bits(beta)
        if isinstance(self.numbers, GradedIntegers):
            integer_step.step_graded(
                self.numbers, self.state, one, by_beta=by_beta, beta=part, outside=outside
            )
            return self.state.message
        arriving = one + scale(by_beta, part)
        integer_step.step_spiking(self.numbers, self.state, arriving, outside)
        return np.asarray(self.state.message != 0)

    def payload(self, message: Numbers) -> Numbers:
        """A message in floating point; spikes stay booleans."""
        if isinstance(self.numbers, SpikingIntegers):
            return message
        return np.asarray(message * self.numbers.theta)

    def firing(self) -> Array:
        """The value whose mean over a window is the rate."""
        if isinstance(self.numbers, SpikingIntegers):
            return self.state.message.astype(np.float64)
        return np.asarray(self.state.sent * self.numbers.unit)

    def values(self) -> Mapping[str, Array]:
        """The variables that can be recorded."""
        drive = np.asarray(self.state.drive * self.numbers.shown)
        if isinstance(self.numbers, SpikingIntegers):
            return {"drive": drive, "voltage": np.asarray(self.state.v * self.numbers.shown)}
        return {"drive": drive, "state": np.asarray(self.state.x * self.numbers.shown)}

    @property
    def overflows(self) -> Ints:
        """Wraps and saturations so far."""
        return np.array([self.state.wraps, self.state.saturations], dtype=np.int64)


Neurons: TypeAlias = FloatNeurons | IntegerNeurons


def neurons_of(network: SpikingNetwork, population: Population) -> Neurons:
    """A population in its resting state: in integers if the network is in fixed point."""
    if network.fixed is None:
        return FloatNeurons(population)
    return IntegerNeurons(integers(network, population))
