"""Record how a few samples settle after each epoch of a training.

Steps and samples are numbered on from epoch to epoch. The weights after the run are those of the
last epoch so far; the weight in the history of a synapse is that of its epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.analysis.synapse_history import SynapseRecorder
from neuro_eqprop.arrays import Array
from neuro_eqprop.data import Dataset, one_hot
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.simulate import (
    AnnounceCallback,
    no_announcement,
    origin_of,
    ranking_weights,
    settle,
)
from neuro_eqprop.io.trace.file import Writer
from neuro_eqprop.networks import Network
from neuro_eqprop.operators import Dense
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.synapse_recording import HEBBIAN
from neuro_eqprop.traces import ActivityKind, Plan, parse_record
from neuro_eqprop.training.train import Snapshot

SAMPLES, STEPS = 2, 16
"""Samples of each epoch, and steps of each phase."""
MOST = 2**22
"""Bytes of an epoch above which fewer samples are recorded."""

RecordEpoch: TypeAlias = Callable[[Snapshot, Mapping[str, Any]], None]
"""Called with the state and the metrics after an epoch."""


@contextmanager
def probing(
    path: Path | None,
    study: Study,
    network: Network,
    data: Dataset,
    *,
    start: Snapshot,
    overwrite: bool,
    announce: AnnounceCallback = no_announcement,
) -> Iterator[RecordEpoch]:
    """A context with a function to call after each epoch; a no-op without a path."""
    if path is None:
        yield lambda *_: None
        return
    plan = plan_of(study, network, data, start)
    announce(plan)
    count = len(plan.index) // max(1, study.training.epochs - start.epoch)
    x, target = plan.inputs[:count], one_hot(plan.label[:count], data.classes)
    with Writer(path, plan, overwrite=overwrite) as writer:

        def record_epoch(snapshot: Snapshot, line: Mapping[str, Any]) -> None:
            params = exact(snapshot.params)
            free, sink = (
                field(NumpyOps(), network, params, x),
                SynapseRecorder(writer, plan, params),
            )
            recordings = settle(free, target, plan.schedule, plan.record)
            for k, recording in enumerate(recordings, start=writer.taken):
                sink.sample(k, recording)
            writer.epoch(numbers(line))
            writer.weights({name: params[name] for name in plan.weights})

        yield record_epoch


def exact(params: Mapping[str, Array]) -> dict[str, Array]:
    """Parameters in float64."""
    return {name: value.astype(np.float64) for name, value in params.items()}


def schedule_of(study: Study) -> Schedule:
    """The phases of the training, each of `STEPS` steps."""
    make = two_phase if study.rule.nudging == "positive" else three_phase
    return make(beta=study.rule.beta, free=STEPS, nudged=STEPS)


def plan_of(study: Study, network: Network, data: Dataset, start: Snapshot) -> Plan:
    """The contents of the trace of a training."""
    schedule, params = schedule_of(study), exact(start.params)
    kinds = {layer.name: ActivityKind.RATE for layer in network.moving}
    weights = {
        connection.name: params[connection.name]
        for connection in network.connections
        if isinstance(connection.operator, Dense)
    }
    dense = [f"{name}:{HEBBIAN}" for name, weight in weights.items() if weight.ndim == 2]
    sizes = {layer.name: layer.size for layer in network.moving}
    each = 8 * sum(sizes.values()) * sum(phase.steps for phase in schedule)
    count = max(1, min(SAMPLES, MOST // each, len(data.test)))
    rows = np.tile(np.arange(count), study.training.epochs - start.epoch)
    return Plan(
        origin_of("rate", seed=study.seed, digest=""),
        schedule,
        kinds,
        sizes,
        tuple(weights),
        rows,
        data.test.y[rows],
        data.test.x[rows],
        parse_record(dense, kinds, ranking_weights(network, weights, data.train.x)),
        weights,
        learns=True,
        epochs=units(network),
        n_epochs=study.training.epochs - start.epoch,
        targets=one_hot(data.test.y[rows], data.classes),
    )


def units(network: Network) -> dict[str, str]:
    """The recorded metrics of an epoch, with their units."""
    plain = {"epoch": "epoch", "train_accuracy": "1", "test_accuracy": "1", "seconds": "s"}
    return plain | {f"norm of {connection.name}": "1" for connection in network.connections}


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """The recorded metrics, from a row of the history."""
    plain = ("epoch", "train_accuracy", "test_accuracy", "seconds")
    norms = {f"norm of {name}": float(norm) for name, norm in line["spectral"].items()}
    return {name: float(line[name]) for name in plain} | norms
