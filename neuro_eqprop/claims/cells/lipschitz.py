"""How much the map of a looped network can stretch a difference, through training.

At an equilibrium with slopes rho'(u), the loop alone has L = |diag(rho') W_hidden,hidden| and the
whole map L = |diag(rho') W| over all layers that move, in spectral norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuro_eqprop.activations import Activation, Curve
from neuro_eqprop.arrays import Array
from neuro_eqprop.claims.cells.nets import TESTED, Trained, begin, data_of, epochs, study_of
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.learn.readout import answer
from neuro_eqprop.ops.numpy_ops import NumpyOps


def slope(activation: Activation, rates: Array) -> Array:
    """rho'(u) where the rate is rho(u)."""
    if activation.curve is Curve.TANH:
        return 1.0 - rates**2
    return ((rates > activation.low) & (rates < activation.high)).astype(np.float64)


def stretch(found: Trained, x: Array) -> dict[str, float]:
    """The largest L over the samples, of the loop and of the whole map."""
    params, network = found.exact, found.network
    state = answer(NumpyOps(), network, params, x, TESTED).state
    hidden = slope(network["hidden"].activation, state["hidden"])
    output = slope(network.output.activation, state[network.output.name])
    loop, out = params["hidden->hidden"], params["hidden->output"]
    whole = np.block([[loop, out.T], [out, np.zeros((len(out), len(out)))]])
    slopes = np.concatenate([hidden, output], axis=1)
    pairs = {"loop": (hidden, loop), "whole": (slopes, whole)}
    return {
        name: max(float(np.linalg.norm(d[:, None] * matrix, 2)) for d in rows)
        for name, (rows, matrix) in pairs.items()
    }


def constants(arguments: Mapping[str, Any], seed: int) -> Json:
    """L before training and after each epoch, and the accuracy at the end."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network, x = study.network(data), data.test.x[: arguments["samples"]]
    found = Trained(network, begin(study, network).params, data)
    curves = [stretch(found, x)]
    for progress in epochs(study, data):
        found = Trained(network, progress.snapshot.params, data)
        curves.append(stretch(found, x))
    return {
        "loop": [each["loop"] for each in curves],
        "whole": [each["whole"] for each in curves],
        "test_accuracy": found.accuracy(),
    }
