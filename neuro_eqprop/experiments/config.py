"""An experiment as a file: everything needed to repeat a training run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from operator import index
from pathlib import Path
from typing import Any

import torch

from neuro_eqprop.architectures import feed_forward
from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.data import Dataset
from neuro_eqprop.experiments.models import ATTENTIONS, HIDDEN_RATES, MODELS, OUTPUT_RATES
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.training.augment import Augmentation, random_shift
from neuro_eqprop.training.config import Nudging, Rule, TrainingConfig
from neuro_eqprop.training.lr_schedules import TrainingLength, learning_rates
from neuro_eqprop.training.optimizers import make_optimizer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Study:
    """The settings of a training run, with the defaults that suit the embedded digits."""

    dataset: str = "digits"
    model: str = "layered"
    hidden: tuple[int, ...] = (128,)
    activation: str = "hard_sigmoid"
    height: float = 4.0
    """Of the activation `box`."""
    output: str = "hard_sigmoid"
    cost: str = ""
    """What the output is judged by, squared or cross_entropy; empty for the model's own."""
    bound: float = 0.0
    """On spectral norms of weights that close a loop; zero for none, or for the model's own."""
    feedback: float = 1.0
    """Scale of what comes back in a layered network: below one it settles sooner."""
    symmetric: bool = True
    """Whether `looped`, `modern` and `transformer` have an energy, or the notes' form without."""
    stem: int = 0
    """Hidden layers of a layered network without feedback, for rule hybrid."""
    kernel: int = 5
    """Side of the kernels of `conv`, whose channels are `hidden`."""
    memory: int = 0
    """Memory units of `modern` and, for each token, of `transformer`; zero for the model's own."""
    attention: str = "linear"
    heads: int = 4
    attention_scale: float = 0.15
    attention_sharpness: float = 1.0
    """Of softmax attention, times one over the root of a head's width."""
    attention_bound: float = 1.2
    patch: int = 7
    """Side of the patches that a transformer cuts images into."""
    query: bool = False
    """Whether a transformer is read at its last token only."""
    rule: str = ""
    """Empty for the model's own: hebbian, asymmetric where symmetric is false, or single-phase for
    `predictive`."""
    nudging: str = "centered"
    beta: float = 0.5
    """Per sample: the cost is summed, not averaged, over a batch."""
    beta_end: float = 0.0
    """Where beta goes in a straight line; zero keeps it."""
    points: int = 4
    """Of holomorphic nudging."""
    epochs: int = 30
    batch: int = 32
    optimiser: str = "adam"
    """Any of torch by its name, with options if there are: sgd(momentum=0.5, nesterov=true)."""
    learning_rate: float = 0.002
    fall: str = "cosine"
    """How the learning rate goes: cosine, linear, steps, constant, or a scheduler of torch, as
    StepLR(step_size=5, gamma=0.5)."""
    weight_decay: float = 0.0
    shift: int = 0
    """Pixels that pictures are moved by at most, drawn anew each time training sees them."""
    free_steps: int = 15
    nudged_steps: int = 8
    damping: float = 1.0
    """What part of its way a layer goes in a sweep."""
    anderson: int = 0
    """Past sweeps that Anderson mixing looks at; zero for none."""
    order: str = "sequential"
    """Whether layers move one after another (Gauss-Seidel) or all at once: synchronous."""
    tolerance: float = 0.0
    """Samples rest when no rate moves more than this in a step; zero takes all steps."""
    validation: float = 0.0
    """The part of the training samples that is held out to look at while training."""
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.rule and self.model in MODELS:
            object.__setattr__(self, "rule", own_rule(self.model, self.symmetric))
        for kind, name, known in (
            ("model", self.model, tuple(MODELS)),
            ("rule", self.rule, [r.value for r in Rule]),
            ("activation", self.activation, HIDDEN_RATES),
            ("output", self.output, OUTPUT_RATES),
            ("cost", self.cost or Cost.SQUARED.value, [c.value for c in Cost]),
            ("nudging", self.nudging, [n.value for n in Nudging]),
            ("order", self.order, ORDERS),
            ("attention", self.attention, ATTENTIONS),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        self._check_numbers()
        make_optimizer(self.optimiser, self.learning_rate, {"any": torch.zeros(1)})
        learning_rates(self.fall, self.learning_rate, TrainingLength(self.epochs, 1))
        if len(self.hidden) not in MODELS[self.model].depths:
            raise ValueError(
                f"model {self.model!r} does not take {len(self.hidden)} hidden sizes {self.hidden}"
            )

    def _check_numbers(self) -> None:
        above = (*ABOVE_ZERO, "beta_end") if self.beta_end else ABOVE_ZERO
        for key in above:
            if not 0 < getattr(self, key) < float("inf"):
                raise ValueError(f"{key} is {getattr(self, key)}; it must be above zero")
        for key in ZERO_OR_ABOVE:
            if not 0 <= getattr(self, key) < float("inf"):
                raise ValueError(
                    f"{key} is {getattr(self, key)}; it cannot be negative and must be finite"
                )
        if self.damping > 1.0:
            raise ValueError(f"damping is {self.damping}; it must not lie above one")
        if self.validation >= 1.0:
            raise ValueError(f"validation is {self.validation}; it must lie below one")
        self._check_nudge()
        if self.points < 3:
            raise ValueError(f"points is {self.points}; a circle needs at least three")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden is {self.hidden}; each layer needs at least one unit")

    def _check_nudge(self) -> None:
        squared = (Cost(self.cost) if self.cost else MODELS[self.model].cost) is Cost.SQUARED
        if squared and self.nudging != Nudging.POSITIVE.value:
            for key in ("beta", "beta_end"):
                if getattr(self, key) >= 1.0:
                    raise ValueError(
                        f"{key} is {getattr(self, key)}; pushed away from the target so strongly, "
                        f"nothing settles: keep it below one, or use --nudging positive"
                    )

    def network(self, data: Dataset) -> Network:
        """The network of this study, sized for the data."""
        made = MODELS[self.model].build(self, data)
        made = replace(made, cost=Cost(self.cost)) if self.cost else made
        if self.rule != Rule.BACKPROP.value:
            return made
        twin = feed_forward(made)
        if self.bound not in (0.0, MODELS[self.model].defaults.get("bound")):
            return twin
        # A model's own bounds let it settle; what settles in one sweep keeps only what is asked.
        free = tuple(replace(c, bound=None) for c in twin.connections)
        return replace(twin, connections=free)

    def view(self, data: Dataset) -> Augmentation:
        """How training sees the data."""
        return random_shift(self.shift, data.shape)

    def recipe(self) -> TrainingConfig:
        """How the network is trained."""
        return TrainingConfig(
            epochs=self.epochs,
            batch=self.batch,
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            nudging=Nudging(self.nudging),
            beta=self.beta,
            free_steps=self.free_steps,
            nudged_steps=self.nudged_steps,
            seed=self.seed,
            rule=Rule(self.rule),
            fall=self.fall,
            weight_decay=self.weight_decay,
            beta_end=self.beta_end or None,
            points=self.points,
            damping=self.damping,
            anderson=self.anderson,
            together=self.order == "synchronous",
            tolerance=self.tolerance or None,
        )


ORDERS = ("sequential", "synchronous")
ZERO_OR_ABOVE = (
    "bound",
    "weight_decay",
    "shift",
    "memory",
    "stem",
    "anderson",
    "tolerance",
    "seed",
    "validation",
)
ABOVE_ZERO = (
    "beta",
    "height",
    "feedback",
    "kernel",
    "heads",
    "attention_scale",
    "attention_sharpness",
    "attention_bound",
    "patch",
    "epochs",
    "batch",
    "learning_rate",
    "free_steps",
    "nudged_steps",
    "damping",
)


def own_rule(model: str, symmetric: bool) -> str:
    """The rule that suits a model: without symmetry, the one that needs none."""
    usual = MODELS[model].rule
    return usual if symmetric or usual != Rule.HEBBIAN.value else Rule.ASYMMETRIC.value


def adapt(study: Study, changes: Mapping[str, Any]) -> Study:
    """The study with some settings changed; values may be text, as from the command line."""
    changes = own_defaults(study, changes) | dict(changes)
    known = {f.name: getattr(study, f.name) for f in fields(study)}
    clean: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            raise UnknownNameError("setting", key, known)
        clean[key] = convert(key, value, known[key])
    own = study.rule == own_rule(study.model, study.symmetric)
    if "rule" not in clean and ("model" in clean or ("symmetric" in clean and own)):
        clean["rule"] = ""  # another model's own rule may be another
    return replace(study, **clean)


def own_defaults(study: Study, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What suits a model that is newly named, where neither the changes nor the study say more."""
    model = changes.get("model", study.model)
    if model == study.model or not isinstance(model, str) or model not in MODELS:
        return {}
    general = {f.name: f.default for f in fields(study)}
    return {
        key: value
        for key, value in MODELS[model].defaults.items()
        if key not in changes and getattr(study, key) == general[key]
    }


def convert(key: str, value: Any, like: Any) -> Any:  # noqa: ANN401
    """The value in the type of `like`."""
    try:
        if isinstance(like, tuple):
            parts = value.split(",") if isinstance(value, str) else value
            parts = parts if isinstance(parts, list | tuple) else [parts]
            return tuple(to_int(part) for part in parts)
        if isinstance(like, bool):
            return to_bool(value)
        return to_int(value) if isinstance(like, int) else type(like)(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"setting {key!r} cannot be {value!r}: {error}") from error


def to_bool(value: Any) -> bool:  # noqa: ANN401
    """Yes or no, given as such or as text."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError("neither true nor false")
    return words[str(value).lower()]


def to_int(value: Any) -> int:  # noqa: ANN401
    """A whole number, given as a number or as text."""
    try:
        return int(value) if isinstance(value, str) else index(value)
    except (TypeError, ValueError):
        if float(value) != int(float(value)):
            raise ValueError("not a whole number") from None
        return int(float(value))


def read(path: Path) -> Study:
    """The study in a TOML file."""
    try:
        told = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ValueError(f"there is no study file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a study: {error}") from error
    told.pop(
        "learn", None
    )  # of a run that learned on a chip, see `neuro_eqprop.experiments.on_chip_config`
    try:
        return adapt(Study(), told)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write(study: Study) -> str:
    """The study as TOML."""
    lines = []
    for key, value in asdict(study).items():
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
        text = text.lower() if isinstance(value, bool) else text
        text = str(list(value)) if isinstance(value, tuple) else text
        lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"
