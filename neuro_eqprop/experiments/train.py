"""Carry out the training of a study into a run folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuro_eqprop.data import Dataset, hold_out, one_hot
from neuro_eqprop.data import load as load_data
from neuro_eqprop.experiments import config, run_folder
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.on_chip_config import was_learned_on_chip
from neuro_eqprop.experiments.simulate import AnnounceCallback, no_announcement
from neuro_eqprop.experiments.training_trace import probing
from neuro_eqprop.initialise import initialise
from neuro_eqprop.io import checkpoint
from neuro_eqprop.io.atomic import write_text
from neuro_eqprop.model import Model
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.inference import score
from neuro_eqprop.solve import Stop
from neuro_eqprop.training.config import Batch, Rule
from neuro_eqprop.training.diagnostics import Diagnostics, diagnose
from neuro_eqprop.training.lr_schedules import TrainingLength, learning_rates
from neuro_eqprop.training.optimizers import make_optimizer
from neuro_eqprop.training.rules.contrastive import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.rules.hybrid import stem_of
from neuro_eqprop.training.rules.registry import UPDATE_RULES
from neuro_eqprop.training.settings import TrainingSettings
from neuro_eqprop.training.train import Progress, Snapshot, train

EpochCallback = Callable[[dict[str, Any]], None]
"""Told each epoch's line of metrics."""
ProgressCallback = Callable[[float, float], None]
"""Told what part of an epoch went by, and the share of its samples answered right so far."""


def no_progress(part: float, right: float) -> None:
    """Nobody listens."""


def run_training(
    study: Study,
    out: Path,
    *,
    force: bool,
    resume: bool,
    watch: EpochCallback,
    traces: Path | None = None,
    tick: ProgressCallback = no_progress,
    tell: AnnounceCallback = no_announcement,
) -> dict[str, Any]:
    """Train and write the run; what `train --json` shows. A few samples go to `traces`, live.

    Where the numbers leave the finite ones, the model of the last good epoch is kept and told of.
    """
    check_device(study.training.device)
    data = load_for(study)
    network, began = study.network(data), time.perf_counter()
    overwrite = force or resume
    if traces is not None and traces.exists() and not overwrite:
        raise run_folder.RunError(f"{traces} exists already; name another file or use --force")
    dry_run(study, network, data)
    start = prepare(study, network, out, force=force, resume=resume)
    tick(float(start.epoch), 0.0)
    diverged: TrainingError | None = None
    with probing(traces, study, network, data, start=start, overwrite=overwrite, tell=tell) as look:
        try:
            for progress in epochs(study, network, data, start, tick):
                line = metrics(study, progress, network, data)
                start = progress.snapshot
                # In this order, so that after a kill the metrics are never behind the snapshot.
                run_folder.append(out / run_folder.METRICS, line)
                kept = Model(network, start.params, start.epoch)
                checkpoint.save(out / run_folder.RESUME, kept, start.memory)
                look(start, line)
                watch(line)
        except TrainingError as error:
            diverged = error
    if diverged is not None and not start.epoch:
        run_folder.abandon(out)
        raise diverged
    checkpoint.save(out / run_folder.MODEL, Model(network, start.params, start.epoch))
    (out / run_folder.RESUME).unlink(missing_ok=True)
    told = outcome(study, network, data, out=out, seconds=time.perf_counter() - began)
    epoch = f"epoch {start.epoch} of {study.training.epochs}"
    left = f"{out} keeps the model of {epoch}, the last good one"
    return told | {"diverged": f"{diverged}; {left}" if diverged else None}


def epochs(
    study: Study, network: Network, data: Dataset, start: Snapshot, tick: ProgressCallback
) -> Iterator[Progress]:
    """The epochs that are left."""

    def beat(samples: int, right: float) -> None:
        tick(samples / len(data.train), right)

    ops = TorchOps(device=study.training.device)
    return train(network, data.train, study.recipe(), start, ops, beat, study.view(data))


@torch.no_grad()
def dry_run(study: Study, network: Network, data: Dataset) -> None:
    """Teach two samples for a step, so that what cannot be taught is refused before all else."""
    ops, few = TorchOps(device=study.training.device), data.train.take(slice(2))
    study.view(data)
    check_training(study.training)
    deaf = stem_of(network)
    if deaf and Rule(study.rule.name) in (Rule.HEBBIAN, Rule.VECTOR_FIELD):
        raise TrainingError(
            f"nothing comes back to layer {deaf[0]!r}, so rule {study.rule.name!r} would leave its "
            f"weights as they are: use rule 'single-phase', 'hybrid' or 'asymmetric'"
        )
    recipe = replace(study.recipe(), free_steps=1, nudged_steps=1)
    params = {
        name: ops.from_numpy(value)
        for name, value in initial_snapshot(study, network).params.items()
    }
    lesson = Batch(
        ops.from_numpy(few.x), ops.from_numpy(one_hot(few.y, data.classes)), measured=False
    )
    UPDATE_RULES[recipe.rule](ops, network, params, lesson, recipe)


def check_training(training: TrainingSettings) -> None:
    """Refuse options of the optimizer or of the schedule whose values torch rejects."""
    make_optimizer(training.optimiser, training.learning_rate, {"any": torch.zeros(1)})
    learning_rates(training.fall, training.learning_rate, TrainingLength(training.epochs, 1))


def prepare(study: Study, network: Network, out: Path, *, force: bool, resume: bool) -> Snapshot:
    """Where training starts: anew in an empty folder, or where it was left."""
    if resume:
        return resume_snapshot(study, network, out)
    start = initial_snapshot(study, network)
    run_folder.claim(out, force=force)
    write_text(out / run_folder.STUDY, config.write(study))
    return start


