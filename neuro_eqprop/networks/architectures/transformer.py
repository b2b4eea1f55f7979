"""The model `transformer`: the gradient of an energy, or the looped block of the research notes."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures.base import Architecture, HiddenSettings
from neuro_eqprop.networks.architectures.text import check_ids
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import (
    Attention,
    AttentionKind,
    AtToken,
    CrossAttention,
    Dense,
    Embedding,
    Identity,
    LayerNorm,
    Operator,
    Patches,
    PerToken,
    Query,
    TokenMean,
)

ATTENTIONS = (*(kind.value for kind in AttentionKind), "none")


@dataclass(frozen=True)
class TransformerSettings(HiddenSettings):
    """Settings of a transformer; `hidden` is the width of a token."""

    name: str = "transformer"
    hidden: tuple[int, ...] = setting((64,), "width of a token")
    bound: float = setting(0.7, "bound on the spectral norm of the memory's weights", above=0)
    symmetric: bool = setting(
        True, "all weights are tied, so there is an energy; false: untied, with layer norms"
    )
    memory: int = setting(0, "memory units of each token; 0 for its width", least=0)
    attention: str = setting("linear", "kind of attention", choices=ATTENTIONS)
    heads: int = setting(4, "attention heads", above=0)
    attention_scale: float = setting(0.15, "weight of attention in the energy", above=0)
    attention_sharpness: float = setting(
        1.0,
        "inverse temperature of softmax attention, times 1 / sqrt(width of a head)",
        above=0,
        only_with=("attention", "softmax"),
    )
    attention_bound: float = setting(0.8, "bound on the norms of W_q and W_k", above=0)
    patch: int = setting(7, "side of the patches that images are cut into, in pixels", above=0)
    query: bool = setting(False, "read the last token only")
    vocabulary: int = setting(
        0,
        "rows of the table of word vectors; 0 for the token ids of the data, if it has any",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class Block:
    """The block shared by all tokens: width of a token and of its memory, attention, bounds."""

    width: int
    memory: int
    attention: Attention | None
    bound: float
    """Bound on the spectral norm of the memory weights."""
    attention_bound: float
    """Bound on the spectral norms of W_q and W_k."""


def embed_tokens(
    given: Shape, patch: int, vocabulary: int = 0
) -> tuple[int, Patches | PerToken | Embedding]:
    """Number of tokens of a sample, and the operator that embeds them."""
    if vocabulary:
        check_ids("transformer", vocabulary, given)
        return given[0], Embedding(vocabulary)
    if len(given) == 3:
        patches = Patches(patch)
        return patches.count(given), patches
    if len(given) != 2:
        raise ValueError(
            f"a transformer takes images (channels, height, width) or sequences of tokens "
            f"(tokens, width), not samples of shape {given}: give x as (samples, tokens, width), "
            f"or use model 'layered'"
        )
    return given[0], PerToken()


def transformer(
    given: Shape,
    block: Block,
    outputs: int,
    *,
    patch: int,
    query: int | None = None,
    vocabulary: int = 0,
) -> Network:
    """Tokens h_i that attend to each other, each with a memory, read by a softmax.

    An image (channels, height, width) is cut into patches; a sequence (tokens, width) is used
    directly; token ids (tokens,) of a `vocabulary` get learned vectors. Each position has its own
    bias, a positional embedding. All tokens are read, or only the `query`; of token ids the mean.
    """
    tokens, embedding = embed_tokens(given, patch, vocabulary)
    layers = (
        Layer("input", given, LINEAR, Role.INPUT),
        Layer("tokens", (tokens, block.width), TANH),
        Layer("memory", (tokens, block.memory), TANH, shared=(1, block.memory)),
        Layer("output", (outputs,), LINEAR, Role.OUTPUT),
    )
    attention: tuple[Connection, ...] = ()
    if block.attention is not None:
        attention = (Connection("tokens", "tokens", block.attention, bound=block.attention_bound),)
    if vocabulary and query is not None:
        raise ValueError("the last token of a padded sentence is padding: use query=false")
    read: Operator = TokenMean() if vocabulary else Dense()
    read = read if query is None else AtToken(query)
    connections = (
        Connection("input", "tokens", embedding),
        *attention,
        Connection("tokens", "memory", PerToken(), bound=block.bound),
        Connection("tokens", "output", read),
    )
    return Network(layers, connections, Cost.CROSS_ENTROPY)


def looped_block(
    given: Shape,
    block: Block,
    outputs: int,
    *,
    patch: int,
    query: int | None = None,
    vocabulary: int = 0,
) -> Network:
    """h_i = n(g_i + W_2 tanh(W_1 n(g_i) + b)), g_i = h_i + W_e p_i + W_o a_i: the notes' block.

    a_i is cross-attention: queries come from n(h_i) and the input token p_i, keys and values from
    input tokens alone. The notes omit W_e p_i; without it an image patch does not reach its own
    token. There is no energy: rule asymmetric is exact, rule vector-field is not.
    """
    if block.attention is None:
        raise ValueError(
            "the looped block needs attention: use attention 'linear' or 'softmax', not 'none'"
        )
    if vocabulary:
        raise ValueError("the looped block takes vectors, not token ids: use symmetric=true")
    tokens, embedding = embed_tokens(given, patch)
    width, memory, bound = block.width, block.memory, block.bound
    wide, cross = (tokens, width), CrossAttention(block.attention.kind, block.attention.heads)
    layers = (
        Layer("input", given, LINEAR, Role.INPUT),
        Layer("parts", (tokens, 3 * width), LINEAR),
        Layer("looked", wide, LINEAR),
        Layer("memory", (tokens, memory), TANH, shared=(1, memory)),
        Layer("block", wide, LINEAR),
        Layer("tokens", wide, LINEAR, shared=(1, width)),
        Layer("output", (outputs,), LINEAR, Role.OUTPUT),
    )
    read = Dense() if query is None else AtToken(query)
    connections = (
        Connection("input", "parts", embedding),
        Connection("input", "looked", embedding),
        Connection("tokens", "parts", Query(), symmetric=False, bound=block.attention_bound),
        Connection("parts", "looked", cross, symmetric=False),
        Connection("tokens", "looked", Identity(), symmetric=False),
        Connection("looked", "memory", LayerNorm(), symmetric=False, bound=bound),
        Connection("looked", "block", Identity(), symmetric=False),
        Connection("memory", "block", PerToken(), symmetric=False, bound=bound),
        Connection("block", "tokens", Identity(normed=True), symmetric=False),
        Connection("tokens", "output", read),
    )
    return Network(layers, connections, Cost.CROSS_ENTROPY)


def build(settings: TransformerSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    width = settings.hidden[0]
    attention = None
    if settings.attention != "none":
        attention = Attention(
            AttentionKind(settings.attention),
            settings.heads,
            settings.attention_scale,
            settings.attention_sharpness,
            others=settings.query,
        )
    block = Block(
        width, settings.memory or width, attention, settings.bound, settings.attention_bound
    )
    make = transformer if settings.symmetric else looped_block
    query = -1 if settings.query else None
    ids = settings.vocabulary
    return make(shape, block, classes, patch=settings.patch, query=query, vocabulary=ids)


TRANSFORMER = Architecture(
    "transformer",
    "tokens that attend to each other, each with memory units",
    TransformerSettings,
    build,
    cost=Cost.CROSS_ENTROPY,
    training={"free_steps": 12, "nudged_steps": 6},
)
