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
from neuro_eqprop.training.augment import Augmentation, no_augmentation
from neuro_eqprop.training.config import Batch, BatchUpdate, Nudging, TrainingConfig
from neuro_eqprop.training.lr_schedules import TrainingLength, learning_rates
from neuro_eqprop.training.optimizers import make_optimizer, optimizer_state, restore_state
from neuro_eqprop.training.rules.contrastive import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.rules.registry import RULES


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
class TrainState:
    """A network in training: what changes from batch to batch."""

    ops: TorchOps
    network: Network
    params: dict[str, torch.Tensor]
    stepper: torch.optim.Optimizer
    vectors: dict[str, Values]
    """By which bounds are followed, see `rate.spectral`."""

    def snapshot(self, epoch: int) -> Snapshot:
        """All that is needed to go on from here."""
        memory = optimizer_state(self.stepper, self.params)
        memory |= {f"{n}/{SINGULAR}": self.ops.to_numpy(v) for n, v in self.vectors.items()}
        params = {name: p.detach().cpu().numpy().copy() for name, p in self.params.items()}
        return Snapshot(epoch, params, memory)


def start_state(
    network: Network, recipe: TrainingConfig, start: Snapshot, ops: TorchOps
) -> TrainState:
    """A network at the start of its training, or where it was left."""
    params = {name: ops.from_numpy(value) for name, value in start.params.items()}
    stepper = make_optimizer(
        recipe.optimiser,
        recipe.learning_rate,
        params,
        weights=(c.name for c in network.connections),
        decay=recipe.weight_decay,
    )
    restore_state(stepper, params, start.memory, SINGULAR)
    vectors = spectral.initial_vectors(network, ops)
    for name in vectors:
        if f"{name}/{SINGULAR}" in start.memory:
            vectors[name] = ops.from_numpy(start.memory[f"{name}/{SINGULAR}"])
    return TrainState(ops, network, params, stepper, vectors)


BatchCallback = Callable[[int, float], None]
"""Told how many samples were learnt from, and the share of the epoch's that was answered right."""


def no_progress(samples: int, right: float) -> None:
    """Nobody listens."""


def train(
    network: Network,
    data: Split,
    recipe: TrainingConfig,
    start: Snapshot,
    ops: TorchOps | None = None,
    beat: BatchCallback = no_progress,
    view: Augmentation = no_augmentation,
) -> Iterator[Progress]:
    """Train from `start` to the last epoch of the recipe, one `Progress` for each epoch."""
    ops = ops or TorchOps()
    at = start_state(network, recipe, start, ops)
    x, y = ops.from_numpy(data.x), ops.from_numpy(one_hot(data.y, network.output.size))
    per_epoch = -(-len(data) // recipe.batch)
    pace = learning_rates(
        recipe.fall, recipe.learning_rate, TrainingLength(recipe.epochs, per_epoch)
    )
    for epoch in range(start.epoch, recipe.epochs):
        began, tally = time.perf_counter(), EpochStatistics()
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
            lesson = Batch(shown, y[chosen], k % MEASURE_EVERY == 0, beta)
            tally.add(train_batch(at, lesson, recipe), len(rows))
            beat(len(rows), tally.right / tally.seen)
        check_finite(at.params)
        for name, kept in spectral.project_exactly(ops, network, at.params).items():
            at.params[name].copy_(kept)
        norms = spectral.norms(ops, network, at.params)
        if not np.isfinite(list(norms.values())).all():
            raise TrainingError(
                f"a spectral norm diverged (NaN or inf) ({norms}); {DIVERGENCE_ADVICE}"
            )
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
                f"parameter {name!r} diverged (NaN or inf), first in the update; "
                f"{DIVERGENCE_ADVICE}"
            )


@dataclass(slots=True)
class EpochStatistics:
    """What batches add up to."""

    seen: int = 0
    right: int = 0
    residual: float = 0.0
    """The largest last change in the free phases that were measured."""
    steps: dict[str, float] = field(default_factory=dict)
    """By phase, of all samples whose steps were counted."""
    counted: int = 0

    def add(self, other: BatchUpdate, samples: int) -> None:
        """Count a batch in."""
        self.seen += samples
        self.right += other.right
        self.residual = max(self.residual, other.residual)
        if other.steps is not None:
            self.counted += samples
            for phase, mean in other.steps.items():
                self.steps[phase] = self.steps.get(phase, 0.0) + samples * mean

    def settle_steps(self, recipe: TrainingConfig) -> dict[str, float]:
        """The mean steps of a sample in each phase."""
        if not self.counted:
            return {"free": float(recipe.free_steps), "nudged": float(recipe.nudged_steps)}
        return {phase: total / self.counted for phase, total in self.steps.items()}


@torch.no_grad()
def train_batch(at: TrainState, lesson: Batch, recipe: TrainingConfig) -> BatchUpdate:
    """One episode and one step of the optimiser."""
    taught = RULES[recipe.rule].update(at.ops, at.network, at.params, lesson, recipe)
    for name, tensor in at.params.items():
        tensor.grad = taught.slopes[name]
    at.stepper.step()
    for name, kept in spectral.project(at.ops, at.network, at.params, at.vectors).items():
        at.params[name].copy_(kept)
    return taught
