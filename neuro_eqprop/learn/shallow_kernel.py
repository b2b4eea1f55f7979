"""The sweeps of one hidden layer and the output, compiled, one sample after the other.

The weights between the two are few, so that all a sample touches while it settles stays next to
the processor. Equations as in `neuro_eqprop.learn.chain`, with a what the input brings, W the
weights from hidden to output, g the feedback:

    s = clip(a + g W^T o)
    o = clip((b + W s + beta y) / (1 + beta))
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.compiled import inner_reordered, outer
from neuro_eqprop.ops.base import Values


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


@outer
def settle(  # noqa: PLR0913, PLR0917, C901
    a: Values,
    weight: Values,
    bias: Values,
    gain: float,
    target: Values,
    betas: Values,
    steps: Values,
    limits: Values,
    hidden: Values,
    output: Values,
    change: Values,
) -> None:
    """Let every sample settle through all phases, of which the first and only the first is free.

    a (samples, units), target (samples, outputs); of each phase beta and steps; limits of the
    hidden rates, then of the output's. Written to: hidden (phases, samples, units), output
    (phases, samples, outputs), and change (phases, samples), the largest last change, or
    (phases, 0), where it is not asked for.
    """
    heard, free = np.empty(len(bias), a.dtype), np.empty(len(bias), a.dtype)
    old_s, old_o = np.zeros(a.shape[1], a.dtype), np.zeros(len(bias), a.dtype)
    for i in range(len(a)):
        for p in range(len(betas)):
            s, o, last = hidden[p, i], output[p, i], steps[p] - 1
            for t in range(steps[p]):
                if change.shape[1] and t == last:
                    # A phase begins at rest if it is the first, else where that one ended.
                    old_s[:] = s if t else (hidden[0, i] if p else 0 * a[i])
                    old_o[:] = o if t else (output[0, i] if p else 0 * bias)
                if p:  # nudged: the output first, then the hidden layer
                    pulled(heard if t else free, target[i], betas[p], o)
                    clip(o, limits[2], limits[3])
                if p or t:
                    down(a[i], weight, o, gain, s)
                else:  # nothing comes back in the first sweep
                    s[:] = a[i]
                clip(s, limits[0], limits[1])
                if p == 0 or t < last:
                    up(weight, bias, s, heard)
                if p == 0:  # free: the output last
                    pulled(heard, target[i], betas[p], o)
                    clip(o, limits[2], limits[3])
            if p == 0:
                free[:] = heard
            if change.shape[1]:
                change[p, i] = apart(o, old_o, apart(s, old_s, a.dtype.type(0)))
