"""The step of a population in the words of Brian2."""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.activations import ActivationKind, tanh
from neuro_eqprop.arrays import Array
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.ir import Neuron, Reset, Spiking

Handle: TypeAlias = Any
"""An object of Brian2, which has no types."""

MODEL = """
a_one : 1
a_beta : 1
outside : 1
pull : 1
drive : 1
messages : 1
sum_firing : 1
sum_drive : 1
"""

# Brian2 may regroup the terms of a sum, so a statement holds no more than one addition.
FEED = """
beta = beta_of(t)
given = outside + beta * pull
"""

SPIKING = """
a = a_one + beta * a_beta
u = keep_current * u + a
drive = u + given
v = keep_voltage * v + drive
fired = int(v >= threshold)
v = {reset}
v = clip(v, lowest, highest)
a_one = 0
a_beta = 0
"""

GRADED = """
g_one = g_one + a_one
g_beta = g_beta + a_beta
gathered = g_one + beta * g_beta
drive = gathered + given
gap = {activation} - x
x = x + damping * gap
{shift}
change = x - sent
ratio = change / theta
q = theta * round_even(ratio)
sent = sent + q
a_one = 0
a_beta = 0
"""

MEASURE = """
messages = messages * within_phase(t) + int({message} != 0)
sum_firing = sum_firing * within_window(t) + {held}
sum_drive = sum_drive * within_window(t) + drive
"""


def step(neuron: Neuron, longest: int) -> tuple[str, str]:
    """The variables of a population and the statements of its step.

    Brian2 reads a message on arrival: of one that takes longer than a step, q_k keeps the past.
    """
    if isinstance(neuron, Spiking):
        reset = "v - threshold * fired" if neuron.reset is Reset.SUBTRACT else "v * (1 - fired)"
        code = SPIKING.format(reset=reset) + MEASURE.format(message="fired", held="fired")
        names = ["u", "v", "fired"]
    else:
        curved = neuron.activation.curve is ActivationKind.TANH
        activation = "exact_tanh(drive)" if curved else "clip(drive, lowest, highest)"
        past = ["q", *(f"q_{k}" for k in range(1, longest))]
        shift = "\n".join(f"{past[k]} = {past[k - 1]}" for k in range(longest - 1, 0, -1))
        code = GRADED.format(activation=activation, shift=shift)
        code += MEASURE.format(message="q", held="sent")
        names = ["g_one", "g_beta", "x", "sent", *past]
    return MODEL + "".join(f"{name} : 1\n" for name in names), FEED + code


def constants(brian2: ModuleType, neuron: Neuron) -> dict[str, Handle]:
    """What the statements of a neuron call by name."""
    if isinstance(neuron, Spiking):
        return {
            "keep_current": 1 - neuron.current_decay,
            "keep_voltage": 1 - neuron.voltage_decay,
            "threshold": neuron.threshold,
            "lowest": neuron.floor,
            "highest": neuron.ceiling,
        }
    return {
        "exact_tanh": brian2.Function(tanh, arg_units=[1], return_unit=1),
        "round_even": brian2.Function(np.rint, arg_units=[1], return_unit=1),
        "theta": neuron.theta,
        "damping": neuron.damping,
        "lowest": neuron.activation.low,
        "highest": neuron.activation.high,
    }


def tables(brian2: ModuleType, schedule: Schedule, dt: Handle) -> dict[str, Handle]:
    """The schedule step by step: beta, and zeros where counts and sums start anew."""
    columns: dict[str, list[Array]] = {
        "beta_of": [],
        "within_phase": [],
        "within_window": [],
        "last_of_phase": [],
    }
    for phase in schedule:
        ticks = np.arange(phase.steps)
        columns["beta_of"].append(np.full(phase.steps, phase.beta))
        columns["within_phase"].append(1.0 * (ticks != 0))
        columns["within_window"].append(1.0 * (ticks != phase.steps - phase.window))
        columns["last_of_phase"].append(1.0 * (ticks == phase.steps - 1))
    return {
        name: brian2.TimedArray(np.concatenate(column), dt=dt) for name, column in columns.items()
    }