def initial_snapshot(study: Study, network: Network) -> Snapshot:
    """Before the first epoch."""
    params = initialise(network, np.random.default_rng(study.seed))
    return Snapshot(0, {name: value.astype(np.float32) for name, value in params.items()})


def resume_snapshot(study: Study, network: Network, out: Path) -> Snapshot:
    """Where the run in `out` was stopped: after an epoch, or within its first."""
    if was_learned_on_chip(out):
        raise run_folder.RunError(
            f"{out} learns on a chip; go on with `neuro-eqprop learn --resume`"
        )
    if config.read(out / run_folder.STUDY) != study:
        raise run_folder.RunError(
            f"{out} was begun with other settings, and a run is resumed as it was begun; leave "
            f"them out, or train anew with another --out"
        )
    left, start = out / run_folder.RESUME, initial_snapshot(study, network)
    if left.exists():
        kept, memory = checkpoint.load_training(left)
        if kept.network != network:
            raise run_folder.RunError(f"{left} holds another network than the study describes")
        start = Snapshot(kept.epochs, kept.params, memory)
    elif (out / run_folder.MODEL).exists():
        raise run_folder.RunError(f"{out} has nothing to resume: {ended(study, out)}")
    trim(out / run_folder.METRICS, start.epoch)
    return start


def ended(study: Study, out: Path) -> str:
    """How the run came to its end; only one that diverged keeps a model of an earlier epoch."""
    done = checkpoint.load(out / run_folder.MODEL).epochs
    if done >= study.training.epochs:
        return "its run is finished; train anew with another --out, or replace it with --force"
    return (
        f"it diverged (NaN or inf) after epoch {done} of {study.training.epochs}, and would again; "
        f"train anew with another --out or --force, and {DIVERGENCE_ADVICE}"
    )


def trim(path: Path, epochs: int) -> None:
    """Drop lines of metrics beyond the epochs that were kept: there is one for each epoch."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    write_text(path, "".join(lines[:epochs]))


LOOK = Stop(1e-4, 200)
"""When an answer counts as settled in the figures of an epoch."""
PROBED = 16
"""Samples of the probe after each epoch."""


def metrics(study: Study, progress: Progress, network: Network, data: Dataset) -> dict[str, Any]:
    """An epoch's line."""
    ops, snapshot = TorchOps(device=study.training.device), progress.snapshot
    params = {name: ops.from_numpy(value) for name, value in snapshot.params.items()}
    judged = {
        name: score(ops, network, params, split, LOOK, study.damping)
        for name, split in (("test", data.test), ("validation", data.validation))
        if split is not None
    }
    looked = probed(study, network, data, snapshot)
    return {
        "epoch": snapshot.epoch,
        "train_accuracy": progress.train_accuracy,
        **{f"{name}_accuracy": found.accuracy for name, found in judged.items()},
        "confusion": judged["test"].confusion.tolist(),
        "residual": progress.residual,
        "drift": looked.drift,
        "cosine": looked.cosine,
        "warning": norm_warning(progress.spectral) or looked.warning,
        "settle_steps": dict(progress.settle_steps),
        "spectral": dict(progress.spectral),
        "seconds": progress.seconds,
    }


NORM_LIMIT = 100.0
"""Spectral norms of trained networks stay far below; beyond, activations are saturated."""


def norm_warning(norms: Mapping[str, float]) -> str | None:
    """A warning if the spectral norm of a connection is beyond the limit."""
    name = max(norms, key=lambda each: norms[each])
    if norms[name] <= NORM_LIMIT:
        return None
    return (
        f"the weights have grown too large: connection {name!r} has a spectral norm of "
        f"{norms[name]:.0f} (above {NORM_LIMIT:.0f}); use a smaller learning_rate, or a bound"
    )


def probed(
    study: Study, network: Network, data: Dataset, at: Snapshot, *, truth: bool = True
) -> Diagnostics:
    """What a probe of a few training samples finds."""
    few = data.train.take(slice(PROBED))
    y = one_hot(few.y, data.classes)
    return diagnose(network, at.params, few.x, y, study.recipe(), truth=truth)


def outcome(
    study: Study, network: Network, data: Dataset, *, out: Path, seconds: float
) -> dict[str, Any]:
    """What became of the training, read from what it wrote."""
    ops, model = TorchOps(device=study.training.device), checkpoint.load(out / run_folder.MODEL)
    params = {name: ops.from_numpy(value) for name, value in model.params.items()}
    last = json.loads((out / run_folder.METRICS).read_text().splitlines()[-1])
    test = score(ops, network, params, data.test, damping=study.damping)
    held = {"validation_accuracy": last["validation_accuracy"]} if data.validation else {}
    return {
        **run_folder.head(out, study, model),
        "train_accuracy": score(ops, network, params, data.train, LOOK, study.damping).accuracy,
        **held,
        "test_accuracy": test.accuracy,
        "confusion": test.confusion.tolist(),
        "settled": test.settled,
        "seconds": seconds,
        "settle_steps": last["settle_steps"],
        "spectral": last["spectral"],
        "drift": last["drift"],
        "cosine": last["cosine"],
        "warning": last["warning"],
        "note": data.note,
    }


def check_device(name: str) -> None:
    """Refuse a device that torch cannot use here."""
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).splitlines()[0]
        raise run_folder.RunError(
            f"torch cannot use device {name!r} here ({why}); use cpu"
        ) from error


def load_for(study: Study) -> Dataset:
    """The data of a study, with a part held out if it asks for one."""
    data, part = load_data(study.dataset), study.training.validation
    return hold_out(data, part, study.seed) if part else data
