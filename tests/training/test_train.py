from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.api.run import open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, load_data
from neuro_eqprop.dynamics.inference import accuracy
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs.checkpoint import load_training
from neuro_eqprop.runs.run_folder import RunError
from neuro_eqprop.training.loop import TrainingLoop, initial_parameters
from neuro_eqprop.training.rules.base import Batch, TrainingError
from neuro_eqprop.training.rules.contrastive import contrastive
from neuro_eqprop.training.study import Study, adapt, make_study, read, write

TINY = make_study(hidden=(9,), epochs=3, batch=256, free_steps=8, nudged_steps=4, seed=5)
LOOPED = adapt(TINY, {"model": "looped", "bound": 0.4, "learning_rate": 0.02})
DATA = load_data("digits")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quiet(_: dict[str, Any]) -> None:
    pass


@dataclass(frozen=True)
class Epoch:
    row: Mapping[str, Any]
    state: dict[str, Any]

    @property
    def params(self) -> dict[str, Array]:
        found: dict[str, Array] = self.state["params"]
        return found


def begin(study: Study) -> dict[str, Array]:
    return initial_parameters(study, study.network(DATA))


def epochs(study: Study, start: dict[str, Any] | None = None) -> list[Epoch]:
    loop = TrainingLoop(study, study.network(DATA), DATA)
    if start is not None:
        loop.load_state_dict(start)
    found = []
    while not loop.finished:
        found.append(Epoch(loop.epoch(evaluate=False), loop.state_dict()))
    return found


def same(one: Epoch, two: Epoch) -> bool:
    return one.row["epoch"] == two.row["epoch"] and all(
        np.array_equal(np.ravel(one.state[key][name]), np.ravel(two.state[key][name]))
        for key in ("params", "memory")
        for name in one.state[key].keys() | two.state[key].keys()
    )


def test_the_same_seed_gives_the_same_weights() -> None:
    one, two = epochs(TINY), epochs(TINY)
    assert [p.row["epoch"] for p in one] == [1, 2, 3]
    assert same(one[-1], two[-1])
    other = TrainingLoop(adapt(TINY, {"seed": 6}), TINY.network(DATA), DATA, params=begin(TINY))
    other.epoch(evaluate=False)
    assert not np.array_equal(other.current().params["hidden"], one[0].params["hidden"])


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("left_at", [1, 2])
def test_training_goes_on_where_it_was_left(optimizer: str, left_at: int) -> None:
    study = adapt(TINY, {"optimizer": optimizer, "model": "looped", "learning_rate": 0.01})
    whole = epochs(study)
    rest = epochs(study, whole[left_at - 1].state)
    assert len(rest) == 3 - left_at
    assert same(rest[-1], whole[-1])
    forgetful = epochs(study, whole[left_at - 1].state | {"memory": {}})
    assert not same(forgetful[-1], whole[-1])


@pytest.mark.parametrize(
    "study",
    [LOOPED, adapt(LOOPED, {"model": "layered", "hidden": (9, 7), "bound": 0.3})],
    ids=["looped", "two hidden"],
)
def test_the_spectral_bound_is_kept_at_every_epoch(study: Study) -> None:
    reached = False
    for progress in epochs(study):
        for connection in study.network(DATA).connections:
            weight = progress.params[connection.name].astype(np.float64)
            largest = np.linalg.svd(weight, compute_uv=False)[0]
            assert progress.row["spectral"][connection.name] == pytest.approx(largest, rel=1e-5)
            if connection.bound is not None:
                assert largest <= connection.bound
                reached |= largest > 0.99 * connection.bound
    assert reached


def test_a_loop_stays_exactly_symmetric() -> None:
    weight = epochs(LOOPED)[-1].params["hidden->hidden"]
    assert np.array_equal(weight, weight.T)
    assert not np.array_equal(weight, begin(LOOPED)["hidden->hidden"])


@pytest.mark.parametrize("nudging", ["centered", "positive"])
@pytest.mark.parametrize("model", ["layered", "looped"])
def test_training_learns(nudging: str, model: str) -> None:
    study = adapt(
        TINY,
        {
            "nudging": nudging,
            "model": model,
            "hidden": (24,),
            "batch": 64,
            "epochs": 4,
            "learning_rate": 0.01,
            "free_steps": 12,
        },
    )
    done, network, ops = epochs(study), study.network(DATA), TorchOps()
    before, after = (
        accuracy(ops, network, {n: ops.from_numpy(v) for n, v in s.items()}, DATA.test)
        for s in (begin(study), done[-1].params)
    )
    assert before < 0.35
    assert after > 0.8
    assert done[-1].row["train_accuracy"] > done[0].row["train_accuracy"]
    assert 0 <= done[-1].row["residual"] < 0.1


