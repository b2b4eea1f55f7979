"""An experiment as a file: everything needed to repeat a training run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from operator import index
from pathlib import Path
from typing import Any

from neuro_eqprop import activations
from neuro_eqprop.activations import Activation
from neuro_eqprop.architectures import layered, looped
from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.data import Dataset
from neuro_eqprop.learn.train import OPTIMISERS, Nudging, Recipe
from neuro_eqprop.networks import Network

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODELS = ("layered", "looped")
RULES = ("hebbian",)
HIDDEN_RATES = ("hard_sigmoid", "hard_tanh", "box", "relu", "tanh")
OUTPUT_RATES = ("hard_sigmoid", "linear")


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
    bound: float = 0.0
    """On spectral norms of weights that close a loop; zero for none. `looped` takes 0.95 then."""
    feedback: float = 1.0
    """Scale of what comes back in a layered network: below one it settles sooner."""
    rule: str = "hebbian"
    nudging: str = "centered"
    beta: float = 0.5
    """Per sample: the cost is summed, not averaged, over a batch."""
    epochs: int = 30
    batch: int = 32
    optimiser: str = "adam"
    learning_rate: float = 0.002
    free_steps: int = 15
    nudged_steps: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("model", self.model, MODELS),
            ("rule", self.rule, RULES),
            ("activation", self.activation, HIDDEN_RATES),
            ("output", self.output, OUTPUT_RATES),
            ("nudging", self.nudging, [n.value for n in Nudging]),
            ("optimiser", self.optimiser, OPTIMISERS),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        if not 0.0 < self.beta < 1.0:
            raise ValueError(f"beta is {self.beta}; it must lie above 0 and below 1")
        for key in (
            "height",
            "feedback",
            "epochs",
            "batch",
            "learning_rate",
            "free_steps",
            "nudged_steps",
        ):
            if not 0 < getattr(self, key) < float("inf"):
                raise ValueError(f"{key} is {getattr(self, key)}; it must be above zero")
        if not 0 <= self.bound < float("inf"):
            raise ValueError(f"bound is {self.bound}; it must be zero (none) or above, and finite")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it cannot be negative")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden is {self.hidden}; each layer needs at least one unit")
        if self.model == "looped" and len(self.hidden) != 1:
            raise ValueError(f"a looped network has one hidden layer, not {len(self.hidden)}")

    def network(self, data: Dataset) -> Network:
        """The network of this study, sized for the data."""
        hidden_rate, output_rate = rate(self.activation, self.height), rate(self.output, 1.0)
        if self.model == "looped":
            return looped(
                data.features,
                self.hidden[0],
                data.classes,
                hidden_rate=hidden_rate,
                output_rate=output_rate,
                bound=self.bound or 0.95,
            )
        return layered(
            data.features,
            self.hidden,
            data.classes,
            hidden_rate=hidden_rate,
            output_rate=output_rate,
            bound=self.bound or None,
            feedback=self.feedback,
        )

    def recipe(self) -> Recipe:
        """How the network is trained."""
        return Recipe(
            epochs=self.epochs,
            batch=self.batch,
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            nudging=Nudging(self.nudging),
            beta=self.beta,
            free_steps=self.free_steps,
            nudged_steps=self.nudged_steps,
            seed=self.seed,
        )


def rate(name: str, height: float) -> Activation:
    """The activation of that name."""
    if name == "box":
        return activations.box(height)
    found = getattr(activations, name.upper())
    if not isinstance(found, Activation):
        raise UnknownNameError("activation", name, HIDDEN_RATES)
    return found


def adapt(study: Study, changes: Mapping[str, Any]) -> Study:
    """The study with some settings changed; values may be text, as from the command line."""
    known = {f.name: getattr(study, f.name) for f in fields(study)}
    clean: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            raise UnknownNameError("setting", key, known)
        clean[key] = convert(key, value, known[key])
    return replace(study, **clean)


def convert(key: str, value: Any, like: Any) -> Any:  # noqa: ANN401
    """The value in the type of `like`."""
    try:
        if isinstance(like, tuple):
            parts = value.split(",") if isinstance(value, str) else value
            parts = parts if isinstance(parts, list | tuple) else [parts]
            return tuple(whole(part) for part in parts)
        return whole(value) if isinstance(like, int) else type(like)(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"setting {key!r} cannot be {value!r}: {error}") from error


def whole(value: Any) -> int:  # noqa: ANN401
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
        text = f'"{value}"' if isinstance(value, str) else repr(value)
        text = str(list(value)) if isinstance(value, tuple) else text
        lines.append(f"{key} = {text}")
    return "\n".join(lines) + "\n"
