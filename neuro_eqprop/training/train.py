"""The training loop: a generator of epochs, which the caller evaluates, saves and resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import Split, batches, one_hot
from neuro_eqprop.dynamics import spectral
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.augment import Augmentation, no_augmentation
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import Nudging, TrainingConfig
from neuro_eqprop.training.distributed import ALONE, ProcessGroup, reduced
from neuro_eqprop.training.errors import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.lr_schedules import TrainingLength, learning_rates
from neuro_eqprop.training.optimizers import Optimizer, TorchOptimizer, make_optimizer
from neuro_eqprop.training.rules.base import Update
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.samples import sample_source


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state needed to continue training: epochs done, parameters, optimizer state."""

    epoch: int
    params: Mapping[str, Array]
    memory: Mapping[str, Array] = field(default_factory=dict)
    """State of the optimizer and of the power iterations, by "parameter/quantity"."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of an epoch."""

    snapshot: Snapshot
    train_accuracy: float
    """Share of correct predictions in the free phases, each batch before its update."""
    loss: float
    """Mean cost in the free phases, each batch before its update."""
    residual: float
    """Largest last change of a rate in the free phases that were measured."""
    settle_steps: Mapping[str, float]
    spectral: Mapping[str, float]
    seconds: float


MEASURE_EVERY = 10
"""Settling is measured once in this many batches."""
BOUND_EVERY = 4
"""Spectral bounds are enforced once in this many batches, and exactly after each epoch."""
READ_EVERY = 25
"""Batches from one transfer of statistics to the next; divergence is detected there."""
SINGULAR = "singular"
"""Quantity in `Snapshot.memory`: the vector of a power iteration, see `rate.spectral`."""

BatchCallback = Callable[[int, float], None]
"""Called after each batch with its number of samples and the accuracy of the epoch so far.

The accuracy is that of the batches read so far, see `READ_EVERY`.
"""


def no_progress(samples: int, accuracy: float) -> None:
    """No-op progress callback."""


@dataclass(slots=True)
class TrainState:
    """The mutable state of a training."""

    ops: Ops
    network: Network
    params: dict[str, Any]
    optimizer: Optimizer
    vectors: dict[str, Values] | None = None
    """Vectors of power iterations, see `rate.spectral`; None to ignore spectral bounds."""

    def snapshot(self, epoch: int) -> Snapshot:
        """A copy of the state after `epoch` epochs."""
        kept = self.optimizer
        memory = kept.state(self.params) if isinstance(kept, TorchOptimizer) else {}
        memory |= {f"{n}/{SINGULAR}": self.ops.to_numpy(v) for n, v in (self.vectors or {}).items()}
        params = {name: p.detach().cpu().numpy().copy() for name, p in self.params.items()}
        return Snapshot(epoch, params, memory)


