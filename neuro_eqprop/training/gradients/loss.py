"""What an answer costs, where a graph of torch is to go through it: baselines and true gradients.

The learning rules themselves never compute a loss.
"""

from __future__ import annotations

import torch

from neuro_eqprop.networks import Cost
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.rate.field import Field, State


def loss(at: Field, state: State, target: Values) -> torch.Tensor:
    """The network's cost C at a state, summed over the batch."""
    name = at.network.output.name
    if at.network.cost is Cost.CROSS_ENTROPY:
        log: torch.Tensor = torch.log_softmax(at.drive(name, state), dim=-1)
        told: torch.Tensor = target * log
        return -told.sum()
    error: torch.Tensor = state[name] - target
    return 0.5 * (error * error).sum()
