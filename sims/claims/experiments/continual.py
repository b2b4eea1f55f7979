"""Catastrophic forgetting: accuracy on the first of two tasks after training on the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.training.loop import TrainingLoop, initial_parameters
from neuro_eqprop.training.study import Study
from sims.claims.claim import Json
from sims.claims.experiments.backprop_mlp import (
    accuracy_of,
    matching_perceptron,
    train_by_backprop,
)
from sims.claims.experiments.common import (
    Trained,
    data_of,
    last_params,
    study_of,
)

TaskLearner: TypeAlias = Callable[[Dataset], Callable[[Split], float]]
"""Trains on a task, continuing from the previous one; returns the accuracy on a split."""


def classes_between(split: Split, low: int, high: int) -> Split:
    """The samples of the classes low, ..., high - 1."""
    return split.take(np.flatnonzero((split.y >= low) & (split.y < high)))


def halves(data: Dataset) -> tuple[Dataset, Dataset]:
    """The first and the second half of the classes, as two data sets with all labels."""
    middle = data.classes // 2
    first, second = (
        Dataset.from_splits(
            data.name,
            classes_between(data.train, low, high),
            classes_between(data.test, low, high),
            data.classes,
        )
        for low, high in ((0, middle), (middle, data.classes))
    )
    return first, second


def eqprop(study: Study, data: Dataset) -> TaskLearner:
    """Learner by EqProp; the optimizer restarts with each task."""
    network = study.network(data)
    params: Mapping[str, Array] = initial_parameters(study, network)

    def learn(task: Dataset) -> Callable[[Split], float]:
        nonlocal params
        params = last_params(TrainingLoop(study, network, task, params=params))
        return Trained(network, params, data).accuracy

    return learn


def backprop(study: Study, data: Dataset) -> TaskLearner:
    """Learner by backpropagation, for a feed-forward network of the same shape."""
    net = matching_perceptron(study, data)
    cost = Cost(study.training.cost or Cost.SQUARED.value)

    def learn(task: Dataset) -> Callable[[Split], float]:
        for _ in train_by_backprop(net, task.train, study, cost):
            pass
        return lambda split: accuracy_of(net, split)

    return learn


def forgetting(arguments: Mapping[str, Any], seed: int) -> Json:
    """Accuracy on the first task before and after the second, and on the second."""
    data, study = data_of(arguments), study_of(arguments, seed)
    learn = (eqprop if arguments["rule"] == "eqprop" else backprop)(study, data)
    first, second = halves(data)
    before = learn(first)(first.test)
    after = learn(second)
    kept = after(first.test)
    return {"before": before, "after": kept, "second": after(second.test), "lost": before - kept}
