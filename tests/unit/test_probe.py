"""What a training records while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.cli.traces import picture
from neuro_eqprop.data import load as load_data
from neuro_eqprop.files import checkpoint
from neuro_eqprop.files.traceexport import to_csv, to_npz
from neuro_eqprop.files.tracefile import TraceError, Writer, read, write
from neuro_eqprop.learn.train import Snapshot
from neuro_eqprop.study.folder import RunError
from neuro_eqprop.study.probe import SAMPLES, STEPS, plan_of
from neuro_eqprop.study.settings import Study
from neuro_eqprop.study.training import fresh, run_training
from neuro_eqprop.traces import Trace

STUDY = Study(hidden=(12,), epochs=3, batch=64)


def nothing(_: Any) -> None:  # noqa: ANN401
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("probe") / "run"
    traces = out / "traces.h5"
    run_training(STUDY, out, force=False, resume=False, watch=nothing, traces=traces)
    return out


@pytest.fixture(scope="module")
def trace(run: Path) -> Trace:
    return read(run / "traces.h5")


def test_the_same_samples_settle_after_each_epoch(trace: Trace) -> None:
    assert trace.complete
    assert trace.index.tolist() == [*range(SAMPLES)] * 3
    assert [phase.steps for phase in trace.schedule] == [STEPS] * 3
    rates = trace.rate("hidden", "free").reshape(3, SAMPLES, 12)
    assert np.abs(rates[0] - rates[1]).max() > 1e-3


def test_its_numbers_are_the_metrics(trace: Trace, run: Path) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for name in ("epoch", "train_accuracy", "test_accuracy", "seconds"):
        assert trace.epochs[name].tolist() == [line[name] for line in lines]
    norms = [line["spectral"]["hidden->output"] for line in lines]
    assert trace.epochs["norm of hidden->output"].tolist() == norms


def test_weights_before_and_after_are_those_of_the_training(trace: Trace, run: Path) -> None:
    model = checkpoint.load(run / "model.safetensors")
    data = load_data("digits")
    start = fresh(STUDY, STUDY.network(data))
    for name in ("input->hidden", "hidden->output"):
        held = trace.weights[name]
        assert held.after is not None
        np.testing.assert_array_equal(held.before, start.params[name])
        np.testing.assert_array_equal(held.after, model.params[name])
        story = trace.hebbian[name]
        target, source = np.array(story.synapses).T
        np.testing.assert_array_equal(story.weight[-1], model.params[name][target, source])
        assert (story.weight[0] != story.weight[-1]).all()


def test_training_itself_is_not_changed_by_it(run: Path, tmp_path: Path) -> None:
    run_training(STUDY, tmp_path / "bare", force=False, resume=False, watch=nothing)
    model = (tmp_path / "bare" / "model.safetensors").read_bytes()
    assert model == (run / "model.safetensors").read_bytes()
    assert list((tmp_path / "bare").glob("*.h5")) == []


def test_a_file_that_is_there_is_kept_and_nothing_begun(tmp_path: Path) -> None:
    (tmp_path / "t.h5").write_text("precious")
    with pytest.raises(RunError, match=r"t\.h5 exists already"):
        run_training(
            STUDY,
            tmp_path / "run",
            force=False,
            resume=False,
            watch=nothing,
            traces=tmp_path / "t.h5",
        )
    assert [path.name for path in tmp_path.iterdir()] == ["t.h5"]


def test_a_resumed_training_records_what_is_left(tmp_path: Path) -> None:
    out, traces = tmp_path / "run", tmp_path / "run" / "traces.h5"

    def stop(line: dict[str, Any]) -> None:
        if line["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(STUDY, out, force=False, resume=False, watch=stop, traces=traces)
    kept = read(out / "traces.h5.partial")
    assert kept.epochs["epoch"].tolist() == [1.0]
    run_training(STUDY, out, force=False, resume=True, watch=nothing, traces=traces)
    assert read(traces).epochs["epoch"].tolist() == [2.0, 3.0]


def test_a_large_network_shows_fewer_samples() -> None:
    study = replace(STUDY, hidden=(5000,))
    data = load_data("digits")
    network = study.network(data)
    wanted = plan_of(study, network, data, Snapshot(0, fresh(study, network).params))
    assert len(wanted.index) == 3
    assert wanted.most_bytes < 3 * 2**22 + 2 * 5000 * 74 * 8


@pytest.mark.slow
def test_it_can_be_followed_from_another_process(tmp_path: Path) -> None:
    words = ["train", "--out", str(tmp_path / "run"), "--epochs", "60", "--hidden", "16"]
    child = subprocess.Popen(
        [sys.executable, "-m", "neuro_eqprop", *words, "--traces", "--json"],
        stdout=subprocess.DEVNULL,
    )
    path = tmp_path / "run" / "traces.h5"
    seen: list[int] = []
    try:
        deadline = time.monotonic() + 120
        while len(seen) < 2 and time.monotonic() < deadline:
            if path.exists():
                held = read(path)
                done = len(held.epochs["epoch"])
                if done and not held.complete and done not in seen:
                    seen.append(done)
                    lines = picture(path, held, (len(held.index), 60 * SAMPLES), 12.0)
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    assert len(seen) == 2
    assert lines[0].endswith("samples, 12 s left")
    assert "test accuracy 0." in lines[1]
    assert f" {seen[-1]}: " in lines[1]


def test_epochs_go_there_and_back_and_out(trace: Trace, tmp_path: Path) -> None:
    write(tmp_path / "t.h5", trace, overwrite=False)
    again = read(tmp_path / "t.h5")
    assert set(again.epochs) == set(trace.epochs)
    np.testing.assert_array_equal(again.epochs["seconds"], trace.epochs["seconds"])
    with np.load(to_npz(trace, tmp_path / "t.npz")) as held:
        np.testing.assert_array_equal(held["epochs/epoch"], [1.0, 2.0, 3.0])
    to_csv(trace, tmp_path / "tables")
    table = (tmp_path / "tables" / "epochs.csv").read_text().splitlines()
    assert len(table) == 4
    assert table[0].split(",")[0] == "epoch"


def test_an_epoch_brings_the_numbers_it_announced(trace: Trace, tmp_path: Path) -> None:
    data = load_data("digits")
    network = STUDY.network(data)
    plan = plan_of(STUDY, network, data, fresh(STUDY, network))
    with (
        pytest.raises(TraceError, match="an epoch brought"),
        Writer(tmp_path / "t.h5", plan, overwrite=False) as writer,
    ):
        writer.epoch({"epoch": 1.0})
