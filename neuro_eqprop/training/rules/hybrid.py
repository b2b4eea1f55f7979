"""EqProp where layers settle; below them, in the stem, backprop of the shift found above it.

The stem are the hidden layers to which nothing comes back. The shift of a settled layer's rates
under the nudge is minus the gradient of the cost by its drive, which is all that backprop needs.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.networks import Network, Role
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.schedules import contrast
from neuro_eqprop.training.config import Batch, BatchUpdate, TrainingConfig
from neuro_eqprop.training.rules.base import UpdateRule
from neuro_eqprop.training.rules.contrastive import (
    batch_update,
    check,
    refuse_circle,
    settle_phases,
)
from neuro_eqprop.training.rules.hebbian import hebbian, shifts
from neuro_eqprop.training.settings import ContrastiveSettings


def stem_of(network: Network) -> list[str]:
    """The hidden layers that hear only the input and each other, in order."""
    stem: list[str] = []
    for layer in network.layers:
        back = any(
            layer.name == c.source and (network.feeds_back(c) or c.loops)
            for c in network.connections
        )
        below = all(
            c.source in stem or network[c.source].role is Role.INPUT
            for c in network.connections
            if c.target == layer.name
        )
        if layer.role is Role.HIDDEN and below and not back:
            stem.append(layer.name)
    return stem


def hybrid(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """The phases above, backprop below."""
    refuse_circle(recipe)
    stem = stem_of(network)
    if not stem:
        raise ValueError(
            "rule 'hybrid' needs hidden layers to which nothing comes back, below those that "
            "settle: use model 'layered' with two hidden layers or more and --set stem=1"
        )
    episode = settle_phases(field(ops, network, params, lesson.x), lesson, recipe)
    states, schedule = episode.states, episode.schedule
    mean = -1.0 / len(lesson.x)
    slopes = hebbian(
        ops, network, lesson.x, states=states, schedule=schedule, params=params, scale=mean
    )
    check(network, states, slopes)
    part = {name: mean * c for name, c in contrast(schedule).items() if c}
    shift = shifts(network, states, part)
    own = [c.name for c in network.connections if c.target in stem] + stem
    above = [c for c in network.connections if c.source in stem and c.target not in stem]
    with torch.enable_grad():
        leaves = {n: p.detach().requires_grad_(n in own) for n, p in params.items()}
        free = field(ops, network, leaves, lesson.x)
        state = free.zero_state()
        for name in stem:
            state[name] = free.update_layer(name, state)
        nothing = ops.zeros((1,))
        told = [
            c.operator.forward(ops, params[c.name], state[c.source], nothing) * shift[c.target]
            for c in above
        ]
        total = torch.stack([t.sum() for t in told]).sum()
        found = torch.autograd.grad(total, [leaves[n] for n in own])
    slopes |= dict(zip(own, found, strict=True))
    return batch_update(episode, slopes, lesson, recipe)


HYBRID = UpdateRule(
    "hybrid",
    "Hebbian where layers settle, backpropagation in the layers without feedback below them",
    hybrid,
    ContrastiveSettings,
    compares_phases=True,
)
