"""The training loop: a generator of epochs; who runs it writes, shows and resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.data import Split, batches, one_hot
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate import spectral
from neuro_eqprop.training.augment import View, as_it_is
from neuro_eqprop.training.config import Lesson, Nudging, Recipe, Taught
from neuro_eqprop.training.lr_schedules import Length, course
from neuro_eqprop.training.optimizers import optimiser, recall, remember
from neuro_eqprop.training.rules.contrastive import CURE, TrainingError
from neuro_eqprop.training.rules.registry import TEACHERS


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


MEASURE_EVERY = 10
"""Batches from one whose settling is measured to the next."""
SINGULAR = "singular"
"""In a snapshot's memory, the vector by which a bound is followed."""


@dataclass(slots=True)
class Pupil:
    """A network in training: what changes from batch to batch."""

    ops: TorchOps
    network: Network
    params: dict[str, torch.Tensor]
    stepper: torch.optim.Optimizer
    vectors: dict[str, Values]
    """By which bounds are followed, see `rate.spectral`."""

    def snapshot(self, epoch: int) -> Snapshot:
        """All that is needed to go on from here."""
        memory = remember(self.stepper, self.params)
        memory |= {f"{n}/{SINGULAR}": self.ops.numpy(v) for n, v in self.vectors.items()}
        params = {name: p.detach().cpu().numpy().copy() for name, p in self.params.items()}
        return Snapshot(epoch, params, memory)


def pupil(network: Network, recipe: Recipe, start: Snapshot, ops: TorchOps) -> Pupil:
    """A network at the start of its training, or where it was left."""
    params = {name: ops.bring(value) for name, value in start.params.items()}
    stepper = optimiser(
        recipe.optimiser,
        recipe.learning_rate,
        params,
        weights=(c.name for c in network.connections),
        decay=recipe.weight_decay,
    )
    recall(stepper, params, start.memory, SINGULAR)
    vectors = spectral.first_vectors(network, ops)
    for name in vectors:
        if f"{name}/{SINGULAR}" in start.memory:
            vectors[name] = ops.bring(start.memory[f"{name}/{SINGULAR}"])
    return Pupil(ops, network, params, stepper, vectors)


Beat = Callable[[int, float], None]
"""Told how many samples were learnt from, and the share of the epoch's that was answered right."""


def silent(samples: int, right: float) -> None:
    """Nobody listens."""


def train(
    network: Network,
    data: Split,
    recipe: Recipe,
    start: Snapshot,
    ops: TorchOps | None = None,
    beat: Beat = silent,
    view: View = as_it_is,
) -> Iterator[Progress]:
    """Train from `start` to the last epoch of the recipe, one `Progress` for each epoch."""
    ops = ops or TorchOps()
    at = pupil(network, recipe, start, ops)
    x, y = ops.bring(data.x), ops.bring(one_hot(data.y, network.output.size))
    per_epoch = -(-len(data) // recipe.batch)
    pace = course(recipe.fall, recipe.learning_rate, Length(recipe.epochs, per_epoch))
    for epoch in range(start.epoch, recipe.epochs):
        began, tally = time.perf_counter(), Tally()
        # The order depends on seed and epoch alone, so that a resumed run repeats it.
        rng = np.random.default_rng([recipe.seed, epoch])
        for k, rows in enumerate(batches(data, recipe.batch, rng)):
            done = (epoch * per_epoch + k) / (recipe.epochs * per_epoch)
            for group in at.stepper.param_groups:
                group["lr"] = float(pace[epoch * per_epoch + k])
            chosen = torch.from_numpy(rows)
            beta = recipe.beta_at(done)
            if recipe.nudging is Nudging.RANDOM:
                beta *= rng.choice([-1.0, 1.0])
            shown = view(x[chosen], rng)
            lesson = Lesson(shown, y[chosen], k % MEASURE_EVERY == 0, beta)
            tally.add(learn_batch(at, lesson, recipe), len(rows))
            beat(len(rows), tally.right / tally.seen)
        check_finite(at.params)
        for name, kept in spectral.keep_bounds(ops, network, at.params).items():
            at.params[name].copy_(kept)
        norms = spectral.norms(ops, network, at.params)
        if not np.isfinite(list(norms.values())).all():
            raise TrainingError(f"a spectral norm left the finite numbers ({norms}); {CURE}")
        yield Progress(
            at.snapshot(epoch + 1),
            tally.right / len(data),
            tally.residual,
            tally.settle_steps(recipe),
            norms,
            time.perf_counter() - began,
        )


def check_finite(params: Mapping[str, torch.Tensor]) -> None:
    """Refuse to keep parameters that are not finite numbers."""
    for name, tensor in params.items():
        if not bool(tensor.isfinite().all()):
            raise TrainingError(
                f"parameter {name!r} left the finite numbers, first in the update; {CURE}"
            )


@dataclass(slots=True)
class Tally:
    """What batches add up to."""

    seen: int = 0
    right: int = 0
    residual: float = 0.0
    """The largest last change in the free phases that were measured."""
    steps: dict[str, float] = field(default_factory=dict)
    """By phase, of all samples whose steps were counted."""
    counted: int = 0

    def add(self, other: Taught, samples: int) -> None:
        """Count a batch in."""
        self.seen += samples
        self.right += other.right
        self.residual = max(self.residual, other.residual)
        if other.steps is not None:
            self.counted += samples
            for phase, mean in other.steps.items():
                self.steps[phase] = self.steps.get(phase, 0.0) + samples * mean

    def settle_steps(self, recipe: Recipe) -> dict[str, float]:
        """The mean steps of a sample in each phase."""
        if not self.counted:
            return {"free": float(recipe.free_steps), "nudged": float(recipe.nudged_steps)}
        return {phase: total / self.counted for phase, total in self.steps.items()}


@torch.no_grad()
def learn_batch(at: Pupil, lesson: Lesson, recipe: Recipe) -> Taught:
    """One episode and one step of the optimiser."""
    taught = TEACHERS[recipe.rule](at.ops, at.network, at.params, lesson, recipe)
    for name, tensor in at.params.items():
        tensor.grad = taught.slopes[name]
    at.stepper.step()
    for name, kept in spectral.follow_bounds(at.ops, at.network, at.params, at.vectors).items():
        at.params[name].copy_(kept)
    return taught
