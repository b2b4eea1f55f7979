"""The cosine of an update rule with minus the exact gradient, in float64 at equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.data import Dataset, one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.dynamics.solve import GaussSeidel
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import Block, layered, looped, transformer
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import Attention, AttentionKind, PerToken
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.training.gradients import implicit
from neuro_eqprop.training.rules.asymmetric import adjoint_field, vector_field
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import Settling, relax
from neuro_eqprop.training.settings import Rule
from sims.claims.claim import Json
from sims.claims.experiments.common import data_of

TIGHT = Settling(GaussSeidel(), GaussSeidel(backwards=True), tolerance=1e-13)
STEPS = 5000


def network_of(model: str, hidden: int, data: Dataset) -> Network:
    """The network of a cell, with tanh units and a linear output.

    `layered` and `looped` are symmetric; `nonsymmetric` is the looped one with an arbitrary loop
    matrix and separate feedback weights. `linear` and `softmax` are transformers with that
    attention and hidden / 4 units a token; after `nonsymmetric`, their memory has separate feedback
    weights.
    """
    kind = model.removeprefix("nonsymmetric ")
    if kind in ("linear", "softmax"):
        width = hidden // 4
        block = Block(width, width, Attention(AttentionKind(kind), 2, 0.5), 0.7, 1.0)
        tied = transformer(data.shape, block, data.classes, patch=4)
        return tied if kind == model else untied(tied)
    sizes = (data.features, hidden, data.classes)
    if model == "layered":
        half = (sizes[1] // 2,) * 2
        return layered(sizes[0], half, sizes[2], hidden_rate=TANH, output_rate=LINEAR)
    made = looped(*sizes, hidden_rate=TANH, output_rate=LINEAR, bound=None)
    if model == "looped":
        return made
    one_way = tuple(replace(c, symmetric=False) for c in made.connections)
    return Network(made.layers, (*one_way, Connection("output", "hidden", symmetric=False)))


def untied(network: Network) -> Network:
    """The transformer with separate feedback weights of its memory."""
    connections = [replace(c, symmetric=c.target != "memory") for c in network.connections]
    back = Connection("memory", "tokens", PerToken(), symmetric=False)
    return replace(network, connections=(*connections, back))


def random_parameters(network: Network, coupling: float, seed: int) -> dict[str, Array]:
    """Uniform weights and zero biases; recurrent weights have the spectral norm `coupling`.

    The matrices of attention have the spectral norm one.
    """
    rng, params = np.random.default_rng(seed), dict[str, Array]()
    for connection in network.connections:
        shape = network.weight_shape(connection)
        positions = int(np.prod(shape[2:])) if len(shape) == 4 else 1
        limit = np.sqrt(
            6.0 / (positions * (shape[1] + (shape[0] if len(shape) != 3 else shape[2])))
        )
        weight = rng.uniform(-limit, limit, shape)
        if connection.loops and connection.symmetric and connection.operator.matrix:
            weight = (weight + weight.T) / 2
        if isinstance(connection.operator, Attention):
            weight = weight / np.linalg.norm(weight, 2, axis=(1, 2), keepdims=True)
        elif connection.source != network.input.name:
            weight = weight * (coupling / float(np.linalg.norm(weight, 2)))
        params[connection.name] = weight
    return params | {layer.name: np.zeros(layer.bias) for layer in network.moving}


def schedule_of(nudging: str, beta: float) -> Schedule:
    """One-sided or centered phases with enough steps to converge."""
    make = two_phase if nudging == "positive" else three_phase
    return make(beta=beta, free=STEPS, nudged=STEPS)


def update(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    y: Array,
    schedule: Schedule,
    rule: str = Rule.HEBBIAN,
) -> dict[str, Array]:
    """The update of a rule from the equilibria of all phases."""
    ops = NumpyOps()
    nudge = adjoint_field if rule == Rule.ASYMMETRIC else None
    phases = relax(field(ops, network, params, x), y, schedule, TIGHT, nudge)
    states = {name: settled.state for name, settled in phases.items()}
    compute = hebbian if rule == Rule.HEBBIAN else vector_field
    return compute(ops, network, x, states=states, schedule=schedule, params=params)


def concatenate(parts: Mapping[str, Array]) -> Array:
    """All parameters as one vector, in the order of their names."""
    return np.concatenate([np.ravel(parts[name]) for name in sorted(parts)])


def cosines(arguments: Mapping[str, Any], seed: int) -> Json:
    """For each beta the cosine over all parameters and the ratio of the norms."""
    data = data_of(arguments)
    network = network_of(arguments["model"], arguments["hidden"], data)
    params = random_parameters(network, arguments["coupling"], seed)
    rows = np.random.default_rng([seed, 1]).permutation(len(data.train))[: arguments["samples"]]
    x, y = data.train.take(rows).x, one_hot(data.train.y[rows], data.classes)
    descent = {name: -gradient for name, gradient in implicit(network, params, x, y).items()}
    rule = str(arguments.get("rule", Rule.HEBBIAN))
    found: Json = {"cosine": [], "ratio": [], "beta": list(arguments["betas"])}
    for beta in arguments["betas"]:
        schedule = schedule_of(arguments["nudging"], beta)
        change = update(network, params, x, y, schedule, rule)
        found["cosine"].append(defined_cosine(concatenate(change), concatenate(descent)))
        norms = [float(np.linalg.norm(concatenate(each))) for each in (change, descent)]
        found["ratio"].append(norms[0] / norms[1])
        if beta == min(arguments["betas"]):
            found["by_parameter"] = {
                n: defined_cosine(change[n], descent[n]) for n in sorted(descent)
            }
    return found
