"""Chains with one hidden layer, settled and updated by compiled code.

In these networks most of the time goes into the sweeps, not into the input weights. Results equal
those of `neuro_eqprop.training.relax` by sweeps and of `neuro_eqprop.training.rules.hebbian` up to
rounding.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neuro_eqprop.activations import ActivationKind
from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import DENSE, Cost, Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.rate.field import Field, shape_input
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.solve import Equilibrium, Stop, fixed_steps_result
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.fast.keep_last import keep_last


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
        and network.output.activation.curve is ActivationKind.CLIP
        and network.layers[0] is network.input
        and network.layers[-1] is network.output
        and [(c.source, c.target) for c in network.connections] == between
        and all(c.operator.linear for c in network.connections)
        and all(c.symmetric for c in network.connections[1:])
    )


def has_one_hidden_layer(network: Network) -> bool:
    """Whether a network is a dense chain with one hidden layer of a clipped activation."""
    clips = len(network.layers) == 3 and network.layers[1].activation.curve is ActivationKind.CLIP
    return clips and is_chain(network) and all(c.operator == DENSE for c in network.connections)


def is_worth_compiling(free: Field) -> bool:
    """Whether to use compiled code: not in double precision, which only diagnostics use."""
    return is_single_precision(free) and has_one_hidden_layer(free.network)


def is_single_precision(free: Field) -> bool:
    """Whether rates are float32."""
    return bool(free.input_drive[free.network.output.name].dtype.itemsize == 4)


def relax_one_hidden(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium] | None:
    """As `relax`, by compiled sweeps; None where they cannot access the values, as on a GPU."""
    hidden, output = free.network.moving
    s = free.ops.empty((len(schedule), free.batch, hidden.size))
    o = free.ops.empty((len(schedule), free.batch, output.size))
    packed, results = pack_batch(free, target, schedule), as_numpy_views(free, s, o)
    if packed is None or results is None:
        return None
    from neuro_eqprop.training.fast.one_hidden_kernel import settle

    change = np.empty((free.batch, len(schedule) if measured else 0))
    settle(packed, results[0], results[1], change)
    found: dict[str, Equilibrium] = {}
    for k, phase in enumerate(schedule):
        state, last = {hidden.name: s[k], output.name: o[k]}, change[:, k] if measured else change
        found[phase.name] = fixed_steps_result(state, last, Stop(None, phase.steps, measured))
    return found


def update_one_hidden(free: Field, batch: Batch, schedule: Schedule) -> BatchUpdate | None:
    """The Hebbian update of a batch, without storing its states.

    None where compiled code cannot access the values, or where they diverged: the general code then
    reports where.
    """
    ops, network = free.ops, free.network
    (hidden, output), (entering, between) = network.moving, network.connections
    shift = ops.empty((free.batch, hidden.size))
    weight = ops.empty((output.size, hidden.size))
    bias_s, bias_o = ops.empty((hidden.size,)), ops.empty((output.size,))
    packed = pack_batch(free, batch.target, schedule)
    results = as_numpy_views(free, shift, weight, bias_s, bias_o)
    if packed is None or results is None:
        return None
    from neuro_eqprop.training.fast.one_hidden_kernel import update

    number = packed.a.dtype.type
    c = -max(contrast(schedule).values()) / free.batch
    stiffness = hidden.stiffness / output.stiffness
    change = np.empty((free.batch, int(batch.measured)))
    correct, cost = update(packed, number(c), number(stiffness), PackedUpdate(*results), change)
    if not np.isfinite(results[-1].sum()):
        return None
    pre = shape_input(network, batch.x)
    gradients = {
        entering.name: entering.operator.weight_gradient(ops, None, shift, pre),
        between.name: weight,
        hidden.name: bias_s,
        output.name: bias_o,
    }
    residual = float(change.max()) if batch.measured else 0.0
    return BatchUpdate(gradients, correct, cost / free.batch, residual)


def pack_batch(free: Field, target: Values, schedule: Schedule) -> PackedBatch | None:
    """The inputs of the compiled functions; None where they cannot access the values."""
    network = free.network
    hidden, output = network.moving
    between = network.connections[1]
    for phase in schedule:
        free.check_beta(phase.beta)
    views = as_numpy_views(
        free,
        free.input_drive[hidden.name],
        free.params[between.name],
        free.input_drive[output.name],
        target,
    )
    if views is None:
        return None
    a, weight, bias, targets = (np.ascontiguousarray(array) for array in views)
    kind = a.dtype
    gain, limits = constants_of(network, kind)
    betas = np.array([phase.beta for phase in schedule], dtype=kind)
    steps = np.array([phase.steps for phase in schedule])
    return PackedBatch(a, weight, bias, gain, targets, betas, steps, limits)


@keep_last
def constants_of(network: Network, kind: np.dtype[Any]) -> tuple[Values, Values]:
    """Feedback and limits as in `PackedBatch`."""
    rates = [layer.activation for layer in network.moving]
    limits = [limit for rate in rates for limit in (rate.low, rate.high)]
    return kind.type(network.feedback(network.connections[1])), np.array(limits, dtype=kind)


def as_numpy_views(free: Field, *values: Values) -> list[Array] | None:
    """NumPy views of the values; None if one has none."""
    arrays = [free.ops.numpy_view(value) for value in values]
    views = [array for array in arrays if array is not None]
    return views if len(views) == len(arrays) else None
