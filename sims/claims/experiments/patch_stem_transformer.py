"""A transformer with one more embedding layer, which receives no feedback.

The Hebbian rule cannot train that layer; rule hybrid trains it by backpropagation of the nudged
displacement of the tokens above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import PerToken
from neuro_eqprop.training.train import train
from sims.claims.claim import Json
from sims.claims.experiments.common import Trained, data_of, initial_snapshot, study_of


def with_stem(network: Network) -> Network:
    """The network with one more layer between the input and the tokens."""
    first, tokens, *others = network.layers
    stem = replace(tokens, name="stem")
    embedding, *others_in = network.connections
    below = replace(embedding, target="stem", symmetric=False)
    above = Connection("stem", "tokens", PerToken(), symmetric=False)
    return replace(
        network, layers=(first, stem, tokens, *others), connections=(below, above, *others_in)
    )


def accuracies(arguments: Mapping[str, Any], seed: int) -> Json:
    """Test and training accuracy after the last epoch."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network = with_stem(study.network(data))
    start = initial_snapshot(study, network)
    *_, last = train(network, data.train, study.recipe(), start)
    trained = Trained(network, last.snapshot.params, data)
    return {"test_accuracy": trained.accuracy(), "train_accuracy": last.train_accuracy}
