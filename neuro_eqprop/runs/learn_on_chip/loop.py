"""All epochs of learning on a chip, in memory or into a run folder."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuro_eqprop.files.deadlines import DeadlineError
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.files.write import append_json, write_text
from neuro_eqprop.runs import checkpoint, on_chip_config, run_folder
from neuro_eqprop.runs.learn_on_chip.direction import direction_warnings, measure_directions
from neuro_eqprop.runs.learn_on_chip.epoch import learn_epoch, weights_within_epoch
from neuro_eqprop.runs.learn_on_chip.model import OnChipNetwork
from neuro_eqprop.runs.learn_on_chip.state import (
    LearningState,
    initial_state,
    rate_model,
    rate_parameters,
    resume_state,
    to_memory,
)
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest, earlier_snapshots, open_trace
from neuro_eqprop.runs.request_size import check_simulation, simulation_deadline
from neuro_eqprop.runs.synapse_trace import LearningRecorder
from neuro_eqprop.training.history import History, read_history


class OnChipWarning(UserWarning):
    """The update is far from that of rates or from the gradient; the message gives the cosine."""


EpochCallback = Callable[[dict[str, Any]], None]
"""Called with the metrics of each epoch."""
SampleCallback = Callable[[int, int], None]
"""Called with the samples learned since the first epoch, and the samples of all epochs."""


def no_metrics(_: dict[str, Any]) -> None:
    """No-op epoch callback."""


def no_samples(_: int, __: int) -> None:
    """No-op sample callback."""


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """How a run that learns is kept, recorded, watched and ended; see `learn_on_chip`."""

    out: Path | None = None
    force: bool = False
    resume: bool = False
    trace: TraceRequest | None = None
    progress: EpochCallback = no_metrics
    on_samples: SampleCallback = no_samples
    deadline: float | None = None

    def writing(self) -> AbstractContextManager[None]:
        """Context that locks the folder for this process."""
        if self.out is None:
            return nullcontext()
        return run_folder.writing(self.out, force=self.force, resume=self.resume)

    def start(self, task: OnChipTask) -> tuple[LearningState, list[Mapping[str, Any]]]:
        """The state to start from and the metrics of earlier epochs."""
        if self.out is None:
            return initial_state(task), []
        if self.resume:
            state = resume_state(task, self.out)
            return state, [*read_history(self.out / run_folder.METRICS)]
        text = on_chip_config.write(task.study, task.config)
        write_text(self.out / run_folder.STUDY, text)
        return initial_state(task), []

    def write_epoch(
        self, task: OnChipTask, state: LearningState, metrics: Mapping[str, Any]
    ) -> None:
        """Write the metrics and the state after an epoch."""
        if self.out is None:
            return
        # Metrics first: if the process is killed in between, they are not behind the state.
        append_json(self.out / run_folder.METRICS, metrics)
        model, memory = rate_model(task, state), to_memory(task, state)
        checkpoint.save(self.out / run_folder.RESUME, model, memory)

    def finish(self, model: OnChipNetwork) -> None:
        """Write the model, and remove the state to resume from."""
        if self.out is None:
            return
        run_folder.save_model(self.out, model)


def record_snapshots(task: OnChipTask, state: LearningState, recording: LearningRecorder) -> None:
    """Record the weights at the chosen samples of the epoch that starts in `state`."""
    ends = state.samples + len(task.sample_order(state.epoch))
    for sample in recording.snapshots:
        if state.samples <= sample < ends:
            weights = weights_within_epoch(task, state, sample - state.samples)
            recording.snapshot(sample, weights)


def learn(task: OnChipTask, options: LearningOptions) -> OnChipNetwork:
    """Learn the remaining epochs of a task."""
    began = time.perf_counter()
    steps = sum(phase.steps for phase in task.plastic.rule.schedule)
    samples = task.epochs * len(task.sample_order(0))
    check_simulation(task.config.on, task.plastic.network, samples, steps)
    recorder = open_trace(task, options.trace, overwrite=options.force or options.resume)
    # Before the folder is locked, so that an error leaves the run in it unchanged.
    task.learner.check(task.plastic, task.training_samples(0)[1])
    # The directions of updates and the test samples of an epoch are simulated, too.
    work = 2.0 * steps * (samples + task.epochs * len(task.data.test))
    with (
        simulation_deadline(task.config.on, task.plastic.network, work, options.deadline),
        options.writing(),
    ):
        try:
            model = learn_epochs(task, options, recorder)
        except DeadlineError as error:
            if options.out is None or not (options.out / run_folder.RESUME).exists():
                raise
            raise DeadlineError(f"{error}, and continue with resume=True") from error
    return replace(model, seconds=time.perf_counter() - began)


def learn_epochs(
    task: OnChipTask,
    options: LearningOptions,
    recorder: AbstractContextManager[LearningRecorder],
) -> OnChipNetwork:
    """Learn the remaining epochs, in a folder that this process has locked."""
    total = task.total_samples
    state, history = options.start(task)
    done = state.samples

    def count(more: int) -> None:
        nonlocal done
        check_deadline()
        done += more
        options.on_samples(done, total)

    count(0)
    directions = measure_directions(task, state)
    sentences = direction_warnings(task, directions)
    for warning in sentences:
        warnings.warn(warning, OnChipWarning, stacklevel=4)
    earlier = earlier_snapshots(options.trace, state.samples) if options.resume else {}
    with recorder as recording:
        for sample, weights in earlier.items():
            recording.snapshot(sample, weights)
        for row in history:
            recording.epoch(state.weights, row)
        while state.epoch < task.epochs:
            record_snapshots(task, state, recording)
            state, metrics = learn_epoch(task, state, count)
            history.append(metrics)
            options.write_epoch(task, state, metrics)
            recording.epoch(state.weights, metrics)
            options.progress(metrics)
        if total in recording.snapshots:
            recording.snapshot(total, state.weights)
    model = OnChipNetwork(
        task.network,
        rate_parameters(task, state),
        state.epoch,
        study=task.study,
        history=History(tuple(history)),
        provenance=f"learned on {task.config.on}"
        + ("" if task.on_rates else f" with code {task.config.code}"),
        config=task.config,
        schedule=task.plastic.rule.schedule,
        samples_seen=state.samples,
        directions=directions,
        warnings=tuple(sentences),
        path=options.out,
    )
    options.finish(model)
    return model
