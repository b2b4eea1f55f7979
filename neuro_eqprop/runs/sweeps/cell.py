"""The task of a sweep: one training and its evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypedDict

import numpy as np

from neuro_eqprop.data import load_data
from neuro_eqprop.runs.energy import estimate_energy
from neuro_eqprop.runs.evaluate import evaluate as evaluate_model
from neuro_eqprop.runs.run_folder import first_samples
from neuro_eqprop.runs.simulation import run_spikes
from neuro_eqprop.runs.simulation_settings import SimulationSettings
from neuro_eqprop.runs.sweeps.spec import FLOAT, PROFILE
from neuro_eqprop.runs.train import check_length, load_for, train_loop
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.training.defaults import derive
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import Study, adapt
from neuro_eqprop.training.trained import TrainedNetwork

LAST_EPOCH = ("train_accuracy", "validation_accuracy", "test_accuracy", "loss")
EVENTS = ("agreement", "rmse", "spikes_per_neuron", "synops_per_sample")


class TrainingRow(TypedDict):
    """Columns of the training metrics."""

    train_accuracy: float | None
    validation_accuracy: float | None
    test_accuracy: float | None
    loss: float | None
    epochs: int
    parameters: int
    model_sha256: str


class SpikingRow(TypedDict, total=False):
    """Columns of the evaluation as spikes and of the energy estimate."""

    spiking_accuracy: float
    agreement: float
    rmse: float
    spikes_per_neuron: float | None
    synops_per_sample: float | None
    joules: float | None
    joules_low: float | None
    joules_high: float | None
    latency: float | None
    fits: bool | None
    error: str | None


class TrialValues(TypedDict):
    """The result of a training and its evaluations."""

    training: TrainingRow
    evaluations: list[SpikingRow]


TRAINING, EVALUATION = tuple(TrainingRow.__annotations__), tuple(SpikingRow.__annotations__)


def run_trial(
    settings: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Train with the stated settings as `train` does, then evaluate with each of the others.

    Returns the metrics of the training under `training`, and under `evaluations` a row for each
    evaluation, with its error where it failed.
    """
    study = complete(settings)
    data = load_for(study)
    network = study.network(data)
    check_length(study, network, data)
    model = train_loop(TrainingLoop(study, network, data))
    if model.diverged is not None:
        raise ValueError(model.diverged)
    last = model.history[-1]
    return {
        "training": {key: last.get(key) for key in LAST_EPOCH}
        | {"epochs": model.epochs, "parameters": model.parameters, "model_sha256": digest(model)},
        "evaluations": [evaluate(model, data, each) for each in evaluations],
    }


def complete(settings: Mapping[str, Any]) -> Study:
    """The study of the stated settings, with the defaults of `train` for their data."""
    return derive(settings, load_data(adapt(Study(), settings).dataset))


def digest(model: TrainedNetwork) -> str:
    """SHA-256 of the parameters of a model."""
    hashed = sha256()
    for name, values in sorted(model.params.items()):
        hashed.update(f"{name} {values.shape} {values.dtype}\n".encode())
        hashed.update(np.ascontiguousarray(values).tobytes())
    return hashed.hexdigest()


def evaluate(model: TrainedNetwork, data: Any, how: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """A row of the evaluation as spikes and of the energy estimate; empty without settings."""
    if not how:
        return {"error": None}
    try:
        return {**measure(model, data, how), "error": None}
    except Exception as error:  # the other evaluations of this model continue
        return {"error": f"{type(error).__name__}: {error}"}


def measure(model: TrainedNetwork, data: Any, how: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Accuracy and events as spikes, and joules on the chip if one is named."""
    options = {key: how[key] for key in ("code", "bits", "input") if key in how}
    options = {"code": "graded", **options}
    if options.get("bits") == FLOAT:
        options["bits"] = None
    samples, steps = first_samples(data, how.get("samples")), how.get("steps")
    settings = SimulationSettings(on=how.get("on", "emulator"), steps=steps)
    evaluation = evaluate_model(model, model.labelled(samples), settings, **options).to_dict()
    row = {"spiking_accuracy": evaluation["accuracy"], **{key: evaluation[key] for key in EVENTS}}
    if PROFILE not in how:
        return row
    spiking = lower_network(model.network, model.params, **options)
    run = run_spikes(spiking, samples.x, SimulationSettings(steps=steps))
    energy = estimate_energy(run, how[PROFILE])
    return row | {
        "joules": energy.joules,
        "joules_low": energy.low,
        "joules_high": energy.high,
        "latency": energy.seconds,
        "fits": energy.fits,
    }
