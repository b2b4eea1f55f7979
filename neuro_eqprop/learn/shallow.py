"""Chains with one hidden layer, which settle in compiled sweeps.

They are the networks in which the sweeps and not the weights from the input take the time. The
numbers are those of `neuro_eqprop.learn.chain`, to rounding.
"""

from __future__ import annotations

import numpy as np

from neuro_eqprop.activations import Curve
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.base import Values
from neuro_eqprop.rate.field import Field
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.solve import Equilibrium, Stop, marched


def is_shallow(chain: Network) -> bool:
    """Whether a chain has one hidden layer, which clips its drive."""
    return len(chain.layers) == 3 and chain.layers[1].activation.curve is Curve.CLIP


def relax_shallow(
    free: Field, target: Values, schedule: Schedule, *, measured: bool
) -> dict[str, Equilibrium] | None:
    """As `relax_chain`; None where the values are not in the memory that compiled code reaches."""
    ops, network, samples = free.ops, free.network, free.batch
    hidden, output = network.moving
    between = network.connections[1]
    for phase in schedule:
        free.check_beta(phase.beta)
    s = ops.room((len(schedule), samples, hidden.size))
    o = ops.room((len(schedule), samples, output.size))
    read = (free.fed[hidden.name], free.params[between.name], free.fed[output.name], target)
    given = [ops.shared(values) for values in (*read, s, o)]
    if any(array is None for array in given):
        return None
    *held, rates, answers = given
    from neuro_eqprop.learn.shallow_kernel import settle  # numba takes its time to import

    a, weight, bias, wanted = (np.ascontiguousarray(array) for array in held)
    limits = [x for layer in network.moving for x in (layer.activation.low, layer.activation.high)]
    number = a.dtype.type
    change = np.empty((len(schedule), samples if measured else 0))
    settle(
        a,
        weight,
        bias,
        number(network.feedback(between)),
        wanted,
        np.array([phase.beta for phase in schedule], dtype=number),
        np.array([phase.steps for phase in schedule]),
        np.array(limits, dtype=number),
        rates,
        answers,
        change,
    )
    found: dict[str, Equilibrium] = {}
    for phase, s_at, o_at, last in zip(schedule, s, o, change, strict=True):
        state = {hidden.name: s_at, output.name: o_at}
        found[phase.name] = marched(state, last, Stop(None, phase.steps, measured))
    return found
