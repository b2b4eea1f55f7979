"""Behaviour cloning: the experts solve their tasks, and the data set describes them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import DataError
from sims.claims.data import OWN, load
from sims.claims.data.behaviour_cloning import (
    TASKS,
    balance,
    demonstrate,
    energy,
    environment,
    episode,
    load_behaviour_cloning,
    returns,
    swing,
)


def need() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium is not installed")


def test_the_experts_reach_the_stated_returns() -> None:
    need()
    held = returns("cartpole-bc", balance, episodes=10, seed=0)
    assert held.tolist() == [500.0] * 10
    swung = returns("acrobot-bc", swing, episodes=20, seed=0)
    assert swung.mean() > -115
    assert swung.min() > -500, "every episode comes to its end"


def test_a_policy_that_does_nothing_reaches_little() -> None:
    need()
    assert returns("cartpole-bc", lambda _: 0, episodes=5, seed=0).max() < 20
    assert returns("acrobot-bc", lambda _: 1, episodes=1, seed=0).tolist() == [-500.0]


def test_the_energy_is_kept_where_no_torque_acts() -> None:
    need()
    import gymnasium

    world = gymnasium.make("Acrobot-v1")
    state, _ = world.reset(seed=0)
    for _ in range(30):
        state, *_ = world.step(2 if state[4] < 0 else 0)
    found = []
    for _ in range(10):
        state, *_ = world.step(1)
        found.append(energy(state))
    assert max(found) - min(found) < 0.02 * (max(found) - energy(np.array([1.0, 0, 1, 0, 0, 0])))


@pytest.mark.parametrize(
    ("name", "features", "actions"), [("cartpole-bc", 4, 2), ("acrobot-bc", 6, 3)]
)
def test_states_are_standardised_and_labels_are_the_experts(
    name: str, features: int, actions: int
) -> None:
    need()
    found = load_behaviour_cloning(name, samples=1500, test=300, seed=1)
    assert (len(found.train), len(found.test)) == (1500, 300)
    assert (found.shape, found.classes) == ((features,), actions)
    assert np.abs(found.train.x.mean(axis=0)).max() < 1e-9
    assert np.abs(found.train.x.std(axis=0) - 1).max() < 1e-9
    shares = np.bincount(found.train.y, minlength=actions) / 1500
    assert shares.min() > 0.1
    again, other = (
        load_behaviour_cloning(name, samples=100, test=50, seed=seed) for seed in (1, 2)
    )
    assert np.array_equal(again.train.y, found.train.y[:100])
    assert not np.array_equal(again.train.x, other.train.x)


def test_the_label_is_what_the_expert_does_not_what_was_done_astray() -> None:
    need()
    for name, task in TASKS.items():
        states, labels = demonstrate(name, 1000, np.random.default_rng(0))
        assert [task.expert(state) for state in states] == labels.tolist()
    straight = episode(environment("cartpole-bc"), balance, np.random.default_rng(0), 0.0)[0]
    astray = episode(environment("cartpole-bc"), balance, np.random.default_rng(0), 0.1)[0]
    assert np.array_equal(straight[0], astray[0])
    assert np.std(astray, axis=0)[2] > np.std(straight, axis=0)[2], "more angles are seen"


def test_by_name_it_has_the_listed_size() -> None:
    need()
    found, entry = load("cartpole-bc"), OWN["cartpole-bc"]
    assert (len(found.train), len(found.test)) == (entry.train, entry.test)
    assert (found.shape, found.classes) == (entry.shape, entry.classes)


def test_wishes_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="known: acrobot-bc, cartpole-bc"):
        returns("acrobat", balance, episodes=1, seed=0)
    with pytest.raises(DataError, match="at least one training sample"):
        load_behaviour_cloning("cartpole-bc", samples=0)


def test_without_gymnasium_one_sentence_says_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)

    for name in TASKS:
        with pytest.raises(
            DataError, match=r"needs gymnasium.*`pip install gymnasium` installs it"
        ):
            load(name)
