"""`from_nir`: a spiking model from a NIR graph or file, of this package or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.runs.translate import read_document, read_nir
from neuro_eqprop.simulators.nir.assume import Assumptions, find_assumptions
from neuro_eqprop.simulators.nir.document import Document, NirError
from neuro_eqprop.simulators.nir.foreign import INPUT
from neuro_eqprop.simulators.nir.write import graph_of
from neuro_eqprop.spiking.codes import RATE, Coding
from neuro_eqprop.spiking.input_coding import CURRENT
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.training.trained import FROM_NIR

FINEST_GRID = 2.0**-60
"""Currents of foreign graphs are not rounded: floats near one have no finer multiples."""


@dataclass(frozen=True, eq=False, repr=False)
class NirModel(SpikingModel):
    """A graph of another framework as a spiking model; `from_nir` returns one.

    `model` names its layers and holds the weights between them; what it computes as a rate network
    has no meaning.

    Parameters
    ----------
    document : Document
        The network and the weights of its input.
    """

    document: Document = field(kw_only=True)

    @property
    def latency(self) -> int:
        """Steps by which the output is later than in the framework."""
        return int(self.document.notes["foreign"]["latency"])

    @property
    def input_weights(self) -> dict[str, Array]:
        """Weights (units, features) from the input to each population."""
        return {feed.target: feed.weight for feed in self.document.feeds}

    def encode(self, x: npt.ArrayLike, target: Array | None = None) -> Stimulus:
        """The stimulus of samples x (samples, features)."""
        if target is not None:
            raise NirError("a graph of another framework has no nudge; nothing can be its target")
        rows = self.samples(x)
        coded = self.document.feeds[0].target == INPUT
        if coded and not ((rows >= 0) & (rows <= 1)).all():
            raise NirError("x is sent as spikes at rates of 0..1, and has values outside")
        current = {feed.target: feed.synapses.apply(rows) for feed in self.document.feeds}
        macs = sum(feed.synapses.count for feed in self.document.feeds)
        return Stimulus(len(rows), current, {}, macs)

    def schedule(self, steps: int | None, *, beta: float | None = None) -> Schedule:
        """A free phase."""
        if beta is not None:
            raise NirError("a graph of another framework has no nudged phases; use phases=False")
        return super().schedule(steps)

    def with_nudge(self) -> NirModel:
        """Itself: it has no nudge."""
        return self

    def layer_rates(self, firing: Mapping[str, Array]) -> dict[str, Array]:
        """Rates by node of the graph, from rates by population."""
        found = dict[str, Array]()
        for name, groups in self.document.notes["foreign"]["layers"].items():
            size = sum(len(index) for _, index in groups)
            found[name] = np.zeros((len(firing[groups[0][0]]), size))
            for population, index in groups:
                found[name][:, index] = firing[population]
        return found

    def to_lava(self, *, learning: bool = False, **options: Any) -> Any:  # noqa: ANN401
        """One Lava process, see `SpikingModel.to_lava`; it does not learn."""
        if learning:
            raise NirError("only a network that was trained here learns")
        return super().to_lava(**options)

    def to_nir(self) -> Any:  # noqa: ANN401
        """The graph, with the exact description of its steps as metadata."""
        return graph_of(self.document)

    def to_snntorch(self, **_: Any) -> Any:  # noqa: ANN401
        """Raises NirError: the trainable module is made of a rate network."""
        raise NirError("only a network that was trained here becomes a module of snnTorch")


def from_nir(graph: Any, assume: str | Assumptions | None = None) -> SpikingModel:  # noqa: ANN401
    """Read a spiking model from a NIR graph or file.

    Parameters
    ----------
    graph : nir.NIRGraph, str or Path
        A graph of `SpikingModel.to_nir`, a file of `neuro-eqprop translate`, or a graph or file of
        another framework.
    assume : str or Assumptions, optional
        What NIR leaves open about a graph of another framework: "snntorch", "norse",
        "spikingjelly", "sinabs", "rockpool", "lava-dl", or
        `neuro_eqprop.simulators.nir.assume.Assumptions`.

    Returns
    -------
    SpikingModel
        The spiking model. Of a graph of this package, `model` is the rate model with its weights
        and biases; where spikes needed rates scaled to 0..1, it is the scaled one. Another graph
        runs, is recorded and becomes a Lava or Brian2 network too; its output is `latency` steps
        later than in its framework.

    Raises
    ------
    NirError
        If the graph cannot be run here; the message names the node.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> graph = model.to_spiking(code="graded").to_nir()
    >>> type(graph).__name__
    'NIRGraph'
    >>> ne.from_nir(graph).neurons
    26
    """
    chosen = None if assume is None else find_assumptions(assume)
    name, document = read_document(graph, chosen)
    if "foreign" in document.notes:
        return foreign_model(document)
    trained, lowered = read_nir(name, document)
    return SpikingModel.of(Model.of(trained), lowered)


def foreign_model(document: Document) -> NirModel:
    """The spiking model of a graph of another framework."""
    network, notes = document.network, document.notes["foreign"]
    node_of = {p: name for name, groups in notes["layers"].items() for p, _ in groups}
    index = {p: at for groups in notes["layers"].values() for p, at in groups}
    entry = next(name for name in ("input", "input data", "samples") if name not in notes["layers"])
    sizes = {name: sum(len(at) for _, at in groups) for name, groups in notes["layers"].items()}
    layers = [Layer(entry, document.features, LINEAR, Role.INPUT)]
    for name, size in sizes.items():
        role = Role.OUTPUT if name == notes["output"] else Role.HIDDEN
        layers.append(Layer(name, size, HARD_SIGMOID, role))
    weights = dict[tuple[str, str], Array]()

    def add(source: str, target: str, rows: Any, columns: Any, weight: Array) -> None:  # noqa: ANN401
        shape = (sizes[target], document.features if source == entry else sizes[source])
        whole = weights.setdefault((source, target), np.zeros(shape))
        whole[np.ix_(rows, columns)] += weight

    features = list(range(document.features))
    for feed in document.feeds:
        if feed.target in node_of:
            add(entry, node_of[feed.target], index[feed.target], features, feed.weight)
    for p in network.projections:
        source = entry if p.source == "input" and p.source not in node_of else node_of.get(p.source)
        if source is not None and p.target in node_of:
            columns = features if source == entry else index[p.source]
            add(source, node_of[p.target], index[p.target], columns, p.weight)
    connections = tuple(Connection(*ends, symmetric=False) for ends in weights)
    rate = Network(tuple(layers), connections)
    params = {f"{source}->{target}": weight for (source, target), weight in weights.items()}
    params |= {name: np.zeros(size) for name, size in sizes.items()}
    model = Model(rate, params, provenance=FROM_NIR)
    coding = Coding(RATE, grid=FINEST_GRID)
    return NirModel(rate, params, network, params, coding, CURRENT, model=model, document=document)
