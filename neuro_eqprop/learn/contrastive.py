"""Teachers that let a network settle in phases and compare them; no graph of torch anywhere."""

from __future__ import annotations

from cmath import exp, pi
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from neuro_eqprop.activations import Curve
from neuro_eqprop.learn.asymmetric import adjoint, vector_field
from neuro_eqprop.learn.episode import SWEEPS, Settling, relax
from neuro_eqprop.learn.hebbian import contrasted, hebbian
from neuro_eqprop.learn.recipe import Lesson, Nudging, Recipe, Rule, Taught
from neuro_eqprop.networks import Cost, Network
from neuro_eqprop.ops.base import Values
from neuro_eqprop.ops.torch_ops import TorchOps
from neuro_eqprop.rate.field import Field, State
from neuro_eqprop.rate.field import field as field_of
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Anderson, Equilibrium, GaussSeidel, Stop, solve


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


def settling(recipe: Recipe, *, measured: bool) -> Settling:
    """How the recipe lets networks settle."""
    if recipe.damping == 1.0 and not recipe.anderson:
        return SWEEPS if measured else replace(SWEEPS, measured=False)
    ways = [GaussSeidel(backwards, recipe.damping) for backwards in (False, True)]
    if recipe.anderson:
        free, nudged = (Anderson(way, recipe.anderson) for way in ways)
        return Settling(free, nudged, measured=measured)
    return Settling(ways[0], ways[1], measured=measured)


@dataclass(frozen=True, slots=True)
class Episode:
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


def go_through(
    ops: TorchOps, network: Network, params: Mapping[str, Values], lesson: Lesson, recipe: Recipe
) -> Episode:
    """The free phase and the nudged ones."""
    free, schedule = field_of(ops, network, params, lesson.x), recipe.schedule(lesson.beta)
    turn = adjoint if recipe.rule is Rule.ASYMMETRIC else None
    way = settling(recipe, measured=lesson.measured)
    return Episode(free, schedule, relax(free, lesson.y, schedule, way, turn))


def by_phases(
    ops: TorchOps, network: Network, params: Mapping[str, Values], lesson: Lesson, recipe: Recipe
) -> Taught:
    """What the rule makes of the phases of a batch."""
    episode = go_through(ops, network, params, lesson, recipe)
    states, schedule = episode.states, episode.schedule
    ask = hebbian if recipe.rule is Rule.HEBBIAN else vector_field
    mean = -1.0 / len(lesson.x)
    slopes = ask(
        ops, network, lesson.x, states=states, schedule=schedule, params=params, scale=mean
    )
    check(network, states, slopes)
    rest = episode.rest
    return Taught(slopes, right(episode.free, rest.state, lesson), residual(rest, lesson))


def residual(rest: Equilibrium, lesson: Lesson) -> float:
    """The largest last change of a free phase, where it was measured."""
    return float(rest.residual.max()) if lesson.measured else 0.0


def right(free: Field, rest: State, lesson: Lesson) -> int:
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
    # The output's bias asks for the mean of its shifts: small, and not finite if any rate is not.
    if bool(slopes[network.output.name].isfinite().all()):
        return
    left = (
        f"layer {layer.name!r} in the {phase} phase"
        for phase, state in states.items()
        for layer in network.moving
        if not bool(state[layer.name].isfinite().all())
    )
    raise TrainingError(
        f"the rates left the finite numbers, first {next(left, 'in the update')}; use a smaller "
        "learning rate or beta, a spectral bound, or a bounded activation"
    )


def holomorphic(
    ops: TorchOps, network: Network, params: Mapping[str, Values], lesson: Lesson, recipe: Recipe
) -> Taught:
    """Nudges at beta exp(2 pi i k / N) around a circle, and the first Fourier mode of the products.

    dtheta = real part of 1 / (N beta) sum over k of exp(-2 pi i k / N) p(s_k), with p the Hebbian
    product: exact up to the N-th order in beta where all activations are smooth.
    """
    for layer in network.moving:
        rate = layer.activation
        if rate.curve is Curve.CLIP and (rate.low, rate.high) != (-torch.inf, torch.inf):
            raise TrainingError(
                f"layer {layer.name!r} has activation {rate.name!r}, which has kinks, and "
                f"holomorphic nudging needs smooth ones: use tanh and a linear output, or "
                f"--nudging centered"
            )
    free = field_of(ops, network, params, lesson.x)
    way = settling(recipe, measured=lesson.measured)
    stop = Stop(way.tolerance, recipe.free_steps, way.measured)
    rest = solve(free, free.rest(), way.free, stop)
    wide = replace(ops, dtype=torch.complex128 if ops.dtype == torch.float64 else torch.complex64)
    brought = {name: p.to(wide.dtype) for name, p in params.items()}
    x, y = lesson.x.to(wide.dtype), lesson.y.to(wide.dtype)
    around = field_of(wide, network, brought, x)
    start = {name: s.to(wide.dtype) for name, s in rest.state.items()}
    states, part = {}, {}
    for k in range(recipe.points):
        turn = exp(2j * pi * k / recipe.points)
        at = around.nudged(y, recipe.beta * turn)
        stop = Stop(None, recipe.nudged_steps, measured=False)
        states[f"point{k}"] = solve(at, start, way.nudged, stop).state
        part[f"point{k}"] = -1.0 / (len(x) * recipe.points * recipe.beta * turn)
    wound = contrasted(wide, network, x, states=states, part=part, params=brought)
    slopes = {name: change.real.contiguous() for name, change in wound.items()}
    check(network, {"free": rest.state, **states}, slopes)
    return Taught(slopes, right(free, rest.state, lesson), residual(rest, lesson))


def contrastive(
    ops: TorchOps, network: Network, params: Mapping[str, Values], lesson: Lesson, recipe: Recipe
) -> Taught:
    """The Hebbian rule, at phases on the real line or around a circle."""
    around = recipe.nudging is Nudging.HOLOMORPHIC
    return (holomorphic if around else by_phases)(ops, network, params, lesson, recipe)
