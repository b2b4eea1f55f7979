"""The metrics of an epoch: accuracies, the quality of the update, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, one_hot
from neuro_eqprop.dynamics.inference import COARSE, score
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.diagnostics import Diagnostics, diagnose
from neuro_eqprop.training.rules.base import UpdateRule
from neuro_eqprop.training.study import Study

PROBED = 16
"""Number of training samples for the diagnostics after each epoch."""


def evaluate(
    study: Study,
    network: Network,
    data: Dataset,
    params: Mapping[str, torch.Tensor],
    rule: UpdateRule,
    row: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metrics of an epoch: those that the training measured, in `row`, and others."""
    ops = TorchOps(device=study.training.device)
    scores = {
        name: score(ops, network, params, split, COARSE, study.rule.damping)
        for name, split in (("test", data.test), ("validation", data.validation))
        if split is not None
    }
    probe, measured = probe_diagnostics(study, network, data, params, rule), dict(row)
    arrays = {name: value.detach().cpu().numpy() for name, value in params.items()}
    return {
        "epoch": measured.pop("epoch"),
        "train_accuracy": measured.pop("train_accuracy"),
        **{f"{name}_accuracy": found.accuracy for name, found in scores.items()},
        "confusion": scores["test"].confusion.tolist(),
        "residual": measured.pop("residual"),
        "drift": probe.drift,
        "cosine": probe.cosine,
        "warning": norm_warning(row["spectral"])
        or probe.warning
        or chance_warning(study, data, row["train_accuracy"], scores["test"].accuracy),
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
"""Standard deviations above a constant prediction from which an accuracy is more than chance."""


def chance_warning(study: Study, data: Dataset, train: float, test: float) -> str | None:
    """Return a warning if training and test accuracy are those of a constant prediction."""
    for split, found in ((data.train, train), (data.test, test)):
        share = float(np.bincount(split.y).max()) / len(split)
        if found > share + CHANCE_DEVIATIONS * (share * (1.0 - share) / len(split)) ** 0.5:
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


def probe_diagnostics(
    study: Study,
    network: Network,
    data: Dataset,
    params: Mapping[str, torch.Tensor],
    rule: UpdateRule,
    *,
    truth: bool = True,
) -> Diagnostics:
    """Return the diagnostics of a few training samples."""
    few = data.train.take(slice(PROBED))
    y = one_hot(few.y, network.output.size)
    arrays = {name: value.detach().cpu().numpy() for name, value in params.items()}
    return diagnose(network, arrays, few.x, y, study.rule, rule=rule, truth=truth)


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
