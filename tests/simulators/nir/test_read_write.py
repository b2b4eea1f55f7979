"""NIR files: what is refused and how it is said, and what foreign graphs become."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
import pytest

from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.nir import read as reading
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError
from neuro_eqprop.simulators.nir.read import from_nir, read
from neuro_eqprop.simulators.nir.write import KEY, beyond, to_nir, write
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.spiking.lower import lower
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding

nir: Any = import_module("nir")
File: TypeAlias = Any
Node: TypeAlias = Any
Result: TypeAlias = Any

LEAKY = Spiking(1.0, 0.125, 1.0, Reset.SUBTRACT, -1.0, inf)
NETWORK = SpikingNetwork(
    1e-3,
    (
        Population("hidden", LEAKY, np.array([0.5, -0.25, 0.0])),
        Population("output", Graded(TANH, 2.0**-6, 0.5), np.array([0.125, 0.0])),
    ),
    (
        Projection("hidden", "output", np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]]), delay=3),
        Projection("output", "hidden", np.full((3, 2), 0.25)),
        Projection("output", "output", -np.eye(2), gain=Gain.BETA),
    ),
    "output",
)
FEED = Feed("hidden", np.arange(12, dtype=np.float64).reshape(3, 4) / 3.0)


@pytest.fixture(autouse=True)
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files made here are read without a child, which takes a second each."""
    monkeypatch.setattr(
        reading, "call_reader", lambda path, _, *a, **__: reading.copy_checked(path, *a)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "net.nir"
    write(Document(NETWORK, (FEED,), {"note": [1, None, "so"]}), made)
    return made


def refused(path: Path) -> str:
    """What is said of a file that cannot be read: one line that names it."""
    with pytest.raises(NirError) as found:
        from_nir(path)
    said = str(found.value)
    assert str(path) in said
    assert "\n" not in said
    return said


def edit(path: Path, change: Callable[[Any], None]) -> None:
    with h5py.File(path, "r+") as file:
        change(file)


def describe(path: Path, change: Callable[[Any], None]) -> None:
    """Change the JSON in the metadata."""

    def rewrite(file: File) -> None:
        place = file[f"node/metadata/{KEY}"]
        result = json.loads(place["description"][()])
        change(result)
        del place["description"]
        place["description"] = json.dumps(result)

    edit(path, rewrite)


def test_a_document_comes_back_whole(path: Path) -> None:
    document = read(path)
    assert document.network.digest == NETWORK.digest
    assert document.notes == {"note": [1, None, "so"]}
    assert document.features == 4
    assert [feed.target for feed in document.feeds] == ["hidden"]
    assert np.array_equal(document.feeds[0].weight, FEED.weight)


def test_the_nodes_are_what_other_frameworks_look_for(path: Path) -> None:
    graph = nir.read(path)
    hidden = graph.nodes["population_0_hidden"]
    assert isinstance(hidden, nir.LIF)
    assert np.allclose(hidden.tau, 8e-3)
    assert np.allclose(hidden.r * 1e-3 / hidden.tau, 1.0)
    feed = graph.nodes["feed_0_hidden"]
    assert np.array_equal(feed.bias, NETWORK["hidden"].bias)
    assert np.array_equal(feed.weight, FEED.weight)
    assert ("feed_0_hidden", "population_0_hidden") in graph.edges
    assert isinstance(graph.nodes["projection_1_output_hidden"], nir.Linear)


def test_what_nir_cannot_say_is_listed() -> None:
    listed = beyond(NETWORK)
    assert "edges take one step or more" in listed
    assert "reset by subtraction" in listed
    assert "gains of beta" in listed
    plain = Spiking(1.0, 0.0, 1.0, Reset.ZERO, -inf, inf)
    alone = beyond(SpikingNetwork(1.0, (Population("a", plain, np.zeros(1)),), (), "a"))
    assert not {"reset by subtraction", "voltage floor or ceiling"} & set(alone)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(path: Path, part: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    assert "cut short" in refused(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none.nir")
    assert "does not exist" in refused(tmp_path)
    (tmp_path / "text.nir").write_text("not HDF5 at all")
    assert "no NIR file" in refused(tmp_path / "text.nir")


def test_huge_claims_are_refused_before_they_are_read(path: Path) -> None:
    def grow(file: File) -> None:
        place = file["node/nodes/projection_1_output_hidden"]
        del place["weight"]
        place.create_dataset("weight", shape=(10**6, 10**6), dtype="f8", chunks=(64, 64))

    edit(path, grow)
    assert "(1000000, 1000000)" in refused(path)


def test_links_out_of_the_file_are_refused(path: Path, tmp_path: Path) -> None:
    def lead(file: File) -> None:
        file["node/nodes/elsewhere"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/node")

    edit(path, lead)
    assert "leads out of the file" in refused(path)


def test_numbers_of_a_foreign_type_are_refused(path: Path) -> None:
    def twist(file: File) -> None:
        place = file["node/nodes/projection_1_output_hidden"]
        del place["weight"]
        place["weight"] = np.full((3, 2), 1j)

    edit(path, twist)
    assert "complex128" in refused(path)


def put(place: str, key: str, value: object) -> Callable[[Any], None]:
    def change(result: Result) -> None:
        result[place][0][key] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("projections", "delay", 1.5), "1.5 is no integer"),
        (put("projections", "delay", True), "True is no integer"),
        (put("projections", "delay", 0), "at least one step"),
        (put("projections", "gain", "gamma"), "'gamma' is not a valid Gain"),
        (put("projections", "node", "nowhere"), "there is no 'nowhere'"),
        (put("projections", "source", "output"), "weights (2, 3)"),
        (put("populations", "name", 7), "7 is no text"),
        (put("populations", "neuron", {"theta": "1"}), "there is no 'activation'"),
        (put("populations", "neuron", None), "NoneType"),
        (lambda result: result.update(dt="1"), "'1' is no number"),
        (lambda result: result.update(dt=-1.0), "dt must be above zero"),
        (lambda result: result.update(semantics="at once"), "its semantics are 'at once'"),
        (lambda result: result.pop("feeds"), "there is no 'feeds'"),
        (lambda result: result["feeds"].clear(), "not those its metadata describe"),
        (lambda result: result["populations"][0]["neuron"].update(threshold=2.0), "contradict"),
    ],
)
def test_wrong_descriptions_are_refused(
    path: Path, change: Callable[[Any], None], said: str
) -> None:
    describe(path, change)
    assert said in refused(path)


def test_another_version_is_refused(path: Path) -> None:
    def newer(file: File) -> None:
        file[f"node/metadata/{KEY}/version"][()] = 2

    edit(path, newer)
    assert "version 2, this one reads 1" in refused(path)


def test_nodes_that_contradict_the_metadata_are_refused(path: Path) -> None:
    def raise_threshold(file: File) -> None:
        file["node/nodes/population_0_hidden/v_threshold"][0] = 5.0

    edit(path, raise_threshold)
    assert "'population_0_hidden' and its metadata contradict" in refused(path)


def test_weights_may_be_changed_by_others(path: Path) -> None:
    def nudge(file: File) -> None:
        file["node/nodes/projection_1_output_hidden/weight"][0, 0] = 0.5

    edit(path, nudge)
    assert from_nir(path).projections[1].weight[0, 0] == 0.5


def test_damaged_bytes_are_refused(path: Path) -> None:
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for place in rng.integers(0, len(whole) - 100, 30):
        hurt = bytearray(whole)
        hurt[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(hurt)
        assert "is damaged" in refused(path)


def test_a_failed_write_leaves_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def fail(name: str, graph: object) -> None:
        Path(name).write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(nir, "write", fail)
    with pytest.raises(OSError, match="the disk is full"):
        to_nir(NETWORK, path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "feed",
    [
        Feed("nowhere", np.ones((3, 4))),
        Feed("hidden", np.ones((2, 4))),
        Feed("hidden", np.full((3, 4), np.nan)),
    ],
)
def test_input_weights_that_do_not_fit_are_refused(feed: Feed) -> None:
    with pytest.raises(NirError, match=feed.target):
        Document(NETWORK, (feed,))
    with pytest.raises(ValueError, match="must be a matrix"):
        Feed("hidden", np.ones(3))


# Graphs of other programs.


def foreign(path: Path, cell: Node) -> Path:
    """Input, affine map, cell, output."""
    weight, bias = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.0])
    nir.write(path, nir.NIRGraph.from_list(nir.Affine(weight, bias), cell))
    return path


