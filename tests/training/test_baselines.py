"""What the baselines tell of how they settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.data import Dataset, load_data
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules import baselines
from neuro_eqprop.training.study import Study, adapt, make_study

DATA = load_data("digits")


def last(**changes: object) -> Mapping[str, Any]:
    usual = {"model": "looped", "hidden": 9, "epochs": 1, "batch": 256, "free_steps": 4}
    study = adapt(Study(), usual | changes)
    return TrainingLoop(study, study.network(DATA), DATA).epoch(evaluate=False)


@pytest.mark.parametrize("rule", ["bptt", "implicit"])
def test_the_last_step_is_measured_and_no_phase_is_made_up(rule: str) -> None:
    found = last(rule=rule)
    assert found["settle_steps"] == {"free": 4.0, "nudged": 0.0}
    assert found["residual"] == pytest.approx(last(rule="hebbian")["residual"], rel=0.5)
    assert last(rule=rule, free_steps=12)["residual"] < 0.1 * found["residual"]


def test_backprop_takes_one_sweep() -> None:
    found = last(rule="backprop")
    assert (found["settle_steps"], found["residual"]) == ({"free": 1.0, "nudged": 0.0}, 0.0)


def test_a_single_phase_takes_one_pass_each_way() -> None:
    found = last(model="predictive", rule="single-phase")
    assert found["settle_steps"] == {"free": 1.0, "nudged": 1.0}


def test_implicit_gradients_heed_the_tolerance() -> None:
    loose = last(rule="implicit", free_steps=30, tolerance=0.05)
    assert loose["settle_steps"]["free"] < 20


@pytest.mark.parametrize("cost", ["squared", "cross_entropy"])
@pytest.mark.parametrize(
    "settings",
    [{"model": "conv", "hidden": (4, 5), "padding": "same"}, {"model": "pyramid"}],
    ids=str,
)
def test_backprop_of_images_by_stored_couplings_is_that_of_one_sweep(
    settings: dict[str, Any], cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((24, 3, 16, 16)), rng.integers(0, 5, 24)
    data = Dataset(x, y, x, y, name="images")
    small = {"hidden": (4, 6)} | settings | {"cost": cost, "kernel": 3, "normalize": True}
    study = make_study(rule="backprop", dataset="images", **small)
    loop = TrainingLoop(study, study.network(data), data)
    found = loop.updates(data.train.x, data.train.y)
    monkeypatch.setattr(baselines, "backpropagate", lambda *_: None)
    for name, wanted in loop.updates(data.train.x, data.train.y).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
