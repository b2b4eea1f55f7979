"""The update that trains a random network is minus the gradient of its cost, or that is said.

The update is that of `TrainingLoop.updates`: rule, path, precision and settling as in `train`. The
gradient is that of the settled network in float64, by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array, Ints, cosine
from neuro_eqprop.data import Dataset
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import Conv2d, DelayedFeedback, Dense, Operator, Pooled
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import equilibrium, implicit
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import TrainingError
from neuro_eqprop.training.study import make_study

NETWORKS = 400
LEAST = 0.999
NEGLIGIBLE = 1e-3
"""Gradients below this share of the largest one are left out."""
ROUNDING = 1e-12
"""Gradients below this are zero but for rounding."""
COUPLING = 0.35
"""Largest norm of a coupling, times the root of its feedback; several share it."""
KINKED = ("hard_sigmoid", "relu", "box", "hard_tanh")


@dataclass(frozen=True)
class Case:
    """A network with its parameters, a batch and the settings of a training."""

    network: Network
    params: Mapping[str, Array]
    x: Array
    y: Ints
    settings: Mapping[str, Any]
    dtype: torch.dtype


def image_operator(rng: np.random.Generator, source: tuple[int, ...]) -> tuple[Operator, int]:
    """A convolution of an image, maybe strided or behind pooling, and the side of its result."""
    side = source[1]
    pool = 2 if side % 2 == 0 and side > 4 and rng.random() < 0.4 else 1
    convolution = Conv2d(int(rng.integers(1, 4)), int(rng.integers(0, 2)), int(rng.integers(1, 3)))
    padded = side // pool + 2 * convolution.padding - convolution.kernel + 1
    made = Pooled(pool, convolution) if pool > 1 else convolution
    return made, -(-padded // convolution.stride)


def bias_shape(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a bias that units share, or None."""
    if rng.random() < 0.6:
        return None
    if len(shape) == 3:
        return ((shape[0], 1, 1), (1, 1, 1), (1, *shape[1:]))[rng.integers(3)]
    return (1,)


def chain_of(
    rng: np.random.Generator, rates: list[str], end: str
) -> tuple[list[Layer], list[Operator]]:
    """Layers from the input to the output, and the operator between each and the next."""
    images, depth = rng.random() < 0.35, int(rng.integers(1, 4))
    feedback = 10.0 ** rng.uniform(-4.7, 0.0) if rng.random() < 0.7 else 1.0
    first = (int(rng.integers(1, 3)), 8, 8) if images else (5,)
    layers = [Layer("input", first, "linear", Role.INPUT)]
    operators: list[Operator] = []
    for k in range(depth):
        below = layers[-1].shape
        operator: Operator = Dense()
        shape: tuple[int, ...] = (int(rng.integers(1, 9)),)
        if len(below) == 3 and rng.random() < 0.8:
            convolution, side = image_operator(rng, below)
            if side > 0:
                operator, shape = convolution, (int(rng.integers(1, 4)), side, side)
        operators.append(operator)
        rate, shared = str(rng.choice(rates)), bias_shape(rng, shape)
        layers.append(Layer(f"h{k}", shape, rate, stiffness=feedback**k, shared=shared))
    shared = bias_shape(rng, (3,))
    layers.append(Layer("output", 3, end, Role.OUTPUT, feedback**depth, shared))
    return layers, [*operators, Dense()]


def network_of(rng: np.random.Generator) -> Network:
    """Layers in a chain with skips, labelled twins of connections, and loops."""
    crossed, smooth = rng.random() < 0.3, rng.random() < 0.3
    end = "linear" if smooth or crossed else str(rng.choice(["linear", "hard_sigmoid"]))
    layers, operators = chain_of(rng, ["tanh"] if smooth else list(KINKED), end)
    connections = [
        Connection(a.name, b.name, operator)
        for (a, b), operator in zip(pairwise(layers), operators, strict=True)
    ]
    connections += [
        Connection(source.name, target.name)
        for k, source in enumerate(layers)
        for target in layers[k + 2 :]
        if len(target.shape) == 1 and rng.random() < 0.25
    ]
    connections += [
        Connection(made.source, made.target, made.operator, label="twin")
        for made in connections
        if rng.random() < 0.12
    ]
    connections += [
        Connection(
            layer.name,
            layer.name,
            Dense() if len(layer.shape) == 1 else DelayedFeedback((0.5, 0.2)),
            label="loop",
        )
        for layer in layers[1:-1]
        if rng.random() < 0.25
    ]
    cost = Cost.CROSS_ENTROPY if crossed else Cost.SQUARED
    return Network(tuple(layers), tuple(connections), cost)


