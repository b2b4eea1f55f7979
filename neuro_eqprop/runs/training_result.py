"""The result of a training, as `train --json` prints it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuro_eqprop.data import Dataset
from neuro_eqprop.dynamics.inference import COARSE
from neuro_eqprop.networks import ops as array_ops
from neuro_eqprop.networks.feedback import alignment
from neuro_eqprop.runs import run_folder
from neuro_eqprop.training.history import History
from neuro_eqprop.training.study import Study
from neuro_eqprop.training.trained import TrainedNetwork


def training_result(
    model: TrainedNetwork, data: Dataset, *, out: Path | None, seconds: float
) -> dict[str, Any]:
    """Return the fields of `train --json`."""
    from neuro_eqprop.training.fast.scoring import score  # imports torch

    study, network = model.study or Study(), model.network
    last = model.history[model.epochs - 1]
    ops = array_ops.TorchOps(device=study.training.device)
    params = {name: ops.from_numpy(value) for name, value in model.params.items()}
    test = score(ops, network, params, data.test, damping=study.rule.damping)
    held = {"validation_accuracy": last["validation_accuracy"]} if data.validation else {}
    return {
        **run_folder.summary_fields(out, study, model),
        "chosen": {name: study.get(name) for name in study.chosen},
        "train_accuracy": score(
            ops, network, params, data.train, COARSE, study.rule.damping
        ).accuracy,
        **held,
        "test_accuracy": test.accuracy,
        "confusion": test.confusion.tolist(),
        "settled": test.settled,
        "seconds": seconds,
        "settle_steps": last["settle_steps"],
        "spectral": last["spectral"],
        "drift": last["drift"],
        "cosine": least_cosines(model.history),
        "path": last["path"],
        "feedback_cosine": alignment(network, model.params),
        "warning": last["warning"],
        "note": data.note,
        "diverged": model.diverged,
    }


def least_cosines(history: History) -> dict[str, float] | None:
    """Return the least cosine of each parameter over all epochs; None if there is none."""
    rows = [row["cosine"] for row in history if row.get("cosine")]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: min(row[name] for row in rows if name in row) for name in names} or None
