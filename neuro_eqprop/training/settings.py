"""The settings of training and of update rules: tables `[training]` and `[rule]` of a study."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from inspect import signature
from typing import Any

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.settings import check, setting
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.networks.network import Cost


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


VECTOR_FIELDS = (Rule.VECTOR_FIELD, Rule.ASYMMETRIC)
"""The rules that contrast by `rules.asymmetric.vector_field`; any other one is Hebbian."""


class Nudging(str, Enum):
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


SYNCHRONOUS = "synchronous"
ORDERS = ("sequential", SYNCHRONOUS)


@dataclass(frozen=True)
class RuleSettings:
    """The settings that every update rule has: the table `[rule]` of a study.

    `beta` is per sample: the cost is summed, not averaged, over a batch.
    """

    name: str
    """See `neuro_eqprop.training.rules.registry`."""
    nudging: str = setting(
        "centered", "nudged phases that follow the free one", choices=[n.value for n in Nudging]
    )
    beta: float = setting(0.5, "strength of the nudge, per sample of a batch", above=0, least=1e-9)
    points: int = setting(
        4, "points of holomorphic nudging", least=3, only_with=("nudging", "holomorphic")
    )
    free_steps: int = setting(15, "steps of the free phase", above=0)
    nudged_steps: int = setting(8, "steps of a nudged phase", above=0)
    # Of rules that do not have these settings; subclasses make settings of them.
    beta_end, damping, order, anderson, tolerance = 0.0, 1.0, "sequential", 0, 0.0

    def __post_init__(self) -> None:
        check(self)

    def beta_at(self, done: float) -> float:
        """Beta when the fraction `done` of the training is over."""
        return self.beta + done * (self.beta_end - self.beta) if self.beta_end else self.beta

    def schedule(self, beta: float | None = None) -> Schedule:
        """The phases of a batch; a negative beta nudges away from the target."""
        strength = self.beta if beta is None else beta
        if self.nudging == Nudging.NEGATIVE:
            strength = -abs(strength)
        make = three_phase if self.nudging == Nudging.CENTERED else two_phase
        return make(beta=strength, free=self.free_steps, nudged=self.nudged_steps)


@dataclass(frozen=True)
class AnnealedSettings(RuleSettings):
    """Settings of a rule whose nudge may change in the course of training."""

    beta_end: float = setting(
        0.0, "beta at the end of training, reached linearly; 0 keeps it constant", least=0
    )


@dataclass(frozen=True)
class SweepSettings(RuleSettings):
    """Settings of a rule that lets the network settle in a fixed number of sweeps."""

    damping: float = setting(1.0, "damping factor of an update, in (0, 1]", above=0, most=1)
    order: str = setting(
        "sequential", "layers are updated one by one (Gauss-Seidel) or all at once", choices=ORDERS
    )


@dataclass(frozen=True)
class SolverSettings(SweepSettings):
    """Settings of a rule that lets the network settle until it converges."""

    anderson: int = setting(0, "past sweeps used by Anderson mixing; 0 for none", least=0)
    tolerance: float = setting(
        0.0, "a sample has settled when no rate changes more in a step; 0 takes all steps", least=0
    )


@dataclass(frozen=True)
class ContrastiveSettings(SolverSettings, AnnealedSettings):
    """Settings of a rule that compares a free phase with nudged ones."""


@dataclass(frozen=True, slots=True)
class OptionString:
    """A name and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