def parameters_of(rng: np.random.Generator, network: Network) -> dict[str, Array]:
    """Parameters with which the network settles, and that are not zero."""
    params, ops = dict(initialize(network, rng)), NumpyOps()
    most = COUPLING / len([c for c in network.connections if c.source != "input"]) ** 0.5
    for layer in network.moving:
        params[layer.name] = rng.normal(0.2, 0.2, layer.bias)
    for c in network.connections:
        norm = max(c.operator.spectral_norms(ops, params[c.name], network[c.source].shape))
        gain = 1.0 if c.source == "input" or c.loops else network.feedback(c)
        wanted = 1.0 if c.source == "input" else min(4.0, most / gain**0.5)
        weight = params[c.name] * wanted / norm if norm else np.full(params[c.name].shape, 0.1)
        params[c.name] = weight
    return {name: value.astype(np.float32).astype(np.float64) for name, value in params.items()}


def settings_of(rng: np.random.Generator, network: Network) -> dict[str, Any]:
    """Rule, nudging, solver and its options."""
    smooth = all(layer.activation.smooth for layer in network.moving)
    found: dict[str, Any] = {
        "rule": str(rng.choice(["hebbian", "vector-field", "asymmetric"], p=[0.6, 0.2, 0.2])),
        "nudging": str(rng.choice(["positive", "negative", "centered", "random"])),
        "beta": float(10.0 ** rng.uniform(-3.0, -2.0)),
        "free_steps": 300,
        "nudged_steps": 200,
    }
    if smooth and rng.random() < 0.3:
        found |= {"nudging": "holomorphic"}
    if rng.random() < 0.5:
        found["order"] = str(rng.choice(["sequential", "synchronous"]))
        found["damping"] = float(rng.choice([1.0, 0.8, 0.6]))
        found["anderson"] = int(rng.choice([0, 0, 3]))
        found["tolerance"] = float(rng.choice([0.0, 1e-3, 1e-5, 1e-7]))
    return found


def nearest_kink(network: Network, params: Mapping[str, Array], x: Array) -> float:
    """The least distance of a drive at equilibrium from a kink of its activation."""
    free = field(NumpyOps(), network, params, x)
    state = equilibrium(network, params, x)
    distances = [1.0]
    for layer in network.moving:
        rate = layer.activation
        if rate.piecewise_linear:
            drive = free.drive(layer.name, state)
            distances += [float(np.abs(drive - end).min()) for end in (rate.low, rate.high)]
    return min(distances)


def case_of(number: int) -> Case:
    """A case whose nudge crosses no kink: those are no error, but part of a finite beta."""
    rng = np.random.default_rng([number, 7])
    network = network_of(rng)
    samples = int(rng.choice([1, 4, 16]))
    x = rng.normal(0.0, 1.0, (samples, network.input.size)).astype(np.float32).astype(np.float64)
    params, settings = parameters_of(rng, network), settings_of(rng, network)
    settings["beta"] = min(settings["beta"], 0.2 * nearest_kink(network, params, x))
    dtype = torch.float64 if rng.random() < 0.2 else torch.float32
    return Case(network, params, x, rng.integers(0, 3, samples), settings, dtype)


def loop_of(case: Case) -> TrainingLoop:
    data = Dataset(
        np.tile(case.x, (3, 1)), np.tile([0, 1, 2], len(case.x)), case.x, case.y * 0, name="random"
    )
    study = make_study(model="custom", dataset="random", batch=32, epochs=1, **case.settings)
    ops = TorchOps(case.dtype)
    return TrainingLoop(study, case.network, data, params=case.params, ops=ops)


@pytest.mark.parametrize("number", range(NETWORKS))
@pytest.mark.drawn(24)
def test_the_update_is_minus_the_gradient_or_that_is_said(number: int) -> None:
    case = case_of(number)
    target = np.eye(3)[case.y]
    wanted = implicit(case.network, case.params, case.x, target)
    try:
        loop = loop_of(case)
        found = loop.updates(case.x, target)
    except (TrainingError, ValueError):
        return  # refused
    sizes = {name: float(np.linalg.norm(gradient)) for name, gradient in wanted.items()}
    cosines = {
        name: cosine(found[name], -gradient) or 0.0
        for name, gradient in wanted.items()
        if sizes[name] > max(ROUNDING, NEGLIGIBLE * max(sizes.values()))
    }
    assert {name: update.shape for name, update in found.items()} == case.network.parameters()
    if min(cosines.values(), default=1.0) < LEAST:
        assert loop.diagnose().warning is not None, (cosines, case.settings, case.network)


def test_most_networks_are_neither_refused_nor_warned_of() -> None:
    exact = 0
    for number in range(12):
        case = case_of(number)
        loop = loop_of(case)
        cosines = loop.diagnose().cosine
        exact += cosines is not None and min(cosines.values(), default=1.0) > LEAST
    assert exact >= 8
