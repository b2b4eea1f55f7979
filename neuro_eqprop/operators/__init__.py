"""What a connection does to the rates of its source, one kind in each file."""

from neuro_eqprop.operators.attention import Attention, Kind
from neuro_eqprop.operators.base import Operator
from neuro_eqprop.operators.convolution import Conv2d, Pooled
from neuro_eqprop.operators.cross_attention import CrossAttention, Query
from neuro_eqprop.operators.delayed_feedback import DelayedFeedback
from neuro_eqprop.operators.dense import Dense
from neuro_eqprop.operators.identity import Identity
from neuro_eqprop.operators.layer_norm import LayerNorm
from neuro_eqprop.operators.strided_convolution import StridedConv2d
from neuro_eqprop.operators.tokens import AtToken, Patches, PerToken

KINDS: tuple[type, ...] = (
    Dense,
    Conv2d,
    StridedConv2d,
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
)
"""All of them, for files that name one."""

__all__ = [
    "KINDS",
    "AtToken",
    "Attention",
    "Conv2d",
    "CrossAttention",
    "DelayedFeedback",
    "Dense",
    "Identity",
    "Kind",
    "LayerNorm",
    "Operator",
    "Patches",
    "PerToken",
    "Pooled",
    "Query",
    "StridedConv2d",
]
