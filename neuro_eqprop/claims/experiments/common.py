"""What most cells begin with: some samples, a network of a study, and its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.claims.claim import UndecidedError
from neuro_eqprop.data import DataError, Dataset, Split
from neuro_eqprop.data import load as load_data
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.initialise import initialise
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.inference import accuracy
from neuro_eqprop.solve import Stop
from neuro_eqprop.training.train import Progress, Snapshot, train

UNBOUND = 1e6
"""A spectral bound that no weight reaches."""
TESTED = Stop(1e-4, 200)
"""When a test sample counts as settled; a network without a contraction may never be."""


@lru_cache(maxsize=2)
def samples(name: str, images: int, tests: int) -> Dataset:
    """The first so many samples of a data set for training and for the test; kept in memory."""
    try:
        whole = load_data(name)
    except (UnknownNameError, DataError) as error:
        raise UndecidedError(f"data not present ({name})") from error
    cut = (part.take(slice(0, n)) for part, n in ((whole.train, images), (whole.test, tests)))
    train_part, test_part = (Split(part.x.copy(), part.y.copy()) for part in cut)
    return Dataset.from_splits(name, train_part, test_part, whole.classes, whole.shape)


def data_of(arguments: Mapping[str, Any]) -> Dataset:
    """The samples that the arguments name: `dataset`, `images`, `tests`."""
    return samples(arguments["dataset"], arguments["images"], arguments["tests"])


def study_of(arguments: Mapping[str, Any], seed: int) -> Study:
    """The study that the arguments name under `study`."""
    return adapt(Study(dataset=arguments["dataset"], seed=seed), arguments["study"])


def begin(study: Study, network: Network) -> Snapshot:
    """Before the first epoch."""
    params = initialise(network, np.random.default_rng(study.seed))
    return Snapshot(0, {name: value.astype(np.float32) for name, value in params.items()})


@dataclass(frozen=True, slots=True)
class Trained:
    """A network after training."""

    network: Network
    params: Mapping[str, Array]
    data: Dataset

    def accuracy(self, split: Split | None = None, stop: Stop = TESTED) -> float:
        """The share of the test samples, or of others, that is answered right."""
        ops = TorchOps()
        params = {name: ops.from_numpy(value) for name, value in self.params.items()}
        return accuracy(ops, self.network, params, split or self.data.test, stop)

    @property
    def exact(self) -> dict[str, Array]:
        """The parameters in float64."""
        return {name: np.asarray(v, dtype=np.float64) for name, v in self.params.items()}


def epochs(study: Study, data: Dataset, start: Snapshot | None = None) -> Iterator[Progress]:
    """Train, epoch by epoch."""
    network = study.network(data)
    return train(network, data.train, study.recipe(), start or begin(study, network))


def trained(study: Study, data: Dataset) -> Trained:
    """The network after the last epoch."""
    network = study.network(data)
    snapshot = begin(study, network)
    for progress in train(network, data.train, study.recipe(), snapshot):
        snapshot = progress.snapshot
    return Trained(network, snapshot.params, data)
