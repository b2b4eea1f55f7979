"""Write models as NIR files, and read them back."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.write import refuse_existing
from neuro_eqprop.networks.network import Network, Role, check_parameters
from neuro_eqprop.networks.operators import DelayedFeedback
from neuro_eqprop.runs.checkpoint import describe, rebuild
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError
from neuro_eqprop.simulators.nir.read import read, read_graph
from neuro_eqprop.simulators.nir.write import beyond, graph_of, write
from neuro_eqprop.spiking.codes import Code, Coding, find_code
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork
from neuro_eqprop.spiking.lower import connection_synapses, only_reads_out, signed_populations
from neuro_eqprop.spiking.lowered import LoweredNetwork, lower_network
from neuro_eqprop.spiking.operator_synapses import weight_from_synapses
from neuro_eqprop.spiking.serialize import integer
from neuro_eqprop.spiking.synapses import Synapses
from neuro_eqprop.training.study import Study, adapt
from neuro_eqprop.training.trained import FROM_NIR, TrainedNetwork


def document_of(
    model: TrainedNetwork, code: str | Code, *, nudged: bool, bits: int | None = None
) -> Document:
    """Return the NIR document: spiking network, input weights and training settings."""
    spiking = lower_network(model.network, model.params, code=code, bits=bits, nudged=nudged)
    coding, rate, params = spiking.coding, spiking.rate, spiking.params
    feeds = tuple(
        Feed(name, connection_synapses(rate, params, c).scaled(sign))
        for c in rate.connections
        if rate[c.source].role is Role.INPUT
        for name, sign in signed_populations(rate[c.target], coding)
    )
    study = model.study or Study()
    notes = {
        "rate": describe(rate),
        "coding": coding.constants(),
        "bits": bits,
        "dataset": study.dataset,
        # Stored exactly: its synapses have several weights, each of them rounded.
        "echoes": {
            c.name: float(params[c.name][0])
            for c in rate.connections
            if isinstance(c.operator, DelayedFeedback)
        },
        "learning": {
            "rule": study.rule.name,
            "nudging": study.rule.nudging,
            "beta": study.rule.beta,
        },
    }
    return Document(spiking.network, feeds, notes)


def translate(
    model: TrainedNetwork,
    path: str | Path,
    *,
    code: str | Code = "rate",
    nudged: bool = False,
    force: bool = False,
    bits: int | None = None,
) -> dict[str, Any]:
    """Write the spiking network to a NIR file; return a summary of its contents."""
    path = Path(path)
    refuse_existing(path, force=force)
    document = document_of(model, code, nudged=nudged, bits=bits)
    write(document, path)
    network = document.network
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "code": find_code(code).name,
        "bits": bits,
        "nudged": nudged,
        "digest": network.digest,
        "dt": network.dt,
        "features": document.features,
        "populations": [{"name": p.name, "units": p.size} for p in network.populations],
        "projections": [
            {
                "name": p.name,
                "synapses": p.synapses.count,
                "delay": p.delay,
                "gain": p.gain.value,
            }
            for p in network.projections
        ],
        "feeds": [{"target": f.target, "synapses": f.synapses.count} for f in document.feeds],
        "beyond_nir": beyond(network),
    }


def nir_graph(model: TrainedNetwork, spiking: LoweredNetwork) -> Any:  # noqa: ANN401
    """Return the model as a `nir.NIRGraph`, see `SpikingModel.to_nir`."""
    if spiking.input.name != "current":
        raise NirError(
            f"a NIR graph takes x through its input node, not as {spiking.input.name!r} spikes; "
            "use to_spiking(input='current')"
        )
    code, bits = spiking.coding.code, spiking.bits
    return graph_of(document_of(model, code, nudged=spiking.nudged, bits=bits))


def read_document(graph: Any, assume: Assumptions | None = None) -> tuple[str, Document]:  # noqa: ANN401
    """The name and the content of a NIR graph or file."""
    if isinstance(graph, str | Path):
        return str(graph), read(Path(graph), assume)
    return "the graph", read_graph(graph, "the graph", assume)


def read_nir(name: str, document: Document) -> tuple[TrainedNetwork, LoweredNetwork]:
    """A rate network and its spikes from a document, see `neuro_eqprop.from_nir`."""
    return rebuilt(document, name, str(document.notes.get("dataset", Study().dataset)))


def check_rate_network(document: Document, name: str) -> None:
    """Raise NirError if a document lacks the rate network that it was made from."""
    if not {"rate", "coding", "learning"} <= set(document.notes):
        raise NirError(
            f"{name} holds no rate network to compare its spikes with; "
            f"`neuro-eqprop translate RUN --out FILE.nir` writes one into it"
        )


def rebuilt(document: Document, name: str, dataset: str) -> tuple[TrainedNetwork, LoweredNetwork]:
    """Rebuild the networks of a document; raise NirError if its spiking network differs."""
    check_rate_network(document, name)
    try:
        rate = rebuild(document.notes["rate"])
        code, bits = find_code(document.notes["coding"]["code"]), document.notes.get("bits")
        bits = None if bits is None else integer(bits)
        params = parameters(rate, document, Coding(code))
        check_parameters(rate, params)
        study = adapt(Study(), {"dataset": dataset, "beta": document.notes["learning"]["beta"]})
        model = TrainedNetwork(rate, params, study=study, provenance=FROM_NIR)
        again = lower_again(model, document, code, bits)
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise NirError(f"{name}: its notes and its network do not fit: {error}") from error
    if not same(again.network, document.network):
        raise NirError(f"{name}: its spiking network is not what its rate network becomes here")
    return model, again


def parameters(rate: Network, document: Document, coding: Coding) -> dict[str, Array]:
    """Recover weights and biases of the rate network, in the order in which `lower` writes them."""
    feeds = iter([feed.synapses for feed in document.feeds])
    projections = iter([projection.synapses for projection in document.network.projections])
    params: dict[str, Array] = {}
    for connection in rate.connections:
        operator, ends = connection.operator, (rate[connection.source], rate[connection.target])
        sides = [len(signed_populations(layer, coding)) for layer in ends]
        if isinstance(operator, DelayedFeedback):
            take_first(projections, len(operator.parts) * prod(sides))
            params[connection.name] = np.array([document.notes["echoes"][connection.name]])
            continue
        given = ends[0].role is Role.INPUT
        synapses = take_first(feeds, sides[1]) if given else take_first(projections, prod(sides))
        params[connection.name] = weight_from_synapses(
            operator, synapses, (ends[0].shape, ends[1].shape)
        )
        if rate.feeds_back(connection) and not only_reads_out(rate, connection):
            take_first(projections, prod(sides))
    for layer in rate.moving:
        bias = document.network[signed_populations(layer, coding)[0][0]].bias.reshape(layer.shape)
        params[layer.name] = bias[tuple(slice(n) for n in layer.bias)]
    return params


def take_first(synapses: Iterator[Synapses], count: int) -> Synapses:
    """Return the first of the next `count` synapses; the rest differ only in sign or delay."""
    first, *_ = [next(synapses) for _ in range(count)]
    return first


def lower_again(
    model: TrainedNetwork, document: Document, code: Code, bits: int | None
) -> LoweredNetwork:
    """Translate a model again, with the code, bits and nudge of a document."""
    if Coding(code).constants() != document.notes["coding"]:
        raise ValueError(f"it was made with other constants of code {code.name!r}; translate again")
    nudged = any(p.gain is Gain.BETA for p in document.network.projections)
    return lower_network(model.network, model.params, code=code, nudged=nudged, bits=bits)


def same(one: SpikingNetwork, other: SpikingNetwork) -> bool:
    """Return whether two networks are equal; unlike in digests, zeros have no sign."""

    def structure(network: SpikingNetwork) -> tuple[object, ...]:
        populations = [(p.name, p.neuron) for p in network.populations]
        projections = [(p.name, p.delay, p.gain) for p in network.projections]
        return network.dt, network.output, populations, projections, network.fixed

    if structure(one) != structure(other):
        return False
    biases = zip(one.populations, other.populations, strict=True)
    paths = zip(one.projections, other.projections, strict=True)
    return all(np.array_equal(a.bias, b.bias) for a, b in biases) and all(
        a.synapses.equals(b.synapses) for a, b in paths
    )
