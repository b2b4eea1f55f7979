"""How many steps each sample takes to settle, and what an early exit would cost.

Steps are synchronous (all layers at once), as in the notes. The margin of a sample is the largest
drive of an output unit less the second largest, at equilibrium: small for hard samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import Trained, data_of, study_of, trained
from neuro_eqprop.claims.statistics import spearman
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.solve import Damped

KEPT = 0.001
"""Accuracy that an early exit may cost: a tenth of a point."""


def watch(found: Trained, *, steps: int, tolerance: float) -> tuple[Ints, Ints, Array]:
    """Of each test sample: steps to rest, answers after each step, and the margin at the end.

    A sample that never rests counts one step more than there were.
    """
    ops, x = NumpyOps(np.float32), found.data.test.x
    params = {name: ops.from_numpy(value) for name, value in found.params.items()}
    free, solver = field(ops, found.network, params, ops.from_numpy(x)), Damped(1.0)
    state, name = free.zero_state(), found.network.output.name
    taken = np.full(len(x), steps + 1, dtype=np.int64)
    answers = []
    for step in range(1, steps + 1):
        new = solver.step(free, state)
        rests = (free.change(new, state) <= tolerance) & (taken > steps)
        taken[rests] = step
        state = new
        answers.append(ops.to_numpy(free.drive(name, state)).argmax(axis=1))
    ranked = np.sort(ops.to_numpy(free.drive(name, state)), axis=1)
    return taken, np.array(answers), np.asarray(ranked[:, -1] - ranked[:, -2])


def leave(answers: Ints, right: npt.NDArray[np.bool_], taken: Ints, same: int) -> Json:
    """Accuracy and steps if each sample leaves as soon as its answer was the same so many times."""
    limit = len(answers)
    still = np.ones_like(right)
    for back in range(1, same):
        still[back:] &= answers[back:] == answers[:-back]
    still[: same - 1] = False
    still[-1] = True
    at = still.argmax(axis=0)
    scored = right[at, np.arange(right.shape[1])].mean()
    steps = float((at + 1).mean())
    return {
        "same": same,
        "accuracy": float(scored),
        "steps": steps,
        "saved": 1.0 - steps / float(np.minimum(taken, limit).mean()),
    }


def settling(arguments: Mapping[str, Any], seed: int) -> Json:
    """Steps, their relation to difficulty, and accuracy against steps."""
    found = trained(study_of(arguments, seed), data_of(arguments))
    limit, y = arguments["steps"], found.data.test.y
    taken, answers, margin = watch(found, steps=limit, tolerance=arguments["tolerance"])
    right = answers == y
    accuracy = right.mean(axis=1)
    changes = np.diff(answers, axis=0) != 0
    last = np.where(changes.any(axis=0), limit - np.argmax(changes[::-1], axis=0), 1)
    enough = int(np.flatnonzero(accuracy >= accuracy[-1] - KEPT)[0]) + 1
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
        "leaving": [leave(answers, right, taken, same) for same in range(1, 6)],
        "rho_steps": spearman(taken.tolist(), margin.tolist()).value,
        "rho_last_change": spearman(last.tolist(), margin.tolist()).value,
        "accuracy_by_step": [float(a) for a in accuracy[:30]],
        "accuracy": float(accuracy[-1]),
        "accuracy_at_10": float(accuracy[min(10, limit) - 1]),
        "enough_steps": enough,
        "saved": 1.0 - enough / float(taken.mean()),
    }
