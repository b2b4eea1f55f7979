"""`Run`: evaluate, simulate and translate as the commands do; `train` from a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import ArgumentError, UnknownNameError
from neuro_eqprop.files.write import WriteError
from neuro_eqprop.runs.run_folder import RunError
from neuro_eqprop.runs.train import TrainingWarning
from neuro_eqprop.training.study import make_study


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ne.Run:
    out = tmp_path_factory.mktemp("run") / "run"
    ne.train(make_study(hidden=(8,), epochs=1), out=str(out))
    return ne.open_run(out)


@pytest.fixture(scope="module")
def net(run: ne.Run) -> Path:
    path = run.path.parent / "net.nir"
    run.translate(path, code="graded", bits=8)
    return path


def test_a_nir_file_is_evaluated_with_its_own_code_and_bits(run: ne.Run, net: Path) -> None:
    opened = ne.open_run(str(net), dataset="digits")
    found = opened.evaluate(on="emulator", samples=10)
    assert (found.code, found.bits) == ("graded", 8)
    assert found.accuracy == run.evaluate(on="emulator", samples=10, code="graded", bits=8).accuracy
    assert opened.evaluate(on="rate", samples=10).bits is None
    assert not list(net.parent.glob("*.jsonl"))
    with pytest.raises(ArgumentError, match="code 'graded', not 'rate'; leave out `code`"):
        opened.evaluate(on="emulator", code="rate")
    with pytest.raises(ArgumentError, match="in 8 bits, not 4; leave out `bits`"):
        opened.evaluate(on="emulator", bits=4)


def test_a_nir_file_needs_a_data_set_of_its_size(
    run: ne.Run, net: Path, sequences_file: Path
) -> None:
    with pytest.raises(ArgumentError, match="add `dataset`"):
        ne.open_run(net)
    with pytest.raises(ArgumentError, match="names its own"):
        ne.open_run(run.path, dataset="digits")
    with pytest.raises(RunError, match=r"goes from 64 to 10 units.*name its own data set"):
        _ = ne.open_run(net, dataset=sequences_file).data


@pytest.mark.parametrize("call", ["evaluate", "record"])
def test_rates_have_no_code_and_no_bits(run: ne.Run, call: str) -> None:
    with pytest.raises(ArgumentError, match="`bits` is for spikes, and on='rate'"):
        getattr(run, call)(on="rate", bits=8)
    with pytest.raises(UnknownNameError, match="unknown backend 'emulatr'; known: emulator"):
        getattr(run, call)(on="emulatr")
    if call == "evaluate":
        with pytest.raises(ArgumentError, match="code='graded' is for spikes, and on='numpy'"):
            run.evaluate(on="numpy", code="graded")


def test_record_writes_a_trace_and_replaces_it_only_by_force(run: ne.Run, tmp_path: Path) -> None:
    path = tmp_path / "spikes.h5"
    found = run.record(on="emulator", samples=2, steps=20, phases=True, out=str(path))
    made = found.to_json()
    assert len(made["phases"]) == 3
    assert (made["steps"], made["samples"], made["code"]) == (20, 2, "rate")
    assert made["bytes"] == path.stat().st_size
    with pytest.raises(WriteError, match="exists already"):
        run.record(on="rate", samples=2, out=path)
    again = run.record(on="rate", samples=2, steps=20, out=path, force=True)
    assert (again.to_json()["code"], again.trace.rate("hidden", "free").shape) == (None, (2, 8))


def test_a_format_that_does_not_exist_is_refused(run: ne.Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown format 'netxx'; known: netx"):
        run.translate(tmp_path / "net", to="netxx")
    with pytest.raises(ArgumentError, match="holds graded messages, not code 'rate'"):
        run.translate(tmp_path / "net", to="netx", code="rate")
    assert not list(tmp_path.iterdir())


def test_training_takes_a_study_a_file_or_a_begun_run(run: ne.Run) -> None:
    again = ne.train(run.path / "study.toml")
    for name, value in run.model.params.items():
        np.testing.assert_array_equal(again.params[name], value)
    assert ne.train(str(run.path / "study.toml"), seed=4).study.seed == 4  # type: ignore[union-attr]
    with pytest.raises(RunError, match="its run is finished"):
        ne.train(out=run.path, resume=True)
    with pytest.raises(TypeError, match="name of a model, a Network, a Model or a Study"):
        ne.train()
    with pytest.raises(TypeError, match="train takes the data second"):
        ne.train("layered")
    with pytest.raises(ArgumentError, match="name it by `out`"):
        ne.train("layered", "digits", resume=True)


def test_a_summary_holds_out_the_samples_of_validation(tmp_path: Path) -> None:
    ne.train("layered", "digits", hidden=(8,), epochs=1, validation=0.2, out=tmp_path / "run")
    found = ne.open_run(tmp_path / "run").summary()
    assert (
        found["validation_accuracy"]
        == ne.open_run(tmp_path / "run").history[-1]["validation_accuracy"]
    )
    assert found["diverged"] is None


def test_a_model_says_why_its_training_ended_early() -> None:
    with pytest.warns(TrainingWarning, match="the last good one"):
        model = ne.train(
            "layered",
            "digits",
            hidden=(6,),
            activation="relu",
            output="linear",
            batch=512,
            learning_rate=1e-3,
            lr_schedule="ExponentialLR(gamma=1e12)",
            epochs=6,
        )
    assert model.diverged is not None
    assert model.epochs < 6
