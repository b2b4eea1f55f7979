"""Accuracy of EqProp or of backpropagation after the same search for cost and learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.backprop_mlp import learn, score, twin
from neuro_eqprop.claims.experiments.common import data_of, study_of, trained
from neuro_eqprop.data import Dataset
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.training.rules.contrastive import TrainingError


def contest(arguments: Mapping[str, Any], seed: int) -> Json:
    """Try each setting for a few epochs, judge it on held-out samples, train the best one anew.

    In the search the last `held_out` training samples are not learnt from; the final training,
    of `epochs` of the study, sees all of them. Only the final one meets the test samples.
    """
    data, study = data_of(arguments), study_of(arguments, seed)
    cut = len(data.train) - arguments["held_out"]
    held = data.train.take(slice(cut, None))
    judged = Dataset.from_splits(
        data.name, data.train.take(slice(0, cut)), held, data.classes, data.shape
    )
    play = eqprop if arguments["rule"] == "eqprop" else backprop
    settings = [(c, r) for c in arguments["costs"] for r in arguments["rates"]]
    plans = [adapt(study, {"cost": cost, "learning_rate": rate}) for cost, rate in settings]
    short = [play(adapt(plan, {"epochs": arguments["search"]}), judged) for plan in plans]
    best = max(range(len(plans)), key=lambda k: short[k])
    return {
        "held_out_accuracy": short,
        "test_accuracy": play(plans[best], data),
        "cost": settings[best][0],
        "rate": settings[best][1],
        "data": {"train": len(data.train), "test": len(data.test)},
    }


def eqprop(study: Study, data: Dataset) -> float:
    """Accuracy on the test samples of `data`; none if the rates run away."""
    try:
        return trained(study, data).accuracy()
    except TrainingError:
        return 0.0


def backprop(study: Study, data: Dataset) -> float:
    """The same for the feed-forward twin; a looped network's has a second hidden layer."""
    hidden = study.get("hidden") * 2 if study.model.name == "looped" else study.get("hidden")
    net = twin((data.features, *hidden, data.classes), study.get("activation"), study.seed)
    for _ in learn(
        net,
        data.train,
        epochs=study.training.epochs,
        batch=study.training.batch,
        rate=study.training.learning_rate,
        seed=study.seed,
        cost=study.training.cost,
    ):
        pass
    return score(net, data.test)
