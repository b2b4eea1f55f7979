"""Accuracy over a grid of beta and learning rate, at one damping of synchronous settling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.data import Dataset
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import adapt
from sims.claims.claim import Json
from sims.claims.experiments.common import (
    Trained,
    data_of,
    last_params,
    study_of,
)


def grid(arguments: Mapping[str, Any], seed: int) -> Json:
    """Accuracy on held-out and on test samples for each pair of beta and learning rate."""
    full, study = data_of(arguments), study_of(arguments, seed)
    cut = len(full.train) - arguments["held_out"]
    shown = full.train.take(slice(0, cut))
    data = Dataset.from_splits(full.name, shown, full.test, full.classes, full.shape)
    held_out = full.train.take(slice(cut, None))
    network = study.network(data)
    fixed = {"damping": arguments["damping"], "order": "synchronous", "lr_schedule": "constant"}
    rows = []
    for beta in arguments["betas"]:
        for rate in arguments["rates"]:
            changed = adapt(study, fixed | {"beta": beta, "learning_rate": rate})
            params = last_params(TrainingLoop(changed, network, data))
            trained = Trained(network, params, data)
            scores = {"held_out": trained.accuracy(held_out), "test_accuracy": trained.accuracy()}
            rows.append({"beta": beta, "rate": rate, **scores})
    return {"rows": rows}
