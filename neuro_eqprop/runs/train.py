"""Train a network with the settings of a study, in memory or into a run folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array, type_name
from neuro_eqprop.data import DATASETS, Dataset, hold_out, load_data, one_hot
from neuro_eqprop.dynamics.inference import score
from neuro_eqprop.files import deadlines
from neuro_eqprop.files.deadlines import DeadlineError
from neuro_eqprop.files.read import read_jsonl
from neuro_eqprop.files.write import append_json, remove, write_text
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs import checkpoint, run_folder
from neuro_eqprop.runs.on_chip_config import was_learned_on_chip
from neuro_eqprop.runs.request_size import check_epochs
from neuro_eqprop.runs.simulate import AnnounceCallback, no_announcement
from neuro_eqprop.runs.training_result import SETTLED
from neuro_eqprop.runs.training_trace import probing
from neuro_eqprop.training import study as config
from neuro_eqprop.training.batch import Batch
from neuro_eqprop.training.config import TrainingConfig
from neuro_eqprop.training.diagnostics import Diagnostics, diagnose
from neuro_eqprop.training.distributed import (
    ALONE,
    ProcessGroup,
    from_main,
    process_group,
)
from neuro_eqprop.training.errors import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.history import History, read_history
from neuro_eqprop.training.lr_schedules import TrainingLength, learning_rates
from neuro_eqprop.training.optimizers import make_optimizer
from neuro_eqprop.training.rules.contrastive import contrastive, path_of
from neuro_eqprop.training.rules.hybrid import stem_of
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import TrainingSettings
from neuro_eqprop.training.study import Study
from neuro_eqprop.training.train import Progress, Snapshot
from neuro_eqprop.training.train import train as train_epochs
from neuro_eqprop.training.trained import TrainedNetwork
from neuro_eqprop.training.weight_quantiles import weight_quantiles

EpochCallback = Callable[[dict[str, Any]], None]
"""Called with the metrics of each finished epoch."""
BatchCallback = Callable[[float, float], None]
"""Called with the fraction of an epoch since the last call, and its accuracy so far."""


class TrainingWarning(UserWarning):
    """The training diverged; the model is that of an earlier epoch."""


def no_progress(part: float, right: float) -> None:
    """No-op batch callback."""


def no_metrics(row: dict[str, Any]) -> None:
    """No-op epoch callback."""


@dataclass(frozen=True, slots=True)
class TrainingOutput:
    """Output files, callbacks and deadline of a training."""

    path: Path | None = None
    """The run folder; None writes nothing."""
    force: bool = False
    resume: bool = False
    traces: Path | None = None
    """Trace file in which a few samples are recorded after each epoch."""
    on_epoch: EpochCallback = no_metrics
    on_batch: BatchCallback = no_progress
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


def starting_study(
    network: str | Path | Network | Study | None, out: Path | None, *, resume: bool
) -> Study:
    """Return the study before the settings are applied: of a model, network, file or run."""
    if isinstance(network, Study):
        return network
    if isinstance(network, Network):
        return config.make_study(model=config.CUSTOM.name, dataset=NO_DATA)
    if network is None and resume and out is not None:
        run_folder.check_begun(out)
        return config.read(out / run_folder.STUDY)
    if not isinstance(network, str | Path):
        raise TypeError(
            f"train takes the name of a model, a Network or a Study first, not {type_name(network)}"
        )
    if Path(network).suffix == ".toml":
        return config.read(Path(network))
    return config.make_study(model=str(network), dataset=NO_DATA)


NO_DATA = ""
"""Placeholder for the data set of a study that is made from a model name or a network."""
ARRAYS = "data.npz"
"""File of a run folder with data that were passed as arrays."""


def data_name(data: str | Path | Dataset | None, loaded: Dataset, out: Path | None) -> str:
    """Return the `dataset` of the study: a name, or the path of a file."""
    if str(loaded.name).endswith(".npz"):
        return str(Path(loaded.name).resolve())  # the run may be opened from another folder
    if not isinstance(data, Dataset) or loaded.name in DATASETS or out is None:
        return loaded.name
    return str((out / ARRAYS).resolve())


def train_study(
    study: Study, network: Network, data: Dataset, output: TrainingOutput = IN_MEMORY
) -> tuple[TrainedNetwork, str | None]:
    """Train a network with the settings of a study.

    Returns the model of the last epoch and None; if the training diverged, that of the last good
    epoch and the reason.
    """
    with process_group(study.training.device) as group:
        if group.main:
            return train_in_group(study, network, data, output, group)
        return train_in_group(study, network, data, IN_MEMORY, group)


def train_in_group(
    study: Study, network: Network, data: Dataset, output: TrainingOutput, group: ProcessGroup
) -> tuple[TrainedNetwork, str | None]:
    """Train as one process of a group, see `train_study`; the main one evaluates and writes."""
    check_device(study.training.device)
    check_sizes(network, data)
    check_length(study, network, data)
    out, traces, overwrite = output.path, output.traces, output.force or output.resume
    if traces is not None and traces.exists() and not overwrite:
        raise run_folder.RunError(f"{traces} exists already; name another file or use force=True")
    dry_run(study, network, data)
    if out is None:
        with output.limited():
            return train_prepared(study, network, data, output, group)
    with output.limited(), run_folder.writing(out, force=output.force, resume=output.resume):
        return train_prepared(study, network, data, output, group)


def train_prepared(
    study: Study, network: Network, data: Dataset, output: TrainingOutput, group: ProcessGroup
) -> tuple[TrainedNetwork, str | None]:
    """Train with checked settings, and a run folder that is locked, see `train_study`."""
    out, traces, overwrite = output.path, output.traces, output.force or output.resume
    start = (
        initial_snapshot(study, network) if out is None else prepare(study, network, out, output)
    )
    start = from_main(start, group)
    output.on_batch(float(start.epoch), 0.0)
    rows = list(read_history(out / run_folder.METRICS)) if out is not None else []
    best = BestEpoch(study, network, out, rows)
    if best.patience and group.size > 1:
        raise run_folder.RunError("patience needs one process: leave it out, or use no torchrun")
    diverged: TrainingError | None = None
    with probing(
        traces,
        study,
        network,
        data,
        start=start,
        first=initial_snapshot(study, network),
        overwrite=overwrite,
        announce=output.announce,
    ) as record_epoch:
        try:
            remaining = epochs(study, network, data, start, output.on_batch, group)
            for progress in () if best.is_over(start.epoch) else remaining:
                start = progress.snapshot
                if not group.main:
                    continue
                row = metrics(study, progress, network, data)
                rows.append(row)
                try:
                    # Before the state is saved: a resumed run needs the trace up to its state.
                    record_epoch(start, row)
                finally:
                    best.add(row, start)
                    if out is not None:
                        save_epoch(out, network, start, row)
                output.on_epoch(row)
                if best.is_over(start.epoch):
                    break
        except TrainingError as error:
            diverged = error
    if diverged is not None and not start.epoch:
        raise diverged
    start = best.snapshot or start
    model = TrainedNetwork(network, start.params, start.epoch, study, History(tuple(rows)))
    if out is not None:
        run_folder.save_model(out, model)
        remove(out / run_folder.BEST)
    if diverged is None:
        return model, None
    where = "the result is" if out is None else f"{out} keeps"
    epoch = f"epoch {start.epoch} of {study.training.epochs}"
    return model, f"{diverged}; {where} the model of {epoch}, the last good one"


class BestEpoch:
    """Epoch with the best validation accuracy so far, for early stopping (`patience`).

    Its parameters are stored in the run folder, so that a resumed training ends with the same
    model.
    """

    def __init__(
        self, study: Study, network: Network, out: Path | None, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self.patience, self.network = study.training.patience, network
        self.file = None if out is None else out / run_folder.BEST
        self.accuracy, self.snapshot = -1.0, self.read(rows) if self.patience and rows else None
        if self.patience and rows:
            self.accuracy = max(row["validation_accuracy"] for row in rows)

    def read(self, rows: Sequence[Mapping[str, Any]]) -> Snapshot | None:
        """Return the best of the epochs in `rows` of an interrupted training.

        None if the file holds a later epoch than `rows`: that epoch is trained again, and is the
        best.
        """
        assert self.file is not None
        kept = checkpoint.load(self.file)
        return Snapshot(kept.epochs, kept.params) if kept.epochs <= len(rows) else None

    def add(self, row: Mapping[str, Any], snapshot: Snapshot) -> None:
        """Store an epoch if it is better than all before."""
        if not self.patience or row["validation_accuracy"] <= self.accuracy:
            return
        self.accuracy, self.snapshot = row["validation_accuracy"], snapshot
        if self.file is not None:
            checkpoint.save(
                self.file, TrainedNetwork(self.network, snapshot.params, snapshot.epoch)
            )

    def is_over(self, epoch: int) -> bool:
        """Return whether the last `patience` epochs brought no improvement."""
        return self.snapshot is not None and epoch - self.snapshot.epoch >= self.patience


def save_epoch(out: Path, network: Network, snapshot: Snapshot, row: dict[str, Any]) -> None:
    """Write the metrics of an epoch, then the state to resume from.

    The order ensures that the metrics are never behind the state if the process is killed.
    """
    append_json(out / run_folder.METRICS, row)
    kept = TrainedNetwork(network, snapshot.params, snapshot.epoch)
    checkpoint.save(out / run_folder.RESUME, kept, snapshot.memory)


def check_sizes(network: Network, data: Dataset) -> None:
    """Raise ValueError if the sizes of network and data differ."""
    sizes = network.input.size, network.output.size
    if sizes != (data.features, data.classes):
        raise ValueError(
            f"the network goes from {sizes[0]} to {sizes[1]} units, but {data.name!r} has "
            f"{data.features} features and {data.classes} classes"
        )


def epochs(
    study: Study,
    network: Network,
    data: Dataset,
    start: Snapshot,
    tick: BatchCallback,
    group: ProcessGroup = ALONE,
) -> Iterator[Progress]:
    """Train the remaining epochs, and yield the progress after each."""

    def on_batch(samples: int, right: float) -> None:
        deadlines.check()
        tick(samples / len(data.train), right)

    ops = TorchOps(device=study.training.device)
    view = study.view(data)
    config = study.recipe()
    return train_epochs(
        network, data.train, config, start, ops=ops, on_batch=on_batch, augment=view, group=group
    )


@torch.no_grad()
def dry_run(study: Study, network: Network, data: Dataset) -> None:
    """Train two samples for one step, so that bad settings fail before training starts."""
    ops, few = TorchOps(device=study.training.device), data.train.take(slice(2))
    study.view(data)
    check_training(study.training)
    stem = stem_of(network)
    if stem and RULES[study.rule.name].needs_feedback:
        raise TrainingError(
            f"no feedback reaches layer {stem[0]!r}, so rule {study.rule.name!r} would not change "
            f"its weights: use rule 'single-phase', 'hybrid' or 'asymmetric'"
        )
    recipe = replace(study.recipe(), free_steps=1, nudged_steps=1)
    params = {
        name: ops.from_numpy(value)
        for name, value in initial_snapshot(study, network).params.items()
    }
    batch = Batch(
        ops.from_numpy(few.x), ops.from_numpy(one_hot(few.y, data.classes)), measured=False
    )
    RULES[recipe.rule].update(ops, network, params, batch, recipe)


def check_length(study: Study, network: Network, data: Dataset) -> None:
    """Raise TooLargeError for a training that would take too long.

    A sample is assumed to settle in a tenth of the free steps.
    """
    training, samples = study.training, len(data.train)
    products = 2 * sum(value.size for value in initial_snapshot(study, network).params.values())
    products *= max(1, study.rule.free_steps // 10)
    check_epochs(training.epochs, -(-samples // training.batch), samples, products)


def check_training(training: TrainingSettings) -> None:
    """Raise ValueError for options of the optimizer or schedule whose values torch rejects."""
    make_optimizer(training.optimizer, training.learning_rate, {"any": torch.zeros(1)})
    learning_rates(training.lr_schedule, training.learning_rate, TrainingLength(training.epochs, 1))


def prepare(study: Study, network: Network, out: Path, output: TrainingOutput) -> Snapshot:
    """Return the first state of a training in a folder: initial, or to resume from."""
    if output.resume:
        return resume_snapshot(study, network, out)
    start = initial_snapshot(study, network)
    write_text(out / run_folder.STUDY, config.write(study))
    return start


def initial_snapshot(study: Study, network: Network) -> Snapshot:
    """Return the state before the first epoch."""
    params = initialize(network, np.random.default_rng(study.seed))
    return Snapshot(0, {name: value.astype(np.float32) for name, value in params.items()})


def resume_snapshot(study: Study, network: Network, out: Path) -> Snapshot:
    """Return the state after the last finished epoch of the run in `out`."""
    if was_learned_on_chip(out):
        raise run_folder.RunError(
            f"{out} learns on a chip; go on with `neuro-eqprop learn --resume`"
        )
    if config.read(out / run_folder.STUDY) != study:
        raise run_folder.RunError(
            f"{out} was begun with other settings, and a run is resumed as it was begun; leave "
            f"them out, or train anew with another `out`"
        )
    left, start = out / run_folder.RESUME, initial_snapshot(study, network)
    if left.exists():
        kept, memory = checkpoint.load_training(left)
        if kept.network != network:
            raise run_folder.RunError(f"{left} holds a network that is not that of the study")
        check_optimizer_state(study, kept.params, memory, left)
        start = Snapshot(kept.epochs, kept.params, memory)
    elif (out / run_folder.MODEL).exists():
        raise run_folder.RunError(f"{out} has nothing to resume: {ended(study, out)}")
    trim(out / run_folder.METRICS, start.epoch)
    return start


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


def ended(study: Study, out: Path) -> str:
    """Return why a run cannot be resumed: it finished or diverged."""
    done = checkpoint.load(out / run_folder.MODEL).epochs
    if done >= study.training.epochs or study.training.patience:
        return "its run is finished; train anew with another `out`, or replace it with force=True"
    return (
        f"it diverged (NaN or inf) after epoch {done} of {study.training.epochs}, and would again; "
        f"train anew with another `out` or force=True, and {DIVERGENCE_ADVICE}"
    )


def trim(path: Path, epochs: int) -> None:
    """Remove the metrics of epochs after `epochs`."""
    rows = read_jsonl(path)[:epochs]
    if epochs and not rows:
        raise run_folder.RunError(
            f"{path} holds no metrics, but {epochs} epochs were trained; restore it from a copy, "
            f"or train anew with another --out"
        )
    write_text(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


PROBED = 16
"""Number of training samples for the diagnostics after each epoch."""


def metrics(study: Study, progress: Progress, network: Network, data: Dataset) -> dict[str, Any]:
    """Return the metrics of an epoch."""
    ops, snapshot = TorchOps(device=study.training.device), progress.snapshot
    params = {name: ops.from_numpy(value) for name, value in snapshot.params.items()}
    scores = {
        name: score(ops, network, params, split, SETTLED, study.damping)
        for name, split in (("test", data.test), ("validation", data.validation))
        if split is not None
    }
    probe, row = probed(study, network, data, snapshot), progress_row(progress)
    return {
        "epoch": row.pop("epoch"),
        "train_accuracy": row.pop("train_accuracy"),
        **{f"{name}_accuracy": found.accuracy for name, found in scores.items()},
        "confusion": scores["test"].confusion.tolist(),
        "residual": row.pop("residual"),
        "drift": probe.drift,
        "cosine": probe.cosine,
        "warning": norm_warning(progress.spectral)
        or probe.warning
        or chance_warning(study, data, progress.train_accuracy, scores["test"].accuracy),
        "path": path_name(ops, network, study.recipe()),
        "weight_quantiles": weight_quantiles(network, snapshot.params),
        **row,
    }


def path_name(ops: TorchOps, network: Network, config: TrainingConfig) -> str | None:
    """Return how the updates of a contrastive rule are computed; None for other rules."""
    update = RULES[config.rule].update
    return path_of(ops, network, config).value if update is contrastive else None


def progress_row(progress: Progress) -> dict[str, Any]:
    """Return the metrics that the training loop measures in an epoch."""
    return {
        "epoch": progress.snapshot.epoch,
        "train_accuracy": progress.train_accuracy,
        "loss": progress.loss,
        "residual": progress.residual,
        "settle_steps": dict(progress.settle_steps),
        "spectral": dict(progress.spectral),
        "seconds": progress.seconds,
    }


NORM_LIMIT = 100.0
"""Spectral norm above which a warning is given; activations are then saturated."""


def norm_warning(norms: Mapping[str, float]) -> str | None:
    """Return a warning if the spectral norm of a connection is above `NORM_LIMIT`."""
    name = max(norms, key=lambda each: norms[each])
    if norms[name] <= NORM_LIMIT:
        return None
    return (
        f"the weights have grown too large: connection {name!r} has a spectral norm of "
        f"{norms[name]:.0f} (above {NORM_LIMIT:.0f}); use a smaller learning_rate, or a bound"
    )


CHANCE_DEVIATIONS = 3.0
"""Standard deviations above a constant prediction from which an accuracy is more than chance."""


def chance_warning(study: Study, data: Dataset, train: float, test: float) -> str | None:
    """Return a warning if training and test accuracy are those of a constant prediction."""
    for split, found in ((data.train, train), (data.test, test)):
        share = float(np.bincount(split.y).max()) / len(split)
        if found > share + CHANCE_DEVIATIONS * (share * (1.0 - share) / len(split)) ** 0.5:
            return None
    remedies = ["a smaller learning_rate"]
    if study.rule.nudging in ("negative", "random"):
        remedies.append("nudging 'centered'")
    if not study.training.normalize and not data.vocabulary:
        remedies.append("normalize=true")
    return (
        f"nothing is learnt: the test accuracy of {100 * test:.1f} % is that of chance; use "
        f"{' or '.join(remedies)}"
    )


def probed(
    study: Study, network: Network, data: Dataset, at: Snapshot, *, truth: bool = True
) -> Diagnostics:
    """Return the diagnostics of a few training samples."""
    few = data.train.take(slice(PROBED))
    y = one_hot(few.y, data.classes)
    return diagnose(network, at.params, few.x, y, study.recipe(), truth=truth)


def check_device(name: str) -> None:
    """Raise RunError if torch cannot use a device."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).splitlines()[0]
        raise run_folder.RunError(
            f"torch cannot use device {name!r} here ({why}); use cpu"
        ) from error


def load_for(study: Study) -> Dataset:
    """Load the data of a study, and hold out its validation samples."""
    data, part = load_data(study.dataset), study.training.validation
    return hold_out(data, part, study.seed) if part else data
