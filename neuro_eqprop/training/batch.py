"""A training batch, and what an update rule computes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuro_eqprop.networks.ops.protocol import Values


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples with their targets."""

    x: Values
    """Inputs (samples, features)."""
    target: Values
    """Targets (samples, *output shape): one-hot for classes, any values for regression."""
    measured: bool
    """Whether to measure how the samples settle."""
    beta: float | None = None
    """Nudging strength, if it differs from the settings'."""


@dataclass(frozen=True, slots=True)
class BatchUpdate:
    """The result of an update rule on a batch."""

    gradients: Mapping[str, Values]
    """By parameter, for an optimizer to descend; the rule's estimate of d(mean cost)/dtheta."""
    correct: Values
    """Samples whose largest output is that of the target, in the free phase.

    This, `loss` and `residual` are numbers or 0-d tensors; tensors stay on their device until
    `EpochStatistics.read`.
    """
    loss: Values
    """Mean cost of the free phase."""
    residual: Values = 0.0
    """Largest last change of a rate in the free phase, if measured."""
    steps: Mapping[str, float] | None = None
    """Mean steps of a sample by phase, if they differ from the settings'."""
    path: str | None = None
    """How a contrastive rule computed it, see `training.rules.contrastive.Path`."""
