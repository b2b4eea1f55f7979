"""The result of a run that learned on a chip, as `learn --json` prints it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.experiments import run_folder
from neuro_eqprop.experiments.learn_on_chip.direction import direction_warnings
from neuro_eqprop.experiments.learn_on_chip.evaluation import spectral_norms
from neuro_eqprop.experiments.learn_on_chip.state import LearningState, rate_parameters
from neuro_eqprop.experiments.learn_on_chip.task import Task
from neuro_eqprop.experiments.rate_baseline import Direction
from neuro_eqprop.io import checkpoint

SUMMED = ("weight_updates", "tag_updates", "trace_updates", "clipped", "overflows")
"""Metrics that the result sums over epochs."""
LAST = ("spikes", "synops", "updates", "saturated")
"""Metrics by phase or projection that the result takes from the last epoch."""


def run_result(
    task: Task,
    state: LearningState,
    *,
    out: Path,
    seconds: float,
    directions: Mapping[str, Direction],
) -> dict[str, Any]:
    """The result of a run, read from what it wrote."""
    rows = [json.loads(line) for line in (out / run_folder.METRICS).read_text().splitlines()]
    config, last, schedule = task.config, rows[-1], task.plastic.rule.schedule
    model = checkpoint.load(out / run_folder.MODEL)
    steps = {phase.name: phase.steps for phase in schedule}
    nudged = schedule[-1].steps
    return {
        **run_folder.head(out, task.study, model),
        "train_accuracy": last["train_accuracy"],
        "test_accuracy": last["test_accuracy"],
        "seconds": seconds,
        "settle_steps": {"free": steps["free"], "nudged": nudged},
        "spectral": spectral_norms(task.network, rate_parameters(task, state)),
        "on": config.on,
        "code": None if task.on_rates else config.code,
        "bits": (9 if config.engine else config.bits) or None,
        "steps_per_phase": nudged,
        "phases": steps | {"commit": 1},
        "batch": task.study.training.batch,
        "lessons": state.samples,
        **{key: sum(row.get(key, 0) for row in rows) for key in SUMMED},
        **{key: last.get(key, {}) for key in LAST},
        "rate_test_accuracy": last["rate_test_accuracy"],
        "cosines": {n: {"rate": d.rate, "gradient": d.gradient} for n, d in directions.items()},
        "images_per_second": float(np.median([row["images_per_second"] for row in rows])),
        "forgetting": forgetting(rows) if config.tasks > 1 else None,
        "warnings": direction_warnings(task, directions),
    }


def forgetting(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """By task, the test accuracy on its classes: just after learning it, the best, and the last."""
    found = []
    for task in range(rows[-1]["task"] + 1):
        accuracies = [row["by_task"][task] for row in rows]
        learned = [row["by_task"][task] for row in rows if row["task"] == task][-1]
        found.append({"learned": learned, "best": max(accuracies), "end": accuracies[-1]})
    return found
