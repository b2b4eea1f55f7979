"""Record how a few samples settle after each epoch of a training.

Steps and samples are numbered consecutively over epochs. The final weights of the trace are those
of the latest epoch; the weight in the history of a synapse is that of its epoch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.operators import Dense
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs.simulate import origin_of, ranking_weights, settle
from neuro_eqprop.runs.simulation_settings import AnnounceCallback, no_announcement
from neuro_eqprop.simulators.recordings import RecordingPlan, parse_record
from neuro_eqprop.simulators.synapse_recording import HEBBIAN
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.file import Writer
from neuro_eqprop.traces.lazy import FileTrace, open_trace
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.synapse_history import SynapseRecorder
from neuro_eqprop.training.loop import TrainingLoop, initial_parameters
from neuro_eqprop.training.study import Study
from neuro_eqprop.training.trained import TrainedNetwork

SAMPLES, STEPS = 2, 16
"""Samples of each epoch, and steps of each phase."""
MOST = 2**22
"""Most bytes per epoch; fewer samples are recorded if they need more."""

RecordEpoch: TypeAlias = Callable[[TrainedNetwork, Mapping[str, Any]], None]
"""Called with the model and the metrics after an epoch."""


class TraceWarning(UserWarning):
    """The trace of a resumed training lacks its earlier epochs; the message says why."""


@contextmanager
def probing(
    path: Path | None,
    loop: TrainingLoop,
    *,
    overwrite: bool,
    announce: AnnounceCallback = no_announcement,
) -> Iterator[RecordEpoch]:
    """Open a trace; yield a function to call after each epoch, a no-op if `path` is None.

    A resumed training keeps the epochs that it recorded before.
    """
    if path is None:
        yield lambda *_: None
        return
    network, data, done = loop.network, loop.data, loop.epochs
    plan, earlier = plan_of(loop, loop.current().params, done), None
    if done:
        whole = plan_of(loop, initial_parameters(loop.study, network), 0)
        old = earlier_trace(path, whole, done)
        if isinstance(old, str):
            warnings.warn(f"the trace begins after epoch {done}: {old}", TraceWarning, stacklevel=4)
        else:
            plan, earlier = whole, partial(replay, old, done)
    announce(plan)
    count = len(plan.index) // max(1, plan.n_epochs)
    x, target = plan.inputs[:count], one_hot(plan.label[:count], data.classes)
    with Writer(path, plan, overwrite=overwrite, earlier=earlier) as writer:

        def record_epoch(model: TrainedNetwork, line: Mapping[str, Any]) -> None:
            params = exact(model.params)
            free, sink = (
                field(NumpyOps(), network, params, x),
                SynapseRecorder(writer, plan, params),
            )
            recordings = settle(free, target, plan.schedule, plan.record)
            for k, recording in enumerate(recordings, start=writer.taken):
                sink.sample(k, recording)
            writer.epoch(numbers(line))
            writer.weights({name: params[name] for name in plan.weights})
            writer.flush()

        yield record_epoch


def earlier_trace(path: Path, plan: RecordingPlan, epochs: int) -> FileTrace | str:
    """Return the trace of the first epochs of a training, or the reason why there is none."""
    partial_path = path.with_name(f"{path.name}.partial")
    found = next((each for each in (path, partial_path) if each.exists()), None)
    if found is None:
        return f"there is no {path} of the epochs before"
    try:
        old = open_trace(found)
    except TraceError as error:
        return str(error)
    wanted = epochs * (len(plan.index) // plan.n_epochs)
    same = (
        old.schedule == plan.schedule
        and dict(old.sizes) == dict(plan.sizes)
        and {name: log.synapses for name, log in old.hebbian.items()} == dict(plan.record.hebbian)
        and set(old.signals) == set(plan.record.signals)
        and set(old.epochs) == set(plan.epochs)
    )
    done = min((len(values) for values in old.epochs.values()), default=0)
    if not same or old.samples < wanted or done < epochs:
        old.close()
        return f"{found} does not hold the {epochs} epochs before"
    return old


def replay(old: FileTrace, epochs: int, writer: Writer) -> None:
    """Copy the first epochs of an earlier trace."""
    with old:
        for k in range(epochs * (len(writer.plan.index) // writer.plan.n_epochs)):
            writer.sample(k, old.recording(k))
        for epoch in range(epochs):
            writer.epoch({name: float(values[epoch]) for name, values in old.epochs.items()})


def exact(params: Mapping[str, Array]) -> dict[str, Array]:
    """Return parameters in float64."""
    return {name: value.astype(np.float64) for name, value in params.items()}


def schedule_of(study: Study) -> Schedule:
    """Return the phases of the training, each with `STEPS` steps."""
    make = two_phase if study.rule.nudging == "positive" else three_phase
    return make(beta=study.rule.beta, free=STEPS, nudged=STEPS)


def plan_of(loop: TrainingLoop, start: Mapping[str, Array], done: int) -> RecordingPlan:
    """Plan the trace of a training that continues from parameters after `done` epochs."""
    study, network, data = loop.study, loop.network, loop.data
    schedule, params = schedule_of(study), exact(start)
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
    rows = np.tile(np.arange(count), study.training.epochs - done)
    return RecordingPlan(
        origin_of("rate", seed=study.seed, digest=""),
        schedule,
        kinds,
        sizes,
        tuple(weights),
        rows,
        data.test.y[rows],
        data.test.take(rows).x,
        parse_record(dense, kinds, ranking_weights(network, weights, data.train.x)),
        weights,
        learns=True,
        epochs=units(network),
        n_epochs=study.training.epochs - done,
        targets=one_hot(data.test.y[rows], data.classes),
    )


def units(network: Network) -> dict[str, str]:
    """Return the recorded metrics of an epoch, and their units."""
    plain = {"epoch": "epoch", "train_accuracy": "1", "test_accuracy": "1", "seconds": "s"}
    return plain | {f"norm of {connection.name}": "1" for connection in network.connections}


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the recorded metrics from a row of the history."""
    plain = ("epoch", "train_accuracy", "test_accuracy", "seconds")
    norms = {f"norm of {name}": float(norm) for name, norm in line["spectral"].items()}
    return {name: float(line[name]) for name in plain} | norms
