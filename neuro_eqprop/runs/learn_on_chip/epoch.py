"""One epoch of learning on a chip, and its row of metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.runs.learn_on_chip.evaluation import evaluate_epoch, spectral_norms
from neuro_eqprop.runs.learn_on_chip.state import LearningState, rate_parameters
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.simulators.learning import Learned, ProgressCallback, no_progress
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.plasticity import TrainingSamples, with_weights
from neuro_eqprop.training.metrics import weight_quantiles


def learn_epoch(
    task: OnChipTask, state: LearningState, progress: ProgressCallback
) -> tuple[LearningState, dict[str, Any]]:
    """Learn one epoch; `progress` gets the number of samples done since its last call."""
    began = time.perf_counter()
    rows, samples = task.training_samples(state.epoch, first=state.samples)
    learned = learn_samples(task, state, samples, progress)
    seconds = time.perf_counter() - began
    after = LearningState(state.epoch + 1, learned.weights, state.samples + len(rows))
    params = rate_parameters(task, after)
    return after, {
        "epoch": after.epoch,
        **event_counts(learned),
        **evaluate_epoch(task, after),
        "spectral": spectral_norms(task.network, params),
        "weight_quantiles": weight_quantiles(task.network, params),
        "train_accuracy": float((learned.drive.argmax(axis=1) == task.train.y[rows]).mean()),
        "images_per_second": len(rows) / seconds,
        "seconds": seconds,
    }


def learn_samples(
    task: OnChipTask,
    state: LearningState,
    samples: TrainingSamples,
    progress: ProgressCallback = no_progress,
) -> Learned:
    """The samples learned by the simulator of the task."""
    plastic = with_weights(task.plastic, state.weights)
    return task.learner.learn(plastic, samples, progress=progress)


def weights_within_epoch(task: OnChipTask, state: LearningState, done: int) -> Mapping[str, Array]:
    """The weights after the first `done` samples of an epoch that starts in `state`.

    The samples up to the last commit are learned once more, which gives the same weights.
    """
    done -= done % task.plastic.rule.batch
    if not done:
        return state.weights
    _, samples = task.training_samples(state.epoch, most=done, first=state.samples)
    return learn_samples(task, state, samples).weights


def event_counts(learned: Learned) -> dict[str, Any]:
    """Events of an epoch by phase, the commit included, and weights at their limits.

    Empty if the learner counts no events.
    """
    if not learned.counts:
        return {}
    phases: dict[str, Counts] = {}
    for (_, phase), counts in learned.counts.items():
        phases[phase] = phases.get(phase, Counts()) + counts
    total = learned.total
    return {
        "weight_updates": total.weight_updates,
        "tag_updates": total.tag_updates,
        "trace_updates": total.trace_updates,
        "spikes": {phase: counts.spikes for phase, counts in phases.items()},
        "synops": {phase: counts.synops for phase, counts in phases.items()},
        "updates": {
            phase: {
                "weights": counts.weight_updates,
                "tags": counts.tag_updates,
                "traces": counts.trace_updates,
            }
            for phase, counts in phases.items()
        },
        "saturated": dict(learned.saturated),
        "clipped": learned.clipped,
        "overflows": learned.overflows,
    }
