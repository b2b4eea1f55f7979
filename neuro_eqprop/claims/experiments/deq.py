"""EqProp, implicit differentiation and phantom gradients side by side: direction and cost.

All three in float32 with the settle steps of training; the truth is implicit differentiation in
float64 at a state settled to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments import cost
from neuro_eqprop.claims.experiments.common import data_of, study_of, trained
from neuro_eqprop.claims.experiments.gradient import flat
from neuro_eqprop.claims.experiments.kernel import interleaved, step
from neuro_eqprop.data import one_hot
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.gradients.exact import cosine, implicit
from neuro_eqprop.training.gradients.implicit import symmetrise


def phantom(tail: int) -> cost.Grads:
    """Phantom gradients of so many steps."""

    def grads(network: Network, leaves: Any, x: Any, y: Any, steps: int) -> None:  # noqa: ANN401
        cost.phantom(network, leaves, x, y, steps, tail)

    return grads


def side_by_side(arguments: Mapping[str, Any], seed: int) -> Json:
    """Of each way the cosine with the truth, and CPU seconds for one batch."""
    study = study_of(arguments, seed)
    done = trained(study, data_of(arguments))
    network, params, data = done.network, done.exact, done.data
    rows = np.random.default_rng([seed, 1]).integers(0, len(data.train), study.training.batch)
    x, y = data.train.x[rows], one_hot(data.train.y[rows], data.classes)
    truth = flat({name: -slope for name, slope in implicit(network, params, x, y).items()})
    ways: dict[str, cost.Grads] = {
        "implicit": cost.implicit,
        "bptt": cost.bptt,
        **{f"phantom {tail}": phantom(tail) for tail in arguments["tails"]},
    }
    asks = step(TorchOps(), network, params, x, y, study.recipe().schedule())
    with torch.no_grad():
        asked = {name: change.numpy() for name, change in asks().items()}
    runs: dict[str, Callable[[], object]] = {"eqprop": torch.no_grad()(asks)}
    made = {"eqprop": flat(asked)}
    for name, way in ways.items():
        slopes = cost.ready(network, params, x, y, study.rule.free_steps, way)
        runs[name] = slopes
        found = {part: -TorchOps().to_numpy(slope) for part, slope in slopes().items()}
        made[name] = flat(symmetrise(network, found))
    seconds = interleaved(runs, rounds=arguments["rounds"], times=3)
    return {
        name: {"cosine": round(cosine(made[name], truth), 6), "seconds": seconds[name]}
        for name in runs
    }
