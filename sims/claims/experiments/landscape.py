"""The energy while settling, from many initial states, and on a plane through an equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.energy import energy
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import GaussSeidel, Stop, solve
from neuro_eqprop.networks.network import Layer
from neuro_eqprop.networks.ops.numpy import NumpyOps
from sims.claims.claim import Json
from sims.claims.experiments.common import Trained, data_of, study_of, train_study

SAME = 1e-3
"""Largest difference of a rate between two equilibria that count as the same."""


def random_rates(layer: Layer, samples: int, rng: np.random.Generator) -> Array:
    """Rates drawn from the range of the activation, or from [-1, 1] where it is unbounded."""
    ends = (max(layer.activation.low, -1.0), min(layer.activation.high, 1.0))
    return rng.uniform(0.999 * ends[0], 0.999 * ends[1], (samples, *layer.shape))


def descend(found: Trained, x: Array, state: State, steps: int) -> tuple[list[Array], State]:
    """The energy of each sample after each sweep, and the equilibrium."""
    free, solver = field(NumpyOps(), found.network, found.float64, x), GaussSeidel()
    curve = [energy(found.network, found.float64, x, state)]
    for _ in range(steps):
        state = solver.step(free, state)
        curve.append(energy(found.network, found.float64, x, state))
    rest = solve(free, state, solver, Stop(1e-8, 2000))
    return curve, rest.state


def plane(found: Trained, x: Array, rest: State, *, points: int, seed: int) -> Json:
    """The energy around an equilibrium along two random directions of the hidden layer."""
    rng, name = np.random.default_rng([seed, 7]), found.network.moving[0].name
    directions = rng.standard_normal((2, rest[name].shape[1]))
    directions = 0.5 * directions / np.abs(directions).max(axis=1, keepdims=True)
    span = np.linspace(-1.0, 1.0, points)
    low = found.network[name].activation.low
    high = found.network[name].activation.high
    low, high = max(low, -1e9) + 1e-9, min(high, 1e9) - 1e-9
    moved = [
        np.clip(rest[name][:1] + a * directions[0] + b * directions[1], low, high)
        for b in span
        for a in span
    ]
    states = {n: np.repeat(s[:1], points**2, axis=0) for n, s in rest.items()}
    states[name] = np.concatenate(moved)
    heights = energy(found.network, found.float64, np.repeat(x[:1], points**2, axis=0), states)
    minimum = energy(found.network, found.float64, x[:1], {n: s[:1] for n, s in rest.items()})
    rows = (heights - minimum[0]).reshape(points, points)
    return {"span": span.tolist(), "height": [[float(h) for h in row] for row in rows]}


def landscape(arguments: Mapping[str, Any], seed: int) -> Json:
    """Counts of starts that reach the same equilibrium and of energy rises, and energy curves."""
    found = train_study(study_of(arguments, seed), data_of(arguments))
    x, rng = found.data.test.take(slice(arguments["samples"])).x, np.random.default_rng([seed, 3])
    layers = found.network.moving
    zero = {layer.name: np.zeros((len(x), *layer.shape)) for layer in layers}
    first, rest = descend(found, x, zero, arguments["sweeps"])
    curves, alike, rises = [first], 0, 0
    for _ in range(arguments["starts"]):
        drawn = {layer.name: random_rates(layer, len(x), rng) for layer in layers}
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
