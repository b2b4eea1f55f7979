"""Where the spikes of each neuron arrive: synapses and messages on every core of a population."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.chips.placement import CoreAllocation
from neuro_eqprop.chips.workload import NetworkShape, ProjectionShape
from neuro_eqprop.common.arrays import Array, Ints


def cores_of(shape: NetworkShape, allocation: CoreAllocation) -> Ints:
    """The core of each neuron, counted from the first core of the population."""
    size, maps = shape[allocation.name].size, shape.maps(allocation.name)
    if allocation.columns and maps is not None:
        column = np.arange(size) % maps[2]
        return np.asarray(column // allocation.columns)
    return np.arange(size) // allocation.neurons_per_core


def deliveries(shape: NetworkShape, projection: ProjectionShape, target: CoreAllocation) -> Array:
    """Synapses of each source neuron on each core of the target (neurons, cores).

    They follow from the geometry of a convolution, or from the first and last target of each
    source; any other projection is spread evenly. A message goes to every core with a synapse.
    """
    source, size = shape[projection.source].size, shape[projection.target].size
    core = cores_of(shape, target)
    if projection.convolution is not None:
        return convolution_synapses(projection, core, target.cores)
    if projection.spans is None or is_even(shape, projection):
        held = np.bincount(core, minlength=target.cores)
        return np.tile(held * (projection.synapses / (source * size)), (source, 1))
    first, last = projection.spans[:, :1], projection.spans[:, 1:]
    starts = np.searchsorted(core, np.arange(target.cores))
    ends = np.searchsorted(core, np.arange(target.cores), side="right")
    inside = np.minimum(last + 1, ends) - np.maximum(first, starts)
    inside = np.maximum(0, inside).astype(np.float64)
    total = inside.sum()
    return np.asarray(inside * (projection.synapses / total) if total else inside)


def is_even(shape: NetworkShape, projection: ProjectionShape) -> bool:
    """Whether the synapses of each source neuron are spread evenly over the target."""
    if projection.convolution is not None:
        return False
    return projection.spans is None or shape.dense(projection)


def messages_per_spike(
    shape: NetworkShape, projection: ProjectionShape, target: CoreAllocation
) -> float:
    """Mean number of target cores on which a spike has a synapse."""
    if not is_even(shape, projection):
        return float(np.minimum(1.0, deliveries(shape, projection, target)).sum(axis=1).mean())
    pairs = shape[projection.source].size * shape[projection.target].size
    held = np.bincount(cores_of(shape, target), minlength=target.cores)
    return float(np.minimum(1.0, held * (projection.synapses / pairs)).sum())


def convolution_synapses(projection: ProjectionShape, core: Ints, cores: int) -> Array:
    """Synapses of each source neuron of a convolution on each core."""
    geometry = projection.convolution
    if geometry is None:
        raise ValueError(f"projection {projection.name!r} is no convolution")
    channels, height, width = geometry.target
    rows = geometry.links(0).astype(np.float64)
    columns = geometry.links(1).astype(np.float64)
    found = np.zeros((geometry.source[1], geometry.source[2], cores))
    where = core.reshape(channels, height * width)
    for each in range(cores):
        held = (where == each).sum(axis=0).reshape(height, width).astype(np.float64)
        found[:, :, each] = rows.T @ held @ columns
    return np.tile(found.reshape(-1, cores), (geometry.source[0], 1))
