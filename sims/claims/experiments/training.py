"""Accuracy after training with a constant or an annealed beta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import TrainingError
from neuro_eqprop.training.study import adapt
from sims.claims.claim import Json
from sims.claims.experiments.common import (
    Trained,
    data_of,
    last_params,
    study_of,
    training_of,
)


def accuracies(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test and training accuracy after the last epoch."""
    data, study = data_of(arguments), study_of(arguments, seed)
    loop = training_of(study, data)
    trained = Trained(loop.network, last_params(loop), data)
    found = {
        "test_accuracy": trained.accuracy(),
        "train_accuracy": loop.rows[-1]["train_accuracy"],
        "residual": loop.rows[-1]["residual"],
    }
    return found | ({"data": data.note} if data.note else {})


def betas(plan: Mapping[str, Any], count: int) -> list[float]:
    """The beta of each epoch: from `start` to `end`, linearly or in one step.

    `over` is the fraction of the training that the change takes; zero is a step half-way.
    """
    start, end, over = plan["start"], plan["end"], plan["over"]
    if over == 0:
        return [start if epoch < count // 2 else end for epoch in range(count)]
    span = max(1.0, over * (count - 1))
    return [start + (end - start) * min(1.0, epoch / span) for epoch in range(count)]


def annealed(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test accuracy after each epoch of a training with annealed beta."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network, change = study.network(data), arguments["plan"]
    loop, plan = training_of(study, data), betas(change, study.training.epochs)
    curve: list[float] = []
    for beta in plan:
        # Over the full training beta changes from batch to batch, by the setting `beta_end`.
        slow = adapt(study, {"beta": change["start"], "beta_end": change["end"]})
        annealed_study = slow if change["over"] == 1.0 else adapt(study, {"beta": beta})
        try:
            before, loop = loop, TrainingLoop(annealed_study, network, data)
            loop.load_state_dict(before.state_dict())
            loop.epoch(evaluate=False)
        except TrainingError:  # diverged: counts as chance accuracy
            curve += [1.0 / data.classes] * (study.training.epochs - len(curve))
            break
        curve.append(Trained(network, loop.current().params, data).accuracy())
    return {"beta": plan, "test_accuracy": curve, "drop": max(curve) - curve[-1]}
