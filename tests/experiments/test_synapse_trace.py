"""Traces of synapses, recorded while a network learns on a chip."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.cli.traces import picture
from neuro_eqprop.io.trace.lazy import read, read_progress

SMALL = ("learn", "--hidden", "8", "--epochs", "1", "--samples", "20", "--learning-rate", "0.1")


@pytest.mark.parametrize("options", [(), ("--bits", "8"), ("--code", "rate", "--steps", "16")])
def test_a_trace_holds_activity_traces_tag_and_weight_of_a_synapse(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "traces.h5"
    record = ("--record", "hidden->output[2,3;1,4]:hebbian", "--record", "always->output:hebbian")
    out = ("--out", str(tmp_path / "run"), "--traces", str(path), "--watched", "20")
    assert main([*SMALL, *options, *record, *out]) == 0
    trace = read(path)
    log = trace.hebbian["hidden->output"]
    assert log.synapses == ((2, 3), (1, 4))
    assert len(log.tag) == 20 * trace.steps
    np.testing.assert_allclose(log.product, log.pre * log.post)
    assert 0 <= log.pre.min() <= log.pre.max() <= 1
    ends = np.arange(20) * trace.steps + trace.steps - 1
    moved = np.diff(np.concatenate([[log.weight[0, 0]], log.weight[ends, 0]]))
    rates = 0.1 * 0.5 * (1 + np.cos(np.pi * np.arange(20) / 20))
    size = 1 / 128 if "--bits" in options else 1e-12
    np.testing.assert_allclose(moved, rates * log.tag[ends, 0], rtol=0, atol=size)
    assert np.abs(moved).max() > 0
    # The run has no other samples than the recorded ones, and repeats them.
    weights = trace.weights["hidden->output"]
    assert weights.after is not None
    assert weights.after[2, 3] == log.weight[-1, 0]
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text())
    assert trace.complete
    assert trace.epochs["test_accuracy"].tolist() == [line["test_accuracy"]]
    assert line["spectral"].keys() == {"input->hidden", "hidden->output"}


def test_a_connection_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "run"), "--traces", str(tmp_path / "a.h5"))
    assert main([*SMALL, "--record", "hidden->hidden:hebbian", *out]) == 2
    assert "connection to record" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "refused before anything was learned"


@pytest.mark.parametrize("record", ["hidden:spikes", "hidden:voltage", "output:state"])
def test_spikes_and_voltages_cannot_be_recorded_while_learning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: str
) -> None:
    out = ("--out", str(tmp_path / "run"), "--traces", str(tmp_path / "a.h5"))
    assert main([*SMALL, "--record", record, *out]) == 1
    message = capsys.readouterr().err
    assert f"{record!r} cannot be recorded while the network learns" in message
    assert "hidden->output:hebbian" in message
    assert list(tmp_path.iterdir()) == [], "refused before anything was learned"


KILLED = """
import os, signal, sys
from pathlib import Path
from neuro_eqprop.experiments.learn_on_chip import loop
from neuro_eqprop.cli import main

def learn_epoch(*given):
    if given[1].epoch == 1:
        # Within a second everything is on the disk.
        import time
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return before(*given)

before, loop.learn_epoch = loop.learn_epoch, learn_epoch
main(sys.argv[1:])
"""


def test_a_killed_run_leaves_a_readable_trace_of_samples_and_epochs(tmp_path: Path) -> None:
    options = [*SMALL, "--epochs", "3", "--on", "reference", "--out", str(tmp_path / "run")]
    options += ["--traces", "--watched", "3"]
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"FORCE_COLOR": "1"},  # as on a terminal
    )
    assert ended.returncode == -signal.SIGKILL
    assert "recording 3 samples of 48 steps: at most" in ended.stderr
    seen = read_progress(tmp_path / "run" / "traces.h5", last=2)
    assert (seen.trace.complete, seen.taken, seen.announced, seen.epochs) == (False, 3, 3, 3)
    assert seen.trace.epochs["epoch"].tolist() == [1.0]
    assert seen.trace.weights["hidden->output"].after is not None
    (first, *more) = picture(tmp_path, seen, 0.0, 0.0)
    assert first.endswith("s left")
    assert "1 of 3 epochs" in first
    assert "test accuracy" in more[0]
    assert "hidden->output[0," in more[-1]
