"""All epochs of a run that learns on a chip, written into its folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.backends.learning import Watch
from neuro_eqprop.backends.registry import load_learner
from neuro_eqprop.experiments import on_chip_config, run_folder
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.learn_on_chip.direction import direction_warnings, measure_directions
from neuro_eqprop.experiments.learn_on_chip.epoch import learn_epoch
from neuro_eqprop.experiments.learn_on_chip.result import run_result
from neuro_eqprop.experiments.learn_on_chip.state import (
    initial_state,
    rate_model,
    resume_state,
    to_memory,
)
from neuro_eqprop.experiments.learn_on_chip.task import prepare
from neuro_eqprop.experiments.learn_on_chip.trace import TraceRequest, open_trace
from neuro_eqprop.experiments.on_chip_config import RATES, OnChipConfig
from neuro_eqprop.io import checkpoint
from neuro_eqprop.io.atomic import write_text


def ignore(_: object) -> None:
    """No-op callback."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions called while a run learns."""

    samples: Watch = ignore
    """Gets the number of samples done since its last call."""
    epoch: Callable[[dict[str, Any]], None] = ignore
    """Gets the metrics of each epoch."""
    warning: Callable[[str], None] = ignore
    """Gets each warning, before the first epoch."""


def run_learning(
    study: Study,
    config: OnChipConfig,
    out: Path,
    *,
    force: bool,
    resume: bool,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 - frozen
    trace: TraceRequest | None = None,
) -> dict[str, Any]:
    """Learn, write the run folder, and return the result that `learn --json` prints."""
    began = time.perf_counter()
    if config.on != RATES:
        load_learner(config.on)
    task = prepare(study, config)
    recorder = open_trace(task, trace, overwrite=force or resume)
    state = resume_state(task, out) if resume else initial_state(task)
    if not task.on_rates:
        # Before the folder is claimed, so that a refusal keeps the run that it holds.
        load_learner(config.on).check(task.plastic, task.training_samples(0)[1])
    callbacks.samples(state.samples)
    if not resume:
        run_folder.claim(out, force=force)
        write_text(out / run_folder.STUDY, on_chip_config.write(study, config))
    directions = measure_directions(task, state)
    for warning in direction_warnings(task, directions):
        callbacks.warning(warning)
    with recorder as record_epoch:
        while state.epoch < task.epochs:
            state, metrics = learn_epoch(task, state, callbacks.samples)
            # In this order, so that after a kill the metrics are never behind the snapshot.
            run_folder.append(out / run_folder.METRICS, metrics)
            model, memory = rate_model(task, state), to_memory(task, state)
            checkpoint.save(out / run_folder.RESUME, model, memory)
            record_epoch(state.weights, metrics)
            callbacks.epoch(metrics)
    checkpoint.save(out / run_folder.MODEL, rate_model(task, state))
    (out / run_folder.RESUME).unlink(missing_ok=True)
    seconds = time.perf_counter() - began
    return run_result(task, state, out=out, seconds=seconds, directions=directions)
