"""The contrastive rules by name; their code, and with it torch, is imported on the first update."""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.operators import Attention, AttentionKind, CrossAttention, MaxPooled
from neuro_eqprop.networks.operators.linearize import NonlinearOperator
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.rules.base import (
    ALL_NUDGINGS,
    Batch,
    BatchUpdate,
    TrainingError,
    UpdateRule,
)
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule, RuleSettings


def contrastive(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """The update of a batch, see `rules.contrastive`."""
    from neuro_eqprop.training.rules.contrastive import contrastive

    return contrastive(ops, network, params, batch, settings)


def requires(network: Network, settings: RuleSettings) -> None:
    """Raise TrainingError or ValueError for a network that the rule or the nudging cannot train."""
    if settings.nudging == Nudging.HOLOMORPHIC:
        require_smooth(network)
    require_reach(network, settings)
    for c in network.connections:
        if settings.name != Rule.HEBBIAN and isinstance(c.operator, Attention):
            raise ValueError(
                f"connection {c.name!r} is attention, which has an energy: use rule 'hebbian'"
            )
        if settings.name != Rule.HEBBIAN and network.feeds_back(c) and not c.operator.linear:
            raise ValueError(f"connection {c.name!r} has max pooling: use rule 'hebbian'")
        entering = network[c.source].role is Role.INPUT
        backwards = c.operator.linear or isinstance(c.operator, NonlinearOperator)
        if settings.name == Rule.ASYMMETRIC and not (c.symmetric or entering or backwards):
            raise ValueError(
                f"connection {c.name!r} has no transpose, so rule 'asymmetric' cannot correct it; "
                f"use rule 'vector-field', 'bptt' or 'implicit'"
            )


def require_reach(network: Network, settings: RuleSettings) -> None:
    """Raise ValueError if one nudged step does not reach a layer: a sweep starts at the output."""
    order = [layer.name for layer in network.layers]
    for layer in network.moving[:-1]:
        feeds = [c for c in network.connections if c.source == layer.name and not c.loops]
        above = any(order.index(c.target) > order.index(layer.name) for c in feeds)
        if not above and settings.nudged_steps == 1:
            raise ValueError(
                f"layer {layer.name!r} drives no later layer, so one nudged step does not reach "
                f"it: use nudged_steps=3 and free_steps=3, or more"
            )


def require_smooth(network: Network) -> None:
    """Raise TrainingError for activations and operators that are not holomorphic."""
    for layer in network.moving:
        rate = layer.activation
        if not rate.smooth:
            raise TrainingError(
                f"layer {layer.name!r} has activation {rate.name!r}, which has kinks, and "
                f"holomorphic nudging needs smooth ones: use activation 'tanh' and output "
                f"'linear', or nudging 'centered'"
            )
    for connection in network.connections:
        operator = connection.operator
        if isinstance(operator, MaxPooled):
            raise TrainingError(
                f"connection {connection.name!r} has max pooling, which has kinks, and holomorphic "
                f"nudging needs smooth functions: use nudging 'centered'"
            )
        if isinstance(operator, CrossAttention) and operator.kind is AttentionKind.LINEAR:
            raise TrainingError(
                f"connection {connection.name!r} is linear attention with elu features, which are "
                f"not smooth, and holomorphic nudging needs smooth functions: use attention "
                f"'softmax', or nudging 'centered'"
            )


HEBBIAN = UpdateRule(
    "hebbian",
    "contrast of Hebbian products; the gradient for small beta if all connections are symmetric",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
    overwrites=True,
    needs_feedback=True,
    requires=requires,
)
VECTOR_FIELD = UpdateRule(
    "vector-field",
    "shift of the target times the free rate of the source",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
    overwrites=True,
    needs_feedback=True,
    requires=requires,
)
ASYMMETRIC = UpdateRule(
    "asymmetric",
    "vector-field rule with the adjoint nudge; the gradient also without symmetric connections",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
    overwrites=True,
    requires=requires,
)
