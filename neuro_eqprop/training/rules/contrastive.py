"""The contrastive update rules: 'hebbian', 'vector-field' and 'asymmetric'.

A batch settles in a free phase and in one or two nudged phases; the update is a contrast of these
states (`rules.hebbian`, `rules.asymmetric`). Nothing is backpropagated and no graph is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Ops, Values
from neuro_eqprop.rate.field import Field, field
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import Nudging, Rule, TrainingConfig
from neuro_eqprop.training.fast.one_hidden import is_worth_compiling, update_one_hidden
from neuro_eqprop.training.relax import uses_plain_sweeps
from neuro_eqprop.training.rules.asymmetric import vector_field
from neuro_eqprop.training.rules.base import EVERY, UpdateRule
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.holomorphic import holomorphic
from neuro_eqprop.training.rules.phases import (
    SettledPhases,
    check_gradients,
    settle_phases,
    settling,
)
from neuro_eqprop.training.settings import ContrastiveSettings


def contrastive(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    config: TrainingConfig,
) -> BatchUpdate:
    """The update of a batch from its free and nudged equilibria."""
    if config.nudging is Nudging.HOLOMORPHIC:
        return holomorphic(ops, network, params, batch, config)
    free = field(ops, network, params, batch.x)
    compiled = compiled_update(free, batch, config)
    if compiled is not None:
        return compiled
    settled = settle_phases(free, batch, config)
    gradients = phase_gradients(settled, batch, config, scale=-1.0 / len(batch.x))
    return settled.update(gradients, batch, config)


def phase_gradients(
    settled: SettledPhases, batch: Batch, config: TrainingConfig, scale: float
) -> dict[str, Values]:
    """The update of the rule, times `scale`: -1 / samples gives the gradient of the mean cost."""
    ops, network, states = settled.free.ops, settled.free.network, settled.states
    rule = hebbian if config.rule == Rule.HEBBIAN else vector_field
    gradients = rule(
        ops,
        network,
        batch.x,
        states=states,
        schedule=settled.schedule,
        params=settled.free.params,
        scale=scale,
    )
    check_gradients(ops, network, states, gradients)
    return gradients


def compiled_update(free: Field, batch: Batch, config: TrainingConfig) -> BatchUpdate | None:
    """The same by compiled code, for networks that it supports; None for others."""
    if config.rule != Rule.HEBBIAN or not is_worth_compiling(free):
        return None
    schedule, solvers = config.schedule(batch.beta), settling(config, measured=batch.measured)
    if not uses_plain_sweeps(free.network, schedule, solvers):
        return None
    return update_one_hidden(free, batch, schedule)


HEBBIAN = UpdateRule(
    "hebbian",
    "contrast of Hebbian products; the gradient for small beta if all connections are symmetric",
    contrastive,
    ContrastiveSettings,
    nudgings=EVERY,
    compares_phases=True,
    needs_feedback=True,
)
VECTOR_FIELD = UpdateRule(
    "vector-field",
    "shift of the target times the free rate of the source",
    contrastive,
    ContrastiveSettings,
    nudgings=EVERY,
    compares_phases=True,
    needs_feedback=True,
)
ASYMMETRIC = UpdateRule(
    "asymmetric",
    "vector-field rule with the adjoint nudge; the gradient also without symmetric connections",
    contrastive,
    ContrastiveSettings,
    nudgings=EVERY,
    compares_phases=True,
)
