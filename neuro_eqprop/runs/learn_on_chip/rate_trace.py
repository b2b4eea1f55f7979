"""The trace of a run whose rate network learns: rates, virtual synapses and weights by sample.

Before each batch its samples settle with the current weights, through the phases of the chip; then
the batch is learned. Tags accumulate over a batch, and the commit belongs to its last step, as in
the trace of a simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs.learn_on_chip.epoch import learn_rate_samples
from neuro_eqprop.runs.learn_on_chip.state import (
    initial_state,
    rate_parameters,
)
from neuro_eqprop.runs.learn_on_chip.task import Task
from neuro_eqprop.runs.rate_baseline import to_batch
from neuro_eqprop.runs.simulate import dense_connections, origin_of, ranking_weights, settle
from neuro_eqprop.runs.synapse_trace import (
    EPOCH,
    LearningRecorder,
    RecordedSamples,
    record_of,
)
from neuro_eqprop.simulators.recordings import Plan, Recording
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.plasticity import TrainingSamples
from neuro_eqprop.traces.file import Writer
from neuro_eqprop.traces.synapse_history import SynapseRecorder


def plan_rate_trace(recorded: RecordedSamples, task: Task, samples: TrainingSamples) -> Plan:
    """The contents of the trace, known before the first step."""
    network, stimulus = task.network, samples.stimulus
    params = rate_parameters(task, initial_state(task))
    weights = {name: params[name] for name in dense_connections(network)}
    batch, kinds = to_batch(network, stimulus), {x.name: ActivityKind.RATE for x in network.moving}
    strengths = ranking_weights(network, weights, batch.x)
    return Plan(
        origin_of("rate", seed=recorded.seed, digest=""),
        task.plastic.rule.schedule,
        kinds,
        {layer.name: layer.size for layer in network.moving},
        tuple(weights),
        recorded.index,
        recorded.label,
        batch.x,
        record_of(recorded.record, kinds, strengths, always=kinds),
        weights,
        learns=True,
        epochs=EPOCH,
        n_epochs=recorded.epochs,
        targets=batch.target,
        snapshots=recorded.snapshots,
    )


@contextmanager
def record_rate_learning(
    path: Path, plan: Plan, task: Task, samples: TrainingSamples, *, overwrite: bool
) -> Iterator[LearningRecorder]:
    """Write the first samples, which the run then repeats; then each epoch."""
    params = rate_parameters(task, initial_state(task))
    size = task.study.training.batch
    with Writer(path, plan, overwrite=overwrite) as writer:
        for start in range(0, samples.stimulus.samples, size):
            part = samples.stimulus.take(start, start + size)
            batch = to_batch(task.network, part)
            free = field(NumpyOps(), task.network, params, batch.x)
            settled = settle(free, batch.target, plan.schedule, plan.record)
            rates = samples.rates[start : start + part.samples]
            after = learn_rate_samples(task, params, TrainingSamples(part, rates)).params
            for k, recording in enumerate(with_synapses(plan, start, settled, params, after)):
                writer.sample(start + k, recording)
            params = dict(after)
        writer.weights({name: params[name] for name in plan.weights})
        yield LearningRecorder(writer)


def with_synapses(
    plan: Plan,
    start: int,
    settled: Sequence[Recording],
    before: Mapping[str, Array],
    after: Mapping[str, Array],
) -> list[Recording]:
    """The recordings of a batch with synapse histories: tags add up, and the last step commits."""
    collected: list[Recording] = []
    sink = SynapseRecorder(ListSink(collected), plan, before)
    for k, recording in enumerate(settled):
        sink.sample(start + k, recording)
    carried = {name: np.zeros(len(each)) for name, each in plan.record.hebbian.items()}
    for k, recording in enumerate(collected):
        logs = {}
        for name, log in recording.hebbian.items():
            tag, weight = log.tag + carried[name], np.array(log.weight)
            carried[name] = tag[-1]
            if k == len(collected) - 1:
                target, source = np.array(log.synapses).T
                weight[-1] = after[name][target, source]
            logs[name] = replace(log, tag=tag, weight=weight)
        collected[k] = replace(recording, hebbian=logs)
    return collected


class ListSink:
    """A sink that appends recordings to a list."""

    def __init__(self, recordings: list[Recording]) -> None:
        self.recordings = recordings

    def sample(self, _: int, recording: Recording) -> None:
        """Append the recording."""
        self.recordings.append(recording)
