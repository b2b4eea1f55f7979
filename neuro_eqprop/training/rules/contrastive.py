"""Teachers that let a network settle in phases and compare them; no graph of torch anywhere."""

from __future__ import annotations

from cmath import exp, pi
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

import torch

from neuro_eqprop.activations import ActivationKind
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.operators import AttentionKind, CrossAttention
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import Field, State
from neuro_eqprop.rate.field import field as field_of
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Anderson, Damped, Equilibrium, GaussSeidel, Inner, Stop, solve
from neuro_eqprop.training.config import Batch, BatchUpdate, Nudging, Rule, TrainingConfig
from neuro_eqprop.training.fast.one_hidden import is_worth_compiling, update_one_hidden
from neuro_eqprop.training.relax import Settling, relax, swept
from neuro_eqprop.training.rules.asymmetric import adjoint, along, vector_field
from neuro_eqprop.training.rules.base import EVERY, UpdateRule
from neuro_eqprop.training.rules.hebbian import contrasted, hebbian
from neuro_eqprop.training.settings import ContrastiveSettings

DIVERGENCE_ADVICE = "use a smaller learning rate or beta, a spectral bound, or a bounded activation"


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


def settling(recipe: TrainingConfig, *, measured: bool) -> Settling:
    """How the recipe lets networks settle."""
    ways: tuple[Inner, Inner]
    if recipe.together:
        ways = Damped(recipe.damping), Damped(recipe.damping)
    else:
        ways = GaussSeidel(False, recipe.damping), GaussSeidel(True, recipe.damping)
    free, nudged = (Anderson(w, recipe.anderson) for w in ways) if recipe.anderson else ways
    return Settling(free, nudged, recipe.tolerance, measured)


@dataclass(frozen=True, slots=True)
class SettledPhases:
    """A batch that went through its phases."""

    free: Field
    schedule: Schedule
    phases: Mapping[str, Equilibrium]

    @property
    def states(self) -> dict[str, State]:
        """Where each phase ended."""
        return {name: settled.state for name, settled in self.phases.items()}

    @property
    def rest(self) -> Equilibrium:
        """Where the free phase ended."""
        return self.phases[self.schedule[0].name]

    @property
    def steps(self) -> dict[str, float]:
        """The mean steps of a sample in the free phase and in a nudged one."""
        free, *nudged = [float(settled.steps.mean()) for settled in self.phases.values()]
        return {"free": free, "nudged": sum(nudged) / len(nudged)}


def settle_phases(free: Field, lesson: Batch, recipe: TrainingConfig) -> SettledPhases:
    """The free phase and the nudged ones."""
    schedule, way = recipe.schedule(lesson.beta), settling(recipe, measured=lesson.measured)
    turn = adjoint if recipe.rule == Rule.ASYMMETRIC else None
    return SettledPhases(free, schedule, relax(free, lesson.y, schedule, way, turn))


def fused_update(free: Field, lesson: Batch, recipe: TrainingConfig) -> BatchUpdate | None:
    """What compiled code makes of a batch, where there is any for it."""
    if recipe.rule != Rule.HEBBIAN or not is_worth_compiling(free):
        return None
    schedule, way = recipe.schedule(lesson.beta), settling(recipe, measured=lesson.measured)
    return update_one_hidden(free, lesson, schedule) if swept(free.network, schedule, way) else None


