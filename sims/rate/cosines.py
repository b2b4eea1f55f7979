"""How near the updates of every model come to minus the implicit gradient.

Each model learns the digits for one epoch first, so that no weight is as it was drawn; then, in
float64 and settled, the update that a centered nudge of beta 0.1 asks for is compared with the
gradient of the implicit function theorem on 32 samples, weight by weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.data import load_digits, one_hot
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import implicit
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Rule, RuleSettings
from neuro_eqprop.training.study import Study, adapt, make_study

SMOOTH = make_study(
    activation="tanh", output="linear", hidden=(32,), epochs=1, beta=0.1, learning_rate=0.003
)
PHASES = {"free_steps": 15, "nudged_steps": 8}


def changed(study: Study, **settings: Any) -> Study:  # noqa: ANN401
    """The study with other settings, and as many steps as before."""
    return adapt(study, PHASES | settings)


TOKENS = changed(SMOOTH, model="transformer", hidden=(16,), patch=2, heads=2, bound=0.6)
MODELS = {
    "layered, 32": SMOOTH,
    "layered, 32-32, bound 0.6": changed(SMOOTH, hidden=(32, 32), bound=0.6),
    "looped, bound 0.95": changed(SMOOTH, model="looped", bound=0.95),
    "looped, bound 0.95, cross-entropy": changed(
        SMOOTH, model="looped", bound=0.95, cost="cross_entropy"
    ),
    "toroidal": changed(SMOOTH, model="toroidal"),
    "modern": changed(SMOOTH, model="modern", bound=0.6),
    "multiscale": changed(SMOOTH, model="multiscale"),
    "conv, 8 channels": changed(
        SMOOTH, model="conv", hidden=(8,), kernel=3, bound=0.6, feedback=0.5
    ),
    "transformer, linear attention": changed(TOKENS, attention="linear"),
    "transformer, softmax attention": changed(TOKENS, attention="softmax", attention_scale=0.3),
}
ONE_WAY = changed(SMOOTH, model="looped", bound=0.95, symmetric=False, rule="asymmetric")
SAMPLES, STEPS = 32, 600


def cosines() -> dict[str, Any]:
    """For each model the smallest cosine over its parameters, and which parameter has it."""
    found = {name: worst_cosine(study, Rule.HEBBIAN) for name, study in MODELS.items()}
    for rule in (Rule.ASYMMETRIC, Rule.HEBBIAN, Rule.VECTOR_FIELD):
        found[f"looped, not symmetric, rule {rule}"] = worst_cosine(ONE_WAY, rule)
    return found


def worst_cosine(study: Study, rule: str) -> dict[str, Any]:
    """Train one epoch, then compare the update of the rule with minus the exact gradient."""
    data = load_digits()
    network = study.network(data)
    loop = TrainingLoop(study, network, data)
    loop.epoch(evaluate=False)
    params = {name: value.astype(float) for name, value in loop.current().params.items()}
    x, y = data.test.x[:SAMPLES], one_hot(data.test.y[:SAMPLES], data.classes)
    settings = replace(study.rule, name=rule, free_steps=STEPS, nudged_steps=STEPS)
    change, residual = update(study, settings, params, x=x, y=y)
    exact = implicit(network, params, x, y)
    each = {name: defined_cosine(-change[name], exact[name]) for name in exact}
    worst = min(each, key=lambda name: each[name])
    row = {"least": each[worst], "of": worst, "residual": residual, "all": each}
    print(study.model.name, rule, row["least"], worst, flush=True)
    return row


@torch.no_grad()
def update(
    study: Study, settings: RuleSettings, params: dict[str, Any], *, x: Array, y: Array
) -> tuple[dict[str, Any], float]:
    """The update of the rule, summed over the samples, and the residual of the free phase."""
    ops = TorchOps(torch.float64)
    network = study.network(load_digits())
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    batch = Batch(ops.from_numpy(x), ops.from_numpy(y), measured=True)
    found = RULES[settings.name].update(ops, network, tensors, batch, settings)
    change = {name: -len(x) * ops.to_numpy(g) for name, g in found.gradients.items()}
    return change, found.residual