def start_state(
    network: Network, config: TrainingConfig, start: Snapshot, ops: TorchOps
) -> TrainState:
    """The state at a snapshot: the beginning of a training, or where it was interrupted."""
    params = {name: ops.from_numpy(value) for name, value in start.params.items()}
    optimizer = TorchOptimizer(
        make_optimizer(
            config.optimizer,
            config.learning_rate,
            params,
            weights=(c.name for c in network.connections),
            decay=config.weight_decay,
        )
    )
    optimizer.restore(params, start.memory, skip=SINGULAR)
    vectors = spectral.initial_vectors(network, ops)
    for name in vectors:
        if f"{name}/{SINGULAR}" in start.memory:
            vectors[name] = ops.from_numpy(start.memory[f"{name}/{SINGULAR}"])
    return TrainState(ops, network, params, optimizer, vectors)


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The samples of a batch, its learning rate and its nudging strength."""

    rows: Ints
    learning_rate: float
    beta: float
    measured: bool
    rng: np.random.Generator
    """The random numbers of the epoch, for augmentation."""


def plan_rates(data: Split, config: TrainingConfig) -> Array:
    """The learning rate of each batch of a training (epochs, batches of an epoch)."""
    length = TrainingLength(config.epochs, -(-len(data) // config.batch))
    rates = learning_rates(config.lr_schedule, config.learning_rate, length)
    return rates.reshape(length.epochs, length.batches)


def plan_epoch(
    data: Split, config: TrainingConfig, epoch: int, rates: Array
) -> Iterator[PlannedBatch]:
    """The batches of an epoch; they depend on seed and epoch alone, so a resumed run repeats."""
    rng = np.random.default_rng([config.seed, epoch])
    for k, rows in enumerate(batches(data, config.batch, rng)):
        beta = config.beta_at((epoch * rates.shape[1] + k) / rates.size)
        if config.nudging is Nudging.RANDOM:
            beta *= rng.choice([-1.0, 1.0])
        yield PlannedBatch(rows, float(rates[epoch, k]), beta, k % MEASURE_EVERY == 0, rng)


def train(  # noqa: PLR0913
    network: Network,
    data: Split,
    config: TrainingConfig,
    start: Snapshot,
    *,
    targets: Array | None = None,
    ops: TorchOps | None = None,
    on_batch: BatchCallback = no_progress,
    augment: Augmentation = no_augmentation,
    group: ProcessGroup = ALONE,
) -> Iterator[Progress]:
    """Train from `start` to the last epoch of `config`, yielding a `Progress` after each epoch.

    Parameters
    ----------
    network : Network
    data : Split
        Samples x (samples, features) and labels y (samples,).
    config : TrainingConfig
        Update rule, nudging, optimizer and schedules.
    start : Snapshot
        Initial parameters, or the snapshot of an interrupted training.
    targets : array of shape (samples, *output shape), optional
        Target of each sample, for regression and autoencoders; one-hot labels by default.
    ops : TorchOps, optional
        Precision and device; float32 on the CPU by default.
    on_batch : callable
        Called after each batch, see `BatchCallback`.
    augment : callable
        Applied to the samples of each batch, see `training.augment`.
    group : ProcessGroup
        The processes that share out each batch, see `training.distributed`.

    Raises
    ------
    TrainingError
        If rates, parameters or norms become NaN or infinite.
    """
    ops = ops or TorchOps()
    state = start_state(network, config, start, ops)
    wanted = one_hot(data.y, network.output.size) if targets is None else targets
    take, y, rates = sample_source(ops, data), ops.from_numpy(wanted), plan_rates(data, config)
    for epoch in range(start.epoch, config.epochs):
        began, statistics = time.perf_counter(), EpochStatistics()
        for k, plan in enumerate(plan_epoch(data, config, epoch, rates)):
            rows, part = torch.from_numpy(plan.rows), group.part(plan.rows)
            # Augmented before the split, so that samples do not depend on the number of processes.
            seen = augment(take(plan.rows), plan.rng)[part]
            batch = Batch(seen, y[rows[part]], plan.measured, plan.beta)
            rule = reduced(RULES[config.rule].update, group, len(rows))
            bounded = k % BOUND_EVERY == 0
            update = train_batch(state, batch, config, plan.learning_rate, rule, bounded=bounded)
            statistics.add(update, len(rows))
            if k % READ_EVERY == 0:
                statistics.read()
            on_batch(len(rows), statistics.accuracy)
        statistics.read()
        check_finite(state)
        for name, projected in spectral.project_exactly(ops, network, state.params).items():
            state.params[name].copy_(projected)
        norms = spectral.norms(ops, network, state.params)
        if not np.isfinite(list(norms.values())).all():
            raise TrainingError(
                f"a spectral norm diverged (NaN or inf) ({norms}); {DIVERGENCE_ADVICE}"
            )
        yield Progress(
            state.snapshot(epoch + 1),
            statistics.correct / len(data),
            statistics.loss / len(data),
            statistics.residual,
            statistics.settle_steps(config),
            norms,
            time.perf_counter() - began,
        )


@torch.no_grad()
def train_batch(
    state: TrainState,
    batch: Batch,
    config: TrainingConfig,
    learning_rate: float,
    rule: Update | None = None,
    *,
    bounded: bool = True,
) -> BatchUpdate:
    """One training step: the update rule, the optimizer, the projection onto spectral bounds.

    `rule` is that of `config` by default; without `bounded` the projection is left out.
    """
    rule = rule or RULES[config.rule].update
    update = rule(state.ops, state.network, state.params, batch, config)
    state.optimizer.step(state.params, update.gradients, learning_rate)
    if state.vectors is not None and bounded:
        factors = spectral.bound_factors(state.ops, state.network, state.params, state.vectors)
        for name, factor in factors.items():
            state.params[name].mul_(factor)
    return update


def check_finite(state: TrainState) -> None:
    """Raise TrainingError if a parameter is NaN or infinite."""
    for name, values in state.params.items():
        if not state.ops.is_finite(values):
            raise TrainingError(
                f"parameter {name!r} diverged (NaN or inf), first in the update; "
                f"{DIVERGENCE_ADVICE}"
            )


def to_host(values: list[Values]) -> Array:
    """Numbers and 0-d tensors as one array, numbers first, with a single device transfer."""
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    read = torch.stack(tensors).cpu().numpy().astype(float) if tensors else np.zeros(0)
    return np.array([v for v in values if not isinstance(v, torch.Tensor)] + read.tolist())


@dataclass(slots=True)
class EpochStatistics:
    """Sums over the batches of an epoch.

    Batch results stay on the device until `read`, so that training does not wait for it after
    each batch.
    """

    samples: int = 0
    correct: float = 0.0
    loss: float = 0.0
    residual: float = 0.0
    """Largest last change in the free phases that were measured."""
    waiting: list[tuple[int, BatchUpdate]] = field(default_factory=list)
    """Batches that are not read yet, with their numbers of samples."""
    steps: dict[str, float] = field(default_factory=dict)
    """Settling steps by phase, summed over the samples of batches that report them."""
    counted: int = 0
    """Samples of the batches that report their steps."""

    def add(self, update: BatchUpdate, samples: int) -> None:
        """Add a batch."""
        self.waiting.append((samples, replace(update, gradients={})))
        if update.steps is not None:
            self.counted += samples
            for phase, mean in update.steps.items():
                self.steps[phase] = self.steps.get(phase, 0.0) + samples * mean

    @property
    def accuracy(self) -> float:
        """Share of correct predictions in the batches that were read."""
        return self.correct / self.samples if self.samples else 0.0

    def read(self) -> None:
        """Add the waiting batches to the sums; raise TrainingError if a cost is not finite."""
        samples = [count for count, _ in self.waiting]
        correct, loss, residual = (
            to_host([getattr(update, key) for _, update in self.waiting])
            for key in ("correct", "loss", "residual")
        )
        self.waiting.clear()
        if not np.isfinite(loss).all():
            raise TrainingError(f"the rates diverged (NaN or inf); {DIVERGENCE_ADVICE}")
        self.samples += sum(samples)
        self.correct += float(correct.sum())
        self.loss += float(np.dot(samples, loss))
        self.residual = max(self.residual, float(residual.max(initial=0.0)))

    def settle_steps(self, config: TrainingConfig) -> dict[str, float]:
        """Mean steps of a sample in each phase."""
        if not self.counted:
            return {"free": float(config.free_steps), "nudged": float(config.nudged_steps)}
        return {phase: total / self.counted for phase, total in self.steps.items()}
