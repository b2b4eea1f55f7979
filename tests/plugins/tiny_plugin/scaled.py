"""An update rule: the Hebbian one, with the update of every parameter scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.base import Batch, BatchUpdate, UpdateRule
from neuro_eqprop.training.rules.contrastive import contrastive
from neuro_eqprop.training.settings import ContrastiveSettings


@dataclass(frozen=True)
class ScaledSettings(ContrastiveSettings):
    factor: float = setting(1.0, "factor on the update", above=0)


def scaled(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: ScaledSettings,
) -> BatchUpdate:
    found = contrastive(ops, network, params, batch, settings)
    scaled = {name: settings.factor * each for name, each in found.gradients.items()}
    return replace(found, gradients=scaled)


SCALED = UpdateRule(
    "scaled", "Hebbian rule with a factor", scaled, ScaledSettings, compares_phases=True
)
