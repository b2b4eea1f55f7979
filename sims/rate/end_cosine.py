"""How near the update of a training comes to minus the true gradient where the training ended.

The update is that of the recipe, in float32, on the first 256 training samples; the gradient is the
implicit one of the settled network in float64. The cosine is that of all parameters together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.data import Split, one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import GaussSeidel, SolveStatus, Stop, solve
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import implicit_gradient
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import RuleSettings

SAMPLES, TIGHT = 256, Stop(1e-11, 600)


def end_cosine(
    network: Network, params: Mapping[str, torch.Tensor], data: Split, settings: RuleSettings
) -> float | None:
    """The cosine; None if the network does not settle."""
    few = data.take(slice(SAMPLES))
    target, single, double = one_hot(few.y, 10), TorchOps(), TorchOps(torch.float64)
    batch = Batch(single.from_numpy(few.x), single.from_numpy(target), measured=False)
    with torch.no_grad():
        update = RULES[settings.name].update(single, network, params, batch, settings).gradients
        exact = {name: value.double() for name, value in params.items()}
        inputs = double.from_numpy(few.x)
        free = field(double, network, exact, inputs)
        rest = solve(free, free.zero_state(), GaussSeidel(), TIGHT)
    if rest.status is not SolveStatus.CONVERGED:
        return None
    wanted = implicit_gradient(
        double,
        network,
        exact,
        x=inputs,
        target=double.from_numpy(target),
        state=rest.state,
        stop=TIGHT,
    )
    return defined_cosine(joined(update, params), joined(wanted, params))


def joined(gradients: Mapping[str, torch.Tensor], names: Mapping[str, torch.Tensor]) -> Array:
    """All gradients as one vector."""
    return np.concatenate([gradients[n].detach().double().numpy().ravel() for n in names])
