"""Cosines of Hebbian updates with those of rates and with the gradient of a network's own loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.runs.update_fidelity import (
    ConnectionFidelity,
    along,
    changes_of_loss,
    update_fidelity,
)
from neuro_eqprop.simulators.biology.options import parse_options
from neuro_eqprop.simulators.biology.settings import phase_lengths
from neuro_eqprop.simulators.biology.simulator import biology
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink


def test_the_cosine_along_random_directions_estimates_that_of_the_vectors() -> None:
    """The gradient of a quadratic loss is known."""
    rng = np.random.default_rng(0)
    weight, minimum = rng.normal(size=(12, 20)), rng.normal(size=(12, 20))
    params = {"w": weight}
    moves, changes = changes_of_loss(
        lambda p: float(np.sum((p["w"] - minimum) ** 2)), params, "w", 400
    )
    gradient = 2 * (weight - minimum)
    assert along(-gradient, (moves, changes)) == pytest.approx(1.0)
    other = -gradient + rng.normal(size=gradient.shape) * np.abs(gradient).mean()
    exact = np.sum(-gradient * other) / np.linalg.norm(gradient) / np.linalg.norm(other)
    assert along(other, (moves, changes)) == pytest.approx(exact, abs=0.06)


@pytest.fixture(scope="module")
def digits() -> tuple[ne.Model, Array, Array]:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(32,), epochs=5, seed=0, preset="chip")
    return model, data.train.x[:30], one_hot(data.train.y[:30], 10)


def measure(
    text: str, digits: tuple[ne.Model, Array, Array], directions: int = 0
) -> dict[tuple[str, str], ConnectionFidelity]:
    model, x, target = digits
    backend = biology(**parse_options(text))
    spiking = model.to_spiking(code="rate").with_nudge()
    lengths = phase_lengths(backend.biology)
    steps = lengths.settle + lengths.window
    schedule = three_phase(beta=0.5, free=steps, nudged=steps, part=lengths.window / steps)
    result = backend.run(
        spiking.network, spiking.encode(x, target), schedule, record=NOTHING, sink=MemorySink()
    )
    found = update_fidelity(
        spiking, result, (x, target), schedule, backend=backend, directions=directions
    )
    return {(each.connection, each.readout): each for each in found}


@pytest.mark.parametrize(
    ("text", "readout", "least"),
    [
        ("", "spikes", 0.97),
        ("neuron=conductance", "spikes", 0.90),
        ("neuron=conductance", "drive", 0.95),
        ("neuron=adex,dt=0.2ms", "spikes", 0.93),
        ("tau_m=20ms", "drive", 0.97),
        ("noise=0.2", "drive", 0.95),
        ("noise=0.5", "drive", 0.85),
    ],
)
def test_the_update_survives_with_the_defaults_of_each_option(
    text: str, readout: str, least: float, digits: tuple[ne.Model, Array, Array]
) -> None:
    found = measure(text, digits)
    for name in ("input->hidden", "hidden->output"):
        assert (found[name, readout].rate or 0.0) >= least


def test_a_recording_with_phases_has_the_cosines_of_what_ran(
    trained_run: Path, tmp_path: Path
) -> None:
    run = ne.open_run(trained_run)
    found = run.record(on=biology(), samples=4, phases=True, code="rate", out=tmp_path / "t.h5")
    lengths = phase_lengths(biology().biology)
    assert found.trace.schedule[1].steps == 10 * (lengths.settle + lengths.window)
    json = {(row["connection"], row["readout"]): row for row in found.to_json()["fidelity"]}
    run.record(on="rate", samples=4, phases=True, out=tmp_path / "r.h5", steps=200)
    compared = ne.compare(tmp_path / "r.h5", tmp_path / "t.h5")
    for agreement in compared.connections:
        assert agreement.cosine is not None
        rate = json[agreement.connection, "spikes"]["rate"]
        assert rate == pytest.approx(agreement.cosine, abs=0.01)
    assert run.record(on="emulator", samples=2, out=tmp_path / "f.h5").fidelity == ()


def test_the_update_descends_the_own_loss_of_the_spiking_network(
    digits: tuple[ne.Model, Array, Array],
) -> None:
    found = measure("", digits, directions=16)
    for name in ("input->hidden", "hidden->output"):
        assert (found[name, "spikes"].gradient or 0.0) > 0.4
