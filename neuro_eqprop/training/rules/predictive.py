"""Learning in a single phase: each layer compares its nudged rate with what it predicted of it.

Nothing settles freely: the rate that a layer would have is predicted from below, p_l = rho(d_l).
The nudge moves the output by e_o, and each layer below is moved by what comes back of the errors
of those above, through the same weights:

    e_o = rho((d_o + beta y) / (1 + beta)) - p_o      (beta (y - softmax(d_o)) if it only reads)
    e_l = rho(d_l + sum of W^T e_above) - p_l
    dW = e_target p_source^T / beta,   db = e / beta

(the mean of two such passes, one towards the target and one away, where nudging is centered).

As beta goes to zero this is minus the gradient of the feed-forward network.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks import Network, Role
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import Field, State, field, shape_input
from neuro_eqprop.training.config import Batch, BatchUpdate, TrainingConfig
from neuro_eqprop.training.rules.base import UpdateRule
from neuro_eqprop.training.rules.contrastive import check, count_correct, refuse_circle
from neuro_eqprop.training.rules.hebbian import gathered
from neuro_eqprop.training.settings import AnnealedSettings


def single_phase(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """Predict, nudge, compare."""
    refuse_circle(recipe)
    for c in network.connections:
        if network.feeds_back(c) or c.loops:
            raise ValueError(
                f"connection {c.name!r} acts back, and a single phase needs a network in which "
                f"nothing does: use model 'predictive'"
            )
    free = field(ops, network, params, lesson.x)
    predicted = free.sweep(free.zero_state(), backwards=False)
    betas = [phase.beta for phase in recipe.schedule(lesson.beta)[1:]]
    passes = [
        (sent_back(free.nudged(lesson.y, b), predicted), -b * len(betas) * len(lesson.x))
        for b in betas
    ]
    errors = {name: sum(e[name] / b for e, b in passes) for name in predicted}
    slopes = {layer.name: gathered(ops, layer, errors[layer.name]) for layer in network.moving}
    known: State = {**predicted, network.input.name: shape_input(network, lesson.x)}
    for c in network.connections:
        slopes[c.name] = c.operator.weight_gradient(
            ops, params[c.name], errors[c.target], known[c.source]
        )
    check(network, {"predicted": predicted}, slopes)
    return BatchUpdate(
        slopes, count_correct(free, predicted, lesson), steps={"free": 1.0, "nudged": 1.0}
    )


def sent_back(nudged: Field, predicted: State) -> State:
    """The error of each layer, from the output down."""
    network, ops = nudged.network, nudged.ops
    errors: State = {}
    for layer in reversed(network.moving):
        if layer.role is Role.OUTPUT:
            errors[layer.name] = nudged.update_layer(layer.name, predicted) - predicted[layer.name]
            continue
        u = nudged.drive(layer.name, predicted)
        for c in network.connections:
            if c.source == layer.name:
                weight, e = nudged.params[c.name], errors[c.target]
                u = c.operator.backward(ops, weight, e, u, gain=1.0, shape=layer.shape)
        errors[layer.name] = ops.activate(layer.activation, u) - predicted[layer.name]
    return errors


SINGLE_PHASE = UpdateRule(
    "single-phase",
    "a nudged phase against the predictions of the layers, without a free phase",
    single_phase,
    AnnealedSettings,
)
