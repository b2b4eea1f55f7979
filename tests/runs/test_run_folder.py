"""One writer at a time, nothing replaced before its time, damage found on opening."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.run import open_run
from neuro_eqprop.cli import main
from neuro_eqprop.files import lock as locks
from neuro_eqprop.files.lock import FileLock, LockedError, lock_owner
from neuro_eqprop.files.write import host_mark
from neuro_eqprop.runs import run_folder
from neuro_eqprop.runs.checkpoint import CheckpointError
from neuro_eqprop.runs.run_folder import RunError, RunWarning, writing
from neuro_eqprop.training.rules.base import TrainingError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    ne.train("layered", "digits", hidden=(8,), epochs=1, out=tmp_path / "run")
    return tmp_path / "run"


HOLD = """
import sys, time
from pathlib import Path
from neuro_eqprop.files.lock import FileLock
with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    process.stdout.close()
    return process


def test_a_second_writer_is_refused_with_the_name_of_the_first(run: Path) -> None:
    process = holder(run / run_folder.LOCK)
    try:
        with pytest.raises(RunError, match=rf"being written by process {process.pid} on "):
            ne.train("layered", "digits", hidden=(8,), epochs=1, out=run, force=True)
        assert open_run(run).model.epochs == 1  # readers go on
        assert open_run(run).evaluate(samples=5).samples == 5
        found = ne.check_run(run)
        assert found.ok
        assert f"process {process.pid}" in found.findings[0].detail
    finally:
        process.kill()
        process.wait()
    with pytest.warns(RunWarning, match=rf"left by process {process.pid} .* has ended"):
        ne.train("layered", "digits", hidden=(8,), epochs=1, out=run, force=True)
    assert not (run / run_folder.LOCK).exists()


def test_of_many_that_want_a_folder_one_gets_it(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from neuro_eqprop.files.lock import FileLock, LockedError\n"
        "while not Path(sys.argv[2]).exists(): time.sleep(0.001)\n"
        "try:\n"
        "    with FileLock(Path(sys.argv[1])): print('won', flush=True); time.sleep(1)\n"
        "except LockedError: print('lost')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock"), str(tmp_path / "go")]
    many = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(8)]
    time.sleep(1.0)
    (tmp_path / "go").write_text("")
    said = [process.communicate()[0].strip() for process in many]
    assert sorted(said) == [b"lost"] * 7 + [b"won"]


def test_a_lock_of_another_computer_counts_while_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "since": "now"}))
    with pytest.raises(LockedError, match="process 1 on elsewhere"), FileLock(path):
        pass
    assert str(lock_owner(path)) == "process 1 on elsewhere (since now)"
    old = time.time() - 2 * locks.EXPIRED
    os.utime(path, (old, old))
    with FileLock(path) as lock:
        assert lock.stale is not None
        assert lock.stale.host == "elsewhere"
    assert not path.exists()


