"""Compiled iterations of the output with the layer it reads, one sample after the other.

The weights between the two are few, so all arrays of a sample stay in the cache. With a the drive
of the layer from below, W the weights from it to the output, b the bias, g the feedback, and D
before a name for its displacement by a nudge beta towards y:

    s = rho(a + g W^T o),    o = clip(b + W s)             the free phase, cost 1/2 |o - y|^2
    Do = clip((W Ds + beta (y - u)) / (1 + beta)) etc.     u the drive of the output
    Do = beta (y - softmax(u + W Ds))                      cross-entropy, where o = 0 at rest

The displacements Ds of clipped rates and of tanh are those of `layer_state`. In `settle_pooled` and
`displace_pooled` the output reads averages over squares of an image.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuro_eqprop.common.jit import inner, outer
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.training.fast import pooling_kernels
from neuro_eqprop.training.fast.layer_kernels import ONE, tanh
from neuro_eqprop.training.fast.one_hidden_kernel import clip as clip_all
from neuro_eqprop.training.fast.one_hidden_kernel import drive_hidden, drive_output
from neuro_eqprop.training.fast.pooling_kernels import Square, clip


class Readout(NamedTuple):
    """The weights from the layer to the output, the feedback, and how often to iterate."""

    weight: Values
    """(outputs, units)."""
    bias: Values
    gain: Values
    limits: Values
    """Lowest and highest rate of the layer, then of the output."""
    turns: int


@outer
def settle(readout: Readout, a: Values, start: Values, found: tuple[Values, ...]) -> None:
    """Write rates and u - s of the layer, and drive and rates of the output.

    `start` has the rates of the output before, or is empty.
    """
    weight, bias, gain, limits, turns = readout
    rates, excess, drives, outputs = found
    for i in range(len(a)):
        s, u, o = rates[i], drives[i], outputs[i]
        if len(start):
            drive_hidden(a[i], weight, start[i], gain, s)
        else:
            s[:] = a[i]
        clip_all(s, limits[0], limits[1])
        for left in range(turns, -1, -1):
            drive_output(weight, bias, s, u)
            o[:] = u
            clip_all(o, limits[2], limits[3])
            if left:
                drive_hidden(a[i], weight, o, gain, s)
                if left == 1 and len(excess):
                    over = excess[i]
                    for j in range(s.size):
                        rate = clip(s[j], limits[0], limits[1])
                        over[j] = s[j] - rate
                        s[j] = rate
                else:
                    clip_all(s, limits[0], limits[1])


@inner
def displace_output(
    change: Values, drive: Values, o: Values, slack: float, limits: Values, by: Values
) -> None:
    """The displacement of clipped outputs, where W Ds + beta (y - u) is `change`."""
    for k in range(by.size):
        by[k] = clip(change[k] * slack + (drive[k] - o[k]), limits[2] - o[k], limits[3] - o[k])


@outer
def displace(
    readout: Readout,
    rest: tuple[Values, ...],
    target: Values,
    beta: float,
    found: tuple[Values, ...],
) -> None:
    """Write the displacements of the layer and of the output."""
    weight, _, gain, limits, turns = readout
    rates, excess, drives, outputs = rest
    none, one = np.zeros_like(rates[0]), limits.dtype.type(1)
    pull, change = np.empty_like(target[0]), np.empty_like(target[0])
    for i in range(len(rates)):
        s, over, by, by_o = rates[i], excess[i], found[0][i], found[1][i]
        for k in range(pull.size):
            pull[k] = change[k] = (target[i, k] - drives[i, k]) * beta
        for left in range(turns, 0, -1):
            if left < turns:
                drive_output(weight, pull, by, change)
            displace_output(change, drives[i], outputs[i], one / (one + beta), limits, by_o)
            drive_hidden(none, weight, by_o, gain, by)
            for j in range(by.size):
                by[j] = clip(by[j] + over[j], limits[0] - s[j], limits[1] - s[j])


@outer
def settle_pooled(
    readout: Readout,
    base: Values,
    start: Values,
    image: tuple[Values, Square, tuple[int, int]],
    found: tuple[Values, ...],
) -> None:
    """Write averages and feedback of the squares, and drive and rates of the output.

    `image` has limits and layout as `pooling_kernels` takes them.
    """
    weight, bias, gain, limits, turns = readout
    rates, fed, drives, outputs = found
    none = np.zeros_like(rates[0])
    for i in range(len(base)):
        s, above, u, o = rates[i], fed[i], drives[i], outputs[i]
        above[:] = none
        if len(start):
            drive_hidden(none, weight, start[i], gain, above)
        for left in range(turns, -1, -1):
            pooling_kernels.settle(base[i], above, image[0], image[1], image[2], s)
            drive_output(weight, bias, s, u)
            o[:] = u
            clip_all(o, limits[2], limits[3])
            if left:
                drive_hidden(none, weight, o, gain, above)


@outer
def displace_pooled(
    readout: Readout,
    base: Values,
    rest: tuple[Values, ...],
    target: Values,
    beta: float,
    image: tuple[Values, Square, tuple[int, int]],
    found: tuple[Values, ...],
) -> None:
    """Write the displacements of the pixels, of their averages and of the output."""
    weight, _, gain, limits, turns = readout
    fed, drives, outputs = rest
    moved, averages, shifts = found
    none, shift, one = np.zeros_like(fed[0]), np.empty_like(fed[0]), limits.dtype.type(1)
    pull, change = np.empty_like(target[0]), np.empty_like(target[0])
    for i in range(len(base)):
        for k in range(pull.size):
            pull[k] = change[k] = (target[i, k] - drives[i, k]) * beta
        for left in range(turns, 0, -1):
            if left < turns:
                drive_output(weight, pull, averages[i], change)
            displace_output(change, drives[i], outputs[i], one / (one + beta), limits, shifts[i])
            drive_hidden(none, weight, shifts[i], gain, shift)
            pooling_kernels.displace(
                base[i], fed[i], shift, image[0], image[1], image[2], moved[i], averages[i]
            )


@outer
def displace_softmax(
    readout: Readout,
    rest: tuple[Values, ...],
    target: Values,
    beta: float,
    below: Values,
    found: tuple[Values, ...],
    again: bool,
) -> None:
    """Write the displacements of a layer and of a readout with cross-entropy.

    Those of the layer are read first if `again`; `below` is the change of its drive from elsewhere,
    or empty. Without u - s, of clipped rates, the rates are tanh.
    """
    weight, _, gain, limits, _ = readout
    rates, excess, drives = rest
    none, u = np.zeros_like(rates[0]), np.empty_like(target[0])
    for i in range(len(rates)):
        s, by, by_o = rates[i], found[0][i], found[1][i]
        if again:
            drive_output(weight, drives[i], by, u)
        else:
            u[:] = drives[i]
        most = u.max()
        for k in range(u.size):
            u[k] = np.exp(u[k] - most)
        total = u.sum()
        for k in range(u.size):
            by_o[k] = (target[i, k] - u[k] / total) * beta
        drive_hidden(below[i] if len(below) else none, weight, by_o, gain, by)
        if len(excess):
            over = excess[i]
            for j in range(by.size):
                by[j] = clip(by[j] + over[j], limits[0] - s[j], limits[1] - s[j])
        else:
            for j in range(by.size):
                t = tanh(by[j])
                by[j] = (ONE - s[j] * s[j]) * t / (ONE + s[j] * t)
