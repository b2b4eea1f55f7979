"""An update rule: its function, its settings, and the facts that help and refusals are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import Nudging, TrainingConfig
from neuro_eqprop.training.settings import RuleSettings

Update: TypeAlias = Callable[
    [Any, Network, Mapping[str, Values], Batch, TrainingConfig], BatchUpdate
]
"""Computes the update of a batch; the first argument is the `Ops` (baselines need torch)."""

REAL = tuple(nudging.value for nudging in Nudging if nudging is not Nudging.HOLOMORPHIC)
"""Names of the nudgings by a real beta."""
EVERY = tuple(nudging.value for nudging in Nudging)


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """An update rule by name: what `--rule` and `[rule] name` choose from.

    Parameters
    ----------
    name, label
        The name, and one clause for help and documentation.
    update
        Computes the update of a batch.
    settings
        Dataclass of the rule's settings, with their defaults; a subclass of `RuleSettings`.
    nudgings
        Names of the nudgings that the rule supports.
    baseline
        Whether it differentiates by torch, for comparison with equilibrium propagation.
    compares_phases
        Whether the update is a contrast of phases, so that an unsettled free phase falsifies it.
    needs_feedback
        Whether layers without feedback would not learn.
    feed_forward
        Whether it trains the network without feedback.

    """

    name: str
    label: str
    update: Update
    settings: type[RuleSettings]
    nudgings: tuple[str, ...] = REAL
    baseline: bool = False
    compares_phases: bool = False
    needs_feedback: bool = False
    feed_forward: bool = False
