"""What the baselines tell of how they settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from neuro_eqprop.data import load_data
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import Study, adapt

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
