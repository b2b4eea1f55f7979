"""The energy along the way of settling, from many starts, and on a plane through an equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import Trained, data_of, study_of, trained
from neuro_eqprop.networks import Layer
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.rate.energy import energy
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import GaussSeidel, Stop, solve

SAME = 1e-3
"""Two starts end alike if no rate differs by more."""


def start(layer: Layer, samples: int, rng: np.random.Generator) -> Array:
    """Rates drawn from the range of a layer, or from -1 to 1 where it has no end."""
    ends = (max(layer.activation.low, -1.0), min(layer.activation.high, 1.0))
    return rng.uniform(0.999 * ends[0], 0.999 * ends[1], (samples, *layer.shape))


def descend(found: Trained, x: Array, state: State, steps: int) -> tuple[list[Array], State]:
    """The energy of each sample after each sweep, and where it ends."""
    free, solver = field(NumpyOps(), found.network, found.exact, x), GaussSeidel()
    curve = [energy(found.network, found.exact, x, state)]
    for _ in range(steps):
        state = solver.step(free, state)
        curve.append(energy(found.network, found.exact, x, state))
    rest = solve(free, state, solver, Stop(1e-8, 2000))
    return curve, rest.state


def plane(found: Trained, x: Array, rest: State, *, points: int, seed: int) -> Json:
    """The energy over the equilibrium on two drawn directions of its hidden layer, one sample."""
    rng, name = np.random.default_rng([seed, 7]), found.network.moving[0].name
    ways = rng.standard_normal((2, rest[name].shape[1]))
    ways = 0.5 * ways / np.abs(ways).max(axis=1, keepdims=True)
    span = np.linspace(-1.0, 1.0, points)
    low = found.network[name].activation.low
    high = found.network[name].activation.high
    low, high = max(low, -1e9) + 1e-9, min(high, 1e9) - 1e-9
    moved = [
        np.clip(rest[name][:1] + a * ways[0] + b * ways[1], low, high) for b in span for a in span
    ]
    states = {n: np.repeat(s[:1], points**2, axis=0) for n, s in rest.items()}
    states[name] = np.concatenate(moved)
    heights = energy(found.network, found.exact, np.repeat(x[:1], points**2, axis=0), states)
    bottom = energy(found.network, found.exact, x[:1], {n: s[:1] for n, s in rest.items()})
    rows = (heights - bottom[0]).reshape(points, points)
    return {"span": span.tolist(), "height": [[float(h) for h in row] for row in rows]}


def landscape(arguments: Mapping[str, Any], seed: int) -> Json:
    """Rises of the energy, the share of starts that end alike, and the pictures."""
    found = trained(study_of(arguments, seed), data_of(arguments))
    x, rng = found.data.test.x[: arguments["samples"]], np.random.default_rng([seed, 3])
    layers = found.network.moving
    zero = {layer.name: np.zeros((len(x), *layer.shape)) for layer in layers}
    first, rest = descend(found, x, zero, arguments["sweeps"])
    curves, alike, rises = [first], 0, 0
    for _ in range(arguments["starts"]):
        drawn = {layer.name: start(layer, len(x), rng) for layer in layers}
        curve, end = descend(found, x, drawn, arguments["sweeps"])
        apart = np.max([np.abs(end[n] - rest[n]).max(axis=1) for n in end], axis=0)
        alike += int((apart <= SAME).sum())
        curves.append(curve)
    for curve in curves:
        rises += int((np.diff(np.array(curve), axis=0) > 1e-9).any(axis=0).sum())
    return {
        "alike": alike,
        "pairs": arguments["starts"] * len(x),
        "rising": rises,
        "ways": len(curves) * len(x),
        "curves": [[float(e.mean()) for e in curve] for curve in curves[:4]],
        "plane": plane(found, x, rest, points=arguments["points"], seed=seed),
        "test_accuracy": found.accuracy(),
    }
