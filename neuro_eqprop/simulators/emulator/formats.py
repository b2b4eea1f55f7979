"""Number formats with fewer bits than float64, in which the emulator computes the same values.

Weights that are multiples of a power of two fit into int16 if they have at most 15 bits, and sums
over spikes then into int32. A network without leaks, whose values all are such multiples, runs in
float32 if no value needs more than 24 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import floor, frexp, inf, isinf, log2

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.spiking.arithmetic import CHUNK, chunks
from neuro_eqprop.spiking.ir import Spiking
from neuro_eqprop.spiking.synapses import DenseSynapses, Synapses

MOST = 2**15 - 1
"""The largest weight in 16 bits."""
SMALLEST = 2.0**-900
"""Weights below it are not scaled, since their products could underflow."""


@dataclass(frozen=True, slots=True)
class Multiples:
    """Weights as multiples of a power of two."""

    exponent: int | None
    """The least e for which all weights times 2^e are integers; None if some need over 15 bits."""
    largest: float
    """The largest |w|."""
    row_sum: float
    """The largest |sum| of weights of one sign of a target."""


def multiples(synapses: Synapses) -> Multiples:
    """The weights of a projection as multiples of a power of two."""
    values = synapses.values
    largest = max((float(np.abs(chunk).max()) for chunk in chunks(values)), default=0.0)
    return Multiples(common_exponent(values, largest), largest, largest_row_sum(synapses))


def common_exponent(values: Array, largest: float) -> int | None:
    """The least e for which values times 2^e are integers; None if one has more than 15 bits."""
    if largest == 0.0:
        return -1024
    if largest < SMALLEST:
        return None
    exponent, bits = 15 - frexp(largest)[1], 0
    for chunk in chunks(values):
        scaled = chunk * 2.0**exponent
        whole = scaled.astype(np.int32)
        if not (whole == scaled).all():
            return None
        bits |= int(np.bitwise_or.reduce(whole))
    return exponent - ((bits & -bits).bit_length() - 1)


def largest_row_sum(synapses: Synapses) -> float:
    """The largest |sum| of weights of one sign of a target; a matrix is not copied as a whole."""
    if isinstance(synapses, DenseSynapses):
        rows = max(1, CHUNK // synapses.shape[1])
        parts = (synapses.weight[k : k + rows] for k in range(0, synapses.shape[0], rows))
        return max(one_sided_sum(part, lambda values: values.sum(axis=1)) for part in parts)
    return max(
        one_sided_sum(part.values, lambda values: part.with_values(values).row_sums())  # noqa: B023
        for part in synapses.row_parts()
    )


def one_sided_sum(values: Array, total: Callable[[Array], Array]) -> float:
    """The largest total of the positive values, or of the negative ones."""
    above, below = total(np.maximum(values, 0.0)), total(np.minimum(values, 0.0))
    return max(float(above.max(initial=0.0)), -float(below.min(initial=0.0)))


def shared_exponent(projections: list[Multiples]) -> int | None:
    """The exponent of all weights into a population in 16 bits, with sums in 32; None if none."""
    if any(each.exponent is None for each in projections):
        return None
    exponent = max((each.exponent or 0 for each in projections), default=0)
    exponent = max(exponent, -64)
    scale = 2.0**exponent
    fits = all(each.largest * scale <= MOST for each in projections)
    return exponent if fits and sum(e.row_sum for e in projections) * scale < 2.0**31 else None


@dataclass(frozen=True, slots=True)
class ExactRange:
    """What has to hold for a run of plain integrators in float32."""

    exponent: int
    """All constants and weights are multiples of 2^-exponent."""
    arriving: float
    """The largest input of a step."""
    limit: float
    """The largest threshold, floor and ceiling."""

    def given(self, schedule: Schedule) -> tuple[float, float] | None:
        """The grid 2^e and the limit, in its steps, of external input; None if none is exact.

        No value of a run needs more than 24 bits then: voltages, and drives summed over a window.
        """
        most = max(4.0, self.limit, self.arriving)
        drive = self.arriving + most
        steps, window = sum(p.steps for p in schedule), max(p.window for p in schedule)
        largest = max(window * drive, 2 * (self.limit + drive))
        exponent = 23 - floor(log2(largest))
        if exponent < self.exponent or steps >= 2**24:
            return None
        return 2.0**exponent, most * 2.0**exponent


def exact_range(neurons: Iterable[Spiking], weights: list[tuple[int, float]]) -> ExactRange | None:
    """When plain integrators run in float32; `weights` are exponent and row sum by population."""
    constants, limit = list[float](), 0.0
    for neuron in neurons:
        if (neuron.current_decay, neuron.voltage_decay, neuron.follow) != (1.0, 0.0, None):
            return None
        ends = [each for each in (neuron.floor, neuron.ceiling) if not isinf(each)]
        constants += [neuron.threshold, neuron.resting_voltage, *ends]
        limit = max(limit, neuron.threshold, abs(neuron.floor), abs(neuron.ceiling))
    values = np.array(constants)
    exponent = common_exponent(values, float(np.abs(values).max()))
    if exponent is None or limit == inf:
        return None
    return ExactRange(
        max([exponent, *(each for each, _ in weights)]), max(total for _, total in weights), limit
    )