def test_force_keeps_the_old_run_until_the_new_one_works(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: object, **__: object) -> None:
        raise TrainingError("diverged")

    (run / "mine.h5").write_text("mine")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    monkeypatch.setattr("neuro_eqprop.training.loop.TrainingLoop.epoch", diverge)
    with pytest.raises(TrainingError):
        ne.train("layered", "digits", hidden=(8,), epochs=1, out=run, force=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    ne.train("layered", "digits", hidden=(4,), epochs=1, out=run, force=True)
    assert open_run(run).study.flat()["hidden"] == (4,)
    assert (run / "mine.h5").read_text() == "mine"
    assert not (run / run_folder.BACKUP_DIR).exists()


def test_a_replacement_that_was_killed_early_gives_way_to_the_old_run(run: Path) -> None:
    model = (run / "model.safetensors").read_bytes()
    code = (
        "import os, sys; from pathlib import Path\n"
        "from neuro_eqprop.runs.run_folder import writing\n"
        "with writing(Path(sys.argv[1]), force=True): os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(run)], check=False)
    assert not (run / "model.safetensors").exists()
    with pytest.raises(ZeroDivisionError), pytest.warns(RunWarning), writing(run, force=True):
        raise ZeroDivisionError
    assert (run / "model.safetensors").read_bytes() == model


def test_a_trace_that_cannot_be_written_leaves_no_study(tmp_path: Path) -> None:
    words = ["train", "--dataset", "digits", "--hidden", "4", "--epochs", "1"]
    out = tmp_path / "run"
    assert main([*words, "--out", str(out), "--traces", "/nonexistent/folder/t.h5"]) == 1
    assert not out.exists()


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    path.write_bytes(content)


def test_a_flipped_bit_of_a_tensor_is_found_on_opening(run: Path) -> None:
    flip(run / "model.safetensors", -5)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged.*SHA-256"):
        open_run(run)
    assert main(["check", str(run)]) == 1


def test_settings_that_were_changed_afterwards_are_found(run: Path) -> None:
    study = run / "study.toml"
    study.write_text(study.read_text().replace("beta = 0.02", "beta = 0.25"))
    with pytest.raises(RunError, match="does not hold the settings"):
        open_run(run)
    assert not ne.check_run(run).ok


def test_models_without_a_digest_open(run: Path) -> None:
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = run / "model.safetensors"
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["neuro_eqprop"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for key in ("sha256", "study_sha256"):
        del header[key]
    save_file(tensors, path, {"neuro_eqprop": json.dumps(header)})
    assert open_run(run).model.epochs == 1
    assert "without a digest" in str(ne.check_run(run))


def test_check_repairs_lines_and_leftovers(run: Path) -> None:
    metrics = run / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + "{broken}\n" + '{"epo')
    left = run / f".model.safetensors.{host_mark()}.{2**22 + 1}.0123abcd.tmp"
    left.write_bytes(b"")
    assert not ne.check_run(run, repair=False).ok
    assert metrics.read_text() != whole
    assert left.exists()
    found = ne.check_run(run)
    assert found.ok
    assert {each.file for each in found.findings if each.state == "repaired"} == {
        "metrics.jsonl",
        left.name,
    }
    assert metrics.read_text() == whole
    assert (run / "metrics.jsonl.damaged").exists()
    assert ne.check_run(run).ok
    assert main(["check", str(run), "--json"]) == 0


def test_check_reads_traces_completely(run: Path) -> None:
    model, data = open_run(run).model, open_run(run).data
    model.record(data.test.x[:3]).save(run / "t.h5")
    assert ne.check_run(run).ok
    content = (run / "t.h5").read_bytes()
    rng, found = np.random.default_rng(0), 0
    for place in rng.integers(len(content) // 2, len(content), 8):
        flipped = bytearray(content)
        flipped[place] ^= 0x10
        (run / "t.h5").write_bytes(flipped)
        found += not ne.check_run(run).ok
    assert found > 2


def test_resume_without_a_state_of_the_optimizer_names_it(tmp_path: Path) -> None:
    from neuro_eqprop.runs import checkpoint

    out = tmp_path / "run"
    kill = (
        "import os, sys; from neuro_eqprop.cli import main\n"
        "from neuro_eqprop.runs import train\n"
        "real = train.save_epoch\n"
        "def save_epoch(*given): real(*given); os.kill(os.getpid(), 9)\n"
        "train.save_epoch = save_epoch; main(sys.argv[1:])\n"
    )
    words = ["train", "--dataset", "digits", "--hidden", "4", "--epochs", "2", "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", kill, *words], check=False)
    assert done.returncode == -signal.SIGKILL
    model, memory = checkpoint.load_training(out / "resume.safetensors")
    gone = next(name for name in memory if name.endswith("/step"))
    del memory[gone]
    checkpoint.save(out / "resume.safetensors", model, memory)
    with pytest.raises(RunError, match=f"lacks the optimizer's state '{gone}'"):
        ne.train("layered", "digits", hidden=(4,), epochs=2, out=out, resume=True)
