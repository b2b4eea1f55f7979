"""The three ways in: what is sent, what is counted, and that rates settle where they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, load_data
from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.networks.activations import HARD_SIGMOID, RELU
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.runs.checkpoint import save
from neuro_eqprop.runs.run_folder import MODEL, STUDY
from neuro_eqprop.simulators.base import Result, tally
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import check_case
from neuro_eqprop.simulators.testing.case import Case, record_everything, run_case
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.input_coding import (
    ON,
    THETA,
    InputCoding,
    depths,
    encode_input,
    outer,
    steps_needed,
    with_input,
)
from neuro_eqprop.spiking.ir import Gain, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import lower, rates_of
from neuro_eqprop.spiking.operator_synapses import dense_macs
from neuro_eqprop.training.study import make_study, write

X = np.rint(np.random.default_rng(1).random((5, 12)) * 255) / 255 * (np.arange(12) % 3 > 0)


def network() -> tuple[Network, dict[str, Array]]:
    rate = HARD_SIGMOID
    made = layered(12, (9, 7), 4, hidden_rate=rate, output_rate=rate, feedback=0.5)
    rng = np.random.default_rng(0)
    params = initialize(made, rng)
    return made, {
        name: value if "->" in name else rng.uniform(-0.1, 0.4, value.shape)
        for name, value in params.items()
    }


def brought(
    code: Code, entry: InputCoding, x: Array = X
) -> tuple[SpikingNetwork, Stimulus, Coding]:
    (rate, params), coding = network(), Coding(code)
    made = lower(rate, params, dt=1e-3, coding=coding, nudged=False)
    made = with_input(rate, params, made, coding=coding, entry=entry)
    return made, encode_input(rate, params, x, target=None, coding=coding, entry=entry), coding


def settled(code: Code, entry: InputCoding, steps: int) -> tuple[dict[str, Array], Result]:
    made, stimulus, coding = brought(code, entry)
    schedule = free_only(steps=steps, window=tail(steps, coding.tail))
    result = load_backend("reference").run(
        made, stimulus, schedule, record=NOTHING, sink=MemorySink()
    )
    rates = rates_of(network()[0], {n: f[:, 0] for n, f in result.firing.items()}, coding)
    return rates, result


@pytest.mark.parametrize(
    ("code", "entry", "steps", "near"),
    [
        (Code.GRADED, InputCoding.GRADED, 60, 0.02),
        (Code.RATE, InputCoding.RATE, 400, 0.02),
        (Code.PAIRED, InputCoding.RATE, 400, 0.02),
        (Code.PREDICTIVE, InputCoding.RATE, 200, 0.05),
    ],
)
def test_rates_settle_where_a_current_lets_them(
    code: Code, entry: InputCoding, steps: int, near: float
) -> None:
    want, _ = settled(code, InputCoding.CURRENT, steps)
    got, _ = settled(code, entry, steps)
    for name, rates in want.items():
        assert rates.std() > 0.05
        np.testing.assert_allclose(got[name], rates, rtol=0, atol=near)


def test_graded_input_is_sent_once_and_counted() -> None:
    made, stimulus, _ = brought(Code.GRADED, InputCoding.GRADED)
    schedule = free_only(steps=20, window=5)
    case = Case("", made, stimulus, schedule, record_everything(made))
    run = run_case(load_backend("reference"), case)
    for x, recording in zip(X, run.recordings, strict=True):
        sent = recording.spikes["input"]
        assert not sent[1:].any()
        np.testing.assert_array_equal(sent[0], np.rint(x / THETA) * THETA)
    counts = tally(made, stimulus, schedule, run.result)
    assert counts["input", "free"].spikes == np.count_nonzero(X)
    fan_out = made.into("hidden1", Gain.ONE)[0].fan_out
    assert counts["input", "free"].synops == np.count_nonzero(X, axis=0) @ fan_out
    assert stimulus.host_macs == 0
    check_case(load_backend("emulator"), case)


def test_biases_arrive_when_input_can() -> None:
    """So that no layer tells what it would be without."""
    made, stimulus, _ = brought(Code.GRADED, InputCoding.GRADED)
    case = Case("", made, stimulus, free_only(steps=9, window=1), record_everything(made))
    for recording in run_case(load_backend("reference"), case).recordings:
        for depth, name in enumerate(("hidden1", "hidden2", "output"), start=1):
            assert not recording.spikes[name][:depth].any()
            assert recording.spikes[name][depth].any()
    late = {p.target: p.delay for p in made.projections if p.source == ON}
    assert late == depths(network()[0]) == {"hidden1": 1, "hidden2": 2, "output": 3}
    assert all(not made[name].bias.any() for name in late)
    assert outer(network()[0]) == {"input", ON}


def test_rate_input_is_counted_in_every_step() -> None:
    made, stimulus, _ = brought(Code.RATE, InputCoding.RATE)
    schedule = free_only(steps=100, window=75)
    result = load_backend("reference").run(
        made, stimulus, schedule, record=NOTHING, sink=MemorySink()
    )
    np.testing.assert_allclose(result.messages["input"][:, 0] / 100, X, atol=0.01)
    counts = tally(made, stimulus, schedule, result)
    fan_out = made.into("hidden1", Gain.ONE)[0].fan_out
    assert counts["input", "free"].synops == result.messages["input"].sum(axis=(0, 1)) @ fan_out


def test_what_a_code_would_misread_is_refused_with_the_way_out() -> None:
    with pytest.raises(LoweringError, match=r"sent once.*use input coding 'current' or 'rate'"):
        brought(Code.RATE, InputCoding.GRADED)
    with pytest.raises(LoweringError, match=r"in every step.*input coding 'current' or 'graded'"):
        brought(Code.GRADED, InputCoding.RATE)
    with pytest.raises(LoweringError, match=r"lie in -1\.\..*carry 0\.\.1.*input coding 'current'"):
        brought(Code.RATE, InputCoding.RATE, X - 1.0)
    brought(Code.GRADED, InputCoding.GRADED, X - 1.0)


def test_a_layer_called_on_is_refused() -> None:
    ends = (Layer("x", (3,), RELU, Role.INPUT), Layer(ON, (2,), RELU, Role.OUTPUT))
    rate = Network(ends, (Connection("x", ON),))
    params, coding = initialize(rate, np.random.default_rng(0)), Coding(Code.GRADED)
    made = lower(rate, params, dt=1e-3, coding=coding, nudged=False)
    with pytest.raises(LoweringError, match="a layer is called 'on'"):
        with_input(rate, params, made, coding=coding, entry=InputCoding.GRADED)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An untrained run; the tests are on the coding of its inputs."""
    out = tmp_path_factory.mktemp("entered")
    study, rng = make_study(hidden=(20,)), np.random.default_rng(0)
    made = study.network(load_data("digits"))
    params = initialize(made, rng) | {"hidden": rng.uniform(-0.2, 0.2, 20)}
    (out / STUDY).write_text(write(study))
    save(out / MODEL, Model(made, params, 0))
    return open_run(out)


