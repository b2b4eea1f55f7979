"""Compiled iterations of the output with the one layer that it reads, sample after sample.

The weights between the two are few, so all arrays of a sample stay in the cache. With a the drive
of the layer from below, g the feedback, D displacements (see `layer_state`), in turns:

    s = clip(a + g W^T o),          o = clip(b + W s)                       free
    D_s = rho(g W^T D_o),           D_o = rho((pull + W D_s) / (1 + beta))  nudged
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neuro_eqprop.jit import outer
from neuro_eqprop.ops.protocol import Values
from neuro_eqprop.training.fast.one_hidden_kernel import clip as clip_all
from neuro_eqprop.training.fast.one_hidden_kernel import drive_hidden, drive_output
from neuro_eqprop.training.fast.pooling_kernels import clip


class Readout(NamedTuple):
    """The weights from the layer to the output, the feedback, and how often to iterate."""

    weight: Values
    """(outputs, units)."""
    gain: Values
    limits: Values
    """Lowest and highest rate of the layer, then of the output."""
    turns: int


@outer
def settle(
    readout: Readout, a: Values, bias: Values, start: Values, found: tuple[Values, ...]
) -> None:
    """Write rates and u - s of the layer, and drive and rates of the output.

    `start` has the rates of the output before, or is empty.
    """
    weight, gain, limits, turns = readout
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


@outer
def displace(
    readout: Readout,
    rest: tuple[Values, ...],
    pull: Values,
    beta: Values,
    found: tuple[Values, ...],
) -> None:
    """Write the displacements of the layer and of the output by a pull of the target."""
    weight, gain, limits, turns = readout
    rates, excess, drives, outputs = rest
    none, slack = np.zeros_like(rates[0]), limits.dtype.type(1) / (limits.dtype.type(1) + beta)
    change = np.empty_like(pull[0])
    for i in range(len(rates)):
        s, over, by, by_o = rates[i], excess[i], found[0][i], found[1][i]
        for left in range(turns, 0, -1):
            if left == turns:
                change[:] = pull[i]
            else:
                drive_output(weight, pull[i], by, change)
            for k in range(change.size):
                o = outputs[i, k]
                by_o[k] = clip(change[k] * slack + (drives[i, k] - o), limits[2] - o, limits[3] - o)
            drive_hidden(none, weight, by_o, gain, by)
            for j in range(by.size):
                by[j] = clip(by[j] + over[j], limits[0] - s[j], limits[1] - s[j])