def parse_option_string(text: str) -> OptionString:
    """Parse a name with options; values are numbers, quoted strings, or lists of them.

    `true` and `false` are accepted in lower case, as in TOML.

    Examples
    --------
    >>> parse_option_string("sgd(momentum=0.5)")
    OptionString(name='sgd', options={'momentum': 0.5})
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return OptionString(tree.id)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args:
            given = {
                keyword.arg: literal(keyword.value) for keyword in tree.keywords if keyword.arg
            }
            if len(given) == len(tree.keywords):
                return OptionString(tree.func.id, given)
    except (SyntaxError, ValueError):
        pass
    raise ValueError(
        f"{text!r} is neither a name nor a name with options, such as sgd(momentum=0.5)"
    )


def literal(tree: ast.expr) -> Any:  # noqa: ANN401
    """The value of an option; `true` and `false` become bool."""
    if isinstance(tree, ast.Name) and tree.id in {"true", "false"}:
        return tree.id == "true"
    return ast.literal_eval(tree)


def check_optimizer(text: str) -> None:
    """Raise ValueError for an unknown optimizer, or an option that it lacks.

    No optimizer is created, since that imports `torch._dynamo`, which takes seconds. Values of
    options are checked when training starts.
    """
    if text in KNOWN_WITHOUT_TORCH:
        return
    from neuro_eqprop.training import optimizers

    found = parse_option_string(text)
    kind = optimizers.find_optimizer(found)
    check_options("optimizer", found, kind)


def check_schedule(text: str) -> None:
    """Raise ValueError for an unknown learning-rate schedule, or an option that it lacks."""
    from neuro_eqprop.training import lr_schedules

    if text not in lr_schedules.BUILT_IN:
        found = parse_option_string(text)
        check_options("scheduler", found, lr_schedules.find_scheduler(found))


def check_options(kind: str, given: OptionString, made_by: Callable[..., Any]) -> None:
    """Raise UnknownNameError for an option that the class does not take."""
    known = [name for name in signature(made_by).parameters if name not in NOT_OPTIONS]
    for option in given.options:
        if option not in known:
            raise UnknownNameError(f"option of {kind} {given.name!r}", option, known)


KNOWN_WITHOUT_TORCH = ("adam", "sgd")
"""Optimizers that are accepted without importing torch, since that takes seconds."""
NOT_OPTIONS = ("params", "optimizer", "lr", "weight_decay")
"""Parameters of torch optimizers and schedulers that the training sets itself."""


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of training apart from its rule: the table `[training]` of a study."""

    epochs: int = setting(30, "passes over the training samples", above=0)
    batch: int = setting(32, "samples of a batch", above=0)
    optimizer: str = setting(
        "adam", "torch optimizer by name, with options: sgd(momentum=0.5, nesterov=true)"
    )
    learning_rate: float = setting(0.002, "learning rate at the start", above=0)
    lr_schedule: str = setting(
        "cosine",
        "schedule of the learning rate: cosine, linear, steps, constant, or a torch scheduler "
        "such as StepLR(step_size=5, gamma=0.5)",
    )
    weight_decay: float = setting(0.0, "weight decay; biases do not decay", least=0)
    cost: str = setting(
        "",
        "squared or cross_entropy; empty for the model's default",
        choices=("", *(c.value for c in Cost)),
    )
    normalize: bool = setting(
        False, "standardize each channel of images, or each feature, by the training samples"
    )
    input_deviation: float = setting(1.0, "standard deviation of the normalized input", above=0)
    flip: bool = setting(False, "mirror images left to right at random")
    shift: int = setting(0, "shift images randomly by up to this many pixels", least=0)
    word_dropout: float = setting(
        0.0, "probability with which a token id is left out, in training alone", least=0, below=1
    )
    validation: float = setting(
        0.0, "fraction of the training samples held out for validation", least=0, below=1
    )
    patience: int = setting(
        0,
        "stop after this many epochs without a better validation accuracy, and keep the model of "
        "the best epoch; 0 trains all epochs",
        least=0,
    )
    device: str = setting("cpu", "device of torch: cpu, cuda, mps")

    def __post_init__(self) -> None:
        check(self)
        check_optimizer(self.optimizer)
        check_schedule(self.lr_schedule)
        if self.patience and not self.validation:
            raise ValueError(
                f"patience is {self.patience}, but no samples are held out to choose the best "
                f"epoch by: set validation, such as 0.1"
            )
