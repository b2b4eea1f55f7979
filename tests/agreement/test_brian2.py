"""What the Brian2 backend does beside the step: chunks, manners, and its absence."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from neuro_eqprop.simulators.base import Backend, BackendError
from neuro_eqprop.simulators.brian2 import simulator as simulator_module
from neuro_eqprop.simulators.brian2.setup import known_settings, settings, simulator
from neuro_eqprop.simulators.brian2.simulator import Brian2, values_per_sample
from neuro_eqprop.simulators.recordings import NOTHING
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES, check_case
from neuro_eqprop.simulators.testing.case import run_case

NAMED = {case.name: case for case in CASES}

FRESH = """
import logging, os, signal, sys, tempfile, warnings
before = sys.excepthook, signal.getsignal(signal.SIGINT), warnings.showwarning
import numpy as np
chance = np.random.get_state()[1].copy()
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES, check_case
brian2 = load_backend("brian2")
assert "brian2" not in sys.modules, "imported before it is run"
check_case(brian2, CASES[0])
assert "brian2" in sys.modules
after = sys.excepthook, signal.getsignal(signal.SIGINT), warnings.showwarning
assert before == after, "hooks are left behind"
assert (np.random.get_state()[1] == chance).all(), "the global random state has moved"
logging.captureWarnings(True)
assert warnings.showwarning is not before[2], "warnings can no longer be captured"
assert os.listdir(tempfile.gettempdir()) == [], "files are left behind"
"""


@pytest.mark.brian2
def test_nothing_is_left_behind_in_a_fresh_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FRESH)
    for name in ("tmp", "home", "here"):
        (tmp_path / name).mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "tmp"),
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path / "here",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not [path for name in ("tmp", "home", "here") for path in (tmp_path / name).iterdir()]


@pytest.mark.brian2
def test_settings_of_the_user_are_restored() -> None:
    brian2 = simulator()
    before = {key: brian2.prefs[key] for key in known_settings(brian2)}
    brian2.prefs["codegen.target"] = "cython"
    brian2.prefs["core.default_float_dtype"] = np.float32
    clock = float(brian2.defaultclock.dt)
    try:
        check_case(load_backend("brian2"), NAMED["leaky decays"])
        assert brian2.prefs["codegen.target"] == "cython"
        assert brian2.prefs["core.default_float_dtype"] is np.float32
        assert float(brian2.defaultclock.dt) == clock
    finally:
        for key, value in before.items():
            brian2.prefs[key] = value


@pytest.mark.brian2
def test_settings_are_restored_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    brian2 = simulator()
    before = {key: brian2.prefs[key] for key in known_settings(brian2)}
    assert before != known_settings(brian2)

    def fail(*_: object, **__: object) -> None:
        assert {key: brian2.prefs[key] for key in known_settings(brian2)} == known_settings(brian2)
        raise RuntimeError("on purpose")

    monkeypatch.setattr(simulator_module, "synapses", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        run_case(load_backend("brian2"), NAMED["self-projection"])
    assert {key: brian2.prefs[key] for key in known_settings(brian2)} == before


@pytest.mark.brian2
def test_a_network_of_the_user_is_not_disturbed() -> None:
    brian2 = simulator()
    with settings(brian2):
        own = brian2.NeuronGroup(1, "v : 1", threshold="v > 1", reset="v = 0")
        own.run_regularly("v = v + 0.375", dt=brian2.ms)
        monitor = brian2.SpikeMonitor(own)
        brian2.run(6 * brian2.ms)
        check_case(load_backend("brian2"), NAMED["one neuron"])
        brian2.run(6 * brian2.ms)
    assert float(brian2.magic_network.t) == pytest.approx(0.012)
    assert np.rint(monitor.t_[:] / 1e-3).tolist() == [2.0, 5.0, 8.0, 11.0]


@pytest.mark.brian2
def test_objects_of_a_run_are_freed() -> None:
    brian2 = simulator()
    run_case(load_backend("brian2"), NAMED["nudge"])
    gc.collect()
    before = len(brian2.NeuronGroup.__instances__()), len(brian2.Synapses.__instances__())
    run_case(load_backend("brian2"), NAMED["nudge"])
    gc.collect()
    assert before == (len(brian2.NeuronGroup.__instances__()), len(brian2.Synapses.__instances__()))


@pytest.mark.brian2
@pytest.mark.parametrize("name", ["samples start from rest", "graded gain and delay"])
def test_chunks_of_samples_change_nothing(name: str) -> None:
    case = NAMED[name]
    one = values_per_sample(case.network, case.schedule, case.record)
    for values in (1, 3 * one):
        check_case(cast(Backend, Brian2(values=values)), case)


def test_values_of_a_sample_are_counted() -> None:
    case = NAMED["self-projection"]
    # Three weights other than zero; voltage and drive of two neurons for 32 steps, a spike of
    # each in every sixteenth of them.
    found = values_per_sample(case.network, case.schedule, case.record)
    assert found == 1 + 3 + 2 * 2 * 32 + 2 * 32 // 8
    assert values_per_sample(case.network, case.schedule, NOTHING) == 1 + 3


@pytest.mark.brian2
def test_other_clocks_give_the_same_steps() -> None:
    """Steps and delays are whole numbers of dt, whatever dt is in binary."""
    case = NAMED["two delays into one target"]
    for dt in (1e-6, 1e-4, 0.1, 1 / 3, 7.0):
        check_case(load_backend("brian2"), replace(case, network=replace(case.network, dt=dt)))


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brian2", None)
    with pytest.raises(BackendError, match="pip install brian2"):
        run_case(load_backend("brian2"), CASES[0])


def test_a_numpy_that_brian2_does_not_know_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(name: str) -> None:
        raise AttributeError("type object 'numpy.ndarray' has no attribute 'ptp'")

    monkeypatch.delitem(sys.modules, "brian2", raising=False)
    monkeypatch.setattr("neuro_eqprop.simulators.brian2.setup.import_module", fail)
    with pytest.raises(BackendError, match=r"'ptp'.*numpy<2\.4"):
        run_case(load_backend("brian2"), CASES[0])
