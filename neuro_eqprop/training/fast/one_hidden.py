"""Chains with one hidden layer, settled and updated by compiled code.

In these networks most of the time goes into the sweeps, not into the input weights. Results equal
those of `training.rules.phases` by sweeps and of `training.rules.hebbian` up to
rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import Field, check_beta, shape_input
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.dynamics.solve import Equilibrium, Stop, fixed_steps_result
from neuro_eqprop.networks.network import DENSE, Cost, Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.fast import one_hidden_kernel
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.rules.base import Batch, BatchUpdate


class PackedBatch(NamedTuple):
    """The inputs of the compiled functions, all of one floating-point type."""

    a: Values
    """Drive of the hidden layer from the input (samples, units)."""
    weight: Values
    bias: Values
    gain: Values
    """The feedback factor."""
    target: Values
    """(samples, outputs)."""
    betas: Values
    """Of the phases; the first, and only the first, is zero."""
    steps: Values
    limits: Values
    """Lowest and highest hidden rate, then lowest and highest output rate."""


class PackedUpdate(NamedTuple):
    """The results of the compiled update, written in place.

    With high and low the phases of the highest and the lowest beta, c the coefficient of the phases
    and k the stiffness of the hidden layer over that of the output:
    """

    shift: Values
    """c k (s_high - s_low) for each sample."""
    weight: Values
    """Sum over samples of c (o_high s_high^T - o_low s_low^T)."""
    bias_s: Values
    """Sum over samples of c k (s_high - s_low)."""
    bias_o: Values
    """Sum over samples of c (o_high - o_low)."""


def is_chain(network: Network) -> bool:
    """Whether linear connections join each layer to the next, symmetric beyond the input."""
    between = list(pairwise(layer.name for layer in network.layers))
    return (
        network.cost is Cost.SQUARED
        and network.output.activation.piecewise_linear
        and network.layers[0] is network.input
        and network.layers[-1] is network.output
        and [(c.source, c.target) for c in network.connections] == between
        and all(c.operator.linear for c in network.connections)
        and all(c.symmetric for c in network.connections[1:])
    )


def has_one_hidden_layer(network: Network) -> bool:
    """Whether a network is a dense chain with one clipped hidden layer and a bias for each unit."""
    clips = len(network.layers) == 3 and network.layers[1].activation.piecewise_linear
    return (
        clips
        and is_chain(network)
        and all(c.operator == DENSE for c in network.connections)
        and all(layer.bias == layer.shape for layer in network.moving)
    )


def is_worth_compiling(free: Field) -> bool:
    """Whether to use compiled code: not in double precision, which only diagnostics use."""
    # The array API standard does not give types a size; its libraries train on solvers.
    kind = free.input_drive[free.network.output.name].dtype
    single = getattr(kind, "itemsize", 8) == 4
    return bool(single) and has_one_hidden_layer(free.network)


def relax_one_hidden(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium] | None:
    """As `relax`, by compiled sweeps; None where they cannot access the values, as on a GPU."""
    ops, network, (hidden, output) = free.ops, free.network, free.network.moving
    s = ops.empty((len(schedule), free.batch, hidden.size))
    o = ops.empty((len(schedule), free.batch, output.size))
    weight, bias = free.params[network.connections[1].name], free.params[output.name]
    known = numpy_views(ops, free.input_drive[hidden.name], weight, bias, target)
    results = numpy_views(ops, s, o)
    if known is None or results is None:
        return None
    change = np.empty((free.batch, len(schedule) if measured else 0))
    packed = plan_of(network, schedule, known[0].dtype).pack(*known)
    one_hidden_kernel.settle(packed, results[0], results[1], change)
    found: dict[str, Equilibrium] = {}
    for k, phase in enumerate(schedule):
        state, last = {hidden.name: s[k], output.name: o[k]}, change[:, k] if measured else change
        found[phase.name] = fixed_steps_result(state, last, Stop(None, phase.steps, measured))
    return found


def update_one_hidden(
    ops: Ops, network: Network, params: Mapping[str, Values], batch: Batch, schedule: Schedule
) -> BatchUpdate | None:
    """The Hebbian update of a batch, without storing its states.

    None where compiled code cannot access the values, or where they diverged: the general code then
    reports where.
    """
    (hidden, output), (entering, between) = network.moving, network.connections
    x, weight, bias = shape_input(network, batch.x), params[between.name], params[output.name]
    a, samples = DENSE.forward(ops, params[entering.name], x, params[hidden.name]), len(x)
    gradients = [ops.empty(tuple(values.shape)) for values in (weight, params[hidden.name], bias)]
    shift = ops.empty((samples, weight.shape[1]))
    known = numpy_views(ops, a, weight, bias, batch.target)
    results = numpy_views(ops, shift, *gradients)
    if known is None or results is None:
        return None
    plan = plan_of(network, schedule, known[0].dtype)
    packed, number = plan.pack(*known), known[0].dtype.type
    change = np.empty((samples, int(batch.measured)))
    scales = number(-plan.steepness / samples), number(plan.stiffness)
    correct, cost = one_hidden_kernel.update(packed, *scales, PackedUpdate(*results), change)
    if not np.isfinite(results[-1].sum()):
        return None
    found = {
        entering.name: DENSE.weight_gradient(ops, None, shift, x),
        between.name: gradients[0],
        hidden.name: gradients[1],
        output.name: gradients[2],
    }
    residual = float(change.max()) if batch.measured else 0.0
    return BatchUpdate(found, correct, cost / samples, residual)


class Plan(NamedTuple):
    """What is the same for every batch of a training."""

    stiffness: float
    """Of the hidden layer over that of the output."""
    steepness: float
    """The coefficient of the phase with the highest beta in the contrast."""
    gain: Values
    limits: Values
    betas: Values
    steps: Values
    """As in `PackedBatch`."""

    def pack(self, a: Array, weight: Array, bias: Array, target: Array) -> PackedBatch:
        """The inputs of the compiled functions."""
        a, weight, bias, target = map(np.ascontiguousarray, (a, weight, bias, target))
        fixed = self.gain, target, self.betas, self.steps, self.limits
        return PackedBatch(a, weight, bias, *fixed)


@keep_last
def plan_of(network: Network, schedule: Schedule, kind: np.dtype[Any]) -> Plan:
    """The plan of a network with one hidden layer; ValueError for a beta without equilibrium."""
    hidden, output = network.moving
    for phase in schedule:
        check_beta(phase.beta)
    limits = [x for layer in network.moving for x in (layer.activation.low, layer.activation.high)]
    return Plan(
        hidden.stiffness / output.stiffness,
        max(contrast(schedule).values()),
        kind.type(network.feedback(network.connections[1])),
        np.array(limits, dtype=kind),
        np.array([phase.beta for phase in schedule], dtype=kind),
        np.array([phase.steps for phase in schedule]),
    )


def numpy_views(ops: Ops, *values: Values) -> list[Array] | None:
    """NumPy views of the values; None if one has none."""
    arrays = [ops.numpy_view(value) for value in values]
    views = [array for array in arrays if array is not None]
    return views if len(views) == len(arrays) else None