def by_phases(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """What the rule makes of the phases of a batch."""
    free = field_of(ops, network, params, lesson.x)
    taught = fused_update(free, lesson, recipe)
    if taught is not None:
        return taught
    episode = settle_phases(free, lesson, recipe)
    states, schedule = episode.states, episode.schedule
    ask = hebbian if recipe.rule == Rule.HEBBIAN else vector_field
    mean = -1.0 / len(lesson.x)
    slopes = ask(
        ops, network, lesson.x, states=states, schedule=schedule, params=params, scale=mean
    )
    check(network, states, slopes)
    return batch_update(episode, slopes, lesson, recipe)


def batch_update(
    episode: SettledPhases, slopes: Mapping[str, Values], lesson: Batch, recipe: TrainingConfig
) -> BatchUpdate:
    """What came of an episode that gives these slopes."""
    rest, steps = episode.rest, episode.steps if recipe.tolerance else None
    found = count_correct(episode.free, rest.state, lesson)
    return BatchUpdate(slopes, found, residual(rest, lesson), steps)


def residual(rest: Equilibrium, lesson: Batch) -> float:
    """The largest last change of a free phase, where it was measured."""
    return float(rest.residual.max()) if lesson.measured else 0.0


def count_correct(free: Field, rest: State, lesson: Batch) -> int:
    """How many samples the free phase answers right.

    A free sweep sets the output last, so its rate ranks the classes as its drive did, except where
    clipping ties them: good enough for the running figure of an epoch.
    """
    name = free.network.output.name
    reads = free.network.cost is Cost.CROSS_ENTROPY
    answers = (free.drive(name, rest) if reads else rest[name]).contiguous().argmax(dim=1)
    return int((answers == lesson.y.argmax(dim=1)).sum())


def check(network: Network, states: Mapping[str, State], slopes: Mapping[str, Values]) -> None:
    """Refuse changes that are not finite, with the name of the layer that left first."""
    # The output's bias asks for the mean of its shifts: small, and its sum is not finite if any
    # rate is not.
    if isfinite(slopes[network.output.name].sum().item()):
        return
    left = (
        f"layer {layer.name!r} in the {phase} phase"
        for phase, state in states.items()
        for layer in network.moving
        if not bool(state[layer.name].isfinite().all())
    )
    raise TrainingError(
        f"the rates diverged (NaN or inf), first {next(left, 'in the update')}; {DIVERGENCE_ADVICE}"
    )


def refuse_kinks(network: Network) -> None:
    """Refuse activations on which holomorphic nudging is not defined."""
    for layer in network.moving:
        rate = layer.activation
        if rate.curve is ActivationKind.CLIP and (rate.low, rate.high) != (-torch.inf, torch.inf):
            raise TrainingError(
                f"layer {layer.name!r} has activation {rate.name!r}, which has kinks, and "
                f"holomorphic nudging needs smooth ones: use tanh and a linear output, or "
                f"--nudging centered"
            )
    for connection in network.connections:
        if (
            isinstance(connection.operator, CrossAttention)
            and connection.operator.kind is AttentionKind.LINEAR
        ):
            raise TrainingError(
                f"connection {connection.name!r} matches tokens by elu, which is made of two "
                f"pieces, and holomorphic nudging needs smooth functions: use --set "
                f"attention=softmax, or --nudging centered"
            )


def refuse_circle(recipe: TrainingConfig) -> None:
    """Refuse holomorphic nudging, for rules that have no use for it."""
    if recipe.nudging is Nudging.HOLOMORPHIC:
        raise TrainingError(
            f"rule {recipe.rule!r} nudges along the real line: use --nudging centered, or "
            f"holomorphic nudging with rule 'hebbian', 'vector-field' or 'asymmetric'"
        )


def holomorphic(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """Nudges at beta exp(2 pi i k / N) around a circle, and the first Fourier mode of the products.

    dtheta = real part of 1 / (N beta) sum over k of exp(-2 pi i k / N) p(s_k), with p the product
    of the rule: exact up to the N-th order in beta where all activations are smooth.
    """
    refuse_kinks(network)
    beta = recipe.beta if lesson.beta is None else lesson.beta
    free = field_of(ops, network, params, lesson.x)
    way = settling(recipe, measured=lesson.measured)
    rest = solve(
        free, free.zero_state(), way.free, Stop(way.tolerance, recipe.free_steps, way.measured)
    )
    wide = replace(ops, dtype=torch.complex128 if ops.dtype == torch.float64 else torch.complex64)
    brought = {name: p.to(wide.dtype) for name, p in params.items()}
    x, y = lesson.x.to(wide.dtype), lesson.y.to(wide.dtype)
    around = field_of(wide, network, brought, x)
    start = {name: s.to(wide.dtype) for name, s in rest.state.items()}
    around = adjoint(around, start) if recipe.rule == Rule.ASYMMETRIC else around
    phases, part = {"free": rest}, {}
    for k in range(recipe.points):
        turn = exp(2j * pi * k / recipe.points)
        stop = Stop(way.tolerance, recipe.nudged_steps, measured=False)
        phases[f"point{k}"] = solve(around.nudged(y, beta * turn), start, way.nudged, stop)
        part[f"point{k}"] = -1.0 / (len(x) * recipe.points * beta * turn)
    states = {name: phases[name].state for name in part}
    if recipe.rule == Rule.HEBBIAN:
        wound = contrasted(wide, network, x, states=states, part=part, params=brought)
    else:
        wound = along(wide, network, x, rest=start, states=states, part=part, params=brought)
    slopes = {name: change.real.contiguous() for name, change in wound.items()}
    check(network, {"free": rest.state, **states}, slopes)
    return batch_update(SettledPhases(free, recipe.schedule(), phases), slopes, lesson, recipe)


def contrastive(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    lesson: Batch,
    recipe: TrainingConfig,
) -> BatchUpdate:
    """A rule of phases, at nudges on the real line or around a circle."""
    around = recipe.nudging is Nudging.HOLOMORPHIC
    return (holomorphic if around else by_phases)(ops, network, params, lesson, recipe)


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
