"""`UpdateRule` by name, the `Batch` that it gets, the `BatchUpdate` that it returns, its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.training.settings import Nudging, RuleSettings

DIVERGENCE_ADVICE = "use a smaller learning rate or beta, a spectral bound, or a bounded activation"


class TrainingError(RuntimeError):
    """Training cannot continue; the message gives the reason and what to change."""


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
    spare: dict[str, Values] = field(default_factory=dict, compare=False)
    """Arrays by parameter that the update may overwrite; a rule that takes one removes it."""


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
    """How a contrastive rule computed it, see `training.rules.contrastive.UpdatePath`."""


Update: TypeAlias = Callable[[Any, Network, Mapping[str, Values], Batch, Any], BatchUpdate]
"""Computes the update of a batch from ops, network, parameters, batch and settings.

The first argument is the `Ops` (baselines need torch), the last the settings of the rule. The
parameters may not be changed.
"""

REAL_NUDGINGS = tuple(nudging.value for nudging in Nudging if nudging is not Nudging.HOLOMORPHIC)
"""Names of the nudgings with a real beta."""
ALL_NUDGINGS = tuple(nudging.value for nudging in Nudging)


def any_network(network: Network, settings: RuleSettings) -> None:
    """Accept every network, as a rule without requirements does."""


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
        Whether it uses automatic differentiation, for comparison with equilibrium propagation.
    compares_phases
        Whether the update is a contrast of phases, wrong if the free phase has not settled.
    needs_feedback
        Whether a layer learns only if it receives feedback.
    feed_forward
        Whether it removes the feedback of the network before training.
    overwrites
        Whether nobody keeps an update, so that it may overwrite that of the batch before.
    requires
        Raises TrainingError or ValueError for a network that it cannot train, before training.

    """

    name: str
    label: str
    update: Update
    settings: type[RuleSettings]
    nudgings: tuple[str, ...] = REAL_NUDGINGS
    baseline: bool = False
    compares_phases: bool = False
    needs_feedback: bool = False
    feed_forward: bool = False
    overwrites: bool = False
    requires: Callable[[Network, RuleSettings], None] = any_network

    def check(self, network: Network, settings: RuleSettings) -> None:
        """Raise TrainingError or ValueError if the rule cannot train the network."""
        if self.needs_feedback and network.layers_without_feedback:
            raise TrainingError(
                f"no feedback reaches layer {network.layers_without_feedback[0]!r}, so rule "
                f"{self.name!r} would not change its weights: use rule 'single-phase', 'hybrid' or "
                f"'asymmetric'"
            )
        self.requires(network, settings)
