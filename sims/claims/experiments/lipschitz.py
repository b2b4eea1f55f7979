"""The Lipschitz constant of the recurrent loop of a network during training.

The loop maps the hidden state h through its self-connection, delayed feedback or memory, with the
feedback from the output fixed at equilibrium. L is the spectral norm of its Jacobian there; for the
looped network, |diag(rho') W_hidden,hidden|.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.loop import TrainingLoop, initial_parameters
from sims.claims.claim import Json
from sims.claims.experiments.common import (
    TEST_STOP,
    Trained,
    data_of,
    study_of,
)

HIDDEN, MEMORY = "hidden", "memory"


def jacobians(found: Trained, x: Array) -> Array:
    """Jacobians of the loop at equilibrium (samples, units, units)."""
    ops = TorchOps(torch.float64)
    params = {name: ops.from_numpy(value) for name, value in found.float64.items()}
    rest = infer(NumpyOps(), found.network, found.float64, x, TEST_STOP).state
    free = field(ops, found.network, params, ops.from_numpy(x))
    h = ops.from_numpy(rest[HIDDEN]).requires_grad_()
    state = {name: ops.from_numpy(rates) for name, rates in rest.items()} | {HIDDEN: h}
    state[found.network.output.name] = state[found.network.output.name].detach()
    if MEMORY in state:
        state[MEMORY] = free.update_layer(MEMORY, state)
    mapped = free.update_layer(HIDDEN, state)
    # Samples do not interact, so the gradient of the sum contains that of each sample.
    sums = mapped.sum(dim=0)
    rows = [torch.autograd.grad(unit, h, retain_graph=True)[0] for unit in sums]
    return np.stack([ops.to_numpy(row) for row in rows], axis=1)


def lipschitz_constant(found: Trained, x: Array) -> float:
    """The largest L over the samples."""
    return max(float(np.linalg.norm(each, 2)) for each in jacobians(found, x))


def constants(arguments: Mapping[str, Any], seed: int) -> Json:
    """L before training and after each epoch, and the accuracy at the end."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network, x = study.network(data), data.test.take(slice(arguments["samples"])).x
    found = Trained(network, initial_parameters(study, network), data)
    loop = [lipschitz_constant(found, x)]
    training = TrainingLoop(study, network, data)
    while not training.finished:
        training.epoch(evaluate=False)
        found = Trained(network, training.current().params, data)
        loop.append(lipschitz_constant(found, x))
    return {"loop": loop, "test_accuracy": found.accuracy()}
