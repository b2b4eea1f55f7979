"""EqProp, implicit differentiation, BPTT and phantom gradients: direction and CPU time.

All run in float32 with the settling steps of training; the reference is implicit differentiation in
float64 at a fully converged state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from neuro_eqprop.common.arrays import defined_cosine
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training import gradients as exact
from sims.claims.claim import Json
from sims.claims.experiments.common import data_of, study_of, train_study, training_batch
from sims.claims.experiments.cost import (
    GradientMethod,
    bptt,
    implicit,
    phantom,
    prepare_gradient,
)
from sims.claims.experiments.gradient import concatenate
from sims.claims.experiments.kernel import interleaved_times, prepare_step


def compare_methods(arguments: Mapping[str, Any], seed: int) -> Json:
    """For each method the cosine with the reference, and CPU seconds for one batch."""
    study = study_of(arguments, seed)
    trained = train_study(study, data_of(arguments))
    network, params, data = trained.network, trained.float64, trained.data
    x, y = training_batch(data, study.training.batch, seed)
    reference = concatenate({n: -g for n, g in exact.implicit(network, params, x, y).items()})
    step = prepare_step(TorchOps(), network, params, x, y, study.rule.schedule())
    with torch.no_grad():
        update = {name: change.numpy() for name, change in step().items()}
    runs: dict[str, Callable[[], object]] = {"eqprop": torch.no_grad()(step)}
    updates = {"eqprop": concatenate(update)}
    methods: dict[str, GradientMethod] = {
        "implicit": implicit,
        "bptt": bptt,
        **{f"phantom {tail}": phantom(tail) for tail in arguments["tails"]},
    }
    for name, method in methods.items():
        run = prepare_gradient(network, params, x, y, study.rule.free_steps, method)
        runs[name] = run
        updates[name] = concatenate({n: -TorchOps().to_numpy(g) for n, g in run().items()})
    seconds = interleaved_times(runs, rounds=arguments["rounds"], times=3)
    return {
        name: {
            "cosine": round(defined_cosine(updates[name], reference), 6),
            "seconds": seconds[name],
        }
        for name in runs
    }
