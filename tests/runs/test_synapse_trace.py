"""Traces of synapses, recorded while a network learns on a chip."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.learn_on_chip import learn_on_chip
from neuro_eqprop.cli import main
from neuro_eqprop.cli.traces import picture
from neuro_eqprop.traces.compare import compare
from neuro_eqprop.traces.lazy import read, read_progress

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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--record", "hidden:voltages"), "unknown variable of 'hidden' 'voltages'"),
        (("--record", "hiden:spikes"), "population to record (population:variable) 'hiden:spikes'"),
        (("--on", "rate", "--record", "hidden:spikes"), "variable of 'hidden' 'spikes'"),
        (("--on", "rate", "--record", "hidden:voltage"), "variable of 'hidden' 'voltage'"),
        (("--snapshots", "1,x"), "'1,x' is no list of sample numbers"),
    ],
)
def test_what_cannot_be_recorded_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    out = ("--out", str(tmp_path / "run"), "--traces", str(tmp_path / "a.h5"))
    with contextlib.suppress(SystemExit):
        assert main([*SMALL, *options, *out]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "refused before anything was learned"


def test_what_to_record_needs_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", str(tmp_path / "run"))
    assert main([*SMALL, "--record", "hidden:voltage", *out]) == 2
    assert "add --traces" in capsys.readouterr().err


LEARNING: dict[str, Any] = {"hidden": (12,), "epochs": 2, "samples": 20, "beta": 0.1, "seed": 1}


@pytest.mark.filterwarnings("ignore:beta")  # of the small network, for both
def test_rates_and_spikes_are_compared_while_they_learn() -> None:
    made = {
        on: learn_on_chip("layered", "digits", on=on, record=["hidden:current"], **LEARNING)
        for on in ("rate", "emulator")
    }
    rates, spikes = (made[on].trace for on in ("rate", "emulator"))
    assert rates is not None
    assert spikes is not None
    assert ("hidden", "drive") in rates.signals
    assert ("hidden", "drive") in spikes.signals
    assert set(spikes.spikes) == {"hidden", "output"}
    found = compare(rates, spikes)
    assert min(each.distance.pearson or 0.0 for each in found.layers) > 0.99
    assert min(each.cosine or 0.0 for each in found.connections) > 0.95
    assert {each.connection for each in found.connections} == {"input->hidden", "hidden->output"}
    assert min(each.cosine or 0.0 for each in found.learned) > 0.95
    (synapses,) = found.synapses
    assert synapses.synapses == 8
    assert (synapses.tag_cosine or 0.0) > 0.99
    assert len(found.by_sample) == 20 * 3
    # The weights change at the commit that ends each sample, in both.
    for trace in (rates, spikes):
        weight = trace.hebbian["hidden->output"].weight.reshape(20, trace.steps, 8)
        assert (weight[:, :-1] == weight[:, :1]).all()
        assert (weight[:, -1] != weight[:, 0]).any()
        np.testing.assert_array_equal(weight[1:, 0], weight[:-1, -1])


@pytest.mark.filterwarnings("ignore:beta")  # of the small network, for both
@pytest.mark.parametrize("on", ["rate", "emulator"])
def test_snapshots_are_the_weights_of_the_run(on: str) -> None:
    model = learn_on_chip("layered", "digits", on=on, snapshots=[40, 0, 7, 20], **LEARNING)
    assert model.trace is not None
    found = model.trace.snapshots
    assert found.sample.tolist() == [0, 7, 20, 40]
    held, weights = found.weights["hidden->output"], model.trace.weights["hidden->output"]
    np.testing.assert_array_equal(held[0], weights.before)
    np.testing.assert_array_equal(held[-1], np.asarray(weights.after))
    np.testing.assert_array_equal(held[-1], model.params["hidden->output"])
    # After seven samples, a weight is that of the history of its synapse.
    log = model.trace.hebbian["hidden->output"]
    target, source = np.array(log.synapses).T
    np.testing.assert_allclose(held[1][target, source], log.weight[7 * model.trace.steps - 1])


KILLED = """
import os, signal, sys
from pathlib import Path
from typing import Any
from neuro_eqprop.runs.learn_on_chip import loop
from neuro_eqprop.traces.compare import compare
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
