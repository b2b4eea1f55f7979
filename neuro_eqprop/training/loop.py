"""`TrainingLoop`: a training, planned once and taken step by step or epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import Dataset, Split, batches, one_hot
from neuro_eqprop.data.samples import sample_rows
from neuro_eqprop.data.split import LARGEST_BYTE
from neuro_eqprop.data.split import check as check_split
from neuro_eqprop.dynamics import spectral
from neuro_eqprop.files import deadlines
from neuro_eqprop.networks.feedback import decays
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network, check_parameters
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.augment import Augmentation
from neuro_eqprop.training.defaults import adapted_steps
from neuro_eqprop.training.diagnostics import Diagnostics, diagnose
from neuro_eqprop.training.distributed import ALONE, shared_rule
from neuro_eqprop.training.history import History
from neuro_eqprop.training.lr_schedules import learning_rates
from neuro_eqprop.training.metrics import evaluate
from neuro_eqprop.training.optimizers import make_optimizer, optimizer_state, restore_optimizer
from neuro_eqprop.training.rules.base import (
    DIVERGENCE_ADVICE,
    Batch,
    BatchUpdate,
    TrainingError,
    Update,
)
from neuro_eqprop.training.settings import Nudging, RuleSettings
from neuro_eqprop.training.study import Study, find_rule
from neuro_eqprop.training.trained import TRAINED, TrainedNetwork

MEASURE_EVERY = 10
"""Settling is measured once in this many batches."""
BOUND_EVERY = 4
"""Spectral bounds are enforced once in this many batches, and exactly after each epoch."""
READ_EVERY = 25
"""Batches from one transfer of statistics to the next; divergence is detected there."""
SINGULAR = "singular"
"""Quantity beside the optimizer's: the vector of a power iteration, see `dynamics.spectral`."""

PROBED = 64
"""Training samples for the diagnostics after each epoch."""

BatchCallback = Callable[[float, float], None]
"""Called with the fraction of an epoch since the last call, and the accuracy of the epoch so far.

The accuracy is that of the batches read so far, see `READ_EVERY`.
"""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step measured in the free phase, before the update."""

    loss: float
    """Mean cost."""
    accuracy: float
    """Share of samples whose largest output is that of the target."""
    residual: float
    """Largest last change of a rate; zero if it was not measured, see `MEASURE_EVERY`."""
    samples: int
    path: str | None = None
    """How the update was computed, as in the metrics of an epoch."""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The samples of a batch, its nudging strength, and the random numbers for augmentation."""

    rows: Ints
    beta: float
    rng: np.random.Generator


