"""`from_nir`: a spiking model from a NIR graph or file."""

from __future__ import annotations

from typing import Any

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.runs.translate import read_nir


def from_nir(graph: Any) -> SpikingModel:  # noqa: ANN401
    """Read a spiking model from a NIR graph or file written by neuro_eqprop.

    Parameters
    ----------
    graph : nir.NIRGraph, str or Path
        A graph of `SpikingModel.to_nir`, or a file of `neuro-eqprop translate`.

    Returns
    -------
    SpikingModel
        The spiking model; `model` is the rate model with the weights and biases of the graph.

    Raises
    ------
    NirError
        If the graph holds no rate network, or its nodes and metadata contradict each other.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> graph = model.to_spiking(code="graded").to_nir()
    >>> type(graph).__name__
    'NIRGraph'
    >>> ne.from_nir(graph)
    SpikingModel(code graded, input current, 26 neurons, 320 synapses)
    """
    trained, lowered = read_nir(graph)
    return SpikingModel.of(Model.of(trained), lowered)
