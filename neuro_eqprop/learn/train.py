"""The training loop: a generator of epochs; who runs it writes, shows and resumes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import cos, pi

import numpy as np
import torch

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.data import Split, batches, one_hot
from neuro_eqprop.learn.episode import SWEEPS, relax
from neuro_eqprop.learn.hebbian import hebbian
from neuro_eqprop.networks import Network
from neuro_eqprop.rate import spectral
from neuro_eqprop.rate.field import field as field_of
from neuro_eqprop.rate.ops import Values
from neuro_eqprop.rate.torch_ops import TorchOps
from neuro_eqprop.schedules import Schedule, three_phase, two_phase


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


class Nudging(Enum):
    """Which nudged phases follow the free one."""

    POSITIVE = "positive"
    CENTERED = "centered"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train. `beta` is per sample: the cost is summed, not averaged, over a batch."""

    epochs: int
    batch: int
    optimiser: str
    learning_rate: float
    """At the start; it falls to zero along half a cosine."""
    nudging: Nudging
    beta: float
    free_steps: int
    nudged_steps: int
    seed: int

    def schedule(self) -> Schedule:
        """The phases of each episode."""
        make = two_phase if self.nudging is Nudging.POSITIVE else three_phase
        return make(beta=self.beta, free=self.free_steps, nudged=self.nudged_steps)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that training needs to go on: epochs done, parameters, the optimiser's memory."""

    epoch: int
    params: Mapping[str, Array]
    memory: Mapping[str, Array] = field(default_factory=dict)
    """By "parameter/quantity"."""


@dataclass(frozen=True, slots=True)
class Progress:
    """An epoch that is done."""

    snapshot: Snapshot
    train_accuracy: float
    """Of the free phases during the epoch, each batch before its update."""
    residual: float
    """The largest last change of a rate in the free phases that were measured."""
    settle_steps: Mapping[str, float]
    spectral: Mapping[str, float]
    seconds: float


OPTIMISERS = ("adam", "sgd")
MEASURE_EVERY = 10
"""Batches from one whose settling is measured to the next."""


def optimiser(recipe: Recipe, params: Mapping[str, torch.Tensor]) -> torch.optim.Optimizer:
    """The optimiser that turns asked-for changes into steps."""
    values = list(params.values())
    if recipe.optimiser == "adam":
        return torch.optim.Adam(values, lr=recipe.learning_rate)
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(values, lr=recipe.learning_rate, momentum=0.9)
    raise UnknownNameError("optimiser", recipe.optimiser, OPTIMISERS)


def remember(
    stepper: torch.optim.Optimizer, params: Mapping[str, torch.Tensor]
) -> dict[str, Array]:
    """The optimiser's memory, by "parameter/quantity"."""
    return {
        f"{name}/{key}": value.detach().cpu().numpy().copy()
        for name, tensor in params.items()
        for key, value in stepper.state[tensor].items()
        if isinstance(value, torch.Tensor)
    }


def recall(
    stepper: torch.optim.Optimizer,
    params: Mapping[str, torch.Tensor],
    memory: Mapping[str, Array],
) -> None:
    """Give an optimiser its memory back."""
    for entry, value in memory.items():
        name, key = entry.rsplit("/", 1)
        stepper.state[params[name]][key] = torch.from_numpy(np.array(value))


def train(
    network: Network, data: Split, recipe: Recipe, start: Snapshot, ops: TorchOps | None = None
) -> Iterator[Progress]:
    """Train from `start` to the last epoch of the recipe, one `Progress` for each epoch."""
    ops = ops or TorchOps()
    params = {name: ops.bring(value) for name, value in start.params.items()}
    stepper = optimiser(recipe, params)
    recall(stepper, params, start.memory)
    x, y = ops.bring(data.x), ops.bring(one_hot(data.y, network.output.size))
    per_epoch = -(-len(data) // recipe.batch)
    for epoch in range(start.epoch, recipe.epochs):
        began, tally = time.perf_counter(), Tally()
        # The order depends on seed and epoch alone, so that a resumed run repeats it.
        rng = np.random.default_rng([recipe.seed, epoch])
        for k, rows in enumerate(batches(data, recipe.batch, rng)):
            done = (epoch * per_epoch + k) / (recipe.epochs * per_epoch)
            for group in stepper.param_groups:
                group["lr"] = recipe.learning_rate * 0.5 * (1 + cos(pi * done))
            chosen = torch.from_numpy(rows)
            lesson = Lesson(x[chosen], y[chosen], measured=k % MEASURE_EVERY == 0)
            tally.add(learn_batch(ops, network, params, lesson, recipe=recipe, stepper=stepper))
        yield Progress(
            Snapshot(
                epoch + 1,
                {name: p.detach().cpu().numpy().copy() for name, p in params.items()},
                remember(stepper, params),
            ),
            tally.right / len(data),
            tally.residual,
            {"free": float(recipe.free_steps), "nudged": float(recipe.nudged_steps)},
            spectral.norms(ops, network, params),
            time.perf_counter() - began,
        )


@dataclass(frozen=True, slots=True)
class Lesson:
    """A batch with its targets (one-hot), and whether to measure how it settles."""

    x: Values
    y: Values
    measured: bool


@dataclass(slots=True)
class Tally:
    """What batches add up to."""

    right: int = 0
    residual: float = 0.0
    """The largest last change in the free phases that were measured."""

    def add(self, other: Tally) -> None:
        """Count a batch in."""
        self.right += other.right
        self.residual = max(self.residual, other.residual)


@torch.no_grad()
def learn_batch(
    ops: TorchOps,
    network: Network,
    params: dict[str, torch.Tensor],
    lesson: Lesson,
    *,
    recipe: Recipe,
    stepper: torch.optim.Optimizer,
) -> Tally:
    """One episode and one step of the optimiser."""
    free, schedule = field_of(ops, network, params, lesson.x), recipe.schedule()
    settling = SWEEPS if lesson.measured else replace(SWEEPS, measured=False)
    phases = relax(free, lesson.y, schedule, settling)
    states = {name: settled.state for name, settled in phases.items()}
    asked = hebbian(ops, network, lesson.x, states=states, schedule=schedule)
    # The output's bias asks for the sum of its shifts: small, and not finite if any rate is not.
    if not bool(asked[network.output.name].isfinite().all()):
        raise TrainingError(
            "the rates left the finite numbers; use a smaller learning rate or beta, a spectral "
            "bound, or a bounded activation"
        )
    for name, tensor in params.items():
        tensor.grad = asked[name].mul_(-1.0 / len(lesson.x))
    stepper.step()
    for name, kept in spectral.keep_bounds(ops, network, params).items():
        params[name].copy_(kept)
    resting = phases[schedule[0].name]
    residual = float(resting.residual.max()) if lesson.measured else 0.0
    # A free sweep sets the output last, so its rate ranks the classes as its drive did, except
    # where clipping ties them: good enough for the running figure of an epoch.
    answers = resting.state[network.output.name].argmax(dim=1)
    return Tally(int((answers == lesson.y.argmax(dim=1)).sum()), residual)
