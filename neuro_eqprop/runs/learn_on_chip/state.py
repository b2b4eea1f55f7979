"""The state of learning between epochs: weights by projection, in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.runs import checkpoint, on_chip_config, run_folder
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.runs.train import truncate_metrics
from neuro_eqprop.spiking.make_plastic import ALWAYS, parameters
from neuro_eqprop.training.trained import TrainedNetwork


@dataclass(frozen=True, slots=True)
class LearningState:
    """Weights by projection after a number of epochs and samples."""

    epoch: int
    weights: Mapping[str, Array]
    samples: int
    """Samples learned since the first epoch: random rounding continues from there."""


def initial_state(task: OnChipTask) -> LearningState:
    """The state before the first epoch."""
    weights = {name: task.plastic.projection(name).weight for name in task.plastic.learns}
    return LearningState(0, weights, 0)


def rate_parameters(task: OnChipTask, state: LearningState) -> dict[str, Array]:
    """The parameters of the equivalent rate network."""
    return parameters(task.network, task.plastic, state.weights)


def rate_model(task: OnChipTask, state: LearningState) -> TrainedNetwork:
    """The equivalent rate network with its parameters."""
    return TrainedNetwork(task.network, rate_parameters(task, state), state.epoch)


def to_memory(task: OnChipTask, state: LearningState) -> dict[str, Array]:
    """The state by names of the rate network, as the resume file stores it.

    Untied feedback weights are stored transposed, next to the forward weights.
    """
    memory: dict[str, Array] = {}
    named = task.network.parameters()
    for connection in task.network.connections:
        if connection.name not in state.weights:  # random feedback
            continue
        memory[f"{connection.name}/weight"] = state.weights[connection.name]
        back = f"{connection.target}->{connection.source}"
        if not connection.loops and back in state.weights and back not in named:
            memory[f"{connection.name}/back"] = state.weights[back].T
    for layer in task.network.moving:
        weight = state.weights[f"{ALWAYS}->{layer.name}"]
        memory[f"{layer.name}/weight"] = weight.reshape(layer.shape)
    memory[f"{task.network.output.name}/lessons"] = np.array(state.samples)
    return memory


def from_memory(task: OnChipTask, memory: Mapping[str, Array], epoch: int) -> LearningState:
    """The state after `epoch` epochs, from the arrays of `to_memory`."""
    weights, named = dict[str, Array](), task.network.parameters()
    for connection in task.network.connections:
        if connection.name not in task.plastic.learns:
            continue
        weights[connection.name] = memory[f"{connection.name}/weight"]
        back = f"{connection.target}->{connection.source}"
        if not connection.loops and back in task.plastic.learns and back not in named:
            weights[back] = memory[f"{connection.name}/back"].T
    for layer in task.network.moving:
        weights[f"{ALWAYS}->{layer.name}"] = memory[f"{layer.name}/weight"].reshape(-1, 1)
    samples = int(memory[f"{task.network.output.name}/lessons"].item())
    return LearningState(epoch, weights, samples)


def resume_state(task: OnChipTask, out: Path) -> LearningState:
    """The state after the last finished epoch of the run in `out`; later metrics are dropped."""
    if not on_chip_config.was_learned_on_chip(out):
        raise run_folder.RunError(f"{out} holds no run that learned on a chip; leave out `resume`")
    if on_chip_config.read(out / run_folder.STUDY) != (task.study, task.config):
        raise run_folder.RunError(
            f"{out} was begun with other settings, and a run is resumed with the same ones; leave "
            f"them out, or choose another `out`"
        )
    path, state = out / run_folder.RESUME, initial_state(task)
    if path.exists():
        stored, memory = checkpoint.load_training(path)
        if stored.network != task.network:
            raise run_folder.RunError(f"{path} holds a network that is not that of the study")
        try:
            state = from_memory(task, memory, stored.epochs)
        except KeyError as error:
            raise run_folder.RunError(
                f"{path} lacks {error}; start again with another `out`"
            ) from error
    elif (out / run_folder.MODEL).exists():
        raise run_folder.RunError(f"{out} has nothing to resume: its run is finished")
    truncate_metrics(out / run_folder.METRICS, state.epoch)
    return state
