"""A spiking model as a NIR graph object and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.runs.translate import same, translate
from neuro_eqprop.simulators.nir.document import NirError, library


@pytest.fixture(scope="module")
def model() -> ne.Model:
    return ne.train("layered", "digits", hidden=(12,), epochs=1)


@pytest.mark.parametrize(("code", "bits"), [("rate", None), ("graded", None), ("graded", 8)])
def test_a_graph_goes_to_nir_and_back(
    model: ne.Model, code: str, bits: int | None, tmp_path: Path
) -> None:
    spiking = model.to_spiking(code=code, bits=bits)
    graph, nir = spiking.to_nir(), library()
    assert isinstance(graph, nir.NIRGraph)
    nir.write(tmp_path / "written.nir", graph)
    translate(model, tmp_path / "translated.nir", code=code, bits=bits)
    x = ne.load_data("digits").test.x[:5]
    drive = spiking.run(x, steps=16).drive
    if spiking.scaled is not None:  # a graph holds the network whose rates are scaled to 0..1
        drive = spiking.scaled.encode("output", drive)
    for source in (graph, tmp_path / "written.nir", str(tmp_path / "translated.nir")):
        back = ne.from_nir(source)
        assert same(back.network, spiking.network)
        assert (back.code, back.bits) == (code, bits)
        np.testing.assert_allclose(back.run(x, steps=16).drive, drive, rtol=0, atol=1e-12)


def test_the_synapses_of_the_nudge_survive(model: ne.Model) -> None:
    nudged = model.to_spiking(code="graded").with_nudge()
    assert ne.from_nir(nudged.to_nir()).nudged


def test_a_changed_graph_is_refused(model: ne.Model) -> None:
    graph = model.to_spiking(code="graded").to_nir()
    graph.edges.pop()
    with pytest.raises(NirError, match="the graph: its nodes and edges"):
        ne.from_nir(graph)


def test_a_graph_of_another_program_is_refused(model: ne.Model) -> None:
    graph = model.to_spiking(code="rate").to_nir()
    graph.metadata.clear()
    with pytest.raises(NirError, match="does not say how it is stepped"):
        ne.from_nir(graph)


def test_input_spikes_are_refused(model: ne.Model) -> None:
    with pytest.raises(NirError, match="input='current'"):
        model.to_spiking(code="rate", input="rate").to_nir()
