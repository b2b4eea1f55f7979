"""The contrastive update rules: 'hebbian', 'vector-field' and 'asymmetric'.

A batch settles in a free phase and in one or two nudged phases; the update is a contrast of these
states (`rules.hebbian`, `rules.asymmetric`). Nothing is backpropagated and no graph is recorded.
`path_of` says how the update of a network is computed; `rules.contrastive_rules` describes the
rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import Nudging, Rule, TrainingConfig
from neuro_eqprop.training.fast.displacement import update_by_displacement
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.one_hidden import (
    has_one_hidden_layer,
    update_one_hidden,
)
from neuro_eqprop.training.fast.structure import is_supported
from neuro_eqprop.training.relax import uses_plain_sweeps
from neuro_eqprop.training.rules.asymmetric import vector_field
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.holomorphic import holomorphic
from neuro_eqprop.training.rules.phases import (
    SettledPhases,
    check_gradients,
    settle_phases,
    settling,
)


class Path(Enum):
    """How the update of a batch is computed; all agree at equilibrium."""

    ONE_HIDDEN = "one-hidden"
    """Compiled sweeps of one dense hidden layer (`training.fast.one_hidden`)."""
    DISPLACEMENT = "displacement"
    """Half-sweeps of a network of linear couplings and attention; nudged phases as displacements
    (`training.fast.chain`)."""
    PHASES = "phases"
    """Every phase settled by a solver (`training.relax`), and contrasted."""


RESOLVED = 5e-4
"""Smallest displacement of a hidden rate, g beta, that a difference of float32 rates resolves."""


def path_of(ops: Ops, network: Network, config: TrainingConfig) -> Path:
    """The path that the update of a network takes."""
    schedule, solvers = config.schedule(), settling(config, measured=False)
    plain = config.rule == Rule.HEBBIAN and config.nudging is not Nudging.HOLOMORPHIC
    if not (plain and uses_plain_sweeps(schedule, solvers) and isinstance(ops, TorchOps)):
        return Path.PHASES
    if has_one_hidden_layer(network) and ops.device == "cpu" and is_resolved(network, config):
        return Path.ONE_HIDDEN
    return Path.DISPLACEMENT if is_supported(network) else Path.PHASES


def is_resolved(network: Network, config: TrainingConfig) -> bool:
    """Whether the nudge displaces the last hidden layer enough to subtract its rates."""
    beta = min(abs(config.beta_at(0.0)), abs(config.beta_at(1.0)))
    return beta * network.feedback(network.connections[-1]) >= RESOLVED


cached_path = keep_last(path_of)
"""`path_of`, cached for a training: on a small batch it would take a large part of the time."""


@keep_last
def schedule_of(config: TrainingConfig, beta: float | None) -> Schedule:
    """The phases of a batch, cached for a training."""
    return config.schedule(beta)


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
    path = cached_path(ops, network, config)
    if path is Path.DISPLACEMENT and isinstance(ops, TorchOps):
        return update_by_displacement(ops, network, params, batch, schedule_of(config, batch.beta))
    if path is Path.ONE_HIDDEN and batch.x.dtype.itemsize == 4:
        schedule = schedule_of(config, batch.beta)
        compiled = update_one_hidden(ops, network, params, batch, schedule)
        if compiled is not None:
            return compiled
    free = field(ops, network, params, batch.x)
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
