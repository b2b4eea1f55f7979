"""How to train: the update rule, the nudging, the optimizer; a batch and its update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.schedules import Schedule, three_phase, two_phase


class Rule(Enum):
    """How parameters learn what to change."""

    HEBBIAN = "hebbian"
    """Contrast of Hebbian products; exact where all connections are symmetric."""
    VECTOR_FIELD = "vector-field"
    """Shift of the target times the free rate of the source."""
    ASYMMETRIC = "asymmetric"
    """The vector-field rule with the adjoint nudge; exact without symmetry."""
    HYBRID = "hybrid"
    """Hebbian where layers settle, backprop below them in the stem."""
    SINGLE_PHASE = "single-phase"
    """One nudged phase against what each layer predicts of it, without a free one."""
    BACKPROP = "backprop"
    """A baseline: backprop through the feed-forward twin."""
    BPTT = "bptt"
    """A baseline: backprop through the steps of settling."""
    IMPLICIT = "implicit"
    """A baseline: the implicit gradient of deep equilibrium models."""


class Nudging(Enum):
    """Which nudged phases follow the free one."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    CENTERED = "centered"
    RANDOM = "random"
    """Positive or negative, drawn for each batch."""
    HOLOMORPHIC = "holomorphic"
    """At points around a circle of radius beta in the complex plane."""


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How to train. `beta` is per sample: the cost is summed, not averaged, over a batch."""

    epochs: int
    batch: int
    optimiser: str
    """See `neuro_eqprop.training.optimizers`."""
    learning_rate: float
    """At the start; it goes on by `fall`."""
    nudging: Nudging
    beta: float
    free_steps: int
    nudged_steps: int
    seed: int
    rule: Rule = Rule.HEBBIAN
    fall: str = "cosine"
    """See `neuro_eqprop.training.lr_schedules`."""
    weight_decay: float = 0.0
    beta_end: float | None = None
    """Where beta goes in a straight line over the training; None keeps it."""
    points: int = 4
    """Of holomorphic nudging."""
    damping: float = 1.0
    """What part of its way a layer goes in a sweep."""
    anderson: int = 0
    """How many past sweeps Anderson mixing looks at; 0 for none."""
    together: bool = False
    """Whether all layers move at once (synchronous) in the place of one after another."""
    tolerance: float | None = None
    """Samples rest when no rate moves more than this in a step; None takes all steps."""

    def beta_at(self, done: float) -> float:
        """Beta when a part of the training is done."""
        return (
            self.beta if self.beta_end is None else self.beta + done * (self.beta_end - self.beta)
        )

    def schedule(self, beta: float | None = None) -> Schedule:
        """The phases of each episode; a negative beta nudges away."""
        strength = self.beta if beta is None else beta
        if self.nudging is Nudging.NEGATIVE:
            strength = -abs(strength)
        make = three_phase if self.nudging is Nudging.CENTERED else two_phase
        return make(beta=strength, free=self.free_steps, nudged=self.nudged_steps)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch with its targets (one-hot), and whether to measure how it settles."""

    x: Values
    y: Values
    measured: bool
    beta: float | None = None
    """Where it differs from the recipe's."""


@dataclass(frozen=True, slots=True)
class BatchUpdate:
    """What a batch tells each parameter: minus the change it is asked for, the mean over samples.

    That is what an optimiser wants; where the rule is exact, it is the gradient of the mean cost.
    """

    slopes: Mapping[str, Values]
    right: int
    """How many samples the free phase answered right."""
    residual: float = 0.0
    """The largest last change of a free rate, where it was measured."""
    steps: Mapping[str, float] | None = None
    """Mean steps of a sample in each phase, where they are not just those of the recipe."""
