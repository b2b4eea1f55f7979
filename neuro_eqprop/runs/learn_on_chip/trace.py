"""The trace of a run that learns: its first samples step by step, then its epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import one_hot
from neuro_eqprop.files.write import refuse_existing
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.runs.run_folder import RunError
from neuro_eqprop.runs.simulate import origin_of, ranking_weights
from neuro_eqprop.runs.simulation_settings import AnnounceCallback, no_announcement
from neuro_eqprop.runs.synapse_trace import (
    EPOCH,
    LearningRecorder,
    record_of,
    record_synapses,
    recorded_rule,
)
from neuro_eqprop.simulators.base import kinds
from neuro_eqprop.simulators.recordings import RecordingPlan
from neuro_eqprop.simulators.synapse_recording import HEBBIAN
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.plasticity import TrainingSamples
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.schema import TraceError


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A trace file to write while a run learns."""

    path: str | Path
    record: Sequence[str] = ()
    """`population:variable` and synapses, as `source->target:hebbian` or
    `source->target[row,column]:hebbian`; some of the last connection if no synapses are named."""
    samples: int = 50
    """Training samples recorded step by step, from the first."""
    announce: AnnounceCallback = no_announcement
    snapshots: Sequence[int] = ()
    """Numbers of learned samples after which all weights are recorded; 0 is before the first."""


def open_trace(
    task: OnChipTask, request: TraceRequest | None, *, overwrite: bool
) -> AbstractContextManager[LearningRecorder]:
    """The recorder of a run's epochs; entering it writes the first samples."""
    if request is None:
        return nullcontext(LearningRecorder())
    if task.plastic.rule.margin:
        raise RunError("a margin leaves out phases, which a trace records: learn with margin 0")
    path = Path(request.path)
    refuse_existing(path, force=overwrite)
    rows, samples = task.training_samples(0, most=request.samples)
    record = [request.record] if isinstance(request.record, str) else [*request.record]
    if not any("->" in item for item in record):
        record.append(f"{task.network.connections[-1].name}:{HEBBIAN}")
    plan = plan_trace(task, rows, samples, record, checked_snapshots(task, request.snapshots))
    request.announce(plan)
    return record_synapses(path, plan, task.plastic, samples, task.learner, overwrite=overwrite)


def plan_trace(
    task: OnChipTask,
    rows: Ints,
    samples: TrainingSamples,
    record: Sequence[str],
    snapshots: tuple[int, ...],
) -> RecordingPlan:
    """Plan the contents of the trace before the first step."""
    network, plastic, learner = task.network, task.plastic, task.learner
    layers = {layer.name for layer in network.moving}
    names = sorted(plastic.learns)
    how, digest = kinds(plastic.network), plastic.network.digest
    if task.on_rates:
        names = [connection.name for connection in network.connections]
        how, digest = {layer.name: ActivityKind.RATE for layer in network.moving}, ""
    inputs = samples.stimulus.current[network.input.name]
    weights = {name: plastic.projection(name).weight for name in names}
    strengths = ranking_weights(network, weights, inputs)
    return RecordingPlan(
        origin_of(
            learner.name,
            seed=task.study.seed,
            digest=digest,
            seconds=float(getattr(learner, "step_seconds", plastic.network.dt)),
        ),
        plastic.rule.schedule,
        how,
        {name: plastic.network[name].size for name in how},
        tuple(weights),
        rows,
        task.train.y[rows],
        inputs,
        record_of(record, how, strengths, always=layers),
        weights,
        learns=True,
        epochs=EPOCH,
        n_epochs=task.epochs,
        targets=one_hot(task.train.y[rows], network.output.size),
        snapshots=snapshots,
        rule=recorded_rule(plastic, samples.rates, names),
    )


def checked_snapshots(task: OnChipTask, wanted: Sequence[int]) -> tuple[int, ...]:
    """The sample numbers in ascending order; ValueError for those beyond the run."""
    numbers, total = sorted({int(number) for number in wanted}), task.total_samples
    for number in numbers:
        if not 0 <= number <= total:
            raise ValueError(
                f"a snapshot after {number} samples lies outside the run, which shows {total}"
            )
    return tuple(numbers)


def earlier_snapshots(request: TraceRequest | None, samples: int) -> dict[int, Mapping[str, Array]]:
    """The snapshots before `samples` samples that the trace of a killed run holds."""
    if request is None or not request.snapshots:
        return {}
    path = Path(request.path)
    for place in (path, path.with_name(f"{path.name}.partial")):
        try:
            snapshots = read(place).snapshots
        except TraceError:
            continue
        return {
            number: {name: values[k] for name, values in snapshots.weights.items()}
            for k, number in enumerate(snapshots.sample.tolist())
            if number < samples and number in request.snapshots
        }
    return {}
