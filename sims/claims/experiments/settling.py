"""Settling steps of each sample, and the accuracy of an early exit.

Steps are synchronous (all layers at once), as in the research notes. The margin of a sample is the
largest drive of an output unit minus the second largest, at equilibrium; it is small for hard
samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import Damped
from neuro_eqprop.networks.ops.numpy import NumpyOps
from sims.claims.claim import Json
from sims.claims.experiments.common import Trained, data_of, study_of, train_study
from sims.claims.statistics import spearman

ACCURACY_LOSS = 0.001
"""Accepted loss of accuracy of an early exit."""


def settle_steps(found: Trained, *, steps: int, tolerance: float) -> tuple[Ints, Ints, Array]:
    """For each test sample: settling steps, predictions after each step, and the final margin.

    A sample that does not settle counts as steps + 1.
    """
    ops, x = NumpyOps(np.float32), found.data.test.x
    params = {name: ops.from_numpy(value) for name, value in found.params.items()}
    free, solver = field(ops, found.network, params, ops.from_numpy(x)), Damped(1.0)
    state, name = free.zero_state(), found.network.output.name
    taken = np.full(len(x), steps + 1, dtype=np.int64)
    predictions = []
    for step in range(1, steps + 1):
        new = solver.step(free, state)
        settled = (free.change(new, state) <= tolerance) & (taken > steps)
        taken[settled] = step
        state = new
        predictions.append(ops.to_numpy(free.drive(name, state)).argmax(axis=1))
    ranked = np.sort(ops.to_numpy(free.drive(name, state)), axis=1)
    return taken, np.array(predictions), np.asarray(ranked[:, -1] - ranked[:, -2])


def early_exit(predictions: Ints, right: npt.NDArray[np.bool_], taken: Ints, same: int) -> Json:
    """Accuracy and steps if each sample stops once `same` consecutive predictions agree."""
    limit = len(predictions)
    stable = np.ones_like(right)
    for back in range(1, same):
        stable[back:] &= predictions[back:] == predictions[:-back]
    stable[: same - 1] = False
    stable[-1] = True
    at = stable.argmax(axis=0)
    scored = right[at, np.arange(right.shape[1])].mean()
    steps = float((at + 1).mean())
    return {
        "same": same,
        "accuracy": float(scored),
        "steps": steps,
        "saved": 1.0 - steps / float(np.minimum(taken, limit).mean()),
    }


def settling(arguments: Mapping[str, Any], seed: int) -> Json:
    """Settling steps, their correlation with difficulty, and accuracy over steps."""
    found = train_study(study_of(arguments, seed), data_of(arguments))
    limit, y = arguments["steps"], found.data.test.y
    taken, predictions, margin = settle_steps(found, steps=limit, tolerance=arguments["tolerance"])
    right = predictions == y
    accuracy = right.mean(axis=1)
    changes = np.diff(predictions, axis=0) != 0
    last = np.where(changes.any(axis=0), limit - np.argmax(changes[::-1], axis=0), 1)
    enough = int(np.flatnonzero(accuracy >= accuracy[-1] - ACCURACY_LOSS)[0]) + 1
    wrong = ~right[-1]
    tenths = np.array_split(np.argsort(margin, kind="stable"), 10)
    return {
        "samples": len(y),
        "within_10": int((taken <= 10).sum()),
        "within_25": int((taken <= 25).sum()),
        "never": int((taken > limit).sum()),
        "mean_steps": float(taken.mean()),
        "deviation_of_steps": float(taken.std()),
        "steps_of_right": float(taken[~wrong].mean()) if (~wrong).any() else None,
        "steps_of_wrong": float(taken[wrong].mean()) if wrong.any() else None,
        "steps_by_class": [float(taken[y == k].mean()) for k in np.unique(y)],
        "steps_by_margin": [float(taken[rows].mean()) for rows in tenths],
        "margin": [float(margin[rows].mean()) for rows in tenths],
        "leaving": [early_exit(predictions, right, taken, same) for same in range(1, 6)],
        "rho_steps": spearman(taken.tolist(), margin.tolist()).value,
        "rho_last_change": spearman(last.tolist(), margin.tolist()).value,
        "accuracy_by_step": [float(a) for a in accuracy[:30]],
        "accuracy": float(accuracy[-1]),
        "accuracy_at_10": float(accuracy[min(10, limit) - 1]),
        "enough_steps": enough,
        "saved": 1.0 - enough / float(taken.mean()),
    }
