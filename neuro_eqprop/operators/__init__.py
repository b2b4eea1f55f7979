"""What a connection does to the rates of its source, one kind in each file."""

from neuro_eqprop.operators.attention import Attention, Kind
from neuro_eqprop.operators.base import Operator
from neuro_eqprop.operators.convolution import Conv2d, Pooled
from neuro_eqprop.operators.cross_attention import Lookup, Query
from neuro_eqprop.operators.delayed_feedback import Echo
from neuro_eqprop.operators.dense import Dense
from neuro_eqprop.operators.identity import Plain
from neuro_eqprop.operators.layer_norm import Normed
from neuro_eqprop.operators.strided_convolution import Framed
from neuro_eqprop.operators.tokens import AtToken, Patches, PerToken

KINDS: tuple[type, ...] = (
    Dense,
    Conv2d,
    Framed,
    Pooled,
    PerToken,
    Patches,
    AtToken,
    Echo,
    Normed,
    Attention,
    Query,
    Lookup,
    Plain,
)
"""All of them, for files that name one."""

__all__ = [
    "KINDS",
    "AtToken",
    "Attention",
    "Conv2d",
    "Dense",
    "Echo",
    "Framed",
    "Kind",
    "Lookup",
    "Normed",
    "Operator",
    "Patches",
    "PerToken",
    "Plain",
    "Pooled",
    "Query",
]
