"""Drive a training: run folder, trace, resuming, patience, deadline, several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import DATASETS, Dataset, hold_out, is_data_file, load_data
from neuro_eqprop.files import deadlines
from neuro_eqprop.files.deadlines import DeadlineError
from neuro_eqprop.files.read import read_jsonl
from neuro_eqprop.files.write import append_json, remove, write_text
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs import checkpoint, run_folder
from neuro_eqprop.runs.on_chip_config import was_learned_on_chip
from neuro_eqprop.runs.request_size import check_epochs
from neuro_eqprop.runs.simulation_settings import AnnounceCallback, no_announcement
from neuro_eqprop.runs.training_trace import probing
from neuro_eqprop.training import study as config
from neuro_eqprop.training.distributed import from_main, process_group
from neuro_eqprop.training.history import read_history
from neuro_eqprop.training.loop import BatchCallback, TrainingLoop
from neuro_eqprop.training.optimizers import make_optimizer
from neuro_eqprop.training.rules.base import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.study import Study
from neuro_eqprop.training.trained import TrainedNetwork

EpochCallback = Callable[[dict[str, Any]], None]
"""Called with the metrics of each finished epoch."""


class TrainingWarning(UserWarning):
    """The training diverged; the model is that of an earlier epoch."""


@dataclass(frozen=True, slots=True)
class TrainingOutput:
    """Output files, callbacks and deadline of a training."""

    path: Path | None = None
    """The run folder; None writes nothing."""
    force: bool = False
    resume: bool = False
    traces: Path | None = None
    """Trace file in which a few samples are recorded after each epoch."""
    on_epoch: EpochCallback | None = None
    on_batch: BatchCallback | None = None
    announce: AnnounceCallback = no_announcement
    deadline: float | None = None
    """Time limit in seconds."""

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Enforce the deadline, if there is one, in a context."""
        if self.deadline is None:
            yield
            return
        try:
            with deadlines.deadline(self.deadline, "the training"):
                yield
        except DeadlineError as error:
            if self.path is None or not (self.path / run_folder.RESUME).exists():
                raise
            raise DeadlineError(f"{error}, and continue with resume=True") from error


IN_MEMORY = TrainingOutput()
"""No files, callbacks or deadline."""
ARRAYS = "data.npz"
"""File of a run folder with data that were passed as arrays."""


def data_name(data: object, loaded: Dataset, out: Path | None) -> str:
    """Return the `dataset` of the study: a name, or the path of a file."""
    if is_data_file(loaded.name):
        return str(Path(loaded.name).resolve())  # the run may be opened from another folder
    if data is None or isinstance(data, str | Path) or loaded.name in DATASETS or out is None:
        return loaded.name
    return str((out / ARRAYS).resolve())


def train_loop(loop: TrainingLoop, output: TrainingOutput = IN_MEMORY) -> TrainedNetwork:
    """Train the epochs that are left, in memory or into a run folder.

    Returns the model of the last epoch, or of the best one with `patience`; if the training
    diverged, that of the last good epoch, with the reason in `diverged`.
    """
    with process_group(loop.study.training.device) as group, output.limited():
        loop.group, output = group, output if group.main else IN_MEMORY
        out, overwrite = output.path, output.force or output.resume
        with opened(loop, output):
            if output.on_batch is not None:
                output.on_batch(float(loop.epochs), 0.0)
            last, diverged = loop.current(), ""
            with probing(
                output.traces, loop, overwrite=overwrite, announce=output.announce
            ) as record:
                try:
                    while not loop.finished:
                        row = loop.epoch(output.on_batch, evaluate=group.main)
                        last = loop.current()
                        try:
                            # Before the state is saved: a resumed run needs the trace up to it.
                            record(last, row)
                        finally:
                            if out is not None:
                                save_epoch(out, loop, last, row)
                        if output.on_epoch is not None:
                            output.on_epoch(row)
                except TrainingError as error:
                    if not last.epochs:
                        raise
                    diverged = str(error)
            model = last if loop.best is None else replace(loop.best, history=last.history)
            if out is not None:
                keep_good_run(out, diverged or lost_reason(model))
                run_folder.save_model(out, model)
                remove(out / run_folder.BEST)
    if not diverged:
        return model
    where = "the result is" if out is None else f"{out} keeps"
    epoch = f"epoch {model.epochs} of {loop.study.training.epochs}"
    reason = f"{diverged}; {where} the model of {epoch}, the last good one"
    return replace(model, diverged=reason)


def lost_reason(model: TrainedNetwork) -> str:
    """Why nothing of use was learnt, by the metrics of the last epoch; empty if it was."""
    last = model.history[-1] if model.history else {}
    return str(last["warning"]) if last.get("lost") and last["warning"] else ""


def keep_good_run(out: Path, lost: str) -> None:
    """Raise TrainingError if a lost training would replace a run of which nothing warns.

    `run_folder.writing` then restores that run.
    """
    if lost and run_folder.replaces_good_run(out):
        remove(out / run_folder.RESUME)
        raise TrainingError(
            f"{lost}. {out} keeps the run that it held, and this one was not kept: name another "
            f"`out` to keep it"
        )


