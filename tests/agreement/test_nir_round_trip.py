"""NIR files there and back, in the place of a run, and what frameworks make of them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import open_run
from neuro_eqprop.cli import main
from neuro_eqprop.networks.activations import HARD_SIGMOID, HARD_TANH, LINEAR, RELU, TANH, box
from neuro_eqprop.networks.architectures import convolutional, layered, looped, toroidal
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.checkpoint import save
from neuro_eqprop.runs.run_folder import MODEL, STUDY
from neuro_eqprop.runs.translate import document_of
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError
from neuro_eqprop.simulators.nir.framework_check import RUNNERS, Verdict, examine, prepare
from neuro_eqprop.simulators.nir.read import from_nir, read
from neuro_eqprop.simulators.nir.write import to_nir, write
from neuro_eqprop.simulators.testing.check import check_case
from neuro_eqprop.simulators.testing.random_networks import draw_case
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
)
from neuro_eqprop.training.study import make_study
from neuro_eqprop.training.study import write as as_toml

DECAYS = st.sampled_from([0.0, 1.0, 0.5, 0.1]) | st.floats(0.0, 1.0)
NUMBERS = st.floats(-1e6, 1e6)
NAMES = st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable())


@st.composite
def neurons(draw: st.DrawFn) -> Neuron:
    if draw(st.booleans()):
        rate = draw(st.sampled_from([HARD_SIGMOID, RELU, TANH, box(0.3)]))
        return Graded(rate, draw(st.floats(1e-6, 10.0)), draw(st.floats(0.01, 1.0)))
    threshold = draw(st.floats(1e-3, 1e3))
    floor, ceiling = draw(st.sampled_from([(-inf, inf), (-0.1, inf), (0.0, threshold)]))
    reset = draw(st.sampled_from(Reset))
    return Spiking(draw(DECAYS), draw(DECAYS), threshold, reset, floor, ceiling)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = {name: int(rng.integers(1, 5)) for name in names}
    populations = tuple(
        Population(name, draw(neurons()), rng.normal(size=sizes[name]) * (rng.random() < 0.8))
        for name in names
    )
    ends = draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2), max_size=4))
    projections = tuple(
        Projection(a, b, rng.normal(size=(sizes[b], sizes[a])), int(rng.integers(1, 9)), gain)
        for (a, b), gain in zip(ends, [*Gain, *Gain], strict=False)
    )
    dt = draw(st.floats(1e-9, 10.0))
    network = SpikingNetwork(dt, populations, projections, draw(st.sampled_from(names)))
    entered = draw(st.lists(st.sampled_from(names), max_size=2))
    feeds = tuple(Feed(name, rng.normal(size=(sizes[name], 3))) for name in entered)
    return Document(network, feeds, {"number": draw(NUMBERS)})


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(documents())
def test_there_and_back_everything_is_equal(document: Document) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.nir"
        write(document, path)
        back = read(path)
        first = path.read_bytes()
        write(back, path)
        assert path.read_bytes() == first
    assert back.network.digest == document.network.digest
    assert [p.neuron for p in back.network.populations] == [
        p.neuron for p in document.network.populations
    ]
    assert back.notes == document.notes
    for mine, right in zip(back.feeds, document.feeds, strict=True):
        assert (mine.target, mine.weight.tobytes()) == (right.target, right.weight.tobytes())


@pytest.mark.parametrize("number", range(4))
def test_what_was_read_runs_as_what_was_written(number: int, tmp_path: Path) -> None:
    from neuro_eqprop.simulators.emulator.simulator import Emulator

    case = draw_case(3, number)
    to_nir(case.network, tmp_path / "net.nir")
    check_case(Emulator(), replace(case, network=from_nir(tmp_path / "net.nir")))


# A file in the place of a run.


def put(folder: Path, network: Network) -> Path:
    """A run with random weights, as training leaves one."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    params = {
        name: value + rng.normal(0.0, 0.05, value.shape) * (value.ndim == 1)
        for name, value in initialize(network, rng).items()
    }
    save(folder / MODEL, Model(network, params, 1))
    (folder / STUDY).write_text(as_toml(make_study(beta=0.25)))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rates: dict[str, Any] = {"hidden_rate": HARD_SIGMOID, "output_rate": HARD_SIGMOID}
    network = layered(64, (12, 8), 10, **rates, bound=None, feedback=0.5)
    return put(tmp_path_factory.mktemp("nir") / "run", network)


def call(*words: object) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, err.getvalue() or out.getvalue()


def report(*words: object) -> dict[str, Any]:
    code, out = call(*words, "--json")
    assert code == 0, out
    return dict(json.loads(out))


