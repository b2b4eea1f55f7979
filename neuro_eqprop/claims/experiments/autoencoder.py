"""A network that learns by EqProp to answer with its own input, through fewer units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.activations import LINEAR, TANH
from neuro_eqprop.architectures import layered
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import begin, data_of, study_of
from neuro_eqprop.data import Dataset, batches
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.networks import Network, Parameters
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.inference import SETTLED, infer
from neuro_eqprop.training.config import Batch
from neuro_eqprop.training.lr_schedules import LRSchedule
from neuro_eqprop.training.rules.contrastive import contrastive


@torch.no_grad()
def learn(study: Study, network: Network, data: Dataset) -> dict[str, torch.Tensor]:
    """Train with the samples as their own targets."""
    ops, recipe = TorchOps(), study.recipe()
    params = {name: ops.from_numpy(v) for name, v in begin(study, network).params.items()}
    stepper, x = torch.optim.Adam(list(params.values()), lr=recipe.learning_rate), data.train.x
    for epoch in range(recipe.epochs):
        for group in stepper.param_groups:
            group["lr"] = recipe.learning_rate * LRSchedule(recipe.fall).part(epoch / recipe.epochs)
        for rows in batches(data.train, recipe.batch, np.random.default_rng([study.seed, epoch])):
            seen = ops.from_numpy(x[rows])
            taught = contrastive(ops, network, params, Batch(seen, seen, measured=False), recipe)
            for name, value in params.items():
                value.grad = taught.slopes[name]
            stepper.step()
    return params


def error(network: Network, params: Parameters[Any], data: Dataset) -> float:
    """The squared error of the reconstructed test samples over that of the mean of training."""
    rest = infer(TorchOps(), network, params, data.test.x, SETTLED)
    missed = ((rest.state[network.output.name] - data.test.x) ** 2).sum()
    return float(missed / ((data.test.x - data.train.x.mean(axis=0)) ** 2).sum())


def reconstruction(arguments: Mapping[str, Any], seed: int) -> Json:
    """The error before and after training."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network = layered(
        data.features, study.get("hidden"), data.features, hidden_rate=TANH, output_rate=LINEAR
    )
    before = {name: TorchOps().from_numpy(v) for name, v in begin(study, network).params.items()}
    return {
        "before": error(network, before, data),
        "error": error(network, learn(study, network, data), data),
    }
