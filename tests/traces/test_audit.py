"""A trace audited by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.cli import main
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest
from neuro_eqprop.simulators.recordings import select_samples
from neuro_eqprop.traces.audit import audit
from neuro_eqprop.traces.lazy import read


@pytest.mark.filterwarnings("ignore:phases of 16 steps")
@pytest.mark.filterwarnings("ignore:beta 0.5 is too large")
@pytest.mark.parametrize(("on", "batch"), [("emulator", 1), ("biology", 3), ("rate", 2)])
def test_a_learning_run_verifies(
    on: str, batch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.h5"
    ne.learn_on_chip(
        "layered",
        "digits",
        hidden=(8,),
        on=on,
        code="rate",
        batch=batch,
        epochs=1,
        samples=6,
        steps=16,
        traces=TraceRequest(path, ["input->hidden:hebbian", "hidden->output:hebbian"], 6),
    )
    found = audit(read(path))
    assert [each.connection for each in found] == ["hidden->output", "input->hidden"]
    for each in found:
        assert each.commits > 0
        assert max(each.product, each.tag) < 1e-9
        # Rates learn from their equilibria, not from the recorded course.
        assert each.update < (1e-3 if on == "rate" else 1e-9)
    with h5py.File(path) as file:
        assert file["rule/batch"][0] == batch
        assert file["rule/commit"][:].sum() == 6 / batch
        assert file["rule/rate"].dims[0][0].name == "/samples/index"
        assert file["rule/contrast"].dims[0][0].name == "/phases/name"
        assert "learning rate" in file["rule/rate"].attrs["description"]
    assert main(["traces", "verify", str(path)]) == 0
    assert "largest differences" in capsys.readouterr().out
    trace = read(path)
    name, log = next(iter(trace.hebbian.items()))
    tag = np.array(log.tag)
    tag[trace.steps // 2] += 0.25
    damaged = select_samples(trace, [1, 0, 2, 3, 4, 5])  # in memory
    damaged = replace(damaged, hebbian={name: replace(log, tag=tag)})
    assert audit(damaged)[0].tag >= 0.24


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
def test_neurons_that_fire_twice_in_a_step_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    ne.learn_on_chip(
        "layered",
        "digits",
        hidden=(6,),
        on="biology",
        biology="neuron=izhikevich,dt=0.5ms,rmax=40Hz",
        code="rate",
        batch=4,
        epochs=1,
        samples=4,
        steps=16,
        learning_rate=1.0,
        bias=1.5,
        traces=TraceRequest(path, ["hidden->output:hebbian"], 4),
    )
    trace = read(path)
    assert trace.spikes["hidden"].value.max() >= 2
    assert audit(trace)[0].update < 1e-9
