"""The Brian2 network that users extend: its objects by name, and its spikes in every device mode.

C++ standalone mode is a setting of the whole process, so each mode runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks import architectures
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH, Activation
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.biology.settings import BASE
from neuro_eqprop.simulators.brian2.continuous import Brian2Biology
from neuro_eqprop.simulators.brian2.native import Brian2Network, identifier
from neuro_eqprop.simulators.brian2.setup import settings, simulator
from neuro_eqprop.simulators.brian2.simulator import Brian2
from neuro_eqprop.simulators.recordings import MemorySink, Record

pytestmark = pytest.mark.brian2

STEPS = 24
X = np.random.default_rng(1).random((2, 6))
TARGET = np.eye(3)[[0, 2]]
EXTENDED = Path(__file__).parent / "extended_network.py"


def small(hidden: Activation = HARD_SIGMOID) -> Model:
    network = architectures.layered(6, (5,), 3, hidden_rate=hidden, output_rate=HARD_SIGMOID)
    rng = np.random.default_rng(0)
    params = initialize(network, rng)
    return Model(network, {n: v + 0.3 * rng.standard_normal(v.shape) for n, v in params.items()})


def expected(
    spiking: SpikingModel, backend: Brian2 | Brian2Biology, *, nudged: bool = False
) -> dict[str, Array]:
    """Spikes of a backend (samples, steps, units)."""
    spiking = spiking.with_nudge()
    schedule = spiking.schedule(STEPS, beta=0.25 if nudged else None)[: 2 if nudged else 1]
    stimulus = spiking.encode(X, TARGET if nudged else None)
    sink, names = MemorySink(), [p.name for p in spiking.network.populations]
    record = Record(frozenset(names))
    backend.run(spiking.network, stimulus, schedule, record=record, sink=sink)
    return {name: np.stack([r.spikes[name] for r in sink.recordings]) for name in names}


def run(network: Brian2Network, steps: int = STEPS) -> None:
    with settings(simulator()):
        network.run(steps * network.step, namespace={})


@pytest.mark.parametrize("code", ["rate", "graded"])
def test_the_network_sends_the_spikes_of_the_backend(code: str) -> None:
    spiking = small().to_spiking(code=code)
    network = spiking.to_brian2(X)
    run(network)
    for name, spikes in expected(spiking, Brian2()).items():
        assert spikes.any()
        np.testing.assert_array_equal(network.raster(name, STEPS), spikes)
    simulation = spiking.run(X, on="reference", steps=STEPS)
    np.testing.assert_array_equal(network.decode(), simulation.predictions)


def test_target_and_beta_set_between_runs_make_a_nudged_phase() -> None:
    spiking = small().to_spiking(code="graded")
    network = spiking.to_brian2(X)
    network.set_target(TARGET)
    run(network)
    network.set_beta(spiking.schedule(STEPS, beta=0.25)[1].beta)
    run(network)
    for name, spikes in expected(spiking, Brian2(), nudged=True).items():
        np.testing.assert_array_equal(network.raster(name, 2 * STEPS), spikes)


def test_objects_are_found_by_name() -> None:
    network = small().to_spiking(code="rate").to_brian2(samples=4)
    brian2 = simulator()
    assert isinstance(network, brian2.Network)
    assert {name: group.N for name, group in network.groups.items()} == {"hidden": 20, "output": 12}
    assert {"hidden->output", "output->hidden"} <= set(network.synapses)
    assert network["hidden"] is network.groups["hidden"]
    assert network["hidden_to_output"] is network.synapses["hidden->output"]
    assert network["spikes_output"] is network.spikes["output"]


def test_membranes_in_continuous_time_fire_as_in_the_backend() -> None:
    spiking = small().to_spiking(code="rate")
    network = spiking.to_brian2(X, continuous=True)
    run(network)
    for name, spikes in expected(spiking, Brian2Biology(BASE)).items():
        assert spikes.any()
        # The monitor sees a spike at the end of its dt, the backend reads before the next one.
        assert abs(network.raster(name, STEPS).sum() - spikes.sum()) <= 1
    noisy = spiking.to_brian2(X, continuous=True, tau_m=20e-3, noise=0.2, delay=2e-3)
    run(noisy)
    assert noisy.spikes["hidden"].num_spikes > 0


def test_what_does_not_fit_is_refused() -> None:
    spiking = small().to_spiking(code="rate")
    with pytest.raises(ValueError, match="3 samples do not fit a network of 2"):
        spiking.to_brian2(X).set_input(np.zeros((3, 6)))
    with pytest.raises(ValueError, match="continuous=True"):
        spiking.to_brian2(X, tau_m=20e-3)
    with pytest.raises(BackendError, match="the same noise"):
        spiking.to_brian2(X, continuous=True, dale=True, noise=0.1)
    with pytest.raises(BackendError, match="graded"):
        small().to_spiking(code="graded").to_brian2(X, continuous=True)
    with pytest.raises(BackendError, match="use reference"):
        small().to_spiking(code="graded", bits=8).to_brian2(X)


@pytest.mark.parametrize("name", ["hidden->output", "hidden+", "a layer"])
def test_names_are_those_that_brian2_accepts(name: str) -> None:
    assert identifier(name).isidentifier()


def extended(mode: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a user in a folder with a model, in one mode of Brian2."""
    model = small(TANH)
    model.save(folder / "model.safetensors")
    np.save(folder / "x.npy", X)
    return subprocess.run(
        [sys.executable, EXTENDED, mode, folder, str(STEPS)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **environment},
        check=True,
        capture_output=True,
        text=True,
    )


def check_extended(folder: Path) -> None:
    """The script found the spikes of the backend, and those of its own group."""
    found = np.load(folder / "found.npz")
    for name, spikes in expected(small(TANH).to_spiking(code="graded"), Brian2()).items():
        assert spikes.any()
        np.testing.assert_array_equal(found[name], spikes)
    assert found["mine"].max() > 0


def test_without_a_compiler_brian2_runs_in_numpy_mode_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "no-programs").mkdir()
    done = extended("auto", tmp_path, PATH=str(tmp_path / "no-programs"))
    assert "falling back to the numpy" in " ".join(done.stderr.split())
    check_extended(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.drawn(1)
@pytest.mark.parametrize("mode", ["numpy", "cython", "cpp_standalone"])
def test_a_network_extended_by_the_user_sends_the_spikes_of_the_backend_in_every_device_mode(
    mode: str, tmp_path: Path
) -> None:
    extended(mode, tmp_path)
    check_extended(tmp_path)
