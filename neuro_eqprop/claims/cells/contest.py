"""Accuracy of EqProp or of backpropagation after the same search for a learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuro_eqprop.claims.cells.nets import Trained, data_of, study_of, trained
from neuro_eqprop.claims.cells.twin import learn, score, twin
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.data import Dataset
from neuro_eqprop.learn.contrastive import TrainingError
from neuro_eqprop.study.settings import Study


def contest(arguments: Mapping[str, Any], seed: int) -> Json:
    """For each learning rate train and judge on held-out samples; test the best of them.

    The last `held_out` training samples choose the rate and are not learnt from.
    """
    data, study = data_of(arguments), study_of(arguments, seed)
    cut = len(data.train) - arguments["held_out"]
    held = data.train.take(slice(cut, None))
    judged = Dataset(data.name, data.train.take(slice(0, cut)), held, data.classes)
    play = eqprop if arguments["rule"] == "eqprop" else backprop
    tries = [play(replace(study, learning_rate=rate), judged, data) for rate in arguments["rates"]]
    best = max(range(len(tries)), key=lambda k: tries[k][0])
    return {
        "held_out_accuracy": [each[0] for each in tries],
        "test_accuracy": tries[best][1],
        "rate": arguments["rates"][best],
        "data": {"train": cut, "test": len(data.test)},
    }


def eqprop(study: Study, judged: Dataset, data: Dataset) -> tuple[float, float]:
    """Accuracy on the held-out samples and on the test samples; none if the rates run away."""
    try:
        found = trained(study, judged)
    except TrainingError:
        return 0.0, 0.0
    whole = Trained(found.network, found.params, data)
    return found.accuracy(), whole.accuracy()


def backprop(study: Study, judged: Dataset, data: Dataset) -> tuple[float, float]:
    """The same for the feed-forward twin; a looped network's has a second hidden layer."""
    hidden = study.hidden * 2 if study.model == "looped" else study.hidden
    net = twin((data.features, *hidden, data.classes), study.activation, study.seed)
    for _ in learn(
        net,
        judged.train,
        epochs=study.epochs,
        batch=study.batch,
        rate=study.learning_rate,
        seed=study.seed,
    ):
        pass
    return score(net, judged.test), score(net, data.test)
