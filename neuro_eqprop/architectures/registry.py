"""The models by name: built-in ones, and those of entry points in group `neuro_eqprop.models`."""

from __future__ import annotations

from neuro_eqprop.architectures.base import Architecture
from neuro_eqprop.plugins import Registry

HERE = "neuro_eqprop.architectures"
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
