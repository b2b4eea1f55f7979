"""Conversion error: spiking rates of a model against its equilibrium, layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.runs.evaluate import accuracy_of, agreement, equilibria
from neuro_eqprop.runs.event_stats import event_stats, warnings_of
from neuro_eqprop.runs.simulate import classes_of
from neuro_eqprop.runs.simulation import run_spikes
from neuro_eqprop.runs.simulation_settings import SimulationSettings
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.traces.metrics import distance
from neuro_eqprop.training.trained import TrainedNetwork


def conversion_error(
    model: TrainedNetwork,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    code: str | Code = "graded",
    steps: int | None = None,
    on: str | Backend = "emulator",
    bits: int | None = None,
    input: str | InputCoding = "current",  # noqa: A002
) -> dict[str, Any]:
    """Compare the spikes of a model with its rates, layer by layer.

    Parameters
    ----------
    model : Model
        A trained model, or one converted by `from_torch`.
    x : array (samples, features)
        Samples.
    y : array of int (samples,)
        Class numbers.
    code, steps, on, bits, input
        As in `Model.evaluate`.

    Returns
    -------
    dict
        Accuracy of rates and of spikes, their agreement, and event counts; under `layers` one dict
        per layer with `pearson`, `rmse`, `p999`, `worst` and `clipped`, the fraction of rates at
        the maximum of the activation.
    """
    samples = model.samples(x)
    labels = classes_of(model, samples, y)
    exact = equilibria(model.network, model.params, samples)
    spiking = lower_network(model.network, model.params, code=code, bits=bits, input=input)
    run = run_spikes(spiking, samples, SimulationSettings(on=on, steps=steps))
    layers = []
    for layer in model.network.moving:
        firing = run.rates[layer.name]
        rates = np.asarray(exact.state[layer.name]).reshape(firing.shape)
        far = distance(rates, firing)
        layers.append(
            {
                "layer": layer.name,
                "pearson": far.pearson,
                "rmse": far.rmse,
                "p999": far.p999,
                "worst": far.worst,
                "clipped": float((rates >= layer.activation.high).mean()),
            }
        )
    return {
        "code": spiking.code,
        "steps": run.steps,
        "samples": run.samples,
        "rate_accuracy": accuracy_of(exact.drive, labels),
        "accuracy": run.accuracy(labels),
        **agreement(model.network, (exact.state, exact.drive), (run.rates, run.drive)),
        **event_stats(run),
        "layers": layers,
        "warnings": warnings_of(spiking, run.steps),
    }
