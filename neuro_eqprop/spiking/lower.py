"""Lowering of a rate network to a spiking network.

The nudge beta (y - s) of the output becomes a pull towards y and a self-projection with weight -1,
both with a gain of beta. Weights, biases and currents are rounded to a dyadic grid, so that sums
over spikes are exact in any order and every simulator produces the same spikes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.architectures.normalized import without_normalization
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role, check_parameters
from neuro_eqprop.networks.operators import DelayedFeedback, Embedding, Normalized, TokenMean
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking.codes import Coding, LoweringError
from neuro_eqprop.spiking.ir import (
    Gain,
    Population,
    Projection,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.operator_synapses import operator_synapses
from neuro_eqprop.spiking.synapses import DiagonalSynapses, Synapses

SignedPopulations: TypeAlias = tuple[tuple[str, float], ...]


def signed_populations(layer: Layer, coding: Coding) -> SignedPopulations:
    """The populations of a layer, each with the sign of its spikes."""
    if coding.code.signed and layer.activation.low < 0:
        return ((f"{layer.name}+", 1.0), (f"{layer.name}-", -1.0))
    return ((layer.name, 1.0),)


def join(
    source: SignedPopulations,
    target: SignedPopulations,
    synapses: Synapses,
    gain: Gain = Gain.ONE,
) -> list[Projection]:
    """The projections between the populations of two layers."""
    return [
        Projection(name, other, synapses.scaled(a * b), gain=gain)
        for name, a in source
        for other, b in target
    ]


def rates_of(network: Network, values: Mapping[str, Array], coding: Coding) -> dict[str, Array]:
    """Values by layer (rates or messages), from values by population."""
    return {
        layer.name: np.asarray(
            sum(sign * values[name] for name, sign in signed_populations(layer, coding))
        )
        for layer in network.moving
    }


def snap(values: Array, grid: float) -> Array:
    """The nearest multiples of `grid`."""
    scaled = np.asarray(values / grid)
    np.rint(scaled, out=scaled)
    scaled *= grid
    return scaled


def snapped(synapses: Synapses, grid: float) -> Synapses:
    """The synapses with weights rounded to multiples of `grid`."""
    return synapses.with_values(snap(synapses.values, grid))


def connection_synapses(
    network: Network, params: Mapping[str, Array], connection: Connection
) -> Synapses:
    """The synapses of a connection, from flat source to flat target."""
    operator, name = connection.operator, connection.name
    if isinstance(operator, Normalized | Embedding):
        raise LoweringError(
            f"connection {name!r} normalizes its input or embeds token ids, which only the host "
            f"can do: feed the input as a current (input 'current')"
        )
    if isinstance(operator, TokenMean):
        raise LoweringError(
            f"connection {name!r} divides by the number of tokens of a sample, and synapses are "
            f"the same for all samples: train with pooling 'sum'"
        )
    if not operator.linear:
        kind = type(operator).__name__.lower()
        raise LoweringError(
            f"connection {name!r} is of kind {kind!r}, which is not linear, so synapses cannot "
            f"compute it; evaluate it as a rate network"
        )
    return operator_synapses(operator, params[name], network[connection.source].shape)


def spread_bias(layer: Layer, params: Mapping[str, Array]) -> Array:
    """The bias of each unit, flattened."""
    return np.asarray(np.broadcast_to(params[layer.name], layer.shape)).ravel()


def only_reads_out(network: Network, connection: Connection) -> bool:
    """Whether the connection ends at a readout, which has no feedback in the free phase."""
    return network.cost is Cost.CROSS_ENTROPY and connection.target == network.output.name


def delayed_projections(
    layer: Layer, weight: Array, operator: DelayedFeedback, coding: Coding
) -> list[Projection]:
    """Self-projections of a layer, one for each past state, with its delay."""
    ends, same = signed_populations(layer, coding), np.ones(layer.size)
    return [
        replace(projection, delay=k + 1)
        for k, part in enumerate(operator.parts)
        for projection in join(
            ends, ends, DiagonalSynapses(snap(same * part * weight[0], coding.grid))
        )
    ]


def lower(
    network: Network, params: Mapping[str, Array], *, dt: float, coding: Coding, nudged: bool
) -> SpikingNetwork:
    """The spiking network whose rates settle to the equilibrium of the rate network.

    The input layer becomes currents (`stimulate`), not a population. With `nudged`, the network
    includes the synapses of the nudge, which inference does not need.
    """
    check_parameters(network, params)
    populations = tuple(
        Population(name, coding.neuron(layer), sign * snap(spread_bias(layer, params), coding.grid))
        for layer in network.moving
        for name, sign in signed_populations(layer, coding)
    )
    projections: list[Projection] = []
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            continue
        source = signed_populations(network[connection.source], coding)
        target = signed_populations(network[connection.target], coding)
        if isinstance(connection.operator, DelayedFeedback):
            layer = network[connection.source]
            projections += delayed_projections(
                layer, params[connection.name], connection.operator, coding
            )
            continue
        synapses = snapped(connection_synapses(network, params, connection), coding.grid)
        projections += join(source, target, synapses)
        if network.feeds_back(connection) and not only_reads_out(network, connection):
            back = synapses.scaled(network.feedback(connection)).T
            projections += join(target, source, snapped(back, coding.grid))
    out = signed_populations(network.output, coding)
    if nudged and network.cost is Cost.CROSS_ENTROPY:
        raise LoweringError(
            f"layer {network.output.name!r} is nudged by the cross-entropy, whose softmax no "
            f"neuron computes; train with the squared error to nudge spikes"
        )
    if nudged:
        projections += join(out, out, DiagonalSynapses(-np.ones(network.output.size)), Gain.BETA)
    return SpikingNetwork(dt, populations, tuple(projections), out[0][0])


def stimulate(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    *,
    target: Array | None,
    coding: Coding,
) -> Stimulus:
    """The stimulus of samples x: the current W x, computed on the host, and the targets."""
    current: dict[str, Array] = {}
    macs = 0
    network, operator = without_normalization(network)
    if operator is not None:
        shaped = x.reshape(len(x), *network.input.shape)
        x = operator.normalize(NumpyOps(), shaped).reshape(len(x), -1)
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            brought, products = input_current(network, params, connection, x)
            current[connection.target] = current.get(connection.target, 0.0) + brought
            macs += products
    pull = {} if target is None else {network.output.name: target}
    return Stimulus(
        len(x),
        to_populations(network, current, coding),
        to_populations(network, pull, coding),
        macs,
    )


def input_current(
    network: Network, params: Mapping[str, Array], connection: Connection, x: Array
) -> tuple[Array, int]:
    """W x of a connection from the input, flat, and its multiplications per sample."""
    if isinstance(connection.operator, Embedding):
        weight = params[connection.name]
        found = connection.operator.forward(NumpyOps(), weight, x, np.zeros(1))
        return found.reshape(len(x), -1), 0  # a table lookup needs no multiplication
    synapses = connection_synapses(network, params, connection)
    return synapses.apply(x), synapses.count


def to_populations(
    network: Network, given: Mapping[str, Array], coding: Coding
) -> dict[str, Array]:
    """Values by population, from values by layer: rounded to the grid, with the sign."""
    return {
        name: sign * snap(values, coding.grid)
        for layer, values in given.items()
        for name, sign in signed_populations(network[layer], coding)
    }
