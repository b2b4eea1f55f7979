"""The metrics of an epoch: accuracies, the quality of the update, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, Split, one_hot
from neuro_eqprop.dynamics.inference import COARSE
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.diagnostics import Diagnostics
from neuro_eqprop.training.fast.scoring import score
from neuro_eqprop.training.study import Study


def evaluate(
    study: Study,
    network: Network,
    data: Dataset,
    params: Mapping[str, torch.Tensor],
    probe: Diagnostics,
    row: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metrics of an epoch: those that the training measured, in `row`, and others.

    The warning is the first one of: weights that have grown, the update (`probe`), an accuracy of
    chance, and after the last epoch an accuracy below that of a linear classifier.
    """
    ops = TorchOps(device=study.training.device)
    scores = {
        name: score(ops, network, params, split, COARSE, study.rule.damping)
        for name, split in (("test", data.test), ("validation", data.validation))
        if split is not None
    }
    measured, found = dict(row), {name: each.accuracy for name, each in scores.items()}
    grown = norm_warning(row["spectral"])
    chance = chance_warning(study, data, row["train_accuracy"], found["test"])
    warning = grown or probe.warning or chance
    if warning is None and row["epoch"] == study.training.epochs:
        warning = linear_warning(study, data, found.get("validation", found["test"]))
    arrays = {name: value.detach().cpu().numpy() for name, value in params.items()}
    return {
        "epoch": measured.pop("epoch"),
        "train_accuracy": measured.pop("train_accuracy"),
        **{f"{name}_accuracy": accuracy for name, accuracy in found.items()},
        "confusion": scores["test"].confusion.tolist(),
        "residual": measured.pop("residual"),
        "drift": probe.drift,
        "cosine": probe.cosine,
        "saturated": probe.saturated,
        "warning": warning,
        "lost": probe.lost or bool(grown or chance),
        "path": measured.pop("path"),
        "weight_quantiles": weight_quantiles(network, arrays),
        **measured,
    }


NORM_LIMIT = 100.0
"""Spectral norm above which a warning is given; activations are then saturated."""


def norm_warning(norms: Mapping[str, float]) -> str | None:
    """Return a warning if the spectral norm of a connection is above `NORM_LIMIT`."""
    name = max(norms, key=lambda each: norms[each])
    if norms[name] <= NORM_LIMIT:
        return None
    return (
        f"the weights have grown too large: connection {name!r} has a spectral norm of "
        f"{norms[name]:.0f} (above {NORM_LIMIT:.0f}); use a smaller learning_rate, or a bound"
    )


CHANCE_DEVIATIONS = 3.0
"""Standard deviations above a constant prediction from which an accuracy is more than chance.

Half the way to 100 % suffices, too: few samples of a rare class leave less room.
"""


def chance_warning(study: Study, data: Dataset, train: float, test: float) -> str | None:
    """Return a warning if training and test accuracy are those of a constant prediction."""
    for split, found in ((data.train, train), (data.test, test)):
        share = float(np.bincount(split.y).max()) / len(split)
        deviation = (share * (1.0 - share) / len(split)) ** 0.5
        if found > share + min(CHANCE_DEVIATIONS * deviation, 0.5 * (1.0 - share)):
            return None
    remedies = ["a smaller learning_rate"]
    if study.rule.nudging in ("negative", "random"):
        remedies.append("nudging 'centered'")
    if not study.training.normalize and not data.vocabulary:
        remedies.append("normalize=true")
    return (
        f"nothing is learnt: the test accuracy of {100 * test:.1f} % is that of chance; use "
        f"{' or '.join(remedies)}"
    )


LINEAR_SAMPLES = 10_000
"""Most training samples of the linear classifier that a training is compared with."""
LINEAR_PRODUCTS = 4e10
"""Most multiplications of its fit, which limit the samples of many features."""
RIDGE = 0.01
"""Its regularization, for features of unit variance."""
LARGEST_FEATURE = 5.0
"""Standardized features are clipped to this size: some are rarely other than their mean."""


def linear_accuracy(data: Dataset) -> float:
    """Return the accuracy of ridge regression onto one-hot labels, on the held-out samples."""
    width = data.features + 1
    most = min(LINEAR_SAMPLES, max(1000, int(LINEAR_PRODUCTS / width**2)))
    rows = np.linspace(0, len(data.train) - 1, min(len(data.train), most)).astype(int)
    few = data.train.take(rows)
    mean, deviation = few.x.mean(axis=0), few.x.std(axis=0)
    deviation[deviation == 0.0] = 1.0

    def features(split: Split) -> Array:
        z = np.clip((split.x - mean) / deviation, -LARGEST_FEATURE, LARGEST_FEATURE)
        return np.column_stack([z, np.ones(len(z))]).astype(np.float32)

    z = features(few)
    gram = (z.T @ z).astype(np.float64) + RIDGE * len(z) * np.eye(width)
    weight = np.linalg.solve(gram, z.T @ one_hot(few.y, data.classes))
    held = data.test if data.validation is None else data.validation
    correct = sum(
        np.count_nonzero((features(part) @ weight).argmax(axis=1) == part.y)
        for part in held.parts()
    )
    return correct / len(held)


def linear_warning(study: Study, data: Dataset, accuracy: float) -> str | None:
    """Return a warning if a held-out accuracy is below that of a linear classifier.

    One standard deviation of the accuracy of that many samples is allowed for.
    """
    if data.vocabulary:
        return None
    linear = linear_accuracy(data)
    held = len(data.test if data.validation is None else data.validation)
    if accuracy >= linear - max(1.0 / held, (linear * (1.0 - linear) / held) ** 0.5):
        return None
    remedies = ["more epochs", "another learning_rate"]
    if not study.training.normalize:
        remedies.append("normalize=true")
    if study.get("output", "linear") != "linear":
        remedies.append("a linear output")
    return (
        f"a linear classifier (ridge regression) reaches {100 * linear:.1f} % of the held-out "
        f"samples, and this network {100 * accuracy:.1f} %: use {' or '.join(remedies)}"
    )


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Reported quantiles, as fractions."""
MAX_WEIGHTS = 100_000
"""Most weights of a connection that are used; larger ones are subsampled evenly."""


def weight_quantiles(network: Network, params: Mapping[str, Array]) -> dict[str, list[float]]:
    """Return the `QUANTILES` of the weights of each connection."""
    found = {}
    for connection in network.connections:
        values = np.ravel(params.get(connection.name, np.zeros(0)))
        if values.size:
            part = values[:: -(-values.size // MAX_WEIGHTS)]
            found[connection.name] = [float(q) for q in np.quantile(part, QUANTILES)]
    return found
