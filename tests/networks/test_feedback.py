"""Feedback with weights of its own: its updates, its decay, and learning in spikes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import cosine
from neuro_eqprop.networks.feedback import alignment, decays
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import make_study

BACK = "output->hidden"
SMALL = {"hidden": (12,), "epochs": 1, "samples": 30, "code": "rate", "steps": 24}


def loop(kind: str, **settings: object) -> TrainingLoop:
    """A training of a small network on the digits."""
    study = make_study(model="layered", hidden=(12,), epochs=1, feedback_weights=kind, **settings)
    data = ne.load_data("digits")
    return TrainingLoop(study, study.network(data), data)


@pytest.mark.parametrize("feedback", [1.0, 0.25])
def test_both_directions_get_the_same_update(feedback: float) -> None:
    training = loop("learned", feedback=feedback, free_steps=60, nudged_steps=60)
    data = training.data.train
    updates = training.updates(data.x[:32], data.y[:32])
    same = cosine(updates["hidden->output"].T, updates[BACK])
    assert same == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(updates[BACK]) == pytest.approx(
        np.linalg.norm(updates["hidden->output"]), rel=1e-4
    )


def test_random_feedback_stays_and_learned_feedback_aligns() -> None:
    fixed, learned = loop("random"), loop("learned", feedback_decay=50.0)
    start = fixed.current().params[BACK]
    before = alignment(learned.network, learned.current().params)[BACK]
    for training in (fixed, learned):
        training.epoch(evaluate=False)
    assert np.array_equal(fixed.current().params[BACK], start)
    after = alignment(learned.network, learned.current().params)[BACK]
    assert before is not None
    assert after is not None
    assert abs(before) < 0.3
    assert after > 0.9


def test_decay_names_both_directions() -> None:
    assert decays(loop("learned").network) == {"hidden->output": 3.0, BACK: 3.0}
    assert decays(loop("tied").network) == decays(loop("random").network) == {}


pytestmark = pytest.mark.filterwarnings(
    "ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning"
)


def learned_weights(on: str, kind: str, **settings: object) -> dict[str, np.ndarray]:
    """The parameters after a few samples on a simulator."""
    given: dict[str, Any] = {**SMALL, **settings}
    made = ne.learn_on_chip("layered", "digits", on=on, feedback_weights=kind, **given)
    return {name: np.asarray(value) for name, value in made.params.items()}


@pytest.mark.parametrize("settings", [{}, {"feedback": 0.5, "batch": 4}])
def test_the_emulator_learns_feedback_as_the_reference_does(settings: dict[str, object]) -> None:
    compiled = learned_weights("emulator", "learned", **settings)
    reference = learned_weights("reference", "learned", **settings)
    for name, weight in reference.items():
        assert np.array_equal(compiled[name], weight), name


def test_random_feedback_stays_in_spikes() -> None:
    few = learned_weights("emulator", "random", samples=5)
    many = learned_weights("emulator", "random", samples=30)
    assert np.array_equal(few[BACK], many[BACK])
    assert not np.array_equal(few["hidden->output"], many["hidden->output"])


def test_biology_learns_feedback() -> None:
    made = learned_weights("biology", "learned", batch=10, samples=20)
    start = learned_weights("biology", "learned", batch=10, samples=20, learning_rate=1e-9)
    assert not np.allclose(made[BACK], start[BACK])


@pytest.mark.parametrize(
    ("on", "kind", "settings", "error"),
    [
        ("emulator", "learned", {"bits": 8}, "floating point"),
        ("emulator", "random", {"bits": 8}, "floating point"),
        ("brian2", "learned", {}, "do not decay"),
    ],
)
def test_what_cannot_learn_it_says_so(
    on: str, kind: str, settings: dict[str, object], error: str
) -> None:
    with pytest.raises((ValueError, BackendError), match=error):
        learned_weights(on, kind, **settings)
