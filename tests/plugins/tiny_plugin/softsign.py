"""An activation: softsign, u / (1 + |u|)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import Activation, RateFunction


def softsign(u: Any, _module: ModuleType) -> Any:  # noqa: ANN401
    return u / (1.0 + abs(u))


def slope(u: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.abs(u)) ** 2)


def energy(s: Array) -> Array:
    inside = np.minimum(np.abs(s), 1.0 - 1e-15)
    return np.asarray(-inside - np.log1p(-inside))


SOFTSIGN = Activation(
    "softsign",
    -1.0,
    1.0,
    RateFunction("softsign", softsign, slope, energy),
    formula="u / (1 + abs(u))",
)
