"""The model `text`: learned word vectors, pooled over a sentence and read by a hidden layer.

With t_i the token ids, E the table of vectors, n the number of real tokens and g the feedback:

    e_i = tanh(E[t_i] + b_e + (g / n) W^T h)
    h   = tanh(W (1 / n) sum over tokens of e_i + b_h + g U^T r)
    r   = beta (y - softmax(U h + b_o))                        a readout, zero in the free phase

With `pooling` "sum" a fixed factor replaces 1 / n and padding counts as tokens: the
connection is then the same for all samples, so that synapses can carry it. Attention between the
words of a sentence is that of `neuro_eqprop.networks.operators.attention`.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures.base import Architecture, HiddenSettings
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import (
    Attention,
    AttentionKind,
    Embedding,
    TokenMean,
    TokenSum,
)

POOLINGS = ("mean", "sum")
SUM_SCALE = 0.1
"""Factor of pooling by a sum: about one over the number of words of a short sentence."""
ATTENTIONS = ("none", *(kind.value for kind in AttentionKind))


@dataclass(frozen=True)
class TextSettings(HiddenSettings):
    """Settings of a text model; `hidden` are the units of the layer that reads the tokens."""

    name: str = "text"
    hidden: tuple[int, ...] = setting((64,), "units of the hidden layer")
    width: int = setting(64, "length of a word's vector", above=0)
    vocabulary: int = setting(
        0, "rows of the table of vectors; 0 for the token ids of the data", least=0
    )
    pooling: str = setting("sum", "how the words of a sentence are pooled", choices=POOLINGS)
    feedback: float = setting(0.01, "scale of the feedback from layer to layer", above=0)
    attention: str = setting("none", "attention between words", choices=ATTENTIONS)
    heads: int = setting(4, "attention heads", above=0)
    attention_scale: float = setting(0.15, "weight of attention in the energy", above=0)
    attention_bound: float = setting(1.0, "bound on the norms of W_q and W_k", above=0)


def text(settings: TextSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings for samples of token ids (tokens,); see the module."""
    check_ids(settings.name, settings.vocabulary, shape)
    width, feedback = settings.width, settings.feedback
    layers = (
        Layer("input", shape, LINEAR, Role.INPUT),
        Layer("words", (*shape, width), TANH, shared=(1, width)),
        Layer("hidden", settings.hidden, TANH, stiffness=feedback),
        Layer("output", (classes,), LINEAR, Role.OUTPUT, stiffness=feedback**2),
    )
    within: tuple[Connection, ...] = ()
    if settings.attention != "none":
        kind = AttentionKind(settings.attention)
        attention = Attention(kind, settings.heads, settings.attention_scale)
        within = (Connection("words", "words", attention, bound=settings.attention_bound),)
    pool = TokenMean() if settings.pooling == "mean" else TokenSum(SUM_SCALE)
    connections = (
        Connection("input", "words", Embedding(settings.vocabulary)),
        *within,
        Connection("words", "hidden", pool),
        Connection("hidden", "output"),
    )
    return Network(layers, connections, Cost.CROSS_ENTROPY)


def check_ids(model: str, vocabulary: int, shape: Shape) -> None:
    """Raise ValueError unless samples are rows of token ids."""
    if len(shape) != 1 or not vocabulary:
        raise ValueError(
            f"model {model!r} takes rows of token ids, not samples of shape {shape}: give x as "
            f"(samples, tokens) with ids from 1 and 0 for padding, and vocabulary, the number of "
            f"ids; or use model 'layered'"
        )


TEXT = Architecture(
    "text",
    "learned word vectors, pooled over a sentence and read by a hidden layer",
    TextSettings,
    text,
    cost=Cost.CROSS_ENTROPY,
    training={
        "nudging": "positive",
        "beta": 0.5,
        "free_steps": 3,
        "nudged_steps": 2,
        "batch": 64,
        "epochs": 3,
        "word_dropout": 0.2,
    },
)
