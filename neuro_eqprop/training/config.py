"""Configuration of a training: update rule, nudging, settling and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase


class Rule:
    """Names of the built-in update rules; `training.rules.registry` has all of them."""

    HEBBIAN = "hebbian"
    VECTOR_FIELD = "vector-field"
    ASYMMETRIC = "asymmetric"
    HYBRID = "hybrid"
    SINGLE_PHASE = "single-phase"
    BACKPROP = "backprop"
    BPTT = "bptt"
    IMPLICIT = "implicit"


class Nudging(Enum):
    """The nudged phases that follow the free one; beta is the strength of the nudge."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    CENTERED = "centered"
    RANDOM = "random"
    HOLOMORPHIC = "holomorphic"

    @property
    def label(self) -> str:
        """One clause for help and documentation."""
        return NUDGING_LABELS[self]


NUDGING_LABELS: Mapping[Nudging, str] = {
    Nudging.POSITIVE: "towards the target, with beta (Scellier & Bengio 2017)",
    Nudging.NEGATIVE: "away from the target, with -beta",
    Nudging.CENTERED: "one phase with beta and one with -beta (Laborieux et al. 2021)",
    Nudging.RANDOM: "positive or negative, drawn for each batch",
    Nudging.HOLOMORPHIC: "at points on a circle of radius beta in the complex plane "
    "(Laborieux & Zenke 2022)",
}


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """Hyperparameters of a training.

    `beta` is per sample: the cost is summed, not averaged, over a batch.
    """

    epochs: int
    batch: int
    optimizer: str
    """See `neuro_eqprop.training.optimizers`."""
    learning_rate: float
    """Learning rate at the start; `lr_schedule` is its schedule."""
    nudging: Nudging
    beta: float
    free_steps: int
    nudged_steps: int
    seed: int
    rule: str = Rule.HEBBIAN
    """Name of an update rule, see `neuro_eqprop.training.rules.registry`."""
    lr_schedule: str = "cosine"
    """See `neuro_eqprop.training.lr_schedules`."""
    weight_decay: float = 0.0
    beta_end: float | None = None
    """Beta at the end of training, reached linearly; None keeps it constant."""
    points: int = 4
    """Points of holomorphic nudging on the circle of radius beta."""
    damping: float = 1.0
    """Damping factor of an update, in (0, 1]."""
    anderson: int = 0
    """Past sweeps used by Anderson mixing; 0 for none."""
    together: bool = False
    """Whether all layers are updated at once (synchronously) instead of one after another."""
    tolerance: float | None = None
    """A sample has settled when no rate changes more in a step; None takes all steps."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings that only the rule of a plug-in has, by name."""

    def beta_at(self, done: float) -> float:
        """Beta when the fraction `done` of the training is over."""
        return (
            self.beta if self.beta_end is None else self.beta + done * (self.beta_end - self.beta)
        )

    def schedule(self, beta: float | None = None) -> Schedule:
        """The phases of a batch; a negative beta nudges away from the target."""
        strength = self.beta if beta is None else beta
        if self.nudging is Nudging.NEGATIVE:
            strength = -abs(strength)
        make = three_phase if self.nudging is Nudging.CENTERED else two_phase
        return make(beta=strength, free=self.free_steps, nudged=self.nudged_steps)
