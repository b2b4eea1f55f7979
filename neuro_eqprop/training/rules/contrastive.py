"""The contrastive update rules: 'hebbian', 'vector-field' and 'asymmetric'.

A batch settles in a free phase and in one or two nudged phases; the update is a contrast of these
states (`rules.hebbian`, `rules.asymmetric`). Nothing is backpropagated and no graph is recorded.
`path_of` says how the update of a network is computed; `rules.contrastive_rules` describes the
rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.displacement import update_by_displacement
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.one_hidden import (
    has_one_hidden_layer,
    update_one_hidden,
)
from neuro_eqprop.training.fast.structure import is_supported
from neuro_eqprop.training.rules.asymmetric import vector_field
from neuro_eqprop.training.rules.base import Batch, BatchUpdate
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.holomorphic import holomorphic
from neuro_eqprop.training.rules.phases import (
    SettledPhases,
    check_gradients,
    resolving,
    settle_phases,
    settling,
    smallest_displacement,
    uses_plain_sweeps,
)
from neuro_eqprop.training.settings import VECTOR_FIELDS, Nudging, RuleSettings


class UpdatePath(Enum):
    """How the update of a batch is computed; all agree at equilibrium."""

    ONE_HIDDEN = "one-hidden"
    """Compiled sweeps of one dense hidden layer (`training.fast.one_hidden`)."""
    DISPLACEMENT = "displacement"
    """Half-sweeps of a network of linear couplings and attention; nudged phases as displacements
    (`training.fast.chain`)."""
    PHASES = "phases"
    """Every phase settled by a solver (`rules.phases`), and contrasted."""


RESOLVED_NEXT_TO_OUTPUT = 5e-4
"""As `phases.RESOLVED`, of a layer that the output itself nudges: little attenuates it."""


def path_of(ops: Ops, network: Network, settings: RuleSettings) -> UpdatePath:
    """The path that the update of a network takes."""
    schedule, solvers = settings.schedule(), settling(settings, measured=False)
    plain = settings.name not in VECTOR_FIELDS and settings.nudging != Nudging.HOLOMORPHIC
    if not (plain and uses_plain_sweeps(schedule, solvers) and isinstance(ops, TorchOps)):
        return UpdatePath.PHASES
    resolved = smallest_displacement(network, settings) >= RESOLVED_NEXT_TO_OUTPUT
    if resolved and has_one_hidden_layer(network) and ops.device == "cpu":
        return UpdatePath.ONE_HIDDEN
    return UpdatePath.DISPLACEMENT if is_supported(network) else UpdatePath.PHASES


cached_path = keep_last(path_of)
"""`path_of`, cached for a training: on a small batch it would take a large part of the time."""


@keep_last
def schedule_of(settings: RuleSettings, beta: float | None) -> Schedule:
    """The phases of a batch, cached for a training."""
    return settings.schedule(beta)


def contrastive(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """The update of a batch from its free and nudged equilibria."""
    path, found = cached_path(ops, network, settings), None
    if path is UpdatePath.DISPLACEMENT and isinstance(ops, TorchOps):
        schedule = schedule_of(settings, batch.beta)
        found = update_by_displacement(ops, network, params, batch, schedule)
    elif path is UpdatePath.ONE_HIDDEN and batch.x.dtype.itemsize == 4:
        schedule = schedule_of(settings, batch.beta)
        found = update_one_hidden(ops, network, params, batch, schedule)
    if found is None:
        path = UpdatePath.PHASES
        found = update_by_phases(ops, network, params, batch, settings)
    return replace(found, path=path.value)


@resolving
def update_by_phases(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """The update of a batch, every phase of which is settled by a solver."""
    if settings.nudging == Nudging.HOLOMORPHIC:
        return holomorphic(ops, network, params, batch, settings)
    settled = settle_phases(field(ops, network, params, batch.x), batch, settings)
    gradients = phase_gradients(settled, batch, settings, scale=-1.0 / len(batch.x))
    return settled.update(gradients, batch, settings)


def phase_gradients(
    settled: SettledPhases, batch: Batch, settings: RuleSettings, scale: float
) -> dict[str, Values]:
    """The update of the rule, times `scale`: -1 / samples gives the gradient of the mean cost."""
    ops, network, states = settled.free.ops, settled.free.network, settled.states
    rule = vector_field if settings.name in VECTOR_FIELDS else hebbian
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