def plan_rates(data: Split, study: Study) -> Array:
    """The learning rate of each batch of a training."""
    training = study.training
    many = -(-len(data) // training.batch)
    return learning_rates(training.lr_schedule, training.learning_rate, training.epochs, many)


def plan_epoch(data: Split, study: Study, epoch: int) -> Iterator[PlannedBatch]:
    """The batches of an epoch; they depend on seed and epoch alone, so a resumed run repeats."""
    rng, size = np.random.default_rng([study.seed, epoch]), study.training.batch
    many = -(-len(data) // size)
    for k, rows in enumerate(batches(data, size, rng)):
        beta = study.rule.beta_at((epoch * many + k) / (study.training.epochs * many))
        if study.rule.nudging == Nudging.RANDOM:
            beta *= rng.choice([-1.0, 1.0])
        yield PlannedBatch(rows, beta, rng)


class TrainingLoop:
    """A training of a network on data; `Trainer` adds what people hold.

    Everything is checked and built when it is made: rule, parameters, optimizer, learning rates,
    augmentation.

    Parameters
    ----------
    study : Study
        The settings.
    network : Network
    data : Dataset
        Its validation samples, if any, are held out already.
    params : mapping, optional
        Parameters to start from; those of `initialize` by default. They are copied.
    rule : callable, optional
        An update rule in the place of the study's, see `training.rules.base.Update`.
    targets : array (samples, *output shape), optional
        Target of each training sample, for regression and autoencoders; one-hot labels by default.
    ops : TorchOps, optional
        Precision and device; float32 on the device of the study by default.
    augment : callable, optional
        In the place of the augmentation of the study, see `training.augment`.
    """

    def __init__(
        self,
        study: Study,
        network: Network,
        data: Dataset,
        *,
        params: Mapping[str, Array] | None = None,
        rule: Update | None = None,
        targets: Array | None = None,
        ops: TorchOps | None = None,
        augment: Augmentation | None = None,
    ) -> None:
        self.study, self.network, self.data = study, network, data
        self.settings = study.rule
        """Those of the rule; derived numbers of steps follow what was measured after each epoch."""
        self.rule = find_rule(study.rule.name)
        if rule is None:
            self.rule.check(network, study.rule)
        else:
            self.rule = replace(self.rule, update=rule, overwrites=False)
        self.ops = ops or TorchOps(device=usable_device(study.training.device))
        self.warm = params is not None
        """Whether it began with given parameters."""
        self.group = ALONE
        """The processes that share out each batch; `torchrun` starts them."""
        self.steps = 0
        """Steps taken."""
        self.rows: list[dict[str, Any]] = []
        """The metrics of each epoch."""
        self.best: TrainedNetwork | None = None
        """The model of the epoch with the best validation accuracy, with `patience` alone."""
        self.best_accuracy = -1.0

        if targets is None:
            check_sizes(network, data)
            targets = one_hot(data.train.y, network.output.size)
        self._augment = study.augmentation(data) if augment is None else (augment,)
        if params is None:
            params = initial_parameters(study, network)
        else:
            check_parameters(network, params)
        self.params: dict[str, torch.Tensor] = {
            n: self.ops.from_numpy(p) for n, p in params.items()
        }
        self._rates = plan_rates(data.train, study)
        self._optimizer = make_optimizer(
            study.training.optimizer,
            study.training.learning_rate,
            self.params,
            weights=[c.name for c in network.connections],
            decay=study.training.weight_decay,
        )
        self._decays = decays(network)
        self._vectors = spectral.initial_vectors(network, self.ops)
        self._targets = self.ops.from_numpy(targets)
        self._take = sample_source(self.ops, data.train)

    @property
    def epoch_steps(self) -> int:
        """Steps of an epoch."""
        return len(self._rates) // self.study.training.epochs

    @property
    def epochs(self) -> int:
        """Finished epochs."""
        return self.steps // self.epoch_steps

    @property
    def finished(self) -> bool:
        """Whether all epochs are over, or the last `patience` epochs brought no improvement."""
        stale = self.best is not None and self.epochs - self.best.epochs
        return self.epochs >= self.study.training.epochs or (
            bool(stale) and stale >= self.study.training.patience
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The metrics of each epoch, trained as the caller asks for it."""
        while not self.finished:
            yield self.epoch()

    def epoch(
        self, on_batch: BatchCallback | None = None, *, evaluate: bool = True
    ) -> dict[str, Any]:
        """Train the rest of an epoch.

        Parameters
        ----------
        on_batch : callable, optional
            Called after each batch with the fraction of an epoch since the last call, and the
            accuracy of the epoch so far.
        evaluate : bool
            Whether to evaluate the test and the validation samples, and the quality of the update.

        Returns
        -------
        dict
            The metrics of the epoch, a row of the history.

        Raises
        ------
        TrainingError
            If rates, parameters or norms become NaN or infinite.
        """
        if self.group.size == 1:  # only one of several processes measures
            self.settings = adapted_steps(self.study, self.rows)
        began, statistics, data = time.perf_counter(), EpochStatistics(), self.data.train
        past = self.steps % self.epoch_steps
        for k, plan in enumerate(plan_epoch(data, self.study, self.epochs)):
            x = self._take(plan.rows)
            for augment in self._augment:
                x = augment(x, plan.rng)
            if k < past:
                continue
            deadlines.check()
            target, measured = self._targets[torch.from_numpy(plan.rows)], k % MEASURE_EVERY == 0
            found = self.advance(Batch(x, target, measured, plan.beta))
            statistics.add(found, len(plan.rows))
            if k % READ_EVERY == 0:
                statistics.read()
            if on_batch is not None:
                on_batch(len(plan.rows) / len(data), statistics.accuracy)
        statistics.read()
        norms = self._end_epoch()
        row = {
            "epoch": self.epochs,
            "train_accuracy": statistics.accuracy,
            "loss": statistics.loss / statistics.samples,
            "residual": statistics.residual,
            "path": statistics.path,
            "settle_steps": statistics.settle_steps(self.settings),
            "spectral": norms,
            "seconds": time.perf_counter() - began,
        }
        self.rows.append(self._evaluated(row) if evaluate else row)
        return self.rows[-1]

    def step(self, x: Any, y: Any, *, learning_rate: float | None = None) -> StepResult:  # noqa: ANN401
        """Train on a batch of your own.

        Parameters
        ----------
        x : array or tensor (samples, features)
            Samples, of any number; further axes are flattened.
        y : array or tensor
            Class numbers (samples,), or targets (samples, outputs), such as one-hot ones.
        learning_rate : float, optional
            That of the schedule at this step by default; after its end, the last one.

        Returns
        -------
        StepResult
            `loss`, `accuracy` and `residual` of the batch before its update.

        Raises
        ------
        TrainingError
            If rates or parameters become NaN or infinite.
        """
        batch = self._batch(x, y, measured=True)
        found = self.advance(batch, learning_rate)
        if not np.isfinite(float(found.loss)):
            raise TrainingError(f"the rates diverged (NaN or inf); {DIVERGENCE_ADVICE}")
        if self.steps % self.epoch_steps == 0:
            self._end_epoch()
        many = len(batch.x)
        return StepResult(
            float(found.loss), float(found.correct) / many, float(found.residual), many, found.path
        )

    @torch.no_grad()
    def updates(self, x: Any, y: Any) -> dict[str, Array]:  # noqa: ANN401
        """What the rule would add to each parameter for a batch; nothing is changed.

        For the gradient rules this is minus the gradient of the mean cost of the batch as beta goes
        to 0, for settled phases and symmetric connections: `params[name] + rate * updates[name]`
        descends the cost. No optimizer and no learning rate is applied.

        Parameters
        ----------
        x : array or tensor (samples, features)
            Samples.
        y : array or tensor
            Class numbers (samples,), or targets (samples, outputs).

        Returns
        -------
        dict of array
            By the name of the parameter; copies that are the caller's own.
        """
        batch = self._batch(x, y, measured=False)
        found = self.rule.update(self.ops, self.network, self.params, batch, self.settings)
        return {n: -g.detach().cpu().numpy() for n, g in found.gradients.items()}

    def diagnose(self, *, truth: bool = True) -> Diagnostics:
        """How exact the update of the rule is now, on several batches of training samples.

        Parameters
        ----------
        truth : bool
            Whether to compare it with the true gradient, which takes longest.

        Returns
        -------
        Diagnostics
            `cosine` of each parameter, `saturated` share of each layer, and the `warning`.
        """
        data, done = self.data.train, min(1.0, self.steps / len(self._rates))
        count = min(len(data), PROBED)
        rows = np.linspace(0, len(data) - 1, count).astype(int)
        size = min(self.study.training.batch, -(-count // 2))
        beta = self.settings.beta_at(done)
        batches = [
            Batch(self._take(few), self._targets[torch.from_numpy(few)], False, beta)
            for few in (rows[k : k + size] for k in range(0, count, size))
        ]
        settings, rule = self.settings, self.rule
        return diagnose(self.ops, self.network, self.params, batches, settings, rule, truth=truth)

    def model(self) -> TrainedNetwork:
        """The network with copies of its parameters now; the best epoch if `patience` ended it."""
        if self.best is not None and self.finished:
            return replace(self.best, history=History(tuple(self.rows)))
        return self.current()

    def current(self) -> TrainedNetwork:
        """The network with copies of its parameters now."""
        params = {name: p.detach().cpu().numpy().copy() for name, p in self.params.items()}
        by_steps = self.steps and not self.epochs
        made = f"trained for {self.steps} steps" if by_steps else TRAINED
        history = History(tuple(self.rows))
        return TrainedNetwork(self.network, params, self.epochs, self.study, history, made)

    def memory(self) -> dict[str, Array]:
        """Copies of the optimizer's state and the power iterations, by "parameter/quantity"."""
        vectors = {f"{n}/{SINGULAR}": self.ops.to_numpy(v) for n, v in self._vectors.items()}
        return optimizer_state(self._optimizer, self.params) | vectors

    def state_dict(self) -> dict[str, Any]:
        """Everything that continues this training with the same bytes; copies of arrays.

        Returns
        -------
        dict
            `steps`, `params`, `memory` (of the optimizer), `rows` (the history) and `best`.
        """
        best = self.best and (self.best.epochs, dict(self.best.params), self.best_accuracy)
        return {
            "steps": self.steps,
            "params": dict(self.current().params),
            "memory": self.memory(),
            "rows": [dict(row) for row in self.rows],
            "best": best,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state.

        Parameters
        ----------
        state : mapping
            What `state_dict` of a trainer with the same settings and data returned.
        """
        check_parameters(self.network, state["params"])
        for name, value in state["params"].items():
            self.params[name].copy_(self.ops.from_numpy(value))
        memory = state["memory"]
        restore_optimizer(self._optimizer, self.params, memory, skip=SINGULAR)
        for name in self._vectors:
            if f"{name}/{SINGULAR}" in memory:
                self._vectors[name] = self.ops.from_numpy(memory[f"{name}/{SINGULAR}"])
        self.steps, self.rows = state["steps"], list(state.get("rows", ()))
        self.settings = adapted_steps(self.study, self.rows)
        best = state.get("best")
        if best is not None:
            epochs, params, self.best_accuracy = best
            self.best = TrainedNetwork(self.network, params, epochs, self.study)

    def _batch(self, x: Any, y: Any, *, measured: bool) -> Batch:  # noqa: ANN401
        """Samples with class numbers or targets, as arrays or tensors, at the beta of this step."""
        samples, given = np.asarray(as_array(x)), np.asarray(as_array(y))
        if samples.dtype == np.uint8 and not self.network.vocabulary:
            samples = samples / LARGEST_BYTE
        samples = sample_rows(samples, self.network.input.size, self.network.vocabulary)
        output = self.network.output
        if given.ndim == 1 and not np.issubdtype(given.dtype, np.floating):
            check_split(Split(samples, given), "the batch", output.size)
            given = one_hot(given, output.size)
        elif given.shape != (len(samples), *output.shape):
            raise ValueError(
                f"y has the shape {given.shape}; give class numbers ({len(samples)},) as integers, "
                f"or targets {(len(samples), *output.shape)}"
            )
        rule = self.study.rule
        beta = rule.beta_at(min(1.0, self.steps / len(self._rates)))
        if rule.nudging == Nudging.RANDOM:
            beta *= np.random.default_rng([self.study.seed, self.steps, 1]).choice([-1.0, 1.0])
        return Batch(self.ops.from_numpy(samples), self.ops.from_numpy(given), measured, beta)

    @torch.no_grad()
    def advance(self, batch: Batch, learning_rate: float | None = None) -> BatchUpdate:
        """The rule, the optimizer, and the projection onto spectral bounds."""
        rule = self.rule.update
        if self.group.shares(len(batch.x)):
            rule = shared_rule(rule, self.group)
        elif self.rule.overwrites:  # fresh memory for each batch takes time
            batch.spare.update({n: p.grad for n, p in self.params.items() if p.grad is not None})
        found = rule(self.ops, self.network, self.params, batch, self.settings)
        if learning_rate is None:
            learning_rate = float(self._rates[min(self.steps, len(self._rates) - 1)])
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        for name, tensor in self.params.items():
            tensor.grad = found.gradients[name]
        self._optimizer.step()
        for name, decay in self._decays.items():
            share = decay * learning_rate / (len(self._rates) * self.study.training.learning_rate)
            self.params[name].mul_(1.0 - share)
        if self.steps % self.epoch_steps % BOUND_EVERY == 0:
            factors = spectral.bound_factors(self.ops, self.network, self.params, self._vectors)
            for name, factor in factors.items():
                self.params[name].mul_(factor)
        self.steps += 1
        return found

    def _end_epoch(self) -> dict[str, float]:
        """Check the parameters and project them exactly; return the spectral norms."""
        for name, values in self.params.items():
            if not self.ops.is_finite(values):
                raise TrainingError(
                    f"parameter {name!r} diverged (NaN or inf), first in the update; "
                    f"{DIVERGENCE_ADVICE}"
                )
        for name, projected in spectral.project_exactly(
            self.ops, self.network, self.params
        ).items():
            self.params[name].copy_(projected)
        norms = spectral.norms(self.ops, self.network, self.params)
        if not np.isfinite(list(norms.values())).all():
            raise TrainingError(
                f"a spectral norm diverged (NaN or inf) ({norms}); {DIVERGENCE_ADVICE}"
            )
        return norms

    def _evaluated(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with the evaluation of the test and validation samples; updates `best`."""
        study = replace(self.study, rule=self.settings)
        found = evaluate(study, self.network, self.data, self.params, self.diagnose(), row)
        if self.study.training.patience and found["validation_accuracy"] > self.best_accuracy:
            self.best, self.best_accuracy = self.current(), found["validation_accuracy"]
        return found


TakeSamples: TypeAlias = Callable[[Ints], Values]
"""Returns the samples of the given rows of a split, as a tensor."""


def sample_source(ops: TorchOps, split: Split) -> TakeSamples:
    """A function that returns samples of the split by row, on the device of `ops`.

    Images stored as bytes become floating point batch by batch, which saves memory.
    """
    if split.in_bytes:
        stored = torch.from_numpy(split.stored).to(ops.device)
        return lambda rows: stored[torch.from_numpy(rows)].to(ops.dtype) / LARGEST_BYTE
    x = ops.from_numpy(split.x)
    return lambda rows: x[torch.from_numpy(rows)]


def initial_parameters(study: Study, network: Network) -> dict[str, Array]:
    """The parameters before the first step, by the seed of the study."""
    made = initialize(network, np.random.default_rng(study.seed))
    return {name: value.astype(np.float32) for name, value in made.items()}


def as_array(values: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """An array from an array or a tensor."""
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values


def check_sizes(network: Network, data: Dataset) -> None:
    """Raise ValueError if the sizes of network and data differ."""
    sizes = network.input.size, network.output.size
    if sizes != (data.features, data.classes):
        raise ValueError(
            f"the network goes from {sizes[0]} to {sizes[1]} units, but {data.name!r} has "
            f"{data.features} features and {data.classes} classes"
        )


def usable_device(name: str) -> str:
    """The name of a device; ValueError if torch cannot use it."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"torch cannot use device {name!r} here ({why}); use cpu") from error
    return name


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
    path: str | None = None
    waiting: list[tuple[int, BatchUpdate]] = field(default_factory=list)
    """Batches that are not read yet, with their numbers of samples."""
    steps: dict[str, float] = field(default_factory=dict)
    """Settling steps by phase, summed over the samples of batches that report them."""
    counted: int = 0
    """Samples of the batches that report their steps."""

    def add(self, update: BatchUpdate, samples: int) -> None:
        """Add a batch."""
        self.path = update.path
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

    def settle_steps(self, rule: RuleSettings) -> dict[str, float]:
        """Mean steps of a sample in each phase."""
        if not self.counted:
            return {"free": float(rule.free_steps), "nudged": float(rule.nudged_steps)}
        return {phase: total / self.counted for phase, total in self.steps.items()}


def to_host(values: list[Values]) -> Array:
    """Numbers and 0-d tensors as one array, numbers first, with a single device transfer."""
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    read = torch.stack(tensors).cpu().numpy().astype(float) if tensors else np.zeros(0)
    return np.array([v for v in values if not isinstance(v, torch.Tensor)] + read.tolist())
