"""The teacher of each rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.config import Batch, BatchUpdate, Rule, TrainingConfig
from neuro_eqprop.training.rules.baselines import bptt, implicit
from neuro_eqprop.training.rules.contrastive import contrastive
from neuro_eqprop.training.rules.hybrid import hybrid
from neuro_eqprop.training.rules.predictive import single_phase

Teacher: TypeAlias = Callable[
    [TorchOps, Network, Mapping[str, Values], Batch, TrainingConfig], BatchUpdate
]

UPDATE_RULES: Mapping[Rule, Teacher] = {
    Rule.HEBBIAN: contrastive,
    Rule.VECTOR_FIELD: contrastive,
    Rule.ASYMMETRIC: contrastive,
    Rule.HYBRID: hybrid,
    Rule.SINGLE_PHASE: single_phase,
    Rule.BACKPROP: bptt,
    Rule.BPTT: bptt,
    Rule.IMPLICIT: implicit,
}
