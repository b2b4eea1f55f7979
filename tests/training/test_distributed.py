from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.training.distributed import ALONE, ProcessGroup

SETTINGS = ["--dataset", "digits", "--hidden", "24,12", "--batch", "100", "--seed", "3"]
SETTINGS += ["--set", "shift=1"]


def train(out: Path, *more: str, processes: int = 1, code: int = 0) -> dict[str, object]:
    command = [sys.executable, "-m"]
    if processes > 1:
        command += ["torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
        command += ["--nproc-per-node", str(processes), "-m"]
    command += ["neuro_eqprop", "train", *SETTINGS, "--out", str(out), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout  # the main process alone prints
    found: dict[str, object] = json.loads(lines[0])
    return found


def parameters(out: Path) -> dict[str, Array]:
    from safetensors.numpy import load_file

    return load_file(out / "model.safetensors")


def test_the_parts_of_a_batch_are_all_of_it() -> None:
    rows = np.arange(10)
    for size in (1, 2, 3, 10):
        parts = [rows[ProcessGroup(rank, size).part(len(rows))] for rank in range(size)]
        assert np.array_equal(np.concatenate(parts), rows)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert ALONE.part(10) == slice(0, 10)
    assert ProcessGroup(3, 11).part(10) == slice(0, 10)


@pytest.mark.slow
def test_two_processes_train_as_one_and_resume_to_the_same_bytes(tmp_path: Path) -> None:
    alone = train(tmp_path / "one", "--epochs", "2")
    both = train(tmp_path / "two", "--epochs", "2", processes=2)
    one, two = parameters(tmp_path / "one"), parameters(tmp_path / "two")
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, rtol=0, atol=2e-4, err_msg=name)
    assert abs(float(str(alone["test_accuracy"])) - float(str(both["test_accuracy"]))) < 0.01
    whole = (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()
    assert len(whole) == 2
    # Interrupted after the first epoch: the folder as it was then.
    script = (
        "import sys; from neuro_eqprop.runs import run_folder\n"
        "import neuro_eqprop.runs.train as t\n"
        "from neuro_eqprop.cli import main\n"
        "kept = t.save_epoch\n"
        "def save(*a):\n    kept(*a)\n    import os; os._exit(9)\n"
        "t.save_epoch = save\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    (tmp_path / "cut.py").write_text(script)
    cut = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    cut += ["--local-addr", "127.0.0.1", str(tmp_path / "cut.py"), "train", *SETTINGS]
    cut += ["--epochs", "2", "--out", str(tmp_path / "again")]
    assert subprocess.run(cut, capture_output=True, timeout=300, check=False).returncode != 0
    assert not (tmp_path / "again" / "model.safetensors").exists()
    train(tmp_path / "again", "--resume", processes=2)
    again = parameters(tmp_path / "again")
    assert all(np.array_equal(two[name], again[name]) for name in two)
