"""The numbers to reach on the digits, seed 0: rates, spikes on the reference, gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import defined_cosine
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.inference import SETTLED, infer
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.dynamics.solve import SolveStatus, Stop
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking.codes import Code, LoweringError
from neuro_eqprop.training.gradients import implicit
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax
from neuro_eqprop.training.study import make_study

pytestmark = pytest.mark.slow
LEAST = {"layered": 0.975, "looped": 0.965}
BOUND = 0.95


def nothing(_: Any) -> None:  # noqa: ANN401
    pass


@pytest.fixture(scope="module", params=list(LEAST))
def trained(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, dict[str, Any]]:
    """64-128-10 by the default study."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp(request.param) / "run"
    study = make_study(model=request.param)
    result = run_training(study, out, force=False, resume=False, on_epoch=nothing)
    torch.set_num_threads(threads)
    return open_run(out), result


Trained = tuple[Run, dict[str, Any]]


def test_rates_reach_their_accuracy(trained: Trained) -> None:
    run, result = trained
    exact = run.model.evaluate(run.data.test, on="numpy")
    assert exact.samples == 360
    for found in (result["test_accuracy"], exact.accuracy):
        assert found >= LEAST[run.study.model.name]


def test_the_network_is_what_was_asked_for(trained: Trained) -> None:
    run, _ = trained
    sizes = [layer.size for layer in run.model.network.layers]
    assert sizes == [64, 128, 10]
    weight = run.model.params.get("hidden->hidden")
    assert (weight is not None) == (run.study.model.name == "looped")
    if weight is not None:
        largest = np.linalg.svd(weight.astype(np.float64), compute_uv=False)[0]
        assert 0.5 < largest <= BOUND
        assert np.array_equal(weight, weight.T)


@pytest.mark.parametrize(("code", "steps"), [(Code.RATE, 64), (Code.GRADED, 32)])
def test_spikes_agree_with_rates(trained: Trained, code: Code, steps: int) -> None:
    run, _ = trained
    result = run.model.evaluate(run.data, on="reference", code=code, steps=steps)
    assert result.samples == 360
    assert result.agreement >= 0.99
    assert result.pearson is not None
    assert result.pearson >= 0.998


def test_answers_are_those_of_a_true_equilibrium(trained: Trained) -> None:
    """Not of a state on the way: the rates settle, and more steps change no answer."""
    run, _ = trained
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    ops, network, x = NumpyOps(), run.model.network, run.data.test.x
    settled = infer(ops, network, params, x)
    assert settled.status is SolveStatus.CONVERGED
    further = infer(ops, network, params, x, Stop(1e-12, 4 * SETTLED.max_steps))
    assert np.array_equal(settled.classes, further.classes)


def test_the_trained_network_still_descends_its_gradient(trained: Trained) -> None:
    """On samples that the nudge moves, none of their units across a kink of its activation."""
    run, _ = trained
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    ops, network, beta = NumpyOps(), run.model.network, 0.01
    schedule = three_phase(beta=beta, free=20_000, nudged=20_000)
    x, y = run.data.train.x, one_hot(run.data.train.y, 10)
    free = field(ops, network, params, x)
    phases = relax(free, y, schedule, replace(SWEEPS, tolerance=1e-13))
    states = {name: each.state for name, each in phases.items()}
    chosen = np.any(states["positive"]["output"] != states["negative"]["output"], axis=1)
    for layer in network.moving:
        between = {n: (s[layer.name] > 0) & (s[layer.name] < 1) for n, s in states.items()}
        for name in ("negative", "positive"):
            chosen &= (between[name] == between["free"]).all(axis=1)
    rows = np.flatnonzero(chosen)
    assert len(rows) >= 20
    few = {name: {n: s[rows] for n, s in state.items()} for name, state in states.items()}
    asked = hebbian(ops, network, x[rows], states=few, schedule=schedule)
    gradient = implicit(network, params, x[rows], y[rows])
    for name, change in asked.items():
        assert defined_cosine(change, -gradient[name]) >= 0.9999, name


def test_two_hidden_layers_reach_their_accuracy(tmp_path: Path) -> None:
    study = make_study(
        hidden=(96, 96),
        activation="relu",
        output="linear",
        feedback=0.1,
        beta=0.25,
        epochs=40,
        free_steps=6,
        nudged_steps=3,
    )
    result = run_training(study, tmp_path / "run", force=False, resume=False, on_epoch=nothing)
    assert result["test_accuracy"] >= 0.98
    run = open_run(tmp_path / "run")
    spikes = run.model.evaluate(run.data.test, on="reference", code="graded", steps=64)
    assert spikes.agreement >= 0.99
    with pytest.raises(LoweringError, match="hidden1"):
        run.model.evaluate(run.data.test, on="reference", steps=64)