def evaluated(run: Run, code: Code, entry: InputCoding, bits: int | None = None) -> dict[str, Any]:
    split = run.test_samples(40)
    return run.model.evaluate(
        split, on="emulator", code=code, steps=48, bits=bits, input=entry
    ).to_dict()


def test_a_dense_pass_counts_kernels_at_their_places_normalized_or_not() -> None:
    x = np.random.default_rng(0).normal(0.3, 1.0, (4, 3, 8, 8))
    images = Dataset(x, np.arange(4) % 2, x, np.arange(4) % 2)
    within = 3 * 8 - 2  # rows of a 3 x 3 kernel inside an image of 8 x 8 with a border of zeros
    wanted = within**2 * 3 * 5 + 2 * 5 * 4 * 4  # 3 channels to 5, means of 2 x 2 to 2 classes
    for normalize in (False, True):
        study = make_study(model="conv", hidden=(5,), kernel=3, padding="same", normalize=normalize)
        made = study.network(images)
        model = Model(made, initialize(made, np.random.default_rng(0)), 0)
        assert dense_macs(model.network, model.params) == wanted
    words = Dataset(np.ones((4, 7)), np.arange(4) % 2, vocabulary=9)
    made = make_study(model="text", width=6, hidden=5).network(words)
    model = Model(made, initialize(made, np.random.default_rng(0)), 0)
    assert dense_macs(model.network, model.params) == 7 * 6 * 5 + 5 * 2


def test_each_way_in_is_counted_in_its_own_right(run: Run) -> None:
    current = evaluated(run, Code.GRADED, InputCoding.CURRENT)
    graded = evaluated(run, Code.GRADED, InputCoding.GRADED)
    rate = evaluated(run, Code.RATE, InputCoding.RATE)
    dense = 64 * 20 + 20 * 10
    assert current["dense_macs"] == graded["dense_macs"] == dense
    assert current["input_synops_per_sample"] == graded["host_macs_per_sample"] == 0
    work = current["synops_per_sample"] + current["host_macs_per_sample"]
    assert current["work_to_dense"] == pytest.approx(work / dense)
    assert current["host_macs_per_sample"] > 1000
    x = run.data.test.x[:40]
    sent = np.count_nonzero(np.rint(x / THETA)) / 40 + 1
    assert graded["input_spikes_per_sample"] == pytest.approx(sent)
    assert graded["synops_per_sample"] > graded["input_synops_per_sample"] > 20 * (sent - 1) * 0.9
    assert rate["input_synops_per_sample"] > 5 * graded["input_synops_per_sample"]
    for result in (current, graded, rate):
        assert result["agreement"] >= 0.95
    assert [result["input"] for result in (current, graded, rate)] == ["current", "graded", "rate"]


def test_too_few_steps_for_the_depth_are_warned_of() -> None:
    rate = network()[0]
    needed = steps_needed(rate, Coding(Code.RATE), InputCoding.CURRENT)
    assert needed == 20
    assert steps_needed(rate, Coding(Code.GRADED), InputCoding.CURRENT) == 7
    assert steps_needed(rate, Coding(Code.GRADED), InputCoding.GRADED) == 8


def test_the_warning_says_how_many(run: Run) -> None:
    result = run.model.evaluate(run.test_samples(3), on="emulator", steps=4)
    (warning,) = result.warnings
    assert warning.startswith("4 steps are too few for a network of this depth")
    assert warning.endswith("use 12 or more")
    assert evaluated(run, Code.RATE, InputCoding.CURRENT)["warnings"] == []
    with pytest.raises(ValueError, match="0 samples cannot be evaluated"):
        run.test_samples(0)


def test_graded_input_in_fixed_point(run: Run) -> None:
    result = evaluated(run, Code.GRADED, InputCoding.GRADED, bits=8)
    assert result["agreement"] >= 0.95
    assert result["overflows"] == 0


def test_the_command_line_names_the_ways_in(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["evaluate", str(run.path), "--on", "emulator", "--samples", "5", "--code", "graded"]
    assert main([*words, "--input", "graded", "--json"]) == 0
    assert '"input": "graded"' in capsys.readouterr().out
    assert main([*words, "--input", "gradde"]) == 2
    assert "unknown input coding 'gradde'; known: graded, " in capsys.readouterr().err
    trace = str(tmp_path / "t.h5")
    words[0] = "simulate"
    assert main([*words, "--input", "graded", "--traces", trace, "--json"]) == 0
    assert '"input_spikes": ' in capsys.readouterr().out