def test_training_that_explodes_says_so_and_what_to_do() -> None:
    study = adapt(
        TINY, {"activation": "relu", "output": "linear", "learning_rate": 1e30, "epochs": 9}
    )
    with pytest.raises(TrainingError, match="smaller learning rate"):
        epochs(study)


def test_a_run_leaves_what_is_promised(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    result = run_training(TINY, tmp_path / "run", force=False, resume=False, on_epoch=seen.append)
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["metrics.jsonl", "model.safetensors", "study.toml"]
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert lines == seen
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert read(tmp_path / "run/study.toml") == TINY
    kept, memory = load_training(tmp_path / "run/model.safetensors")
    assert (kept.epochs, memory) == (3, {})
    assert all(np.array_equal(kept.params[n], v) for n, v in epochs(TINY)[-1].params.items())
    assert result["parameters"] == 64 * 9 + 9 + 9 * 10 + 10
    assert result["test_accuracy"] == lines[-1]["test_accuracy"]
    ops, run = TorchOps(), open_run(tmp_path / "run")
    params = {name: ops.from_numpy(value) for name, value in run.model.params.items()}
    assert result["train_accuracy"] == accuracy(ops, run.model.network, params, run.data.train)


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def model(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def stopped(study: Study, out: Path, after: int) -> None:
    def stop(line: dict[str, Any]) -> None:
        if line["epoch"] == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(study, out, force=False, resume=False, on_epoch=stop)


def go_on(study: Study, out: Path) -> dict[str, Any]:
    return run_training(study, out, force=False, resume=True, on_epoch=quiet)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("whole") / "run"
    run_training(LOOPED, out, force=False, resume=False, on_epoch=quiet)
    return out


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_resumed_run_ends_in_the_same_bytes(tmp_path: Path, finished: Path, after: int) -> None:
    stopped(LOOPED, tmp_path / "run", after)
    assert set(files(tmp_path / "run")) == {"study.toml", "metrics.jsonl", "resume.safetensors"}
    with pytest.raises(RunError, match=r"was not finished; .*--resume` finishes it"):
        open_run(tmp_path / "run")
    go_on(LOOPED, tmp_path / "run")
    assert model(tmp_path / "run") == model(finished)
    assert not (tmp_path / "run/resume.safetensors").exists()
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]


def test_a_line_of_metrics_ahead_of_the_snapshot_is_dropped(tmp_path: Path, finished: Path) -> None:
    """As after a kill between the two writes, here in the middle of a line."""
    stopped(LOOPED, tmp_path / "run", 1)
    with (tmp_path / "run/metrics.jsonl").open("a") as file:
        file.write('{"epoch": 2, "train_acc')
    go_on(LOOPED, tmp_path / "run")
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]
    assert model(tmp_path / "run") == model(finished)


def test_a_run_stopped_in_its_first_epoch_is_resumed_from_the_start(
    tmp_path: Path, finished: Path
) -> None:
    stopped(LOOPED, tmp_path / "run", 1)
    (tmp_path / "run/resume.safetensors").unlink()
    go_on(LOOPED, tmp_path / "run")
    assert model(tmp_path / "run") == model(finished)


def test_a_finished_run_has_nothing_to_resume(finished: Path) -> None:
    before = files(finished)
    with pytest.raises(RunError, match="nothing to resume"):
        go_on(LOOPED, finished)
    assert files(finished) == before


def test_a_run_is_resumed_with_its_own_settings_only(tmp_path: Path) -> None:
    stopped(LOOPED, tmp_path / "run", 1)
    before = files(tmp_path / "run")
    for other in (
        adapt(LOOPED, {"epochs": 9}),
        adapt(LOOPED, {"seed": 1}),
        adapt(LOOPED, {"beta": 0.1}),
    ):
        with pytest.raises(RunError, match="other settings"):
            go_on(other, tmp_path / "run")
    assert files(tmp_path / "run") == before


def test_a_snapshot_of_another_network_is_refused(tmp_path: Path) -> None:
    stopped(LOOPED, tmp_path / "run", 1)
    other = adapt(LOOPED, {"hidden": (7,)})
    (tmp_path / "run/study.toml").write_text(write(other))
    with pytest.raises(RunError, match="a network that is not that of the study"):
        go_on(other, tmp_path / "run")


