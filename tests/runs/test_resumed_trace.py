"""The trace of a training that was killed and resumed holds all its epochs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from neuro_eqprop.cli import main
from neuro_eqprop.traces.lazy import read

KILL = """
import os, sys
from neuro_eqprop.cli import main
from neuro_eqprop.runs import train
real = train.save_epoch
def save_epoch(out, loop, model, row):
    real(out, loop, model, row)
    if model.epochs == 2:
        os.kill(os.getpid(), 9)
train.save_epoch = save_epoch
main(sys.argv[1:])
"""


def test_a_resumed_training_keeps_the_recorded_epochs(tmp_path: Path) -> None:
    words = ["train", "--dataset", "digits", "--hidden", "8", "--epochs", "3", "--traces"]
    assert main([*words, "--out", str(tmp_path / "whole"), "--json"]) == 0
    killed = [sys.executable, "-c", KILL, *words, "--out", str(tmp_path / "killed")]
    assert subprocess.run(killed, check=False).returncode == -signal.SIGKILL
    resume = ["train", "--out", str(tmp_path / "killed"), "--resume", "--traces", "--json"]
    assert main(resume) == 0
    whole, found = (read(tmp_path / name / "traces.h5") for name in ("whole", "killed"))
    assert found.complete
    assert found.epochs["epoch"].tolist() == [1, 2, 3]
    for key, values in whole.signals.items():
        np.testing.assert_array_equal(found.signals[key], values)
    for name, weights in whole.weights.items():
        np.testing.assert_array_equal(found.weights[name].before, weights.before)
        assert np.array_equal(found.weights[name].after, weights.after)  # type: ignore[arg-type]
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert models[0] == models[1]
