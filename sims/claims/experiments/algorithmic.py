"""Accuracy and settling steps on sequences of several lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.ops.numpy import NumpyOps
from sims.claims.claim import Json
from sims.claims.data.sequences import make_sequences
from sims.claims.experiments.common import TEST_STOP, study_of, train_study
from sims.claims.statistics import spearman


def lengths(arguments: Mapping[str, Any], seed: int) -> Json:
    """Train on each length; rank correlation of the settling steps with the length.

    `rho` is over all test samples, `rho_right` over the correctly classified ones; None where
    these have a single length or take equal steps.
    """
    study, found = study_of(arguments, seed), []
    for length in arguments["lengths"]:
        data = make_sequences(
            arguments["dataset"],
            length=length,
            samples=arguments["images"],
            test=arguments["tests"],
            seed=seed,
        )
        trained = train_study(study, data)
        settled = infer(
            NumpyOps(np.float32), trained.network, trained.params, data.test.x, TEST_STOP
        )
        majority = float(np.bincount(data.test.y).max() / len(data.test))
        found.append((length, settled.steps, settled.classes == data.test.y, majority))
    steps = np.concatenate([each[1] for each in found])
    size = np.concatenate([np.full(len(each[1]), each[0]) for each in found])
    right = np.concatenate([each[2] for each in found])
    return {
        "lengths": list(arguments["lengths"]),
        "accuracy": [float(each[2].mean()) for each in found],
        "majority": [each[3] for each in found],
        "steps": [float(each[1].mean()) for each in found],
        "rho": spearman(steps.tolist(), size.tolist()).value,
        "rho_right": correlation(steps[right].tolist(), size[right].tolist()),
    }


def correlation(one: list[float], other: list[float]) -> float | None:
    """Spearman's rank correlation; None if one side is constant."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return spearman(one, other).value
