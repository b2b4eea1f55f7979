"""Accuracy after training: as a study says, and with a beta that changes from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import Trained, begin, data_of, epochs, study_of
from neuro_eqprop.experiments.config import adapt
from neuro_eqprop.training.rules.contrastive import TrainingError


def accuracies(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test and training accuracy after the last epoch."""
    data, study = data_of(arguments), study_of(arguments, seed)
    last = None
    for progress in epochs(study, data):
        last = progress
    if last is None:
        raise ValueError("a study without an epoch has no accuracy")
    found = Trained(study.network(data), last.snapshot.params, data)
    return {
        "test_accuracy": found.accuracy(),
        "train_accuracy": last.train_accuracy,
        "residual": last.residual,
    }


def betas(plan: Mapping[str, Any], count: int) -> list[float]:
    """The beta of each epoch: from `start` to `end`, in a line over the epochs or in one jump.

    `over` is the part of the training it takes; zero is a jump at half time.
    """
    start, end, over = plan["start"], plan["end"], plan["over"]
    if over == 0:
        return [start if epoch < count // 2 else end for epoch in range(count)]
    span = max(1.0, over * (count - 1))
    return [start + (end - start) * min(1.0, epoch / span) for epoch in range(count)]


def annealed(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test accuracy after each epoch, with the beta of each."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network, told = study.network(data), arguments["plan"]
    snapshot, plan = begin(study, network), betas(told, study.training.epochs)
    curve: list[float] = []
    for beta in plan:
        # Over the whole training beta goes from batch to batch, as a study's `beta_end` says.
        slow = adapt(study, {"beta": told["start"], "beta_end": told["end"]})
        changed = slow if told["over"] == 1.0 else adapt(study, {"beta": beta})
        try:
            progress = next(epochs(changed, data, snapshot))
        except TrainingError:  # the rates diverged (NaN or inf): a collapse, if there is one
            curve += [1.0 / data.classes] * (study.training.epochs - len(curve))
            break
        snapshot = progress.snapshot
        curve.append(Trained(network, snapshot.params, data).accuracy())
    return {"beta": plan, "test_accuracy": curve, "drop": max(curve) - curve[-1]}
