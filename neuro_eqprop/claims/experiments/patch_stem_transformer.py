"""A transformer whose patches are embedded by one more layer, to which nothing comes back.

EqProp alone would leave that layer as it was drawn; rule hybrid trains it by backpropagation of
the shift of the tokens above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import Trained, begin, data_of, study_of
from neuro_eqprop.networks import Connection, Network
from neuro_eqprop.operators import PerToken
from neuro_eqprop.training.train import train


def stemmed(network: Network) -> Network:
    """The same network with a layer between the input and the tokens."""
    given, tokens, *others = network.layers
    stem = replace(tokens, name="stem")
    embedding, *ways = network.connections
    below = replace(embedding, target="stem", symmetric=False)
    above = Connection("stem", "tokens", PerToken(), symmetric=False)
    return replace(
        network, layers=(given, stem, tokens, *others), connections=(below, above, *ways)
    )


def accuracies(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test and training accuracy after the last epoch."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network = stemmed(study.network(data))
    snapshot, right = begin(study, network), 0.0
    for progress in train(network, data.train, study.recipe(), snapshot):
        snapshot, right = progress.snapshot, progress.train_accuracy
    found = Trained(network, snapshot.params, data)
    return {"test_accuracy": found.accuracy(), "train_accuracy": right}
