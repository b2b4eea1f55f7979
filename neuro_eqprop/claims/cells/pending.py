"""Cells that wait for models or data sets which this package does not have yet.

Each says what it waits for; a claim on such cells is undecided, not failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from neuro_eqprop.claims.claim import UndecidedError


def transformer(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy of an energy transformer on image patches."""
    raise UndecidedError("the transformer is not in this package yet")


def toroidal(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy and Lipschitz constant of the toroidal network."""
    raise UndecidedError("the toroidal network is not in this package yet")


def modern(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Lipschitz constant of the modern network."""
    raise UndecidedError("the modern network is not in this package yet")


def predictive(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy of the predictive single-phase variant."""
    raise UndecidedError("the predictive network is not in this package yet")


def corrected(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Gradient cosine of the rules for non-symmetric weights."""
    raise UndecidedError("the rules for non-symmetric weights are not in this package yet")


def cifar(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy of the multi-scale network on CIFAR-10."""
    raise UndecidedError("data not present (cifar10), and no multi-scale network yet")


def text(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy on SST-2."""
    raise UndecidedError("data not present (sst2), and no model for text yet")


def algorithmic(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Accuracy and settle steps against the length of a task."""
    raise UndecidedError("the algorithmic data sets are not in this package yet")


def generative(arguments: Mapping[str, Any], seed: int) -> NoReturn:
    """Reconstruction error of an equilibrium autoencoder."""
    raise UndecidedError("the equilibrium autoencoder is not in this package yet")
