"""The training loop: a generator of epochs; who runs it writes, shows and resumes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.data import Split, batches, one_hot
from neuro_eqprop.learn.recipe import Lesson, Nudging, Recipe, Taught
from neuro_eqprop.learn.rules import TEACHERS
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.base import Values
from neuro_eqprop.ops.torch_ops import TorchOps
from neuro_eqprop.rate import spectral


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


NOT_FOR_THIS = ("lbfgs", "sparseadam", "optimizer", "muon")
"""Optimisers of torch that want a closure, sparse gradients, or matrices only."""
OPTIMISERS = tuple(
    sorted(
        name.lower()
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type)
        and issubclass(kind, torch.optim.Optimizer)
        and name.lower() not in NOT_FOR_THIS
    )
)
MEASURE_EVERY = 10
"""Batches from one whose settling is measured to the next."""
SINGULAR = "singular"
"""In a snapshot's memory, the vector by which a bound is followed."""


def optimiser(
    recipe: Recipe, params: Mapping[str, torch.Tensor], weights: Iterable[str] = ()
) -> torch.optim.Optimizer:
    """The optimiser that turns asked-for changes into steps; only `weights` decay."""
    kinds = {name.lower(): kind for name, kind in vars(torch.optim).items()}
    if recipe.optimiser not in OPTIMISERS:
        raise UnknownNameError("optimiser", recipe.optimiser, OPTIMISERS)
    decaying = [params[name] for name in params if name in set(weights) and recipe.weight_decay]
    rest = [params[name] for name in params if all(params[name] is not p for p in decaying)]
    groups = [{"params": rest, "weight_decay": 0.0}]
    if decaying:
        groups.append({"params": decaying, "weight_decay": recipe.weight_decay})
    settings = {"momentum": 0.9} if recipe.optimiser == "sgd" else {}
    made: torch.optim.Optimizer = kinds[recipe.optimiser](
        groups, lr=recipe.learning_rate, **settings
    )
    return made


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
        if key != SINGULAR:
            stepper.state[params[name]][key] = torch.from_numpy(np.array(value))


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
    stepper = optimiser(recipe, params, (c.name for c in network.connections))
    recall(stepper, params, start.memory)
    vectors = spectral.first_vectors(network, ops)
    for name in vectors:
        if f"{name}/{SINGULAR}" in start.memory:
            vectors[name] = ops.bring(start.memory[f"{name}/{SINGULAR}"])
    return Pupil(ops, network, params, stepper, vectors)


def train(
    network: Network, data: Split, recipe: Recipe, start: Snapshot, ops: TorchOps | None = None
) -> Iterator[Progress]:
    """Train from `start` to the last epoch of the recipe, one `Progress` for each epoch."""
    ops = ops or TorchOps()
    at = pupil(network, recipe, start, ops)
    x, y = ops.bring(data.x), ops.bring(one_hot(data.y, network.output.size))
    per_epoch = -(-len(data) // recipe.batch)
    for epoch in range(start.epoch, recipe.epochs):
        began, tally = time.perf_counter(), Tally()
        # The order depends on seed and epoch alone, so that a resumed run repeats it.
        rng = np.random.default_rng([recipe.seed, epoch])
        for k, rows in enumerate(batches(data, recipe.batch, rng)):
            done = (epoch * per_epoch + k) / (recipe.epochs * per_epoch)
            for group in at.stepper.param_groups:
                group["lr"] = recipe.learning_rate * recipe.fall.part(done)
            chosen = torch.from_numpy(rows)
            beta = recipe.beta_at(done)
            if recipe.nudging is Nudging.RANDOM:
                beta *= rng.choice([-1.0, 1.0])
            lesson = Lesson(x[chosen], y[chosen], k % MEASURE_EVERY == 0, beta)
            tally.add(learn_batch(at, lesson, recipe))
        for name, kept in spectral.keep_bounds(ops, network, at.params).items():
            at.params[name].copy_(kept)
        yield Progress(
            at.snapshot(epoch + 1),
            tally.right / len(data),
            tally.residual,
            {"free": float(recipe.free_steps), "nudged": float(recipe.nudged_steps)},
            spectral.norms(ops, network, at.params),
            time.perf_counter() - began,
        )


@dataclass(slots=True)
class Tally:
    """What batches add up to."""

    right: int = 0
    residual: float = 0.0
    """The largest last change in the free phases that were measured."""

    def add(self, other: Taught) -> None:
        """Count a batch in."""
        self.right += other.right
        self.residual = max(self.residual, other.residual)


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
