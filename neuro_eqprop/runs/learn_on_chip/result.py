"""The result of learning on a chip as JSON, which `learn --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuro_eqprop.networks.feedback import alignment
from neuro_eqprop.runs.learn_on_chip.evaluation import spectral_norms
from neuro_eqprop.runs.learn_on_chip.model import OnChipNetwork
from neuro_eqprop.runs.on_chip_config import RATES
from neuro_eqprop.runs.run_folder import summary_fields

SUMMED = ("weight_updates", "tag_updates", "trace_updates", "clipped", "overflows")
"""Metrics that the result sums over epochs."""
LAST = ("spikes", "synops", "updates", "saturated")
"""Metrics by phase or projection that the result takes from the last epoch."""


def learning_result(model: OnChipNetwork) -> dict[str, Any]:
    """The settings, accuracies and event counts of a model that learned on a chip."""
    assert model.study is not None, "learn_on_chip always sets it"
    config, rows, last = model.config, model.history, model.history[-1]
    steps = {phase.name: phase.steps for phase in model.schedule}
    nudged = model.schedule[-1].steps
    return {
        **summary_fields(model.path, model.study, model),
        "train_accuracy": last["train_accuracy"],
        "test_accuracy": last["test_accuracy"],
        "seconds": model.seconds,
        "settle_steps": {"free": steps["free"], "nudged": nudged},
        "spectral": spectral_norms(model.network, model.params),
        "on": config.on,
        "code": None if config.on == RATES else config.code,
        "bits": (9 if config.engine else config.bits) or None,
        "steps_per_phase": nudged,
        "phases": steps | {"commit": 1},
        "batch": model.study.training.batch,
        "lessons": model.samples_seen,
        **{key: sum(row.get(key, 0) for row in rows) for key in SUMMED},
        **{key: last.get(key, {}) for key in LAST},
        "rate_test_accuracy": last["rate_test_accuracy"],
        "feedback_cosine": alignment(model.network, model.params),
        "cosines": {
            name: {"rate": direction.rate, "gradient": direction.gradient}
            for name, direction in model.directions.items()
        },
        "images_per_second": float(np.median(rows["images_per_second"])),
        "forgetting": forgetting(rows) if config.tasks > 1 else None,
        "warnings": list(model.warnings),
    }


def forgetting(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """By task, the test accuracy on its classes: just after learning it, the best, and the last."""
    tasks = []
    for task in range(rows[-1]["task"] + 1):
        accuracies = [row["by_task"][task] for row in rows]
        learned = [row["by_task"][task] for row in rows if row["task"] == task][-1]
        tasks.append({"learned": learned, "best": max(accuracies), "end": accuracies[-1]})
    return tasks
