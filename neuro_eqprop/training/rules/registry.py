"""The teacher of each rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.config import Lesson, Recipe, Rule, Taught
from neuro_eqprop.training.rules.baselines import implicitly, through_time
from neuro_eqprop.training.rules.contrastive import contrastive
from neuro_eqprop.training.rules.hybrid import hybrid
from neuro_eqprop.training.rules.predictive import single_phase

Teacher: TypeAlias = Callable[[TorchOps, Network, Mapping[str, Values], Lesson, Recipe], Taught]

TEACHERS: Mapping[Rule, Teacher] = {
    Rule.HEBBIAN: contrastive,
    Rule.VECTOR_FIELD: contrastive,
    Rule.ASYMMETRIC: contrastive,
    Rule.HYBRID: hybrid,
    Rule.SINGLE_PHASE: single_phase,
    Rule.BACKPROP: through_time,
    Rule.BPTT: through_time,
    Rule.IMPLICIT: implicitly,
}
