"""`UpdateRule`: function, settings and properties of an update rule, for help and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.errors import TrainingError
from neuro_eqprop.training.settings import Nudging, RuleSettings

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