@contextmanager
def opened(loop: TrainingLoop, output: TrainingOutput) -> Iterator[None]:
    """Hold the run folder of a training, if there is one, begun or resumed, in a context."""
    out, traces, group = output.path, output.traces, loop.group
    if group.size > 1 and loop.study.training.patience:
        raise run_folder.RunError("patience needs one process: leave it out, or use no torchrun")
    if traces is not None and traces.exists() and not (output.force or output.resume):
        raise run_folder.RunError(f"{traces} exists already; name another file or use force=True")
    if out is None:
        share_state(loop)
        yield
        return
    with run_folder.writing(out, force=output.force, resume=output.resume):
        if output.resume:
            resume(loop, out)
        else:
            write_text(out / run_folder.STUDY, config.write(loop.study))
            if loop.warm:  # the settings alone do not say where it began
                checkpoint.save(out / run_folder.RESUME, loop.current(), loop.memory())
        share_state(loop)
        try:
            yield
        except TrainingError:
            if loop.warm and not loop.rows:
                remove(out / run_folder.RESUME)
            raise


def share_state(loop: TrainingLoop) -> None:
    """Continue from the state of the main process, which alone has read the run folder."""
    if loop.group.size > 1:
        loop.load_state_dict(from_main(loop.state_dict(), loop.group))


def save_epoch(
    out: Path, loop: TrainingLoop, model: TrainedNetwork, row: Mapping[str, Any]
) -> None:
    """Write the metrics of an epoch, then the state to resume from.

    The order ensures that the metrics are never behind the state if the process is killed. The best
    epoch is kept, so that a resumed training ends with the same model.
    """
    if loop.best is not None and loop.best.epochs == model.epochs:
        checkpoint.save(out / run_folder.BEST, loop.best)
    append_json(out / run_folder.METRICS, row)
    checkpoint.save(out / run_folder.RESUME, model, loop.memory())


def check_length(study: Study, network: Network, data: Dataset) -> None:
    """Raise TooLargeError for a training that would take too long.

    A sample is assumed to settle in a tenth of the free steps.
    """
    training, samples = study.training, len(data.train)
    sizes = sum(prod(shape) for shape in network.parameters().values())
    products = 2 * sizes * max(1, study.rule.free_steps // 10)
    batches = -(-samples // training.batch)
    check_epochs(training.epochs, batches, samples, products, held=4.0 * sizes)


def resume(loop: TrainingLoop, out: Path) -> None:
    """Continue after the last finished epoch of the run in `out`."""
    if was_learned_on_chip(out):
        raise run_folder.RunError(
            f"{out} learns on a chip; go on with `neuro-eqprop learn --resume`"
        )
    if config.read(out / run_folder.STUDY) != loop.study:
        raise run_folder.RunError(
            f"{out} was begun with other settings, and a run is resumed as it was begun; leave "
            f"them out, or train anew with another `out`"
        )
    left, epochs = out / run_folder.RESUME, 0
    if left.exists():
        kept, memory = checkpoint.load_training(left)
        if kept.network != loop.network:
            raise run_folder.RunError(f"{left} holds a network that is not that of the study")
        check_optimizer_state(loop.study, kept.params, memory, left)
        epochs = kept.epochs
        state = {"steps": epochs * loop.epoch_steps, "params": kept.params, "memory": memory}
        loop.load_state_dict(state)
    elif (out / run_folder.MODEL).exists():
        raise run_folder.RunError(
            f"{out} has nothing to resume: {why_not_resumable(loop.study, out)}"
        )
    truncate_metrics(out / run_folder.METRICS, epochs)
    loop.rows = [dict(row) for row in read_history(out / run_folder.METRICS)]
    if loop.study.training.patience and loop.rows:
        loop.best_accuracy = max(row["validation_accuracy"] for row in loop.rows)
        best = checkpoint.load(out / run_folder.BEST)
        # A later epoch is trained again, and is the best again.
        loop.best = replace(best, study=loop.study) if best.epochs <= epochs else None


def check_optimizer_state(
    study: Study, params: Mapping[str, Array], memory: Mapping[str, Array], path: Path
) -> None:
    """Raise RunError if the state of the optimizer lacks a quantity of a parameter."""
    # The quantities depend on the shape of a parameter, so each parameter takes a step.
    dummies = {name: torch.zeros(value.shape) for name, value in params.items()}
    optimizer = make_optimizer(study.training.optimizer, 1.0, dummies)
    for each in dummies.values():
        each.grad = torch.ones_like(each)
    optimizer.step()
    for name, each in dummies.items():
        found = (k for k, v in optimizer.state[each].items() if isinstance(v, torch.Tensor))
        for entry in (f"{name}/{quantity}" for quantity in found):
            if entry in memory:
                continue
            raise run_folder.RunError(
                f"{path} lacks the optimizer's state {entry!r}; restore the file from a copy, or "
                f"train anew with another --out"
            )


def why_not_resumable(study: Study, out: Path) -> str:
    """Return why a run cannot be resumed: it finished or diverged."""
    done = checkpoint.load(out / run_folder.MODEL).epochs
    if done >= study.training.epochs or study.training.patience:
        return "its run is finished; train anew with another `out`, or replace it with force=True"
    return (
        f"it diverged (NaN or inf) after epoch {done} of {study.training.epochs}, and would again; "
        f"train anew with another `out` or force=True, and {DIVERGENCE_ADVICE}"
    )


def truncate_metrics(path: Path, epochs: int) -> None:
    """Remove the metrics of epochs after `epochs`."""
    rows = read_jsonl(path)[:epochs]
    if epochs and not rows:
        raise run_folder.RunError(
            f"{path} holds no metrics, but {epochs} epochs were trained; restore it from a copy, "
            f"or train anew with another --out"
        )
    write_text(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


def load_for(study: Study) -> Dataset:
    """Load the data of a study, and hold out its validation samples."""
    data, part = load_data(study.dataset), study.training.validation
    return hold_out(data, part, study.seed) if part else data