@pytest.mark.parametrize("code", ["rate", "graded"])
def test_evaluating_the_file_is_evaluating_the_run(run: Path, tmp_path: Path, code: str) -> None:
    path = tmp_path / "net.nir"
    made = report("translate", run, "--out", path, "--code", code)
    assert made["digest"] == from_nir(path).digest
    assert (made["path"], made["code"], made["features"]) == (str(path), code, 64)
    assert [p["name"] for p in made["populations"]] == ["hidden1", "hidden2", "output"]
    assert len(made["projections"]) == 4
    common = ("--on", "emulator", "--samples", 40)
    of_file = report("evaluate", path, "--dataset", "digits", *common)
    of_run = report("evaluate", run, "--code", code, *common)
    same = ("code", "steps", "accuracy", "spikes_per_neuron", "synops_per_sample")
    assert {key: of_file[key] for key in same} == {key: of_run[key] for key in same}
    assert of_file["pearson"] == pytest.approx(of_run["pearson"], abs=1e-3)
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_looped_network_and_its_nudge_come_back(tmp_path: Path) -> None:
    rates: dict[str, Any] = {"hidden_rate": TANH, "output_rate": HARD_SIGMOID}
    folder = put(tmp_path / "run", looped(64, 9, 10, **rates, bound=0.95))
    document = document_of(open_run(folder).model, Code.GRADED, nudged=True)
    write(document, tmp_path / "net.nir")
    opened = open_run(tmp_path / "net.nir", dataset="digits")
    assert opened.spiking is not None
    assert opened.spiking.network.digest == document.network.digest
    assert any(p.gain is Gain.BETA for p in opened.spiking.network.projections)
    assert opened.model.network == open_run(folder).model.network
    assert opened.model.beta == 0.25


IMAGE = convolutional(
    (1, 8, 8), (3,), 10, kernel=3, hidden_rate=RELU, output_rate=LINEAR, feedback=0.5
)
RING = toroidal(64, 9, 10, hidden_rate=HARD_TANH, output_rate=HARD_SIGMOID, bound=0.9)


@pytest.mark.parametrize(
    ("network", "code"),
    [(IMAGE, "graded"), (RING, "graded"), (RING, "paired")],
    ids=["kernels and means", "delayed identities", "pairs"],
)
def test_a_network_that_is_not_dense_comes_back_and_runs_alike(
    network: Network, code: str, tmp_path: Path
) -> None:
    run, path = put(tmp_path / "run", network), tmp_path / "net.nir"
    made = report("translate", run, "--out", path, "--code", code)
    assert made["digest"] == from_nir(path).digest
    common = ("--on", "emulator", "--samples", 30)
    of_file = report("evaluate", path, "--dataset", "digits", *common)
    of_run = report("evaluate", run, "--code", code, *common)
    same = ("code", "steps", "accuracy", "spikes_per_neuron", "synops_per_sample")
    assert {key: of_file[key] for key in same} == {key: of_run[key] for key in same}
    assert of_file["rmse"] == pytest.approx(of_run["rmse"], abs=1e-3)
    found, wanted = open_run(path, dataset="digits").model, open_run(run).model
    assert found.network == wanted.network
    for name, value in wanted.params.items():
        np.testing.assert_allclose(found.params[name], value, atol=0.5 * 2.0**-10)


@pytest.mark.parametrize("code", ["rate", "graded"])
def test_a_file_in_fixed_point_is_evaluated_as_the_run_with_its_bits(
    run: Path, tmp_path: Path, code: str
) -> None:
    path = tmp_path / "net.nir"
    made = report("translate", run, "--out", path, "--code", code, "--bits", 6)
    assert (made["bits"], made["digest"]) == (6, from_nir(path).digest)
    common = ("--on", "emulator", "--samples", 40)
    of_file = report("evaluate", path, "--dataset", "digits", *common)
    of_run = report("evaluate", run, "--code", code, "--bits", 6, *common)
    same = ("bits", "accuracy", "spikes_per_neuron", "synops_per_sample", "overflows")
    assert {key: of_file[key] for key in same} == {key: of_run[key] for key in same}
    assert report("evaluate", path, "--dataset", "digits", "--on", "rate")["bits"] is None
    code_, said = call("evaluate", path, "--dataset", "digits", "--bits", 8, *common)
    assert (code_, "in 6 bits, not 8" in said) == (2, True)


def test_wrong_arguments_and_wrong_files_have_different_exit_codes(
    run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "net.nir"
    report("translate", run, "--out", path)
    assert call("translate", run, "--out", path)[0] == 1
    assert call("translate", run, "--out", path, "--code", "morse")[0] == 2
    code, said = call("evaluate", path, "--on", "rate")
    assert (code, "--dataset" in said) == (2, True)
    assert call("evaluate", run, "--dataset", "digits")[0] == 2
    assert call("evaluate", path, "--dataset", "digits", "--code", "graded")[0] == 2
    assert call("evaluate", tmp_path / "none.nir", "--dataset", "digits")[0] == 1
    to_nir(from_nir(path), path)
    code, said = call("evaluate", path, "--dataset", "digits")
    assert (code, "holds no rate network" in said) == (1, True)
    assert call("nir", "doctor", path, "--only", "unknown")[0] == 2


def test_a_network_that_is_not_what_its_rates_become_is_refused(run: Path, tmp_path: Path) -> None:
    document = document_of(open_run(run).model, Code.RATE, nudged=False)
    first, *rest = document.network.projections
    odd = replace(document.network, projections=(replace(first, delay=2), *rest))
    write(replace(document, network=odd), tmp_path / "net.nir")
    with pytest.raises(NirError, match="not what its rate network becomes"):
        open_run(tmp_path / "net.nir", dataset="digits")


# What frameworks make of it.

FORGETFUL = Spiking(1.0, 1.0, 1.0, Reset.ZERO, -inf, inf)
LEAKY = Spiking(1.0, 0.125, 1.0, Reset.ZERO, -inf, inf)
INTEGRATE = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)


