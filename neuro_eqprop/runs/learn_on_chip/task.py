"""The task of learning on a chip: data, network and settings, validated before the first epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import Dataset, Split, batches, one_hot
from neuro_eqprop.networks.feedback import decays
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.on_chip_config import DEFAULTS, RATES, OnChipConfig
from neuro_eqprop.runs.rate_baseline import RateLearner
from neuro_eqprop.runs.update_fidelity import rate_settings
from neuro_eqprop.runs.workers import ALONE, Shared
from neuro_eqprop.simulators.learning import Learner
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.make_plastic import make_plastic, training_stimulus
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples
from neuro_eqprop.training.loop import check_sizes
from neuro_eqprop.training.study import Study, make_study

TRAINING_ONLY = (
    "optimizer",
    "lr_schedule",
    "weight_decay",
    "shift",
    "validation",
    "beta_end",
    "points",
    "rule",
    "damping",
    "anderson",
    "order",
    "tolerance",
    "device",
)
"""Settings of a study that have no effect on learning in a simulator."""


@dataclass(frozen=True, slots=True)
class OnChipTask:
    """Data, settings and the plastic network with its initial weights."""

    study: Study
    config: OnChipConfig
    data: Dataset
    network: Network
    plastic: PlasticNetwork
    shared: Shared = ALONE
    """Workers or executor that run the test samples."""

    @property
    def on_rates(self) -> bool:
        """Whether the rate network learns instead of a spiking one, as a baseline."""
        return self.config.on == RATES

    @property
    def learner(self) -> Learner:
        """The simulator that learns."""
        if self.on_rates:
            rule = self.study.rule
            settings = rate_settings(
                self.plastic.rule.schedule, free=rule.free_steps, nudged=rule.nudged_steps
            )
            return RateLearner(self.network, settings, self.config.bound)
        learner, options = load_learner(self.config.on), self.config.biology
        return learner.with_options(options) if options else learner

    @property
    def train(self) -> Split:
        """The training samples: the first `samples` of the data set, or all."""
        train = self.data.train
        return train.take(slice(0, self.config.samples)) if self.config.samples else train

    @property
    def epochs(self) -> int:
        """Epochs of all tasks together."""
        return self.study.training.epochs * self.config.tasks

    @property
    def total_samples(self) -> int:
        """Samples shown in all epochs."""
        return sum(len(self.sample_order(epoch)) for epoch in range(self.epochs))

    @property
    def class_groups(self) -> list[Ints]:
        """The classes of each task, in the order in which tasks are learned."""
        return np.array_split(np.arange(self.data.classes), self.config.tasks)

    def sample_order(self, epoch: int) -> Ints:
        """The rows of the training samples that an epoch shows, shuffled as in training."""
        rng = np.random.default_rng([self.study.seed, epoch])
        rows = np.concatenate(list(batches(self.train, self.study.training.batch, rng)))
        classes = self.class_groups[epoch // self.study.training.epochs]
        shown = rows[np.isin(self.train.y[rows], classes)]
        return np.repeat(shown, self.config.repeats)

    def learning_rates(self, epoch: int, samples: int) -> Array:
        """The learning rate of each sample: a half cosine to zero over the epochs of a task.

        It is constant within a batch.
        """
        batch = np.arange(samples) // self.plastic.rule.batch
        batches_per_epoch = -(-samples // self.plastic.rule.batch)
        done = (
            epoch % self.study.training.epochs + batch / batches_per_epoch
        ) / self.study.training.epochs
        return np.asarray(self.study.training.learning_rate * 0.5 * (1 + np.cos(np.pi * done)))

    def commit_rates(self, epoch: int) -> Array:
        """The learning rate of each commit of an epoch."""
        rates = self.learning_rates(epoch, len(self.sample_order(epoch)))
        return rates[self.plastic.rule.commits(len(rates))]

    def training_samples(
        self, epoch: int, *, most: int | None = None, first: int = 0
    ) -> tuple[Ints, TrainingSamples]:
        """The rows of an epoch, and their inputs, targets and learning rates.

        `most` limits them to the first ones; `first` counts the samples learned before.
        """
        rows = self.sample_order(epoch)
        rates, rows = self.learning_rates(epoch, len(rows))[:most], rows[:most]
        target = one_hot(self.train.y[rows], self.data.classes)
        stimulus = training_stimulus(
            self.network,
            self.train.take(rows).x,
            target,
            self.config.coding,
            self.plastic.rule.input_levels,
        )
        return rows, TrainingSamples(stimulus, rates, first)


def prepare(study: Study, config: OnChipConfig, data: Dataset, network: Network) -> OnChipTask:
    """Make the network plastic; raise an error for settings with which it cannot learn."""
    refuse_training_only(study)
    check_sizes(network, data)
    if config.samples > len(data.train):
        raise ValueError(
            f"{study.dataset!r} has {len(data.train)} training samples, not {config.samples}"
        )
    if config.tasks > data.classes:
        raise ValueError(f"{config.tasks} tasks need as many classes, not {data.classes}")
    start = initialize(network, np.random.default_rng(study.seed))
    for layer in network.moving:
        start[layer.name] = start[layer.name] + config.bias
    plastic = make_plastic(network, start, config.plasticity(study))
    task = OnChipTask(study, config, data, network, plastic)
    if not decays(network):
        return task
    rates = np.concatenate([task.commit_rates(epoch) for epoch in range(task.epochs)])
    how = replace(config.plasticity(study), decay=1.0 / (len(rates) * rates.max(initial=1e-12)))
    return replace(task, plastic=make_plastic(network, start, how))


def refuse_training_only(study: Study) -> None:
    """Raise ValueError for settings that learning in a simulator would ignore."""
    usual = make_study(model=study.model.name)
    for key in TRAINING_ONLY:
        if study.get(key) not in (usual.get(key), DEFAULTS.get(key)):
            raise ValueError(
                f"learning in a simulator has no setting {key!r} (here {study.get(key)!r}): "
                f"leave it out, or train rates with `neuro-eqprop train`"
            )
