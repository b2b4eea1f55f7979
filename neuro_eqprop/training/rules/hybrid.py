"""The hybrid rule: EqProp where layers settle, backpropagation in the feed-forward stem below.

The stem consists of the hidden layers that receive no feedback. The shift D s of a settled layer
under the nudge estimates minus the gradient of the cost by its drive (Scellier & Bengio 2017), so
the stem descends - sum over the connections out of it of D s_target . A(W) s_stem.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.base import Batch, BatchUpdate, UpdateRule
from neuro_eqprop.training.rules.hebbian import hebbian, rate_shifts
from neuro_eqprop.training.rules.phases import check_gradients, resolving, settle_phases
from neuro_eqprop.training.settings import ContrastiveSettings, RuleSettings


def requires_stem(network: Network, settings: RuleSettings) -> None:
    """Raise ValueError for a network without hidden layers that get no feedback."""
    if not network.layers_without_feedback:
        raise ValueError(
            "rule 'hybrid' needs hidden layers without feedback below those that settle: use model "
            "'layered' with at least two hidden layers and stem=1"
        )


@resolving
def hybrid(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """The Hebbian update above the stem, and backpropagation of the shifts into the stem."""
    free = field(ops, network, params, batch.x)
    network, settled = free.network, settle_phases(free, batch, settings)
    states, schedule = settled.states, settled.schedule
    scale = -1.0 / len(batch.x)
    gradients = hebbian(
        ops, network, batch.x, states=states, schedule=schedule, params=params, scale=scale
    )
    check_gradients(ops, network, states, gradients)
    coefficients = {name: scale * c for name, c in contrast(schedule).items() if c}
    shift = rate_shifts(network, states, coefficients)
    gradients |= stem_gradients(ops, network, params, batch.x, shift=shift)
    return settled.update(gradients, batch, settings)


def stem_gradients(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    x: Values,
    *,
    shift: Mapping[str, Values],
) -> dict[str, Values]:
    """The gradients of the parameters of the stem by backpropagation."""
    stem = network.layers_without_feedback
    names = [c.name for c in network.connections if c.target in stem] + list(stem)
    above = [c for c in network.connections if c.source in stem and c.target not in stem]
    with torch.enable_grad():
        leaves = {n: p.detach().requires_grad_(n in names) for n, p in params.items()}
        free = field(ops, network, leaves, x)
        state = free.zero_state()
        for name in stem:
            state[name] = free.update_layer(name, state)
        zero = ops.zeros((1,))
        parts = [
            c.operator.forward(ops, params[c.name], state[c.source], zero) * shift[c.target]
            for c in above
        ]
        total = torch.stack([part.sum() for part in parts]).sum()
        found = torch.autograd.grad(total, [leaves[n] for n in names])
    return dict(zip(names, found, strict=True))


HYBRID = UpdateRule(
    "hybrid",
    "Hebbian where layers settle, backpropagation in the layers without feedback below them",
    hybrid,
    ContrastiveSettings,
    compares_phases=True,
    requires=requires_stem,
)
