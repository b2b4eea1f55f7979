"""One step of a population in fixed point, as `neuro_eqprop.spiking.ir` defines it.

The reference simulator and Lava's Python process models both run these functions. Arrays have
units last; samples may come before them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Ints, Shape
from neuro_eqprop.spiking.fixed_point import (
    FRACTION_BITS,
    GradedIntegers,
    SpikingIntegers,
    divide,
    saturate,
    scale,
    wrap,
)


@dataclass(slots=True)
class IntegerState:
    """State of a population; messages are spikes, or multiples of theta."""

    u: Ints
    v: Ints
    g_one: Ints
    g_beta: Ints
    x: Ints
    sent: Ints
    drive: Ints
    message: Ints
    wraps: int = 0
    saturations: int = 0

    def wrap(self, x: Ints) -> Ints:
        """x wrapped to 24 bits; values that change are counted."""
        fits = wrap(x)
        self.wraps += int(np.count_nonzero(fits != x))
        return fits

    def saturate(self, x: Ints) -> Ints:
        """x clipped to 24 bits; values that change are counted."""
        fits = saturate(x)
        self.saturations += int(np.count_nonzero(fits != x))
        return fits


def rest(neuron: SpikingIntegers | GradedIntegers, shape: Shape) -> IntegerState:
    """The state before the first step, of arrays of that shape."""
    u, v, g_one, g_beta, x, sent, drive, message = np.zeros((8, *shape), dtype=np.int64)
    if isinstance(neuron, SpikingIntegers):
        v += neuron.threshold >> 1
    return IntegerState(u, v, g_one, g_beta, x, sent, drive, message)


def step_spiking(
    neuron: SpikingIntegers, state: IntegerState, arriving: Ints, outside: Ints
) -> None:
    """One step of a spiking population; `outside` is bias + current + beta pull."""
    state.u = state.wrap(scale(state.u, neuron.keep_current) + (arriving << FRACTION_BITS))
    state.drive = state.u + (outside << FRACTION_BITS)
    v = state.saturate(scale(state.v, neuron.keep_voltage) + state.drive)
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
    state.g_one = state.wrap(state.g_one + one)
    state.g_beta = state.wrap(state.g_beta + by_beta)
    state.drive = (state.g_one + scale(state.g_beta, beta)) + outside
    move = scale(neuron.activate(state.drive) - state.x, neuron.damping)
    state.x = state.saturate(state.x + move)
    state.message = divide(state.x - state.sent, neuron.shift)
    state.sent = state.sent + (state.message << neuron.shift)
