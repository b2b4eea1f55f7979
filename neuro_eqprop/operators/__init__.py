"""Operators of connections, one family in each file."""

from typing import Any

from neuro_eqprop.operators.attention import Attention, AttentionKind
from neuro_eqprop.operators.base import Operator
from neuro_eqprop.operators.convolution import Conv2d, Pooled
from neuro_eqprop.operators.cross_attention import CrossAttention, Query
from neuro_eqprop.operators.delayed_feedback import DelayedFeedback
from neuro_eqprop.operators.dense import Dense
from neuro_eqprop.operators.embedding import Embedding, TokenMean, TokenSum
from neuro_eqprop.operators.identity import Identity
from neuro_eqprop.operators.layer_norm import LayerNorm
from neuro_eqprop.operators.normalised import Normalised
from neuro_eqprop.operators.sparse import Sparse
from neuro_eqprop.operators.tokens import AtToken, Patches, PerToken

OPERATORS: tuple[Any, ...] = (
    Dense,
    Sparse,
    Conv2d,
    Pooled,
    PerToken,
    Patches,
    AtToken,
    DelayedFeedback,
    LayerNorm,
    Attention,
    Query,
    CrossAttention,
    Identity,
    Normalised,
    Embedding,
    TokenSum,
    TokenMean,
)
"""All operators that a network file can name."""

__all__ = [
    "OPERATORS",
    "AtToken",
    "Attention",
    "AttentionKind",
    "Conv2d",
    "CrossAttention",
    "DelayedFeedback",
    "Dense",
    "Embedding",
    "Identity",
    "LayerNorm",
    "Normalised",
    "Operator",
    "Patches",
    "PerToken",
    "Pooled",
    "Query",
    "Sparse",
    "TokenMean",
    "TokenSum",
]
