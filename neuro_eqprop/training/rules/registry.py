"""The update rules by name: built-in ones, and those of entry points `neuro_eqprop.rules`."""

from __future__ import annotations

from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.training.rules.base import UpdateRule

HERE = "neuro_eqprop.training.rules"
RULES = Registry(
    "rule",
    UpdateRule,
    {
        "hebbian": f"{HERE}.contrastive_rules:HEBBIAN",
        "vector-field": f"{HERE}.contrastive_rules:VECTOR_FIELD",
        "asymmetric": f"{HERE}.contrastive_rules:ASYMMETRIC",
        "hybrid": f"{HERE}.hybrid:HYBRID",
        "single-phase": f"{HERE}.predictive:SINGLE_PHASE",
        "backprop": f"{HERE}.baselines:BACKPROP",
        "bptt": f"{HERE}.baselines:BPTT",
        "implicit": f"{HERE}.baselines:IMPLICIT",
    },
    "neuro_eqprop.rules",
)
