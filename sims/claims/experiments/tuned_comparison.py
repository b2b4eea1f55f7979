"""Accuracy of EqProp or backpropagation after the same search over cost and learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.data import Dataset
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.training.rules.base import TrainingError
from neuro_eqprop.training.study import Study, adapt
from sims.claims.claim import Json
from sims.claims.experiments.backprop_mlp import (
    accuracy_of,
    matching_perceptron,
    train_by_backprop,
)
from sims.claims.experiments.common import data_of, study_of, train_study


def tuned_accuracy(arguments: Mapping[str, Any], seed: int) -> Json:
    """Train each setting briefly, select by held-out accuracy, and train the best one again.

    The search holds out the last `held_out` training samples; the final training, for the epochs of
    the study, uses all of them. Only the final network is evaluated on the test samples.
    """
    data, study = data_of(arguments), study_of(arguments, seed)
    cut = len(data.train) - arguments["held_out"]
    held_out = data.train.take(slice(cut, None))
    search = Dataset.from_splits(
        data.name, data.train.take(slice(0, cut)), held_out, data.classes, data.shape
    )
    score = eqprop if arguments["rule"] == "eqprop" else backprop
    settings = [(c, r) for c in arguments["costs"] for r in arguments["rates"]]
    plans = [adapt(study, {"cost": cost, "learning_rate": rate}) for cost, rate in settings]
    short = [score(adapt(plan, {"epochs": arguments["search"]}), search) for plan in plans]
    best = max(range(len(plans)), key=lambda k: short[k])
    return {
        "held_out_accuracy": short,
        "test_accuracy": score(plans[best], data),
        "cost": settings[best][0],
        "rate": settings[best][1],
        "data": {"train": len(data.train), "test": len(data.test)},
    }


def eqprop(study: Study, data: Dataset) -> float:
    """Test accuracy of the network trained by EqProp; zero if training diverges."""
    try:
        return train_study(study, data).accuracy()
    except TrainingError:
        return 0.0


def backprop(study: Study, data: Dataset) -> float:
    """Test accuracy of a feed-forward network of the same shape, trained by backpropagation."""
    net = matching_perceptron(study, data)
    cost = Cost(study.training.cost)
    for _ in train_by_backprop(net, data.train, study, cost):
        pass
    return accuracy_of(net, data.test)
