"""Test accuracy after an epoch, of the spiking network that learned and of its rate network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.evaluate import equilibria
from neuro_eqprop.runs.learn_on_chip.state import LearningState, rate_parameters
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.runs.workers import run_shards, shard_size
from neuro_eqprop.simulators.biology.settings import CONTINUOUS
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.spiking.make_plastic import for_inference, training_stimulus
from neuro_eqprop.spiking.plasticity import with_weights


def evaluate_epoch(task: OnChipTask, state: LearningState) -> dict[str, Any]:
    """Accuracies on the test set as spikes and as rates, and by task if there are several."""
    test = task.data.test
    rates = equilibria(task.network, rate_parameters(task, state), test.x).drive
    spikes = rates if task.on_rates else predict(task, state, test.x)
    correct = spikes.argmax(axis=1) == test.y
    metrics: dict[str, Any] = {
        "rate_test_accuracy": float((rates.argmax(axis=1) == test.y).mean()),
        "test_accuracy": float(correct.mean()),
    }
    if task.config.tasks > 1:
        metrics["task"] = (state.epoch - 1) // task.study.training.epochs
        metrics["by_task"] = [
            float(correct[np.isin(test.y, classes)].mean()) for classes in task.class_groups
        ]
    return metrics


def predict(task: OnChipTask, state: LearningState, x: Array) -> Array:
    """The output drive (samples, classes) of the spiking network in a free phase.

    It runs on the emulator, which gives the same result as the simulator that learns; in continuous
    time on the compiled membranes of the learner.
    """
    network = for_inference(with_weights(task.plastic, state.weights))
    coding, backend = task.config.coding, load_backend("emulator")
    if task.config.on in CONTINUOUS:
        compiled = cast(Any, load_backend(CONTINUOUS[0]))
        backend = replace(compiled, biology=task.config.continuous)
    steps = coding.code.steps
    schedule = free_only(steps=steps, window=tail(steps, coding.tail))
    size = shard_size(backend, network, len(x), task.shared)

    def encoded(part: Array) -> Stimulus:
        no_target = np.zeros((len(part), task.data.classes))
        return replace(training_stimulus(task.network, part, no_target, coding), pull={})

    stimuli = (encoded(x[start : start + size]) for start in range(0, len(x), size))
    results = run_shards(backend, network, schedule, stimuli, shared=task.shared)
    return np.concatenate([result.drive[network.output][:, 0] for _, result in results])


def spectral_norms(network: Network, params: Mapping[str, Array]) -> dict[str, float]:
    """The spectral norm of the weights of each connection."""
    return {c.name: float(np.linalg.norm(params[c.name], 2)) for c in network.connections}
