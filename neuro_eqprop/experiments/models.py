"""The models by name: what a study's settings make of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuro_eqprop import activations
from neuro_eqprop.activations import Activation
from neuro_eqprop.architectures import (
    Block,
    convolutional,
    feed_forward,
    layered,
    looped,
    looped_block,
    modern,
    modern_notes,
    multiscale,
    toroidal,
    transformer,
)
from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.data import Dataset
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.operators import Attention, AttentionKind
from neuro_eqprop.training.config import Rule

if TYPE_CHECKING:
    from neuro_eqprop.experiments.config import Study

HIDDEN_RATES = ("hard_sigmoid", "hard_tanh", "box", "relu", "tanh")
OUTPUT_RATES = ("hard_sigmoid", "linear")
ATTENTIONS = ("linear", "softmax", "none")


def rate(name: str, height: float) -> Activation:
    """The activation of that name."""
    if name == "box":
        return activations.box(height)
    found = getattr(activations, name.upper())
    if not isinstance(found, Activation):
        raise UnknownNameError("activation", name, HIDDEN_RATES)
    return found


def build_layered(study: Study, data: Dataset) -> Network:
    """A multilayer perceptron that acts both ways."""
    return layered(
        data.features,
        study.hidden,
        data.classes,
        hidden_rate=rate(study.activation, study.height),
        output_rate=rate(study.output, 1.0),
        bound=study.bound or None,
        feedback=study.feedback,
        stem=study.stem,
    )


def build_predictive(study: Study, data: Dataset) -> Network:
    """A perceptron in which only errors come back."""
    return feed_forward(build_layered(study, data))


def build_looped(study: Study, data: Dataset) -> Network:
    """A hidden layer joined to itself."""
    return looped(
        data.features,
        study.hidden[0],
        data.classes,
        hidden_rate=rate(study.activation, study.height),
        output_rate=rate(study.output, 1.0),
        bound=study.bound or 0.95,
        symmetric=study.symmetric,
    )


def build_toroidal(study: Study, data: Dataset) -> Network:
    """A hidden layer that also hears its past."""
    return toroidal(
        data.features,
        study.hidden[0],
        data.classes,
        hidden_rate=rate(study.activation, study.height),
        output_rate=rate(study.output, 1.0),
        bound=study.bound or 0.95,
    )


def build_modern(study: Study, data: Dataset) -> Network:
    """A hidden layer with a memory; without symmetry, the notes' form of it."""
    hidden, hidden_rate = study.hidden[0], rate(study.activation, study.height)
    memory, bound = study.memory or 4 * hidden, study.bound or 0.95
    if not study.symmetric:
        return modern_notes(
            data.features,
            hidden,
            data.classes,
            memory=memory,
            hidden_rate=hidden_rate,
            bound=bound,
        )
    return modern(
        data.features,
        hidden,
        data.classes,
        memory=memory,
        hidden_rate=hidden_rate,
        output_rate=rate(study.output, 1.0),
        bound=bound,
    )


def build_conv(study: Study, data: Dataset) -> Network:
    """Kernels over images."""
    return convolutional(
        data.shape,
        study.hidden,
        data.classes,
        kernel=study.kernel,
        hidden_rate=rate(study.activation, study.height),
        output_rate=rate(study.output, 1.0),
        bound=study.bound or None,
        feedback=study.feedback,
    )


def build_multiscale(study: Study, data: Dataset) -> Network:
    """States of three widths."""
    return multiscale(
        data.features,
        study.hidden[0],
        data.classes,
        hidden_rate=rate(study.activation, study.height),
        output_rate=rate(study.output, 1.0),
        bound=study.bound or 0.95,
    )


def build_transformer(study: Study, data: Dataset) -> Network:
    """Tokens that attend to each other; without symmetry, the notes' block."""
    width, query = study.hidden[0], -1 if study.query else None
    looks = None
    if study.attention != "none":
        looks = Attention(
            AttentionKind(study.attention),
            study.heads,
            study.attention_scale,
            study.attention_sharpness,
            others=study.query,
        )
    block = Block(width, study.memory or width, looks, study.bound or 0.8, study.attention_bound)
    build = transformer if study.symmetric else looped_block
    return build(data.shape, block, data.classes, patch=study.patch, query=query)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """How to build a model, the rule that suits it, how many hidden sizes it takes.

    `takes` are the settings of its shape (see `SHAPING`) that it listens to, `defaults` such as
    suit it better than those of a study in general.
    """

    build: Callable[[Study, Dataset], Network]
    takes: tuple[str, ...]
    rule: str = Rule.HEBBIAN.value
    depths: tuple[int, ...] = (1,)
    defaults: Mapping[str, object] = field(default_factory=dict)
    cost: Cost = Cost.SQUARED
    """Unless a study says otherwise."""


RATES = ("activation", "height", "output")
ATTENTION = (
    "attention",
    "heads",
    "attention_scale",
    "attention_sharpness",
    "attention_bound",
    "patch",
    "query",
)
SHAPING = (*RATES, "bound", "feedback", "symmetric", "stem", "kernel", "memory", *ATTENTION)
"""Settings that shape a network; no model takes all of them."""
MANY = tuple(range(1, 65))
IMAGES = {
    "hidden": (32,),
    "activation": "relu",
    "output": "linear",
    "feedback": 0.1,
    "bound": 2.5,
    "beta": 0.25,
    "learning_rate": 0.003,
    "free_steps": 3,
    "nudged_steps": 1,
}
TOKENS = {"hidden": (64,), "bound": 0.7, "free_steps": 6, "nudged_steps": 3}
MODELS: Mapping[str, ModelInfo] = {
    "layered": ModelInfo(build_layered, (*RATES, "bound", "feedback", "stem"), depths=MANY),
    "looped": ModelInfo(build_looped, (*RATES, "bound", "symmetric")),
    "toroidal": ModelInfo(build_toroidal, (*RATES, "bound")),
    "modern": ModelInfo(build_modern, (*RATES, "bound", "symmetric", "memory")),
    "conv": ModelInfo(
        build_conv, (*RATES, "bound", "feedback", "kernel"), depths=MANY, defaults=IMAGES
    ),
    "multiscale": ModelInfo(build_multiscale, (*RATES, "bound")),
    "predictive": ModelInfo(
        build_predictive,
        (*RATES, "bound"),
        rule=Rule.SINGLE_PHASE.value,
        depths=MANY,
        defaults={"nudging": "positive"},
    ),
    "transformer": ModelInfo(
        build_transformer,
        ("bound", "symmetric", "memory", *ATTENTION),
        defaults=TOKENS,
        cost=Cost.CROSS_ENTROPY,
    ),
}