def lif(**changes: object) -> Node:
    values: dict[str, Any] = {
        "tau": 4.0,
        "r": 2.0,
        "v_leak": 0.5,
        "v_threshold": 3.0,
        "v_reset": 0.0,
    }
    values |= changes
    return nir.LIF(**{name: np.broadcast_to(value, 2).copy() for name, value in values.items()})


def test_a_graph_without_semantics_is_refused_unless_assumed(tmp_path: Path) -> None:
    path = foreign(tmp_path / "other.nir", lif())
    assert "does not say how it is stepped" in refused(path)
    document = read(path, Assumptions(dt=1.0, delay=2, reset=Reset.SUBTRACT, floor=-1.0))
    cell = document.network.populations[0]
    assert cell.neuron == Spiking(1.0, 0.25, 3.0, Reset.SUBTRACT, -1.0, inf)
    assert np.allclose(cell.bias, [0.25 * 0.5 + 0.5 * 0.5, 0.25 * 0.5])
    assert np.allclose(document.feeds[0].weight, [[0.5, 1.0], [1.5, 2.0]])


def test_a_recurrent_graph_gets_the_delay_that_is_assumed(tmp_path: Path) -> None:
    nodes = {
        "in": nir.Input(np.array([2])),
        "cell": nir.IF(r=np.full(2, 10.0), v_threshold=np.ones(2)),
        "loop": nir.Linear(np.array([[0.0, 1.0], [2.0, 0.0]])),
        "out": nir.Output(np.array([2])),
    }
    edges = [("in", "cell"), ("cell", "loop"), ("loop", "cell"), ("cell", "out")]
    nir.write(tmp_path / "loop.nir", nir.NIRGraph(nodes, edges))
    document = read(tmp_path / "loop.nir", Assumptions(dt=0.1, delay=4))
    (loop,) = document.network.projections
    assert (loop.delay, loop.name) == (4, "cell->cell")
    assert np.allclose(loop.weight, [[0.0, 1.0], [2.0, 0.0]])
    assert np.allclose(document.feeds[0].weight, np.eye(2))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (lif(tau=0.5), "tau is shorter than the step of 1 s"),
        (lif(v_threshold=[1.0, -2.0]), "v_threshold is not above its reset"),
        (nir.LI(np.full(2, 4.0), np.ones(2), np.zeros(2)), "has no threshold"),
        (
            nir.CubaLIF(*(np.full(2, 4.0) for _ in range(3)), np.zeros(2), np.ones(2)),
            "filters its input in synapses",
        ),
    ],
)
def test_what_has_no_step_here_is_refused_in_spite_of_assumptions(
    tmp_path: Path, cell: Node, said: str
) -> None:
    path = foreign(tmp_path / "other.nir", cell)
    with pytest.raises(NirError, match=said):
        read(path, Assumptions(dt=1.0))


def test_a_network_in_fixed_point_comes_back(tmp_path: Path) -> None:
    network = layered(3, (4,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(network, np.random.default_rng(0))
    for coding in (Coding(Code.RATE), Coding(Code.GRADED)):
        made = lower(network, params, dt=1e-3, coding=coding, nudged=True)
        small, path = quantise(made, Rounding(8))[0], tmp_path / f"{coding.code.name}.nir"
        to_nir(small, path)
        assert from_nir(path).digest == small.digest != made.digest
        assert from_nir(path).fixed == small.fixed
        assert "24-bit fixed point" in beyond(small)


def test_what_the_metadata_cannot_say_is_refused(tmp_path: Path) -> None:
    network = layered(3, (4,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(network, np.random.default_rng(0))
    follows = lower(network, params, dt=1e-3, coding=Coding(Code.PREDICTIVE), nudged=False)
    with pytest.raises(NirError, match="use code rate or graded"):
        to_nir(follows, tmp_path / "follows.nir")
    assert not list(tmp_path.iterdir())
