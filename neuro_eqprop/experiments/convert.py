"""A network that was brought in from elsewhere, as spikes: what each layer loses; and as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.analysis.metrics import distance
from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.experiments import config
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.experiments.evaluate import accuracy_of, agreement, equilibria, no_progress, spike
from neuro_eqprop.experiments.event_stats import events, too_few
from neuro_eqprop.experiments.run_folder import MODEL, STUDY, Run, claim
from neuro_eqprop.io.checkpoint import save
from neuro_eqprop.model import Model
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding


def loss(
    brought: Model,
    x: Array,
    y: Ints,
    *,
    code: Code,
    steps: int,
    on: str = "emulator",
    bits: int | None = None,
    entry: InputCoding = InputCoding.CURRENT,
) -> dict[str, Any]:
    """What becomes of samples (samples, features) with labels y as spikes, layer by layer."""
    split = Split(x, np.asarray(y, dtype=np.int64))
    data = Dataset("given", split, split, brought.network.output.size)
    model = Model(brought.network, dict(brought.params), 0)
    run = Run(Path("given"), Study(), model, data)
    exact = equilibria(brought.network, brought.params, x)
    made = spike(
        run, split, on=on, code=code, steps=steps, watch=no_progress, bits=bits, entry=entry
    )
    layers = []
    for layer in brought.network.moving:
        firing = made.firing[layer.name]
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
        "code": code.name,
        "steps": steps,
        "samples": len(split),
        "rate_accuracy": accuracy_of(exact.drive, split.y),
        "accuracy": accuracy_of(made.drive, split.y),
        **agreement(brought.network, (exact.state, exact.drive), (made.firing, made.drive)),
        **events(run, made.network, made.counts, samples=len(split)),
        "layers": layers,
        "warnings": too_few(run, Coding(code), steps, entry),
    }


def keep(brought: Model, out: Path, *, dataset: str, force: bool = False) -> None:
    """Write it as a run, so that every command takes it: evaluate, translate, simulate, energy."""
    hidden = [layer.size for layer in brought.network.moving[:-1]] or [1]
    study = adapt(Study(), {"dataset": dataset, "hidden": tuple(hidden)})
    claim(out, force=force)
    (out / STUDY).write_text(config.write(study))
    params = {name: np.asarray(value, dtype=np.float64) for name, value in brought.params.items()}
    save(out / MODEL, Model(brought.network, params, 0))
