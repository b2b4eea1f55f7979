"""The trace of a run that learns: chosen synapses in its first samples, then its epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.registry import load_learner
from neuro_eqprop.experiments.learn_on_chip.task import Task
from neuro_eqprop.experiments.run_folder import RunError
from neuro_eqprop.experiments.simulate import AnnounceCallback, no_announcement
from neuro_eqprop.experiments.synapse_trace import (
    EpochRecorder,
    RecordedSamples,
    plan_synapse_trace,
    record_synapses,
)
from neuro_eqprop.synapse_recording import HEBBIAN


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A trace file to write while a run learns."""

    path: str | Path
    record: Sequence[str] = ()
    """Synapses, as `source->target:hebbian` or `source->target[row,column]:hebbian`; some of the
    last connection if empty."""
    samples: int = 50
    """Training samples recorded step by step, from the first."""
    announce: AnnounceCallback = no_announcement


def record_nothing(_: Mapping[str, Array], __: Mapping[str, Any]) -> None:
    """No-op epoch recorder."""


def open_trace(
    task: Task, request: TraceRequest | None, *, overwrite: bool
) -> AbstractContextManager[EpochRecorder]:
    """The recorder of a run's epochs; entering it writes the synapses of the first samples."""
    if request is None:
        return nullcontext(record_nothing)
    if task.on_rates:
        raise ValueError(
            "rates have no synapses to record; learn on a simulator, such as the emulator"
        )
    path = Path(request.path)
    if path.exists() and not overwrite:
        raise RunError(f"{path} exists already; name another file, or replace it with `force`")
    rows, samples = task.training_samples(0, most=request.samples)
    learner = load_learner(task.config.on)
    record = request.record or [f"{task.network.connections[-1].name}:{HEBBIAN}"]
    recorded = RecordedSamples(rows, task.train.y[rows], record, task.study.seed, task.epochs)
    plan = plan_synapse_trace(recorded, task.network, task.plastic, samples, learner.name)
    request.announce(plan)
    return record_synapses(path, plan, task.plastic, samples, learner, overwrite=overwrite)
