"""The single-phase rule: each layer compares its nudged rate with a feed-forward prediction.

There is no free phase. Each layer is predicted from below, p_l = rho(d_l). The nudge moves the
output by e_o, and errors propagate down through the same weights:

    e_o = rho((d_o + beta y) / (1 + beta)) - p_o      (beta (y - softmax(d_o)) for a readout)
    e_l = rho(d_l + sum of W^T e_above) - p_l
    dW = e_target p_source^T / beta,   db = e / beta

With centered nudging the update is the mean of a pass at +beta and one at -beta. As beta tends to
zero it tends to minus the gradient of the feed-forward network, as predictive coding does
(Whittington & Bogacz 2017).
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.dynamics.field import Field, State, field, shape_input
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.rules.base import Batch, BatchUpdate, UpdateRule
from neuro_eqprop.training.rules.hebbian import bias_update
from neuro_eqprop.training.rules.phases import check_gradients, resolving, summarize
from neuro_eqprop.training.settings import AnnealedSettings, RuleSettings


def requires_feed_forward(network: Network, settings: RuleSettings) -> None:
    """Raise ValueError for a network with recurrent connections."""
    for c in network.connections:
        if network.feeds_back(c) or c.loops:
            raise ValueError(
                f"connection {c.name!r} is recurrent, and rule 'single-phase' needs a feed-forward "
                f"network: use model 'predictive'"
            )


@resolving
def single_phase(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """Predict, nudge, and contrast the nudged rates with the predictions."""
    free = field(ops, network, params, batch.x)
    network = free.network
    predicted = free.sweep(free.zero_state(), backwards=False)
    betas = [phase.beta for phase in settings.schedule(batch.beta)[1:]]
    passes = [
        (
            propagate_errors(free.nudged(batch.target, beta), predicted),
            -beta * len(betas) * len(batch.x),
        )
        for beta in betas
    ]
    errors = {name: sum(e[name] / divisor for e, divisor in passes) for name in predicted}
    gradients = {
        layer.name: bias_update(ops, layer, errors[layer.name]) for layer in network.moving
    }
    rates: State = {**predicted, network.input.name: shape_input(network, batch.x)}
    for c in network.connections:
        post, pre = errors[c.target], rates[c.source]
        gradients[c.name] = c.operator.weight_gradient(ops, params[c.name], post, pre)
    check_gradients(ops, network, {"predicted": predicted}, gradients)
    return summarize(free, predicted, batch, gradients, steps={"free": 1.0, "nudged": 1.0})


def propagate_errors(nudged: Field, predicted: State) -> State:
    """The error e of each layer, from the output down."""
    network, ops = nudged.network, nudged.ops
    errors: State = {}
    for layer in reversed(network.moving):
        if layer.role is Role.OUTPUT:
            new = nudged.update_layer(layer.name, predicted)
        else:
            u = nudged.drive(layer.name, predicted)
            for c in network.connections:
                if c.source == layer.name:
                    weight, e = nudged.params[c.name], errors[c.target]
                    u = c.operator.backward(ops, weight, e, u, gain=1.0, shape=layer.shape)
            new = ops.activate(layer.activation, u)
        errors[layer.name] = new - predicted[layer.name]
    return errors


SINGLE_PHASE = UpdateRule(
    "single-phase",
    "a nudged phase against the predictions of the layers, without a free phase",
    single_phase,
    AnnealedSettings,
    requires=requires_feed_forward,
)
