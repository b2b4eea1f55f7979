"""The models by name: built-in ones, and those of entry points in group `neuro_eqprop.models`."""

from __future__ import annotations

from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.networks.architectures.base import Architecture

HERE = "neuro_eqprop.networks.architectures"
MODELS = Registry(
    "model",
    Architecture,
    {
        "layered": f"{HERE}.mlp:LAYERED",
        "looped": f"{HERE}.looped:LOOPED",
        "sparse": f"{HERE}.sparse:SPARSE",
        "toroidal": f"{HERE}.toroidal:TOROIDAL",
        "modern": f"{HERE}.hopfield:MODERN",
        "conv": f"{HERE}.convolutional:CONV",
        "multiscale": f"{HERE}.multiscale:MULTISCALE",
        "pyramid": f"{HERE}.pyramid:PYRAMID",
        "text": f"{HERE}.text:TEXT",
        "predictive": f"{HERE}.mlp:PREDICTIVE",
        "transformer": f"{HERE}.transformer:TRANSFORMER",
    },
    "neuro_eqprop.models",
)
