"""Chains with one hidden layer, which settle and learn in compiled sweeps.

In these networks the sweeps take the time, not the weights from the input. Results equal those of
`neuro_eqprop.training.fast.layered` and `neuro_eqprop.training.rules.hebbian` up to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuro_eqprop.activations import ActivationKind
from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.rate.field import Field, shape_input
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.solve import Equilibrium, Stop, fixed_steps_result
from neuro_eqprop.training.config import Batch, BatchUpdate
from neuro_eqprop.training.fast.layered import is_dense


class PackedBatch(NamedTuple):
    """What compiled code reads of a batch, all of one kind of number."""

    a: Values
    """What the input brings, (samples, units)."""
    weight: Values
    bias: Values
    gain: Values
    """The feedback."""
    target: Values
    """(samples, outputs)"""
    betas: Values
    """Of the phases, of which the first and only the first is free."""
    steps: Values
    limits: Values
    """Of the hidden rates, then of the output's."""


class PackedTraining(NamedTuple):
    """What the local rule makes of a batch, to be written to.

    With high and low the phases of the highest and the lowest beta, c the part that each phase
    counts by and k the stiffness of the hidden layer over the output's:
    """

    moved: Values
    """c k (s_high - s_low) of each sample"""
    slope: Values
    """sum of c (o_high s_high^T - o_low s_low^T) over samples"""
    slope_s: Values
    """sum of c k (s_high - s_low)"""
    slope_o: Values
    """sum of c (o_high - o_low)"""


def has_one_hidden_layer(chain: Network) -> bool:
    """Whether a chain is dense and has one hidden layer, which clips its drive."""
    clips = len(chain.layers) == 3 and chain.layers[1].activation.curve is ActivationKind.CLIP
    return clips and is_dense(chain)


def is_worth_compiling(free: Field) -> bool:
    """Whether to compile for a batch: in double precision only few samples are ever looked at."""
    return has_one_hidden_layer(free.network) and bool(
        free.input_drive[free.network.output.name].dtype.itemsize == 4
    )


def relax_one_hidden(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium] | None:
    """As `relax_chain`; None where the values are not in the memory that compiled code reaches."""
    hidden, output = free.network.moving
    s = free.ops.empty((len(schedule), free.batch, hidden.size))
    o = free.ops.empty((len(schedule), free.batch, output.size))
    batch, written = pack_batch(free, target, schedule), as_numpy_views(free, s, o)
    if batch is None or written is None:
        return None
    from neuro_eqprop.training.fast.one_hidden_kernel import settle

    change = np.empty((free.batch, len(schedule) if measured else 0))
    settle(batch, written[0], written[1], change)
    found: dict[str, Equilibrium] = {}
    for k, phase in enumerate(schedule):
        state, last = {hidden.name: s[k], output.name: o[k]}, change[:, k] if measured else change
        found[phase.name] = fixed_steps_result(state, last, Stop(None, phase.steps, measured))
    return found


def update_one_hidden(free: Field, lesson: Batch, schedule: Schedule) -> BatchUpdate | None:
    """What the Hebbian rule makes of a batch, without keeping its states.

    None where compiled code does not reach, or where values diverged: whoever asks
    then goes the plain way, which tells where they did.
    """
    ops, network = free.ops, free.network
    (hidden, output), (entering, between) = network.moving, network.connections
    moved = ops.empty((free.batch, hidden.size))
    slope = ops.empty((output.size, hidden.size))
    slope_s, slope_o = ops.empty((hidden.size,)), ops.empty((output.size,))
    batch = pack_batch(free, lesson.y, schedule)
    written = as_numpy_views(free, moved, slope, slope_s, slope_o)
    if batch is None or written is None:
        return None
    from neuro_eqprop.training.fast.one_hidden_kernel import teach

    number = batch.a.dtype.type
    part = -max(contrast(schedule).values()) / free.batch
    stiffness = hidden.stiffness / output.stiffness
    change = np.empty((free.batch, int(lesson.measured)))
    right = teach(batch, number(part), number(stiffness), PackedTraining(*written), change)
    if not np.isfinite(written[-1].sum()):
        return None
    asked = {
        entering.name: entering.operator.weight_gradient(
            ops, None, moved, shape_input(network, lesson.x)
        ),
        between.name: slope,
        hidden.name: slope_s,
        output.name: slope_o,
    }
    return BatchUpdate(asked, right, float(change.max()) if lesson.measured else 0.0)


def pack_batch(free: Field, target: Values, schedule: Schedule) -> PackedBatch | None:
    """What compiled code reads; None where it does not reach."""
    network = free.network
    hidden, output = network.moving
    between = network.connections[1]
    for phase in schedule:
        free.check_beta(phase.beta)
    held = as_numpy_views(
        free,
        free.input_drive[hidden.name],
        free.params[between.name],
        free.input_drive[output.name],
        target,
    )
    if held is None:
        return None
    a, weight, bias, wanted = (np.ascontiguousarray(array) for array in held)
    kind = a.dtype
    rates = hidden.activation, output.activation
    return PackedBatch(
        a,
        weight,
        bias,
        kind.type(network.feedback(between)),
        wanted,
        betas=np.array([phase.beta for phase in schedule], dtype=kind),
        steps=np.array([phase.steps for phase in schedule]),
        limits=np.array([limit for rate in rates for limit in (rate.low, rate.high)], dtype=kind),
    )


def as_numpy_views(free: Field, *values: Values) -> list[Array] | None:
    """The values as arrays in the same memory; None if any is not in such memory."""
    arrays = [free.ops.numpy_view(value) for value in values]
    reached = [array for array in arrays if array is not None]
    return reached if len(reached) == len(arrays) else None
