"""Accuracy over a grid of beta and learning rate at one damping of the settling.

`learn.train` settles by sweeps, which have no damping; so the episode is put together here from
the same parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import Trained, begin, data_of, study_of
from neuro_eqprop.data import Dataset, batches, one_hot
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate import spectral
from neuro_eqprop.rate.field import field
from neuro_eqprop.solve import Damped
from neuro_eqprop.training.relax import Settling, relax
from neuro_eqprop.training.rules.hebbian import hebbian


@torch.no_grad()
def damped(study: Study, data: Dataset, damping: float) -> Trained:
    """Train with damped synchronous steps."""
    network, ops = study.network(data), TorchOps()
    params = {n: ops.from_numpy(v) for n, v in begin(study, network).params.items()}
    stepper = torch.optim.Adam(list(params.values()), lr=study.training.learning_rate)
    settling = Settling(Damped(damping), Damped(damping), measured=False)
    schedule = study.recipe().schedule()
    x, y = ops.from_numpy(data.train.x), ops.from_numpy(one_hot(data.train.y, data.classes))
    for epoch in range(study.training.epochs):
        rng = np.random.default_rng([study.seed, epoch])
        for rows in batches(data.train, study.training.batch, rng):
            chosen = torch.from_numpy(rows)
            phases = relax(field(ops, network, params, x[chosen]), y[chosen], schedule, settling)
            states = {name: settled.state for name, settled in phases.items()}
            asked = hebbian(ops, network, x[chosen], states=states, schedule=schedule)
            for name, value in params.items():
                value.grad = asked[name] * (-1.0 / len(rows))
            stepper.step()
            for name, kept in spectral.project_exactly(ops, network, params).items():
                params[name].copy_(kept)
    return Trained(network, {name: value.numpy() for name, value in params.items()}, data)


def grid(arguments: Mapping[str, Any], seed: int) -> Json:
    """Accuracy on held-out and on test samples for each pair of beta and learning rate."""
    whole, study = data_of(arguments), study_of(arguments, seed)
    cut = len(whole.train) - arguments["held_out"]
    data = replace(whole, train=whole.train.take(slice(0, cut)))
    held = whole.train.take(slice(cut, None))
    rows = []
    for beta in arguments["betas"]:
        for rate in arguments["rates"]:
            changed = adapt(study, {"beta": beta, "learning_rate": rate})
            found = damped(changed, data, arguments["damping"])
            scores = {"held_out": found.accuracy(held), "test_accuracy": found.accuracy()}
            rows.append({"beta": beta, "rate": rate, **scores})
    return {"rows": rows}
