"""One task after the other: what is left of the first after learning the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.backprop_mlp import learn, score, twin
from neuro_eqprop.claims.experiments.common import Trained, begin, data_of, epochs, study_of
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.networks import Cost
from neuro_eqprop.training.train import Snapshot

Learner: TypeAlias = Callable[[Dataset], Callable[[Split], float]]
"""Learns from a data set, going on from what it knows, and returns how to score it."""


def part(split: Split, low: int, high: int) -> Split:
    """The samples of classes from `low` to below `high`."""
    return split.take(np.flatnonzero((split.y >= low) & (split.y < high)))


def halves(data: Dataset) -> tuple[Dataset, Dataset]:
    """The first and the second half of the classes, as two data sets with all labels."""
    middle = data.classes // 2
    first, second = (
        Dataset.from_splits(data.name, part(data.train, a, b), part(data.test, a, b), data.classes)
        for a, b in ((0, middle), (middle, data.classes))
    )
    return first, second


def eqprop(study: Study, data: Dataset) -> Learner:
    """A learner by equilibrium propagation; the optimiser starts anew with each task."""
    network = study.network(data)
    known = [begin(study, network)]

    def go(task: Dataset) -> Callable[[Split], float]:
        snapshot = Snapshot(0, known[-1].params)
        for progress in epochs(study, task, snapshot):
            snapshot = progress.snapshot
        known.append(snapshot)
        return Trained(network, snapshot.params, data).accuracy

    return go


def backprop(study: Study, data: Dataset) -> Learner:
    """A learner by backpropagation through the feed-forward twin."""
    sizes = (data.features, *study.get("hidden"), data.classes)
    net = twin(sizes, study.get("activation"), study.seed)

    def go(task: Dataset) -> Callable[[Split], float]:
        for _ in learn(
            net,
            task.train,
            epochs=study.training.epochs,
            batch=study.training.batch,
            rate=study.training.learning_rate,
            seed=study.seed,
            cost=study.training.cost or Cost.SQUARED.value,
        ):
            pass
        return lambda split: score(net, split)

    return go


def forgetting(arguments: Mapping[str, Any], seed: int) -> Json:
    """Accuracy on the first task before and after the second, and on the second."""
    data, study = data_of(arguments), study_of(arguments, seed)
    learner = (eqprop if arguments["rule"] == "eqprop" else backprop)(study, data)
    first, second = halves(data)
    before = learner(first)(first.test)
    after = learner(second)
    kept = after(first.test)
    return {"before": before, "after": kept, "second": after(second.test), "lost": before - kept}
