"""Data, studies and training, shared by the experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.data import DataError, Dataset, Split, one_hot
from neuro_eqprop.dynamics.inference import accuracy
from neuro_eqprop.dynamics.solve import Stop
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import Study, adapt
from sims.claims.claim import UndecidedError
from sims.claims.data import load

TEST_STOP = Stop(1e-4, 200)
"""Stopping rule for test samples; limited, as a map without contraction may never settle."""


@lru_cache(maxsize=2)
def samples(name: str, images: int, tests: int) -> Dataset:
    """The first `images` training and `tests` test samples of a data set, cached."""
    try:
        full = load(name)
    except (UnknownNameError, DataError) as error:
        raise UndecidedError(f"data not present ({name})") from error
    parts = (part.take(slice(0, n)) for part, n in ((full.train, images), (full.test, tests)))
    train_part, test_part = (Split(part.stored.copy(), part.y.copy()) for part in parts)
    return Dataset.from_splits(
        name,
        train_part,
        test_part,
        full.classes,
        full.shape,
        note=full.note,
        vocabulary=full.vocabulary,
    )


def data_of(arguments: Mapping[str, Any]) -> Dataset:
    """The data set of a cell: arguments `dataset`, `images` and `tests`."""
    return samples(arguments["dataset"], arguments["images"], arguments["tests"])


def training_batch(data: Dataset, size: int, seed: int) -> tuple[Array, Array]:
    """Random training samples, drawn with replacement, and their one-hot targets."""
    rows = np.random.default_rng([seed, 1]).integers(0, len(data.train), size)
    return data.train.take(rows).x, one_hot(data.train.y[rows], data.classes)


def study_of(arguments: Mapping[str, Any], seed: int) -> Study:
    """The study of a cell: arguments `dataset` and `study`."""
    return adapt(Study(dataset=arguments["dataset"], seed=seed), arguments["study"])


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network and its data set."""

    network: Network
    params: Mapping[str, Array]
    data: Dataset

    def accuracy(self, split: Split | None = None, stop: Stop = TEST_STOP) -> float:
        """The accuracy on the test samples, or on `split`."""
        ops = TorchOps()
        params = {name: ops.from_numpy(value) for name, value in self.params.items()}
        return accuracy(ops, self.network, params, split or self.data.test, stop)

    @property
    def float64(self) -> dict[str, Array]:
        """The parameters in float64."""
        return {name: np.asarray(v, dtype=np.float64) for name, v in self.params.items()}


def training_of(study: Study, data: Dataset) -> TrainingLoop:
    """The training of the network of a study, before its first step."""
    return TrainingLoop(study, study.network(data), data)


def last_params(loop: TrainingLoop) -> Mapping[str, Array]:
    """The parameters after the last epoch of a training."""
    while not loop.finished:
        loop.epoch(evaluate=False)
    return loop.current().params


def train_study(study: Study, data: Dataset) -> Trained:
    """The network of a study after the last epoch."""
    loop = training_of(study, data)
    return Trained(loop.network, last_params(loop), data)
