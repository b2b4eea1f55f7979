"""Operators of connections, one family in each file."""

from typing import Any

from neuro_eqprop.networks.operators.attention import Attention, AttentionKind
from neuro_eqprop.networks.operators.base import Operator
from neuro_eqprop.networks.operators.convolution import Conv2d, MaxPooled, Pooled
from neuro_eqprop.networks.operators.cross_attention import CrossAttention, Query
from neuro_eqprop.networks.operators.delayed_feedback import DelayedFeedback
from neuro_eqprop.networks.operators.dense import Dense
from neuro_eqprop.networks.operators.embedding import Embedding, TokenMean, TokenSum
from neuro_eqprop.networks.operators.identity import Identity
from neuro_eqprop.networks.operators.layer_norm import LayerNorm
from neuro_eqprop.networks.operators.normalized import Normalized
from neuro_eqprop.networks.operators.own_feedback import OwnFeedback
from neuro_eqprop.networks.operators.sparse import Sparse
from neuro_eqprop.networks.operators.tokens import AtToken, Patches, PerToken

OPERATORS: tuple[Any, ...] = (
    Dense,
    Sparse,
    Conv2d,
    Pooled,
    MaxPooled,
    PerToken,
    Patches,
    AtToken,
    DelayedFeedback,
    LayerNorm,
    Attention,
    Query,
    CrossAttention,
    Identity,
    Normalized,
    Embedding,
    TokenSum,
    TokenMean,
    OwnFeedback,
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
    "MaxPooled",
    "Normalized",
    "Operator",
    "OwnFeedback",
    "Patches",
    "PerToken",
    "Pooled",
    "Query",
    "Sparse",
    "TokenMean",
    "TokenSum",
]
