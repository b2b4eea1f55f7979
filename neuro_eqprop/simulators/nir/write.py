"""Write a spiking network as a NIR file: the closest NIR nodes, and exact metadata.

NIR's neurons follow differential equations and its edges have no delay, so that its nodes cannot
express the step of `neuro_eqprop.spiking.ir`. The nodes, for other frameworks, are the closest that
NIR has; the metadata, for `neuro_eqprop.simulators.nir.read`, is exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.write import append_bytes, atomic
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError, library, seal
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.spiking.serialize import describe, described_synapses
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    DiagonalSynapses,
    SparseSynapses,
    Synapses,
)

KEY, VERSION = "neuro_eqprop", 1
SEMANTICS = "every edge between populations takes `delay` steps"
INPUT, OUTPUT = "input", "output"
LARGEST_MATRIX = 2**27
"""Entries of the largest matrix that is written; a file may have 2 GB."""
LEAST_DECAY = 2.0**-40
"""Replaces a decay of zero, since NIR needs a finite time constant."""


def label(kind: str, number: int, *names: str) -> str:
    """The name of a node: unique by its number, without characters that HDF5 or Python rejects."""
    tail = "_".join(re.sub(r"[^A-Za-z0-9]", "_", name)[:40] for name in names)
    return f"{kind}_{number}_{tail}"


def population_nodes(network: SpikingNetwork) -> dict[str, str]:
    """The node of each population."""
    return {p.name: label("population", k, p.name) for k, p in enumerate(network.populations)}


def projection_nodes(network: SpikingNetwork) -> list[str]:
    """The node of each projection, in their order."""
    return [label("projection", k, p.source, p.target) for k, p in enumerate(network.projections)]


def feed_nodes(feeds: tuple[Feed, ...]) -> list[str]:
    """The node of each feed, in their order."""
    return [label("feed", k, feed.target) for k, feed in enumerate(feeds)]


def neuron_node(population: Population, dt: float) -> Any:  # noqa: ANN401
    """The closest NIR neuron, with time constants for which forward Euler gives the same step."""
    nir, neuron = library(), population.neuron

    def full(value: float) -> Array:
        return np.full(population.size, value, dtype=np.float64)

    if isinstance(neuron, Graded):
        return nir.LI(tau=full(dt / neuron.damping), r=full(1.0), v_leak=full(0.0))
    if not isinstance(neuron, Spiking):
        raise NirError(f"population {population.name!r} has neurons that NIR cannot express")
    leak = max(neuron.voltage_decay, LEAST_DECAY)
    fires = {"v_threshold": full(neuron.threshold), "v_reset": full(0.0)}
    if neuron.current_decay == 1.0 and neuron.voltage_decay == 0.0:
        return nir.IF(r=full(1.0 / dt), **fires)
    if neuron.current_decay == 1.0:
        return nir.LIF(tau=full(dt / leak), r=full(1.0 / leak), v_leak=full(0.0), **fires)
    fade = max(neuron.current_decay, LEAST_DECAY)
    return nir.CubaLIF(
        tau_syn=full(dt / fade),
        tau_mem=full(dt / leak),
        r=full(1.0 / leak),
        v_leak=full(0.0),
        w_in=full(1.0 / fade),
        **fires,
    )


def check_neurons(network: SpikingNetwork) -> None:
    """Raise NirError for neurons that follow a rate: version 1 of the metadata lacks them."""
    for population in network.populations:
        if isinstance(population.neuron, Spiking) and population.neuron.follow is not None:
            raise NirError(
                f"population {population.name!r} follows its rate with spikes, which NIR cannot "
                "express; use code rate or graded"
            )


def graph_of(document: Document) -> Any:  # noqa: ANN401
    """The NIR graph, with the exact description as its metadata."""
    nir, network = library(), document.network
    check_neurons(network)
    at = population_nodes(network)
    nodes = {at[p.name]: neuron_node(p, network.dt) for p in network.populations}
    nodes[INPUT] = nir.Input(input_type=np.array([document.features]))
    nodes[OUTPUT] = nir.Output(output_type=np.array([network[network.output].size]))
    edges = [(at[network.output], OUTPUT)]
    if not document.feeds:
        edges.append((INPUT, at[network.populations[0].name]))
    waiting = movable_biases(network)
    for name, source, target, synapses in linear_parts(document):
        bias = waiting.pop(target, None) if isinstance(synapses, DenseSynapses) else None
        made = synapse_nodes(name, synapses, bias)
        nodes |= made
        chain = [INPUT if source is None else at[source], *made, at[target]]
        edges += pairwise(chain)
    # NIR types a convolution by its image, and a population by its number of neurons.
    typed = not any(isinstance(each[3], ConvolutionSynapses) for each in linear_parts(document))
    meta = {KEY: metadata(document)}
    return nir.NIRGraph(nodes=nodes, edges=edges, metadata=meta, type_check=typed)


def linear_parts(document: Document) -> Iterator[tuple[str, str | None, str, Synapses]]:
    """Node, source (None is the input), target and synapses of all connections."""
    for name, feed in zip(feed_nodes(document.feeds), document.feeds, strict=True):
        yield name, None, feed.target, feed.synapses
    network = document.network
    for name, p in zip(projection_nodes(network), network.projections, strict=True):
        yield name, p.source, p.target, p.synapses


def synapse_nodes(name: str, synapses: Synapses, bias: Array | None) -> dict[str, Any]:
    """The nodes of synapses, in the order of the path; the one with the weights is `name`."""
    nir = library()
    if isinstance(synapses, ConvolutionSynapses):
        pooling = {}
        if synapses.pool > 1:
            side = np.array([synapses.pool, synapses.pool])
            pooling[f"{name}_pool"] = nir.SumPool2d(side, side, np.zeros(2, dtype=np.int64))
        convolution = nir.Conv2d(
            input_shape=synapses.pooled[1:],
            weight=np.array(synapses.kernel),
            stride=synapses.stride,
            padding=synapses.padding,
            dilation=1,
            groups=1,
            bias=np.zeros(len(synapses.kernel)),
        )
        nodes = {**pooling, name: convolution}
        return dict(reversed(nodes.items())) if synapses.transposed else nodes
    if isinstance(synapses, DiagonalSynapses):
        return {name: nir.Scale(np.array(synapses.diagonal))}
    if synapses.shape[0] * synapses.shape[1] > LARGEST_MATRIX:
        raise NirError(
            f"node {name!r} has {synapses.count} sparse synapses between {synapses.shape[1]} and "
            f"{synapses.shape[0]} neurons; NIR has no sparse matrix, and a full one would take "
            f"{8e-9 * synapses.shape[0] * synapses.shape[1]:.1f} GB"
        )
    weight = np.array(synapses.dense(), dtype=np.float64)
    return {name: nir.Linear(weight) if bias is None else nir.Affine(weight, bias)}


def movable_biases(network: SpikingNetwork) -> dict[str, Array]:
    """Biases that a NIR node can add along with the first weights into a population."""
    return {
        p.name: np.array(p.bias, dtype=np.float64)
        for p in network.populations
        if isinstance(p.neuron, Spiking) and p.neuron.current_decay == 1.0 and p.bias.any()
    }


def metadata(document: Document) -> dict[str, Any]:
    """The metadata: JSON for all but the arrays; weights are those of the nodes."""
    network = document.network
    at = population_nodes(network)
    description = describe(network) | {
        "semantics": SEMANTICS,
        "feeds": [
            {"node": node, "target": feed.target, **described_synapses(feed.synapses)}
            for node, feed in zip(feed_nodes(document.feeds), document.feeds, strict=True)
        ],
        "beyond_nir": beyond(network),
        "notes": dict(document.notes),
    }
    for part, node in zip(description["populations"], at.values(), strict=True):
        part["node"] = node
    for part, node in zip(description["projections"], projection_nodes(network), strict=True):
        part["node"] = node
    return {
        "version": VERSION,
        "description": json.dumps(description, sort_keys=True, allow_nan=False),
        "bias": {at[p.name]: np.array(p.bias, dtype=np.float64) for p in network.populations},
        **sparse_places(document),
    }


def sparse_places(document: Document) -> dict[str, Any]:
    """Where the weights of sparse synapses are in the matrix of their node."""
    found = {
        name: {"indptr": np.array(synapses.indptr), "indices": np.array(synapses.indices)}
        for name, _, _, synapses in linear_parts(document)
        if isinstance(synapses, SparseSynapses)
    }
    return {"sparse": found} if found else {}


def beyond(network: SpikingNetwork) -> list[str]:
    """Properties of the network that no NIR node can express."""
    spiking = [p.neuron for p in network.populations if isinstance(p.neuron, Spiking)]
    graded = len(spiking) < len(network.populations)
    every = [p.synapses for p in network.projections]
    kernels = [each for each in every if isinstance(each, ConvolutionSynapses)]
    slow = any(p.delay > 1 for p in network.projections)
    found = {
        "edges take one step" + (" or more" if slow else ""): bool(network.projections),
        "dt": True,
        "graded messages of changes": graded,
        "reset by subtraction": any(neuron.reset is Reset.SUBTRACT for neuron in spiking),
        "a start at half the threshold": bool(spiking),
        "a spike at the threshold, not above it": bool(spiking),
        "voltage floor or ceiling": any(
            isfinite(neuron.floor) or isfinite(neuron.ceiling) for neuron in spiking
        ),
        "convolutions between flat populations": bool(kernels),
        "transposed convolutions": any(each.transposed for each in kernels),
        "gains of beta": any(p.gain is Gain.BETA for p in network.projections),
        "24-bit fixed point": network.fixed is not None,
    }
    return [what for what, so in found.items() if so]


def to_nir(network: SpikingNetwork, path: Path) -> None:
    """Write a network alone; its inputs are the currents of its first population."""
    write(Document(network), path)


def write(document: Document, path: Path) -> None:
    """Write a file that appears complete or not at all."""
    nir, graph = library(), graph_of(document)
    with atomic(path) as draft:
        nir.write(draft, graph)
        content = draft.read_bytes()
        append_bytes(draft, seal(content))
