"""Quantisation of a network to fixed point: integer weights with few bits, and integer states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import frexp, inf, sqrt

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.spiking.arithmetic import TOP, chunks, nearest, order_of, power_above
from neuro_eqprop.spiking.fixed_point import integer_sums
from neuro_eqprop.spiking.ir import FixedPoint, Population, Projection, SpikingNetwork
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.rounding import (
    QuantisationError,
    Rounded,
    Rounding,
    Scaling,
    round_synapses,
)
from neuro_eqprop.spiking.synapses import DenseSynapses, SparseSynapses, Synapses

FINE = 2.0**-12
"""Finest scale of weights, relative to the drive that a rate of one needs."""


@dataclass(frozen=True, slots=True)
class ProjectionReport:
    """Scale and rounding errors of the weights of a projection."""

    name: str
    exponent: int
    """Base-2 exponent of the scale, or of the common divisor of the scales."""
    factors: tuple[int, ...]
    """Scale factors by neuron or channel; one if all share it; if sparse, those in use."""
    largest: int
    """Largest absolute integer weight."""
    worst_error: float
    rms_error: float
    lost: int
    """Number of distinct weights that were rounded to zero."""


@dataclass(frozen=True, slots=True)
class PopulationReport:
    """Fixed-point format of a population."""

    name: str
    unit: float
    threshold: int
    """Threshold in units; theta of a graded population."""
    bias_bits: int
    """Bits of the largest bias, including the sign."""
    reach: float
    """Largest possible sum of inputs, as a fraction of the 24-bit range."""


@dataclass(frozen=True, slots=True)
class QuantisationReport:
    """Result of the quantisation, by projection and population."""

    rounding: Rounding
    projections: tuple[ProjectionReport, ...]
    populations: tuple[PopulationReport, ...]

    @property
    def may_wrap(self) -> tuple[str, ...]:
        """Populations whose input could wrap; runs count how often it does."""
        return tuple(population.name for population in self.populations if population.reach >= 1)


def quantise(
    network: SpikingNetwork, rounding: Rounding
) -> tuple[SpikingNetwork, QuantisationReport]:
    """The network in fixed point with rounded values, and a report of the rounding errors.

    A projection and its transpose keep the same weights. Currents are rounded at run time.
    """
    if network.fixed is not None:
        raise QuantisationError("the network is in fixed point already")
    for population in network.populations:
        if population.neuron.follow is not None:
            raise QuantisationError(
                f"population {population.name!r} tracks a rate, which is not defined in integers; "
                "use code rate or graded"
            )
    rounded = round_all(network, rounding)
    units = {p.name: unit(network, p, rounded) for p in network.populations}
    populations = tuple(fit(p, units[p.name]) for p in network.populations)
    projections = tuple(
        replace(projection, synapses=projection.synapses.with_values(weight))
        for projection, weight in zip(network.projections, shared_weights(rounded), strict=True)
    )
    made = replace(
        network, populations=populations, projections=projections, fixed=FixedPoint(units)
    )
    reports = tuple(map(projection_report, network.projections, made.projections, rounded))
    del rounded
    sums = input_sums(made)
    populations_found = (population_report(made, each, sums[each.name]) for each in populations)
    return made, QuantisationReport(rounding, reports, tuple(populations_found))


def shared_weights(rounded: Sequence[Rounded]) -> list[Array]:
    """The weights of each projection; transposed matrices share their memory."""
    made: list[Array] = []
    for new in rounded:
        found = (w.T for w, r in zip(made, rounded, strict=False) if new.whole.base is r.whole)
        transpose = next(found, None)
        made.append(new.weight if transpose is None else transpose)
    return made


def finest(network: SpikingNetwork, projection: Projection) -> float:
    """The finest scale that weights of this projection may have."""
    source, target = network[projection.source].neuron, network[projection.target].neuron
    sizes = target.sizes
    return power_above(max(FINE * sizes.drive_of_one, sizes.finest_unit / source.sizes.payload))


def round_all(network: SpikingNetwork, rounding: Rounding) -> list[Rounded]:
    """The rounded weights of each projection; a transpose gets the same integers."""
    found: list[Rounded] = []
    for k, projection in enumerate(network.projections):
        others = [
            j for j, other in enumerate(network.projections) if is_transpose(projection, other)
        ]
        earlier = [j for j in others if j < k]
        if earlier:
            found.append(backwards(network.projections[earlier[0]].synapses, found[earlier[0]]))
            continue
        both = [projection, *(network.projections[j] for j in others)]
        own = replace(rounding, scaling=Scaling.LAYER) if k in others else rounding
        limit = max(finest(network, each) for each in both)
        found.append(round_synapses(projection.synapses, own, finest=limit))
    return found


def is_transpose(a: Projection, b: Projection) -> bool:
    """Whether b is the transpose of a."""
    ends = (a.source, a.target) == (b.target, b.source)
    return ends and a.gain is b.gain and a.synapses.is_transpose_of(b.synapses)


def backwards(synapses: Synapses, rounded: Rounded) -> Rounded:
    """The rounded weights of the transposed synapses."""
    if isinstance(synapses, DenseSynapses):
        return Rounded(rounded.whole.T, rounded.factor.T, rounded.base)
    factor = rounded.factor
    if factor.size > 1:
        full = np.broadcast_to(factor, synapses.values.shape).astype(np.float64)
        factor = synapses.with_values(full).T.values.astype(np.int64)
    whole = synapses.with_values(rounded.whole.astype(np.float64)).T.values.astype(np.int64)
    return Rounded(whole, factor, rounded.base)


def unit(network: SpikingNetwork, population: Population, rounded: Sequence[Rounded]) -> float:
    """The value of one integer step of a population; all its inputs are multiples of it."""
    try:
        units = [population.neuron.coarsest_unit(population.name)]
    except ValueError as error:
        raise QuantisationError(str(error)) from None
    for projection, weight in zip(network.projections, rounded, strict=True):
        if projection.target == population.name:
            units.append(weight.base * network[projection.source].neuron.sizes.payload)
    return min(units)


def fit(population: Population, unit: float) -> Population:
    """A population with values rounded to multiples of the unit and 12-bit decays."""
    bias = nearest(population.bias, unit).astype(np.float64) * unit
    return replace(population, neuron=population.neuron.rounded(unit), bias=bias)


def input_sums(network: SpikingNetwork) -> dict[str, Array]:
    """The largest possible sum of inputs of each neuron, by population.

    Raises an error for a weight whose single spike overflows 24 bits.
    """
    sums = {population.name: np.zeros(population.size) for population in network.populations}
    for projection in network.projections:
        target = neurons_of(network, network[projection.target])
        size, largest = integer_sums(network, projection)
        sent = network[projection.source].neuron.sizes.most_sent
        more = np.where(size > 0, size, 0) * sent if sent < inf else inf
        sums[projection.target] += more
        if largest * (target.arithmetic.unit / target.shown) >= TOP:
            most = float(np.abs(projection.synapses.values).max())
            raise QuantisationError(
                f"projection {projection.name!r} has a weight of size {most:g}, of which a single "
                "spike overflows 24 bits at the unit that the other weights of its target need; "
                "scale weights and thresholds of the target to a common size"
            )
    return sums


def projection_report(projection: Projection, made: Projection, new: Rounded) -> ProjectionReport:
    """The rounding errors of the weights."""
    before, largest, worst, squares, lost = projection.synapses.values, 0, 0.0, 0.0, 0
    arrays, order = (new.whole, made.synapses.values, before), order_of(new.whole)
    for whole, weight, old in zip(*(chunks(each, order) for each in arrays), strict=True):
        error = np.abs(weight - old)
        largest, worst = max(largest, int(np.abs(whole).max())), max(worst, float(error.max()))
        squares += float(error @ error)
        lost += int(np.count_nonzero((whole == 0) & (old != 0)))
    factors = new.factor.ravel()
    if isinstance(projection.synapses, SparseSynapses) and factors.size > 1:
        factors = np.unique(factors)
    return ProjectionReport(
        projection.name,
        frexp(new.base)[1] - 1,
        tuple(factors.tolist()),
        largest,
        worst,
        sqrt(squares / before.size) if before.size else 0.0,
        lost,
    )


def population_report(
    network: SpikingNetwork, population: Population, sums: Array
) -> PopulationReport:
    """Fixed-point format of a population, from the largest sums of its inputs."""
    neurons, sizes = neurons_of(network, population), population.neuron.sizes
    unit = neurons.arithmetic.unit
    bias_bits = int(np.abs(neurons.bias).max()).bit_length() + 1
    reach = float(sums.max()) * sizes.input_gain / TOP
    return PopulationReport(population.name, unit, round(sizes.quantum / unit), bias_bits, reach)
