"""Convert a NIR graph of another program to a spiking network, under explicit assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError, library
from neuro_eqprop.spiking.ir import Population, Projection, Reset, Spiking, SpikingNetwork


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Settings that NIR leaves open: dt in seconds, delay of edges in steps, reset and limits.

    A voltage starts at half its threshold, and a neuron fires at its threshold, as in `ir`.
    """

    dt: float
    delay: int = 1
    reset: Reset = Reset.ZERO
    floor: float = -inf
    ceiling: float = inf


def assumed(graph: Any, assume: Assumptions) -> Document:  # noqa: ANN401
    """The document with the graph's equations discretised by forward Euler."""
    nir = library()
    known = (nir.Input, nir.Output, nir.Linear, nir.Affine, nir.IF, nir.LIF, nir.CubaLIF)
    for name, node in graph.nodes.items():
        if not isinstance(node, known):
            raise NirError(f"its node {name!r} is a {type(node).__name__}, which is not supported")
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise NirError("it does not have exactly one input and one output")
    neurons = [n for n, node in graph.nodes.items() if isinstance(node, known[4:])]
    read = [a for a, b in graph.edges if isinstance(graph.nodes[b], nir.Output)]
    if len(read) != 1 or read[0] not in neurons:
        raise NirError("its output is not one population")
    populations, feeds, projections = [], [], []
    for name in neurons:
        cell, gain, bias = neuron(name, graph.nodes[name], assume)
        for source, weight, shift in paths(graph, name, size=gain.size):
            if shift.any() and cell.current_decay < 1.0:
                raise NirError(f"a bias would pass the synapses of {name!r}, which none does here")
            bias = bias + gain * shift
            scaled = gain[:, None] * weight
            if isinstance(graph.nodes[source], nir.Input):
                feeds.append(Feed(name, scaled))
            else:
                projections.append(Projection(source, name, scaled, assume.delay))
        populations.append(Population(name, cell, bias))
    network = SpikingNetwork(assume.dt, tuple(populations), tuple(projections), read[0])
    return Document(network, tuple(feeds))


def paths(graph: Any, target: str, *, size: int) -> Iterator[tuple[str, Array, Array]]:  # noqa: ANN401
    """Source, weight and bias of each input path of a population; a bare edge is the identity."""
    nir = library()
    for before in (a for a, b in graph.edges if b == target):
        node = graph.nodes[before]
        if not isinstance(node, nir.Linear | nir.Affine):
            yield before, np.eye(size), np.zeros(size)
            continue
        sources = [a for a, b in graph.edges if b == before]
        if len(sources) != 1 or isinstance(graph.nodes[sources[0]], nir.Linear | nir.Affine):
            raise NirError(f"its node {before!r} does not come from exactly one population")
        weight = np.asarray(node.weight, dtype=np.float64)
        bias = getattr(node, "bias", None)
        yield sources[0], weight, np.zeros(size) if bias is None else np.asarray(bias, float)


def neuron(name: str, node: Any, assume: Assumptions) -> tuple[Spiking, Array, Array]:  # noqa: ANN401
    """The neuron of this package, the scale of its input currents, and its bias."""
    nir, dt = library(), assume.dt
    if np.any(node.v_reset):
        raise NirError(f"its node {name!r} resets to {np.ravel(node.v_reset)[0]:g}, not to zero")
    gain = dt * np.ravel(np.asarray(node.r, dtype=np.float64))
    fade, leak, bias = 1.0, 0.0, np.zeros_like(gain)
    if not isinstance(node, nir.IF):
        cuba = isinstance(node, nir.CubaLIF)
        leak = dt / same(node.tau_mem if cuba else node.tau, f"{name}.tau")
        gain = leak * gain / dt
        bias = leak * np.ravel(np.asarray(node.v_leak, dtype=np.float64))
        if cuba:
            fade = dt / same(node.tau_syn, f"{name}.tau_syn")
            gain = gain * fade * np.ravel(np.asarray(node.w_in, dtype=np.float64))
    threshold = same(node.v_threshold, f"{name}.v_threshold")
    cell = Spiking(fade, leak, threshold, assume.reset, assume.floor, assume.ceiling)
    return cell, gain, bias


def same(values: Any, name: str) -> float:  # noqa: ANN401
    """The common value of all neurons of a population; raises NirError if they differ."""
    found = np.unique(np.asarray(values, dtype=np.float64))
    if found.size != 1 or not found[0] > 0:
        raise NirError(f"its {name} is not one value above zero for all neurons")
    return float(found[0])
