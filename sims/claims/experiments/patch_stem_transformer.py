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
from neuro_eqprop.training.loop import TrainingLoop
from sims.claims.claim import Json
from sims.claims.experiments.common import Trained, data_of, last_params, study_of


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
    loop = TrainingLoop(study, network, data)
    trained = Trained(network, last_params(loop), data)
    return {"test_accuracy": trained.accuracy(), "train_accuracy": loop.rows[-1]["train_accuracy"]}
