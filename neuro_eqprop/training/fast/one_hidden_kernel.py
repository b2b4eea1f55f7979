"""Compiled sweeps of one hidden layer and the output, one sample after the other.

The weights between the two are few, so all arrays of a settling sample stay in the cache. The
equations are those of `neuro_eqprop.dynamics.field`, with a the drive from the input, W the
weights from hidden to output, g the feedback:

    s = clip(a + g W^T o)
    o = clip((b + W s + beta y) / (1 + beta))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuro_eqprop.common.jit import inner, inner_reordered, outer
from neuro_eqprop.networks.ops.protocol import Values

if TYPE_CHECKING:
    from neuro_eqprop.training.fast.one_hidden import PackedBatch, PackedUpdate


@inner_reordered
def clip(values: Values, low: float, high: float) -> None:
    """Clip in place."""
    for k in range(len(values)):
        value = values[k]
        value = low if value < low else value  # keeps NaN
        values[k] = high if value > high else value


@inner_reordered
def drive_hidden(a: Values, weight: Values, o: Values, gain: float, s: Values) -> None:
    """s = a + gain W^T o, with five rows of W in one pass over s."""
    outputs, units = weight.shape
    for j in range(units):
        s[j] = a[j]
    k = 0
    while k + 5 <= outputs:
        c0, c1, c2 = gain * o[k], gain * o[k + 1], gain * o[k + 2]
        c3, c4 = gain * o[k + 3], gain * o[k + 4]
        for j in range(units):
            s[j] += (c0 * weight[k, j] + c1 * weight[k + 1, j]) + (
                (c2 * weight[k + 2, j] + c3 * weight[k + 3, j]) + c4 * weight[k + 4, j]
            )
        k += 5
    for rest in range(k, outputs):
        c = gain * o[rest]
        for j in range(units):
            s[j] += c * weight[rest, j]


@inner_reordered
def drive_output(weight: Values, bias: Values, s: Values, u: Values) -> None:
    """u = b + W s, with five rows of W in one pass over s."""
    outputs, units = weight.shape
    k = 0
    while k + 5 <= outputs:
        t0, t1, t2, t3, t4 = bias[k], bias[k + 1], bias[k + 2], bias[k + 3], bias[k + 4]
        for j in range(units):
            t0 += weight[k, j] * s[j]
            t1 += weight[k + 1, j] * s[j]
            t2 += weight[k + 2, j] * s[j]
            t3 += weight[k + 3, j] * s[j]
            t4 += weight[k + 4, j] * s[j]
        u[k], u[k + 1], u[k + 2], u[k + 3], u[k + 4] = t0, t1, t2, t3, t4
        k += 5
    for rest in range(k, outputs):
        t0 = bias[rest]
        for j in range(units):
            t0 += weight[rest, j] * s[j]
        u[rest] = t0


@inner_reordered
def largest_change(new: Values, old: Values, most: float) -> float:
    """The largest of `most` and all |new - old|; NaN if one is NaN."""
    for k in range(len(new)):
        change = abs(new[k] - old[k])
        if not change <= most:
            most = change
    return most


@inner_reordered
def nudge(drive: Values, target: Values, beta: float, o: Values) -> None:
    """o = (drive + beta y) / (1 + beta)."""
    for k in range(len(o)):
        o[k] = (drive[k] + beta * target[k]) / (beta + drive.dtype.type(1))


@inner_reordered
def add_shift(high: Values, low: Values, c: float, shift: Values, total: Values) -> None:
    """shift = c (high - low), also added to the total."""
    for j in range(len(shift)):
        shift[j] = c * (high[j] - low[j])
        total[j] += shift[j]


@inner_reordered
def add_products(
    o_high: Values, s_high: Values, o_low: Values, s_low: Values, c: float, total: Values
) -> None:
    """total += c (o s^T at the high beta - o s^T at the low one)."""
    for k in range(len(o_high)):
        high, low = c * o_high[k], c * o_low[k]
        row = total[k]
        for j in range(len(row)):
            row[j] += high * s_high[j] - low * s_low[j]


@inner
def argmax(values: Values) -> int:
    """The index of the first largest value."""
    best = 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    return best


@inner
def squared_error(o: Values, target: Values) -> float:
    """1/2 |o - y|^2 in double precision."""
    total = 0.0
    for k in range(len(o)):
        error = float(o[k]) - float(target[k])
        total += error * error
    return 0.5 * total


@inner
def settle_sample(
    batch: PackedBatch,
    i: int,
    hidden: Values,
    output: Values,
    scratch: tuple[Values, Values, Values, Values],
    change: Values,
) -> None:
    """Settle sample i in all phases.

    Writes hidden (phases, units), output (phases, outputs), and to `change` the largest last change
    of the first len(change) phases.
    """
    a, target, weight, bias, limits = (
        batch.a[i],
        batch.target[i],
        batch.weight,
        batch.bias,
        batch.limits,
    )
    drive, free_drive, old_s, old_o = scratch
    for p in range(len(batch.betas)):
        s, o, beta, last = hidden[p], output[p], batch.betas[p], batch.steps[p] - 1
        for t in range(last + 1):
            if p < len(change) and t == last:
                # The first phase starts at zero rates, the others at the end of the first.
                old_s[:] = s if t else (hidden[0] if p else 0 * a)
                old_o[:] = o if t else (output[0] if p else 0 * bias)
            if p:  # nudged: the output first, then the hidden layer
                nudge(drive if t else free_drive, target, beta, o)
                clip(o, limits[2], limits[3])
            if p or t:
                drive_hidden(a, weight, o, batch.gain, s)
            else:  # no feedback in the first sweep
                s[:] = a
            clip(s, limits[0], limits[1])
            if p == 0 or t < last:
                drive_output(weight, bias, s, drive)
            if p == 0:  # free: the output last
                nudge(drive, target, beta, o)
                clip(o, limits[2], limits[3])
        if p == 0:
            free_drive[:] = drive
        if p < len(change):
            change[p] = largest_change(o, old_o, largest_change(s, old_s, a.dtype.type(0)))


@inner
def allocate_states(batch: PackedBatch) -> tuple[Values, Values]:
    """Arrays for the rates of a sample in all phases, hidden and output."""
    phases, kind = len(batch.betas), batch.a.dtype
    outputs, units = batch.weight.shape
    return np.empty((phases, units), kind), np.empty((phases, outputs), kind)


@inner
def allocate_scratch(batch: PackedBatch) -> tuple[Values, Values, Values, Values]:
    """Work arrays of `settle_sample`."""
    (outputs, units), kind = batch.weight.shape, batch.a.dtype
    drive, free_drive = np.empty(outputs, kind), np.empty(outputs, kind)
    return drive, free_drive, np.empty(units, kind), np.empty(outputs, kind)


@outer
def settle(batch: PackedBatch, hidden: Values, output: Values, change: Values) -> None:
    """Settle all samples and return all states.

    Writes hidden (phases, samples, units), output (phases, samples, outputs), and the last changes
    to `change` (samples, phases), or (samples, 0) if they are not measured.
    """
    (s, o), scratch = allocate_states(batch), allocate_scratch(batch)
    for i in range(len(batch.a)):
        settle_sample(batch, i, s, o, scratch, change[i])
        hidden[:, i], output[:, i] = s, o


@outer
def update(
    batch: PackedBatch, c: float, stiffness: float, result: PackedUpdate, change: Values
) -> tuple[int, float]:
    """Settle all samples and sum the Hebbian update; return correct predictions and the cost.

    Writes `result`, and the last changes of free phases to `change` (samples, 1) or (samples, 0).
    """
    high, low, correct, cost = np.argmax(batch.betas), np.argmin(batch.betas), 0, 0.0
    (s, o), scratch = allocate_states(batch), allocate_scratch(batch)
    shift_o = np.empty_like(batch.bias)
    shift, weight, bias_s, bias_o = result
    weight[:], bias_s[:], bias_o[:] = 0, 0, 0
    for i in range(len(batch.a)):
        settle_sample(batch, i, s, o, scratch, change[i])
        add_shift(s[high], s[low], c * stiffness, shift[i], bias_s)
        add_shift(o[high], o[low], c, shift_o, bias_o)
        add_products(o[high], s[high], o[low], s[low], c, weight)
        correct += argmax(o[0]) == argmax(batch.target[i])
        cost += squared_error(o[0], batch.target[i])
    return correct, cost