def test_a_folder_with_a_run_is_left_alone_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_training(TINY, out, force=False, resume=False, on_epoch=quiet)
    for name in ("evaluations.jsonl", "report.html", "traces.h5", "notes.txt"):
        (out / name).write_text("made from the first run")
    before, other = files(out), adapt(TINY, {"seed": 8})
    with pytest.raises(RunError, match=r"already holds a run .*force=True"):
        run_training(other, out, force=False, resume=False, on_epoch=quiet)
    assert files(out) == before
    run_training(other, out, force=True, resume=False, on_epoch=quiet)
    assert read(out / "study.toml") == other
    assert set(files(out)) == {"study.toml", "metrics.jsonl", "model.safetensors", "notes.txt"}


def test_what_else_lies_in_a_folder_is_kept(tmp_path: Path) -> None:
    for name in ("mine.h5", "report.html", "energy.json"):
        (tmp_path / name).write_text("mine")
    run_training(adapt(TINY, {"epochs": 1}), tmp_path, force=False, resume=False, on_epoch=quiet)
    assert all((tmp_path / name).exists() for name in ("mine.h5", "report.html", "energy.json"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunError, match="is a file"):
        run_training(TINY, tmp_path / "run", force=True, resume=False, on_epoch=quiet)
    assert (tmp_path / "run").read_text() == "mine"


LONG = adapt(TINY, {"epochs": 120})
"""Long enough that a signal sent after its first epochs finds it at work."""


def child(out: Path, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "neuro_eqprop", "train", "--out", str(out), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(out: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Wait until the file lists this many epochs."""
    path, deadline = out / "metrics.jsonl", time.monotonic() + 120
    while not path.exists() or path.read_text().count("\n") < lines:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_interrupted_then_killed_a_run_still_ends_in_the_same_bytes(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    (tmp_path / "study.toml").write_text(write(LONG))

    process = child(out, str(tmp_path / "study.toml"), "--json")
    wait_for(out, 2, process)
    process.send_signal(signal.SIGINT)
    result, said = process.communicate(timeout=60)
    assert (process.returncode, result, said) == (130, "", "interrupted\n")
    assert set(files(out)) == {"study.toml", "metrics.jsonl", "resume.safetensors"}
    lines = (out / "metrics.jsonl").read_text()
    assert lines.endswith("}\n")
    reached = len([json.loads(line) for line in lines.splitlines()])
    assert 2 <= reached < LONG.training.epochs

    process = child(out, "--resume")
    wait_for(out, reached + 2, process)
    process.kill()
    process.communicate(timeout=60)
    assert not (out / "model.safetensors").exists()

    go_on(LONG, out)
    run_training(LONG, whole, force=False, resume=False, on_epoch=quiet)
    assert model(out) == model(whole)
    lines = (out / "metrics.jsonl").read_text()
    assert [json.loads(line)["epoch"] for line in lines.splitlines()] == list(range(1, 121))


def test_targets_may_be_any_array_and_the_loss_falls() -> None:
    data = DATA.train.take(slice(200))
    network = layered(64, (16,), 64, hidden_rate=TANH, output_rate=LINEAR)
    study = make_study(epochs=3, learning_rate=0.005)
    few = Dataset.from_splits("few", data, data, 10, (64,))
    loop = TrainingLoop(study, network, few, targets=data.x)
    losses = [loop.epoch(evaluate=False)["loss"] for _ in range(3)]
    mean_sample = 0.5 * ((data.x - data.x.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert losses[2] < losses[1] < losses[0]
    assert losses[2] < 2 * mean_sample


def test_numpy_trains_as_torch_does() -> None:
    data = DATA.train.take(slice(40))
    network = layered(64, (8,), 10, hidden_rate=TANH, output_rate=LINEAR)
    # Torch takes the displacement path and NumPy settles every phase: equal at equilibrium.
    settings = make_study(epochs=1, free_steps=200, nudged_steps=200).rule
    params = initialize(network, np.random.default_rng(0))
    updates = []
    for ops in (NumpyOps(), TorchOps(torch.float64)):
        values = {name: ops.from_numpy(value) for name, value in params.items()}
        target = ops.from_numpy(np.eye(10)[data.y])
        batch = Batch(ops.from_numpy(data.x), target, measured=True)
        updates.append(contrastive(ops, network, values, batch, settings))
    one, two = updates
    assert one.correct == two.correct
    assert one.loss == pytest.approx(two.loss)
    for name, gradient in one.gradients.items():
        np.testing.assert_allclose(gradient, two.gradients[name].numpy(), atol=1e-12)
