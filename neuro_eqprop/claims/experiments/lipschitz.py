"""How much the loop of a network can stretch a difference, through training.

The loop takes the hidden state h once around: through itself, its echo, or its memory, while what
comes back from the output stays as it is at equilibrium. L is the spectral norm of its Jacobian
there; for the looped network, |diag(rho') W_hidden,hidden|.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import TESTED, Trained, begin, data_of, epochs, study_of
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.rate.inference import infer

HIDDEN, MEMORY = "hidden", "memory"


def jacobians(found: Trained, x: Array) -> Array:
    """d(h once around) / dh of each sample at its equilibrium: (samples, units, units)."""
    ops = TorchOps(torch.float64)
    params = {name: ops.from_numpy(value) for name, value in found.exact.items()}
    rest = infer(NumpyOps(), found.network, found.exact, x, TESTED).state
    free = field(ops, found.network, params, ops.from_numpy(x))
    h = ops.from_numpy(rest[HIDDEN]).requires_grad_()
    state = {name: ops.from_numpy(rates) for name, rates in rest.items()} | {HIDDEN: h}
    state[found.network.output.name] = state[found.network.output.name].detach()
    if MEMORY in state:
        state[MEMORY] = free.update_layer(MEMORY, state)
    around = free.update_layer(HIDDEN, state)
    # Samples do not mix, so the slope of a sum over them holds each one's own.
    sums = around.sum(dim=0)
    rows = [torch.autograd.grad(unit, h, retain_graph=True)[0] for unit in sums]
    return np.stack([ops.to_numpy(row) for row in rows], axis=1)


def stretch(found: Trained, x: Array) -> float:
    """The largest L over the samples."""
    return max(float(np.linalg.norm(each, 2)) for each in jacobians(found, x))


def constants(arguments: Mapping[str, Any], seed: int) -> Json:
    """L before training and after each epoch, and the accuracy at the end."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network, x = study.network(data), data.test.x[: arguments["samples"]]
    found = Trained(network, begin(study, network).params, data)
    loop = [stretch(found, x)]
    for progress in epochs(study, data):
        found = Trained(network, progress.snapshot.params, data)
        loop.append(stretch(found, x))
    return {"loop": loop, "test_accuracy": found.accuracy()}
