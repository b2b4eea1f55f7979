"""Carry out the training of a study into a run folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.data import Dataset
from neuro_eqprop.data import load as load_data
from neuro_eqprop.files import checkpoint
from neuro_eqprop.files.atomic import write_text
from neuro_eqprop.files.checkpoint import Checkpoint
from neuro_eqprop.learn.readout import accuracy
from neuro_eqprop.learn.train import Progress, Snapshot, train
from neuro_eqprop.networks import Network, initialise
from neuro_eqprop.rate.torch_ops import TorchOps
from neuro_eqprop.study import folder, settings
from neuro_eqprop.study.lessons import learned_here
from neuro_eqprop.study.settings import Study

Watch = Callable[[dict[str, Any]], None]
"""Told each epoch's line of metrics."""


def run_training(
    study: Study, out: Path, *, force: bool, resume: bool, watch: Watch
) -> dict[str, Any]:
    """Train and write the run; what `train --json` shows."""
    data = load_data(study.dataset)
    network, began = study.network(data), time.perf_counter()
    start = prepare(study, network, out, force=force, resume=resume)
    for progress in train(network, data.train, study.recipe(), start):
        start = progress.snapshot
        line = metrics(progress, network, data)
        # In this order, so that after a kill the metrics are never behind the snapshot.
        folder.append(out / folder.METRICS, line)
        checkpoint.save(out / folder.RESUME, keep(network, start))
        watch(line)
    checkpoint.save(out / folder.MODEL, Checkpoint(network, start.params, start.epoch))
    (out / folder.RESUME).unlink(missing_ok=True)
    return outcome(study, network, data, out=out, seconds=time.perf_counter() - began)


def keep(network: Network, snapshot: Snapshot) -> Checkpoint:
    """A snapshot as a file holds it."""
    return Checkpoint(network, snapshot.params, snapshot.epoch, snapshot.memory)


def prepare(study: Study, network: Network, out: Path, *, force: bool, resume: bool) -> Snapshot:
    """Where training starts: anew in an empty folder, or where it was left."""
    if resume:
        return left_off(study, network, out)
    start = fresh(study, network)
    folder.claim(out, force=force)
    write_text(out / folder.STUDY, settings.write(study))
    return start


def fresh(study: Study, network: Network) -> Snapshot:
    """Before the first epoch."""
    params = initialise(network, np.random.default_rng(study.seed))
    return Snapshot(0, {name: value.astype(np.float32) for name, value in params.items()})


def left_off(study: Study, network: Network, out: Path) -> Snapshot:
    """Where the run in `out` was stopped: after an epoch, or within its first."""
    if learned_here(out):
        raise folder.RunError(f"{out} learns on a chip; go on with `neuro-eqprop learn --resume`")
    if settings.read(out / folder.STUDY) != study:
        raise folder.RunError(
            f"{out} was begun with other settings, and a run is resumed as it was begun; leave "
            f"them out, or train anew with another --out"
        )
    left, start = out / folder.RESUME, fresh(study, network)
    if left.exists():
        kept = checkpoint.load(left)
        if kept.network != network:
            raise folder.RunError(f"{left} holds another network than the study describes")
        start = Snapshot(kept.epoch, kept.params, kept.memory)
    elif (out / folder.MODEL).exists():
        raise folder.RunError(f"{out} has nothing to resume: its run is finished")
    trim(out / folder.METRICS, start.epoch)
    return start


def trim(path: Path, epochs: int) -> None:
    """Drop lines of metrics beyond the epochs that were kept: there is one for each epoch."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    write_text(path, "".join(lines[:epochs]))


def metrics(progress: Progress, network: Network, data: Dataset) -> dict[str, Any]:
    """An epoch's line."""
    ops = TorchOps()
    params = {name: ops.bring(value) for name, value in progress.snapshot.params.items()}
    return {
        "epoch": progress.snapshot.epoch,
        "train_accuracy": progress.train_accuracy,
        "test_accuracy": accuracy(ops, network, params, data.test),
        "residual": progress.residual,
        "settle_steps": dict(progress.settle_steps),
        "spectral": dict(progress.spectral),
        "seconds": progress.seconds,
    }


def outcome(
    study: Study, network: Network, data: Dataset, *, out: Path, seconds: float
) -> dict[str, Any]:
    """What became of the training, read from what it wrote."""
    ops, model = TorchOps(), checkpoint.load(out / folder.MODEL)
    params = {name: ops.bring(value) for name, value in model.params.items()}
    last = json.loads((out / folder.METRICS).read_text().splitlines()[-1])
    return {
        "run": str(out),
        "dataset": study.dataset,
        "model": study.model,
        "rule": study.rule,
        "nudging": study.nudging,
        "beta": study.beta,
        "seed": study.seed,
        "epochs": model.epoch,
        "parameters": int(sum(np.size(value) for value in model.params.values())),
        "train_accuracy": accuracy(ops, network, params, data.train),
        "test_accuracy": accuracy(ops, network, params, data.test),
        "seconds": seconds,
        "settle_steps": last["settle_steps"],
        "spectral": last["spectral"],
    }
