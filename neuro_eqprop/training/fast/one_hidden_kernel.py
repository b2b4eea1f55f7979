"""The sweeps of one hidden layer and the output, compiled, one sample after the other.

The weights between the two are few, so all that a sample touches while it settles stays in cache.
Equations as in `neuro_eqprop.training.fast.layered`, with a the drive from the input, W the weights
from hidden to output, g the feedback scale:

    s = clip(a + g W^T o)
    o = clip((b + W s + beta y) / (1 + beta))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuro_eqprop.jit import inner, inner_reordered, outer
from neuro_eqprop.ops.protocol import Values

if TYPE_CHECKING:
    from neuro_eqprop.training.fast.one_hidden import PackedBatch, PackedTraining


@inner_reordered
def clip(values: Values, low: float, high: float) -> None:
    """Cut off in place."""
    for k in range(len(values)):
        value = values[k]
        value = low if value < low else value  # so that what is no number stays none
        values[k] = high if value > high else value


@inner_reordered
def down(a: Values, weight: Values, o: Values, gain: float, s: Values) -> None:
    """s = a + gain W^T o, five rows of W in one pass over s."""
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
def up(weight: Values, bias: Values, s: Values, u: Values) -> None:
    """u = b + W s, five rows of W in one pass over s."""
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
def apart(new: Values, old: Values, most: float) -> float:
    """The largest of `most` and all changes; not a number if any is not."""
    for k in range(len(new)):
        change = abs(new[k] - old[k])
        if not change <= most:
            most = change
    return most


@inner_reordered
def pulled(heard: Values, target: Values, beta: float, o: Values) -> None:
    """o = (heard + beta y) / (1 + beta)."""
    for k in range(len(o)):
        o[k] = (heard[k] + beta * target[k]) / (beta + heard.dtype.type(1))


@inner_reordered
def contrasted(high: Values, low: Values, part: float, moved: Values, total: Values) -> None:
    """moved = part (high - low), also added to the total."""
    for j in range(len(moved)):
        moved[j] = part * (high[j] - low[j])
        total[j] += moved[j]


@inner_reordered
def add_products(
    o_high: Values, s_high: Values, o_low: Values, s_low: Values, part: float, total: Values
) -> None:
    """total += part (o s^T at the high beta - o s^T at the low one)."""
    for k in range(len(o_high)):
        up, down = part * o_high[k], part * o_low[k]
        row = total[k]
        for j in range(len(row)):
            row[j] += up * s_high[j] - down * s_low[j]


@inner
def first_largest(values: Values) -> int:
    """Where the largest value stands."""
    best = 0
    for k in range(1, len(values)):
        if values[k] > values[best]:
            best = k
    return best


@inner
def through_phases(
    batch: PackedBatch,
    i: int,
    hidden: Values,
    output: Values,
    room: tuple[Values, Values, Values, Values],
    change: Values,
) -> None:
    """Let sample i settle through all phases.

    Written to: hidden (phases, units), output (phases, outputs), and change, the largest last
    change of as many phases as it has places for.
    """
    a, target, weight, bias, limits = (
        batch.a[i],
        batch.target[i],
        batch.weight,
        batch.bias,
        batch.limits,
    )
    heard, free, old_s, old_o = room
    for p in range(len(batch.betas)):
        s, o, beta, last = hidden[p], output[p], batch.betas[p], batch.steps[p] - 1
        for t in range(last + 1):
            if p < len(change) and t == last:
                # A phase begins at rest if it is the first, else where that one ended.
                old_s[:] = s if t else (hidden[0] if p else 0 * a)
                old_o[:] = o if t else (output[0] if p else 0 * bias)
            if p:  # nudged: the output first, then the hidden layer
                pulled(heard if t else free, target, beta, o)
                clip(o, limits[2], limits[3])
            if p or t:
                down(a, weight, o, batch.gain, s)
            else:  # nothing comes back in the first sweep
                s[:] = a
            clip(s, limits[0], limits[1])
            if p == 0 or t < last:
                up(weight, bias, s, heard)
            if p == 0:  # free: the output last
                pulled(heard, target, beta, o)
                clip(o, limits[2], limits[3])
        if p == 0:
            free[:] = heard
        if p < len(change):
            change[p] = apart(o, old_o, apart(s, old_s, a.dtype.type(0)))


@inner
def states(batch: PackedBatch) -> tuple[Values, Values]:
    """Room for the rates of a sample in all phases, hidden and output."""
    phases, kind = len(batch.betas), batch.a.dtype
    outputs, units = batch.weight.shape
    return np.empty((phases, units), kind), np.empty((phases, outputs), kind)


@inner
def scratch(batch: PackedBatch) -> tuple[Values, Values, Values, Values]:
    """What `through_phases` keeps notes on."""
    (few, many), kind = batch.weight.shape, batch.a.dtype
    return np.empty(few, kind), np.empty(few, kind), np.empty(many, kind), np.empty(few, kind)


@outer
def settle(batch: PackedBatch, hidden: Values, output: Values, change: Values) -> None:
    """Let every sample settle, and keep all its states.

    Written to: hidden (phases, samples, units), output (phases, samples, outputs), and change
    (samples, phases) or, where it is not asked for, (samples, 0).
    """
    (s, o), room = states(batch), scratch(batch)
    for i in range(len(batch.a)):
        through_phases(batch, i, s, o, room, change[i])
        hidden[:, i], output[:, i] = s, o


@outer
def teach(
    batch: PackedBatch, part: float, stiffness: float, lessons: PackedTraining, change: Values
) -> int:
    """Let every sample settle, keep what the rule makes of it alone, count the right answers.

    Written to: lessons, and change, the last one of each free phase, (samples, 1) or (samples, 0).
    """
    high, low, right = np.argmax(batch.betas), np.argmin(batch.betas), 0
    (s, o), room, shift = states(batch), scratch(batch), np.empty_like(batch.bias)
    moved, slope, slope_s, slope_o = lessons
    slope[:], slope_s[:], slope_o[:] = 0, 0, 0
    for i in range(len(batch.a)):
        through_phases(batch, i, s, o, room, change[i])
        contrasted(s[high], s[low], part * stiffness, moved[i], slope_s)
        contrasted(o[high], o[low], part, shift, slope_o)
        add_products(o[high], s[high], o[low], s[low], part, slope)
        right += first_largest(o[0]) == first_largest(batch.target[i])
    return right