def pair(neuron: Neuron, *, back: bool) -> Document:
    rng = np.random.default_rng(1)
    weight = np.rint(64 * rng.normal(0.2, 0.3, (5, 8))) / 64
    feed = Feed("a", np.rint(64 * rng.normal(0.2, 0.5, (8, 6))) / 64)
    a, b = Population("a", neuron, np.zeros(8)), Population("b", neuron, np.zeros(5))
    ways = (Projection("a", "b", weight), Projection("b", "a", weight.T.copy()))
    if back:
        return Document(SpikingNetwork(1e-4, (a, b), ways, "b"), (feed,))
    return Document(SpikingNetwork(1e-4, (a,), (), "a"), (feed,))


@pytest.mark.slow
@pytest.mark.snntorch
@pytest.mark.parametrize(
    ("neuron", "back", "verdict"),
    [
        (FORGETFUL, False, Verdict.EQUAL),
        (LEAKY, True, Verdict.DIFFERENT),
        (INTEGRATE, True, Verdict.FAILS),
    ],
)
def test_the_importer_of_snntorch_is_run_and_compared(
    neuron: Neuron, back: bool, verdict: Verdict, tmp_path: Path
) -> None:
    pytest.importorskip("nirtorch")
    path = tmp_path / "net.nir"
    write(pair(neuron, back=back), path)
    trial = prepare(path, read(path), samples=2, steps=32)
    assert 0.02 < np.mean(trial.expected) < 0.98
    found = examine(trial, "snntorch", ours=False, deadline=60.0)
    assert (found.result, found.reader, found.version is None) == (verdict, "snntorch", False)
    if verdict is Verdict.FAILS:
        assert (found.equal, found.note) == (None, "AssertionError: r != 1 not supported")
    else:
        assert found.equal is not None
        assert (found.equal == 1.0) is (verdict is Verdict.EQUAL)


def counting(x: torch.Tensor, state: int | None = None) -> tuple[torch.Tensor, int]:
    """A stand-in for an imported module: in step t it sends t times its input."""
    if x.ndim == 3:
        return x * torch.arange(1, x.shape[1] + 1)[None, :, None], x.shape[1]
    now = 1 if state is None else state + 1
    return x * now, now


@pytest.mark.parametrize(
    ("framework", "place", "importer"),
    [
        ("snntorch", "snntorch.import_nir", "import_from_nir"),
        ("norse", "norse.torch", "from_nir"),
        ("sinabs", "sinabs.nir", "from_nir"),
        ("rockpool", "rockpool.nn.modules", "from_nir"),
        ("spikingjelly", "spikingjelly.activation_based.nir_exchange", "import_from_nir"),
    ],
)
def test_modules_of_every_importer_are_taken_step_by_step(
    framework: str, place: str, importer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = np.random.default_rng(0).random((3, 4))

    def made(_: object, batch_size: int | None = None) -> Callable[..., Any]:
        if batch_size is None:
            return counting
        return lambda x: counting(x.unflatten(0, (batch_size, -1)))[0].flatten(0, 1)

    monkeypatch.setitem(sys.modules, place, SimpleNamespace(**{importer: made}))
    sent = RUNNERS[framework](None, np.repeat(inputs[:, None], 5, axis=1))
    wanted = inputs[:, None] * np.arange(1, 6)[None, :, None]
    np.testing.assert_allclose(sent, wanted, rtol=1e-6)


def test_the_doctor_lists_what_was_run_and_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "net.nir"
    write(pair(INTEGRATE, back=True), path)
    words = ("--only", "emulator", "--only", "spyx", "--steps", 20, "--samples", 2)
    outcome = report("nir", "doctor", path, *words)
    emulator, spyx = outcome["frameworks"]
    assert (emulator["verdict"], emulator["equal"]) == ("equal", 1.0)
    assert (spyx["verdict"], spyx["equal"], spyx["version"]) == ("not installed", None, None)
    assert (outcome["values"], outcome["digest"]) == (200, from_nir(path).digest)
    assert outcome["events"] > 0


def test_a_framework_that_is_silent_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "net.nir"
    write(pair(INTEGRATE, back=True), path)
    trial = prepare(path, read(path), samples=1, steps=4)
    found = examine(trial, "emulator", ours=True, deadline=0.01)
    assert found.result is Verdict.FAILS
    assert found.note == "no progress for 0.01 s"
