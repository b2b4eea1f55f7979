"""The contrastive rules by name; their code, and with it torch, is imported on the first update."""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import TrainingConfig
from neuro_eqprop.training.rules.base import ALL_NUDGINGS, UpdateRule
from neuro_eqprop.training.settings import ContrastiveSettings


def contrastive(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    config: TrainingConfig,
) -> BatchUpdate:
    """The update of a batch, see `rules.contrastive`."""
    from neuro_eqprop.training.rules.contrastive import contrastive

    return contrastive(ops, network, params, batch, config)


HEBBIAN = UpdateRule(
    "hebbian",
    "contrast of Hebbian products; the gradient for small beta if all connections are symmetric",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
    needs_feedback=True,
)
VECTOR_FIELD = UpdateRule(
    "vector-field",
    "shift of the target times the free rate of the source",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
    needs_feedback=True,
)
ASYMMETRIC = UpdateRule(
    "asymmetric",
    "vector-field rule with the adjoint nudge; the gradient also without symmetric connections",
    contrastive,
    ContrastiveSettings,
    nudgings=ALL_NUDGINGS,
    compares_phases=True,
)
