"""Behaviour cloning: predict the action of an expert in CartPole and in Acrobot.

The experts are fixed controllers. CartPole (position p, speed v, angle a, angular speed w): push
right where p + 2 v + 35 a + 10 w > 0, a state feedback that balances the pole and centers the
cart. Acrobot (angles a1, a2, their speeds w1, w2): while the energy

    E = (d11 w1^2 + 2 d12 w1 w2 + d22 w2^2) / 2 - g (1.5 cos a1 + 0.5 cos(a1 + a2))

with d11 = 3.5 + cos a2, d12 = 1.25 + cos(a2) / 2, d22 = 1.25 is at most 15, the torque
opposes w1, which pumps energy into the arm; above, there is no torque.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.split import DataError, Split

TRAIN, TEST = 8000, 2000
"""Default numbers of training and test samples."""
STRAY = 0.1
"""Probability of a random action, so that more states occur than the expert visits; the label stays
the expert's action."""

GRAVITY = 9.8
ENOUGH = 15.0
"""Energy above which the expert of Acrobot applies no torque."""

Policy = Callable[[Array], int]
"""Maps an observation of the environment to an action."""


@dataclass(frozen=True, slots=True)
class Task:
    """A gymnasium environment and its expert."""

    environment: str
    expert: Policy
    features: int
    actions: int


def balance(state: Array) -> int:
    """Return the expert's action in CartPole."""
    return int(state @ np.array([1.0, 2.0, 35.0, 10.0]) > 0.0)


def energy(state: Array) -> float:
    """Return the energy of Acrobot in a state (cos a1, sin a1, cos a2, sin a2, w1, w2)."""
    cos1, sin1, cos2, sin2, speed1, speed2 = (float(value) for value in state)
    d11, d12, d22 = 3.5 + cos2, 1.25 + cos2 / 2, 1.25
    moving = (d11 * speed1**2 + 2 * d12 * speed1 * speed2 + d22 * speed2**2) / 2
    return moving - GRAVITY * (1.5 * cos1 + 0.5 * (cos1 * cos2 - sin1 * sin2))


def swing(state: Array) -> int:
    """Return the expert's action in Acrobot: 0, 1, 2 are the torques -1, 0, 1."""
    if energy(state) > ENOUGH:
        return 1
    return 0 if state[4] > 0.0 else 2


TASKS = {
    "cartpole-bc": Task("CartPole-v1", balance, 4, 2),
    "acrobot-bc": Task("Acrobot-v1", swing, 6, 3),
}


def environment(name: str) -> Any:  # noqa: ANN401
    """Make the environment of a task; gymnasium must be installed."""
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    try:
        import gymnasium
    except ImportError:
        raise DataError(
            f"data set {name!r} needs gymnasium, which is not installed; "
            f"`pip install gymnasium` installs it"
        ) from None
    return gymnasium.make(TASKS[name].environment, disable_env_checker=True)


def episode(world: Any, act: Policy, rng: np.random.Generator, stray: float) -> tuple[Any, ...]:  # noqa: ANN401
    """Return the states, the chosen actions and the return of one episode.

    With probability `stray`, a random action is taken instead of the chosen one.
    """
    state, _ = world.reset(seed=int(rng.integers(2**31)))
    states, chosen, total, over = [], [], 0.0, False
    while not over:
        state = np.asarray(state, dtype=np.float64)
        action = act(state)
        states.append(state)
        chosen.append(action)
        if rng.random() < stray:
            action = int(rng.integers(world.action_space.n))
        state, reward, ended, out_of_time, _ = world.step(action)
        total, over = total + float(reward), ended or out_of_time
    return states, chosen, total


def demonstrate(name: str, samples: int, rng: np.random.Generator) -> tuple[Array, Ints]:
    """Return states (samples, features) of episodes, and the expert's actions (samples,)."""
    states: list[Array] = []
    actions: list[int] = []
    world = environment(name)
    while len(states) < samples:
        seen, chosen, _ = episode(world, TASKS[name].expert, rng, STRAY)
        states += seen
        actions += chosen
    world.close()
    return np.array(states[:samples]), np.array(actions[:samples], dtype=np.int64)


def load_behaviour_cloning(
    name: str, *, samples: int = TRAIN, test: int = TEST, seed: int = 0
) -> Dataset:
    """Generate states of an environment, labelled with the actions of an expert.

    Features are standardized by the mean and standard deviation of the training states. Training
    and test states are of different episodes.

    Parameters
    ----------
    name : {"cartpole-bc", "acrobot-bc"}
        Task.
    samples, test : int
        Numbers of training and test samples.
    seed : int
        Random seed.

    Returns
    -------
    Dataset
        States (samples, features) and actions as classes.
    """
    if min(samples, test) < 1:
        raise DataError(f"{name!r} needs at least one training sample and one test sample")
    rng = np.random.default_rng(seed)
    (x, y), (x_test, y_test) = (demonstrate(name, count, rng) for count in (samples, test))
    mean, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    train_split, test_split = Split((x - mean) / spread, y), Split((x_test - mean) / spread, y_test)
    return Dataset.from_splits(name, train_split, test_split, TASKS[name].actions)


def returns(name: str, act: Policy, *, episodes: int, seed: int) -> Array:
    """Return the returns of a policy (episodes,).

    Parameters
    ----------
    name : {"cartpole-bc", "acrobot-bc"}
        Task.
    act : callable
        Maps an observation (features,) to an action.
    episodes : int
        Number of episodes.
    seed : int
        Random seed.

    Returns
    -------
    array (episodes,)
        Sum of the rewards of each episode.
    """
    rng, world = np.random.default_rng(seed), environment(name)
    found = [episode(world, act, rng, 0.0)[2] for _ in range(episodes)]
    world.close()
    return np.array(found)


def task_info(name: str, what: str) -> DatasetInfo:
    """Return the registry entry of a task."""
    task = TASKS[name]
    shape, load = (task.features,), partial(load_behaviour_cloning, name)
    return DatasetInfo(name, what, load, shape, task.actions, TRAIN, TEST)


CARTPOLE = task_info("cartpole-bc", "balance a pole")
ACROBOT = task_info("acrobot-bc", "swing up an arm")
