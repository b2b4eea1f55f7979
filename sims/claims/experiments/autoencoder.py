"""Reconstruction error of an autoencoder trained by EqProp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset
from neuro_eqprop.dynamics.inference import SETTLED, infer
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import adapt
from sims.claims.claim import Json
from sims.claims.experiments.common import (
    data_of,
    last_params,
    study_of,
)


def relative_error(network: Network, params: Mapping[str, Array], data: Dataset) -> float:
    """Squared error of the reconstructed test samples over that of the mean training sample."""
    ops = TorchOps()
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    settled = infer(ops, network, tensors, data.test.x, SETTLED)
    error = ((settled.state[network.output.name] - data.test.x) ** 2).sum()
    return float(error / ((data.test.x - data.train.x.mean(axis=0)) ** 2).sum())


def reconstruction(arguments: Mapping[str, Any], seed: int) -> Json:
    """The relative error before and after training, with the samples as their targets."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network = layered(
        data.features, study.get("hidden"), data.features, hidden_rate=TANH, output_rate=LINEAR
    )
    # The learning rate falls along half a cosine from epoch to epoch.
    study = adapt(study, {"lr_schedule": "CosineAnnealingLR"})
    loop = TrainingLoop(study, network, data, targets=data.train.x)
    start = loop.current().params
    return {
        "before": relative_error(network, start, data),
        "error": relative_error(network, last_params(loop), data),
    }
